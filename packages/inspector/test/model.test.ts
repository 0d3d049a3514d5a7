import '../../../test/own-process.js';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Event } from '@pawl/agent/machine/event';
import { agent } from '@pawl/agent/machine/machine';
import type { Header } from '@pawl/agent/ports/journal';
import { projections } from '@pawl/verify/projections/all-projections';
import { machineRules } from '../../../scripts/machine-rules.js';
import { settingsFrom } from '../../../test/kit/agent/trace-player.js';
import { eventsOf, STORY } from '../../../test/kit/inspector/stored-session.js';
import { ChartTrace } from '../src/model/chart.js';
import { crashStories } from '../src/model/crash-story.js';
import { explainArrow, explainState } from '../src/model/explain-state-and-arrow.js';
import { countRounds } from '../src/model/highlights.js';
import { traceRounds } from '../src/model/rounds.js';
import { requestAt, sharedPrefix } from '../src/model/sent-request.js';
import {
  findEntries,
  nextMarker,
  SessionHistory,
  valueDifferences,
} from '../src/model/session-history.js';
import { timeAxis } from '../src/model/time-axis.js';

/** What the page computes, without the page. */

const headerOf = (trace: string): Header => ({
  version: 1,
  sessionId: 'story',
  createdAt: 0,
  workspace: '/project',
  parent: null,
  machine: '',
  settings: settingsFrom(/^! (.*)$/m.exec(trace)?.[1] ?? ''),
  instructions: '',
  tools: '',
  prices: null,
});

const historyOf = (trace: string): SessionHistory => {
  const history = new SessionHistory(headerOf(trace));
  history.add(eventsOf(trace).map((event, index) => ({ seq: index + 1, event })));
  return history;
};

const PROMPT = { instructions: 'Be brief — ja.', tools: '[]' };

/** A command that ran when the process died, and how the next process found that it had ended. */
const crashedCommand = (end: string): SessionHistory => {
  const events = eventsOf(`! auto
> @0 Start
> @1000 UserInput "go"
> @2000 LlmCompleted req-1 calls bash(c1 npm test)
> @2010 ToolStarted batch-1 c1
> @9000 Resumed 2
> @9900 ToolCompleted batch-1 c1 ${end}
`);
  const history = new SessionHistory(headerOf('! auto\n'));
  history.add(
    events.map((event, index) => ({
      seq: index + 1,
      event:
        event.type === 'LlmCompleted'
          ? {
              ...event,
              calls: event.calls.map((call) => ({
                ...call,
                traits: { ...call.traits, effect: 'opaque' as const },
              })),
            }
          : event,
    })),
  );
  return history;
};

describe('what the inspector computes', () => {
  for (const [end, label, text] of [
    ['ok "passed"', 'Went on', /real result was found: ok/],
    ['cancelled "stopped"', 'Went on', /went on without the process, and was cancelled/],
    ['lost "unknown"', 'Found', /could not be followed/],
  ] as const) {
    it(`labels a command that ended ${end} after a crash: ${label}`, () => {
      const sentences = crashStories(crashedCommand(end)).flatMap((story) => story.sentences);
      const found = sentences.filter((sentence) => text.test(sentence.text.join('')));
      assert.deepEqual(
        found.map((sentence) => sentence.label),
        [label],
      );
    });
  }

  const story = historyOf(STORY);

  it('finds every place to jump to, in both directions', () => {
    const kinds = story.markers.map(({ seq, kind }) => `${seq} ${kind}`);
    assert.deepEqual(kinds, [
      '2 prompt',
      '3 error',
      '4 retry',
      '9 failed call',
      '10 approval',
      '11 approval',
      '14 approval',
      '16 failed call',
      '20 prompt',
      '24 cancel',
      '25 prompt',
      '28 crash',
      '35 compaction',
    ]);
    assert.equal(nextMarker(story.markers, 'approval', 10, 'forward')?.seq, 11);
    assert.equal(nextMarker(story.markers, null, 10, 'back')?.seq, 9);
    assert.equal(nextMarker(story.markers, 'limit', 0, 'forward'), null);
  });

  it('shows the request that was sent, and what begins as in the one before', () => {
    const first = requestAt(story, PROMPT, 3);
    const second = requestAt(story, PROMPT, 9);
    assert.deepEqual([first?.seq, first?.requestId, second?.seq], [2, 'req-1', 9]);
    assert.ok(first !== null && second !== null);
    assert.deepEqual(
      second.parts.map(({ title }) => title),
      ['tools', 'instructions', 'user', 'assistant', 'user'],
    );
    const { sharedBytes, parts, characters } = sharedPrefix(first, second);
    assert.deepEqual([parts, characters], [3, 0]);
    const before = first.parts.map(({ text }) => text).join('');
    assert.equal(sharedBytes, Buffer.byteLength(before), 'bytes, not characters');
    assert.equal(sharedPrefix(null, second).sharedBytes, 0);
    assert.equal(sharedPrefix({ ...first, model: 'another' }, second).sharedBytes, 0);
    assert.equal(requestAt(story, PROMPT, 1), null);
  });

  it('shows the tools that joined while the request waited, and no others before', () => {
    const [start, prompt, ...rest] = eventsOf(STORY);
    assert.ok(start !== undefined && prompt !== undefined);
    const joins: Event = { type: 'SettingsChanged', at: prompt.at, patch: { tools: 'sha' } };
    const history = new SessionHistory(headerOf(STORY));
    const events = [start, prompt, joins, ...rest];
    history.add(events.map((event, index) => ({ seq: index + 1, event })));
    const toolsAt = (prompting: typeof PROMPT & { laterTools?: Record<string, string> }) =>
      requestAt(history, prompting, 3)?.parts[0]?.text;
    assert.equal(toolsAt({ ...PROMPT, laterTools: { sha: '["joined"]' } }), '["joined"]');
    assert.equal(toolsAt(PROMPT), '(not in this copy)');
    assert.equal(requestAt(story, PROMPT, 3)?.parts[0]?.text, '[]');
  });

  it('takes entries once and in order', () => {
    const [first, second] = eventsOf(STORY);
    assert.ok(first !== undefined && second !== undefined);
    const history = new SessionHistory(headerOf(STORY));
    history.add([{ seq: 1, event: first }]);
    history.add([{ seq: 1, event: first }]);
    assert.equal(history.seq, 1);
    assert.throws(() => history.add([{ seq: 3, event: second }]), /entry 2 is missing before 3/);
  });

  it('counts arrows up to any event, forwards and back', () => {
    const trace = ChartTrace.of('whole');
    trace.follow(story.steps);
    const atEnd = new Map(trace.countsAt(story.seq));
    assert.equal(atEnd.get('Error CallingLlm'), 1);
    assert.equal(trace.countsAt(3).get('Error CallingLlm'), undefined);
    assert.deepEqual(new Map(trace.countsAt(story.seq)), atEnd);
    const sum = [...atEnd.values()].reduce((all, one) => all + one, 0);
    const walked = story.steps.flatMap(({ path }) =>
      path.filter(({ kind, from, to }) => kind === 'go' && from !== to),
    );
    assert.equal(sum, walked.length);
    assert.equal(trace.stateAt(0), 'Ready');
  });

  it('counts arrows of a long session from wherever it counted last', () => {
    const steps = Array.from({ length: 40 }, () => story.steps).flat();
    const trace = ChartTrace.of('whole');
    trace.follow(steps);
    const hopsOf = ({ path }: (typeof steps)[number]) =>
      path.filter(({ kind, from, to }) => kind === 'go' && from !== to);
    for (const seq of [1_440, 255, 256, 257, 1_439, 700, 511, 513, 0, 1_000]) {
      const counts = [...trace.countsAt(seq).values()].reduce((sum, one) => sum + one, 0);
      assert.equal(counts, steps.slice(0, seq).flatMap(hopsOf).length, `up to ${seq}`);
      const retries = steps.slice(0, seq).flatMap(hopsOf);
      const again = retries.filter(
        ({ from, to }) => from === 'Error' && to === 'CallingLlm',
      ).length;
      assert.equal(trace.countsAt(seq).get('Error CallingLlm') ?? 0, again, `retries up to ${seq}`);
    }
  });

  it('names what differs in two states, lists of our own as well', () => {
    assert.deepEqual(valueDifferences({ a: [1, 2], b: null }, { a: [1], c: { d: 0 } }), [
      { path: 'a[1]', before: 2, after: undefined },
      { path: 'b', before: null, after: undefined },
      { path: 'c', before: undefined, after: { d: 0 } },
    ]);
    const paths = valueDifferences(story.stateAt(4), story.stateAt(5)).map(({ path }) => path);
    assert.ok(paths.includes('session.conversation.closed[1]'), paths.join());
    assert.deepEqual(valueDifferences(story.stateAt(7), story.stateAt(7)), []);
  });

  it('explains every state and arrow of every chart', () => {
    const rules = machineRules(fileURLToPath(new URL('../../..', import.meta.url)));
    for (const name of Object.keys(agent.states)) {
      const explanation = explainState(name, null, rules);
      assert.ok(explanation.about.length > 20 && explanation.rules.length > 0, name);
    }
    for (const { from, to, kind } of agent.edges)
      if (kind === 'go')
        assert.ok(explainArrow({ from, to }, null, rules).branches.length > 0, `${from} ${to}`);
    for (const view of projections)
      for (const { from, to } of view.edges)
        assert.ok(explainArrow({ from, to }, view, rules).branches.length > 0);
  });

  it('shortens waits on the axis and keeps the order of time', () => {
    const { spans, elapsedMs } = story.figures;
    const [real, shortened] = [timeAxis([], elapsedMs), timeAxis(spans, elapsedMs)];
    let last = -1;
    for (let ms = 0; ms <= elapsedMs; ms += 997) {
      const place = shortened.position(ms);
      assert.ok(place >= last && place >= 0 && place <= 1, `${ms}: ${place}`);
      last = place;
    }
    assert.ok(Math.abs(real.position(elapsedMs / 4) - 0.25) < 1e-9);
    const gap = spans.find(({ kind }) => kind === 'between');
    assert.ok(gap !== undefined);
    assert.ok(shortened.position(gap.endMs) - shortened.position(gap.startMs) < 0.04);
    assert.equal(timeAxis([], 0).position(0), 0);
  });

  it('finds texts in any case, and lists all events for none', () => {
    assert.deepEqual(
      findEntries(story.steps, 'EXPECTED 19.99').map(({ seq, hit }) => [seq, hit]),
      [[16, 'expected 19.99']],
    );
    assert.equal(findEntries(story.steps, '').length, story.seq);
  });
});

describe('rounds', () => {
  it('a request of another model that takes over is in the round of the first', () => {
    const history =
      historyOf(`! {"maxRetries":0,"fallback":[{"model":"other/second","windowTokens":9000,"prices":null}]}
> @0 Start
> @1000 UserInput "go"
> @2000 LlmFailed req-1 overloaded "busy"
> @3000 LlmCompleted req-2 says "Yes." cost=1
> @4000 UserInput "again"
> @5000 LlmCompleted req-3 says "Yes." cost=2
`);
    const rounds = traceRounds(history).filter(({ kind }) => kind === 'round');
    assert.deepEqual(
      rounds.map(({ usd, failed }) => [usd, failed]),
      [
        [1, 1],
        [2, 0],
      ],
    );
    assert.equal(countRounds(history.figures.requests), 2);
  });
});
