import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';
import { agent } from '@pawl/agent/machine/machine';
import { explore } from '@pawl/machine/explorer/explore';
import { usage } from '../../../../test/kit/agent/given.js';
import { eventFrom } from '../../../../test/kit/agent/trace-events.js';
import { play, settingsFrom } from '../../../../test/kit/agent/trace-player.js';
import type { Configuration } from '../../src/exploration/configuration.js';
import { createConfigurations } from '../../src/exploration/configurations.js';
import { createModel, createSettings } from '../../src/exploration/exploration-model.js';
import { eventLine, writeTrace } from '../../src/exploration/write-trace.js';
import { smallBounds } from './small.js';

const STATES_MAX = 120;

/** One event of each kind of line that a configuration makes: digits aside, lines of a kind are the same. */
const eventsOf = (configuration: Configuration): ReadonlyMap<string, Event> => {
  const events = new Map<string, Event>();
  const { model } = createModel(configuration, agent, []);
  const { labels } = model;
  const listening = {
    ...model,
    labels: (node: Parameters<typeof labels>[0]) => {
      const found = labels(node);
      for (const { event } of found) events.set(eventLine(event, 0).replaceAll(/\d+/g, ''), event);
      return found;
    },
  };
  explore(listening, { statesMax: STATES_MAX });
  return events;
};

/** What a trace does not say of a call: the tools that there are besides it. */
const unsaid = (event: Event): unknown =>
  JSON.parse(JSON.stringify(event), (key, value) => (key === 'known' ? [] : value));

test('every event of an exploration is read back as it was written', () => {
  const events = new Map(createConfigurations(smallBounds).flatMap((one) => [...eventsOf(one)]));
  for (const event of events.values()) {
    const line = eventLine(event, 0);
    assert.deepEqual(unsaid(eventFrom(line, 0)), unsaid(event), line);
  }
  assert.deepEqual(
    [...new Set([...events.values()].map(({ type }) => type))].sort(),
    Object.keys(agent.events).sort(),
  );
});

test('the settings of a configuration are read back from its trace', () => {
  for (const configuration of createConfigurations(smallBounds)) {
    const [, settings = ''] = writeTrace(configuration, ['x'], []).split('\n');
    assert.deepEqual(
      settingsFrom(settings.slice(2)),
      createSettings(configuration),
      configuration.name,
    );
  }
});

test('a path is written as a trace that can be played, with its times', () => {
  const [configuration] = createConfigurations(smallBounds);
  assert.ok(configuration !== undefined);
  const trace = writeTrace(
    configuration,
    ['every-call-answered: the last calls are not answered'],
    [
      { type: 'Start', at: 0 },
      { type: 'UserInput', at: 500, text: 'hi', mode: 'followUp' },
      { type: 'CancelTurn', at: 500 },
    ],
  );
  const [title, , , ...rest] = trace.split('\n');
  assert.equal(
    title,
    "# Found in the configuration 'everything': every-call-answered: the last calls are not answered.",
  );
  assert.deepEqual(rest, ['', '> @500 UserInput "hi" followUp', '', '> CancelTurn', '']);
  assert.match(play(trace).text, /\n> CancelTurn\n- CallingLlm\/CancelTurn\/2 /);
});

test('instructions for a summary are written after the request and read back', () => {
  const wish: Event = { type: 'CompactRequested', at: 0, instructions: 'keep the plan' };
  assert.equal(eventLine(wish, 0), 'CompactRequested "keep the plan"');
  assert.deepEqual(eventFrom('CompactRequested "keep the plan"', 0), wish);
});

test('a reply is told with its text, without its reasoning and calls', () => {
  const event: Event = {
    type: 'LlmCompleted',
    at: 0,
    requestId: 'req-1',
    calls: [],
    stopReason: 'end',
    usage: usage(0, 7),
    message: {
      role: 'assistant',
      model: 'test/model',
      cut: false,
      parts: [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'yes' },
      ],
    },
  };
  assert.equal(eventLine(event, 0), 'LlmCompleted req-1 says "yes" tokens=7+1 cost=0');
});
