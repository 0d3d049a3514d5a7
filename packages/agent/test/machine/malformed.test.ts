import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trimmed } from '@pawl/machine/kernel/shape';
import * as g from '../../../../test/kit/agent/given.js';
import { mutate, pick, randomFrom, rubbish } from '../../../../test/kit/agent/mutations.js';
import { labels } from '../../../../test/kit/agent/pairs.js';
import { begun } from '../../../../test/kit/agent/random.js';
import { samples } from '../../../../test/kit/agent/samples.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { createStateCheck } from '../../src/journal/journaled-agent-machine.js';
import type { Event } from '../../src/machine/event.js';
import { agent, step } from '../../src/machine/machine.js';
import { eventShape, messageShape } from '../../src/machine/shapes.js';
import type { State } from '../../src/machine/state.js';

/** Events that are none: `step` refuses them with a diagnostic, and the state is the same object as before. */

const COUNT = countCases(4_000);

/** What comes from outside has no type. */
const given = (event: unknown): Event => event as Event;

const waiting = step(begun({}), given({ type: 'Start', at: g.NOW })).state;

const assertRefused = (state: State, event: unknown, why: RegExp): void => {
  const taken = step(state, given(event));
  assert.equal(taken.state, state);
  assert.deepEqual([taken.actions, taken.path, taken.diagnostics.length], [[], [], 1]);
  const [diagnostic] = taken.diagnostics;
  assert.equal(diagnostic?.kind, 'malformed');
  assert.match(diagnostic?.why ?? '', why);
};

test('every type of event has a sample that its shape takes, with every field that there is', () => {
  assert.deepEqual(samples.map(({ type }) => type).sort(), Object.keys(agent.events).sort());
  for (const event of samples) {
    assert.notEqual(step(waiting, event).diagnostics[0]?.kind, 'malformed', event.type);
    const own = Object.keys(event).filter((key) => key !== 'type' && key !== 'at');
    assert.deepEqual(
      own.sort(),
      Object.keys(eventShape.cases[event.type])
        .filter((name) => name !== 'at')
        .sort(),
      event.type,
    );
  }
});

test('what a later version adds to messages is left out', () => {
  const later = { later: 1 };
  const said = { role: 'assistant', model: 'm', cut: false, parts: [{ type: 'text', text: 'a' }] };
  const asked = { role: 'user', parts: [{ type: 'text', origin: 'user', text: 'a' }] };
  for (const message of [said, asked]) {
    const parts = message.parts.map((part) => ({ ...part, ...later }));
    assert.deepEqual(trimmed(messageShape, { ...message, ...later, parts }), message);
  }
});

test('a diagnostic says which field is wrong, what it is, and what it must be', () => {
  const usage = g.usage(0.1);
  const completed = g.eventOf(g.says('yo', usage), waiting);
  const rows: readonly [unknown, RegExp][] = [
    [undefined, /^the event is missing; it must be an object$/],
    [null, /^the event is null; it must be an object$/],
    ['Start', /^the event is "Start"; it must be an object$/],
    [{ at: 1 }, /^type is missing; it must be one of Start, UserInput,/],
    [{ type: 'toString', at: 1 }, /^type is "toString"; it must be one of/],
    [{ type: 'Start' }, /^at is missing; it must be a finite number$/],
    [{ type: 'Start', at: Number.NaN }, /^at is NaN; it must be a finite number$/],
    [
      { type: 'UserInput', at: 1, text: 5n, mode: 'steer' },
      /^text is a bigint; it must be a text$/,
    ],
    [
      { type: 'UserInput', at: 1, text: 'x', mode: 'steel' },
      /^mode is "steel"; it must be one of steer, /,
    ],
    [
      { type: 'EditQueue', at: 1, items: [{}] },
      /^items\[0\]\.inputId is missing; it must be a text$/,
    ],
    [
      { ...completed, usage: { ...usage, inputTokens: Number.NaN } },
      /^usage\.inputTokens is NaN; it must be a whole number from 0 to 1000000000$/,
    ],
    [
      { ...completed, usage: { ...usage, outputTokens: -1 } },
      /^usage\.outputTokens is -1; it must be a whole/,
    ],
    [
      { type: 'SettingsChanged', at: 1, patch: { maxRetry: 3 } },
      /^patch\.maxRetry is not known; it must be left out: the fields are model, workspace,/,
    ],
    [
      { type: 'SettingsChanged', at: 1, patch: { limits: undefined } },
      /^patch\.limits is undefined; it must be left out$/,
    ],
    [
      { type: 'SettingsChanged', at: 1, patch: { maxParallel: 0 } },
      /^patch\.maxParallel is 0; it must be a/,
    ],
    [
      {
        get type(): string {
          throw new Error('no');
        },
      },
      /^the event can't be read/,
    ],
  ];
  for (const [event, why] of rows) assertRefused(waiting, event, why);
});

/** A random walk of which each event is first tried with something wrong in it. */
test('step is total: whatever comes, it returns, and what it refuses changes nothing', (t) => {
  t.diagnostic(`PAWL_SEED=${SEED}, PAWL_COUNT=${COUNT}`);
  const random = randomFrom(SEED);
  let refused = 0;
  let state: State = begun({});
  let check = createStateCheck();
  for (let index = 0; index < COUNT; index++) {
    if (index % 60 === 0) {
      state = waiting;
      check = createStateCheck();
    }
    const fitting = g.eventOf(pick(random, labels).given, state);
    const origin = random() < 0.6 ? fitting : pick(random, samples);
    const event = random() < 0.03 ? rubbish(random) : mutate(random, origin);
    const taken = step(state, given(event));
    if (taken.diagnostics[0]?.kind === 'malformed') {
      refused += 1;
      assert.equal(taken.state, state);
      assert.deepEqual([taken.actions, taken.path], [[], []]);
    } else assertFinite(taken.state);
    // what was taken is something that a journal can hold and a check can sum
    check(taken.state);
    state = step(state, fitting).state;
  }
  assert.ok(refused > COUNT / 3, `${refused} of ${COUNT} were refused`);
  assert.equal(({} as { readonly polluted?: string }).polluted, undefined);
});

const assertFinite = ({ session }: State): void => {
  const { estimated: _, atLeast: __, ...usage } = session.usage;
  const { contextTokens, slices, turn, settings } = session;
  const limits = [...Object.values(settings.limits), ...Object.values(slices)];
  const numbers = [...Object.values(usage), contextTokens, turn.startedAt];
  for (const number of [...numbers, ...limits.filter((limit) => limit !== 'unlimited')])
    assert.ok(Number.isFinite(number), `${number}`);
  for (const number of Object.values(usage)) assert.ok(number >= 0);
};
