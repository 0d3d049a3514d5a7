import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { u } from '../../../../test/kit/agent/shown.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';
import { openParts } from '../../src/machine/conversation.js';
import { failureOrigin, type On } from '../../src/machine/event.js';
import type { Image } from '../../src/machine/message.js';

// Corners that a first version got wrong, each with what it does now.

const cat: Image = { mediaType: 'image/png', sha256: 'c'.repeat(64) };
const shows = (text: string): On<'UserInput'> => ({
  type: 'UserInput',
  at: g.NOW,
  text,
  mode: 'steer',
  images: [cat],
});
const restored = (walker: Walker) =>
  walker
    .last()
    .actions.flatMap((action) => (action.type === 'RestoreQueue' ? [action.images] : []));
const lengthOfResult = (walker: Walker): number =>
  openParts(walker.state().session.conversation)[0]?.text.length ?? 0;
const unjudged: g.Given = (state) => ({
  ...g.completed({ calls: [g.grep('1')] })(state),
  calls: [],
});
const cutOff = () => {
  const walker = bring('C[u]', { resultCutBytes: 10 });
  walker.send(g.wants(g.grep('1')), g.ended('1', 'ok', 'x'.repeat(5_000)), g.overflows);
  return walker;
};

check([
  {
    rule: 'overflow-cuts-results',
    title: 'results are cut once, however small the cut is set',
    given: cutOff,
    state: 'C[t]',
    also: (walker) => assert.ok(lengthOfResult(walker) <= 128),
  },
  {
    rule: 'malformed-reply',
    title: 'a reply with calls that were not judged is malformed',
    given: 'C[u]',
    send: [unjudged],
    state: 'W(error malformed)',
    talk: [u('hi')],
  },
  {
    rule: 'queue-after-stop',
    title: 'pictures go back to the editor with their text',
    given: 'C[u]',
    settings: { queueOnCancel: 'restore' },
    send: [g.input('first'), shows('look'), g.cancel],
    state: 'W(cancelled user)',
    also: (walker) => assert.deepEqual(restored(walker), [[[], [cat]]]),
  },
  {
    rule: 'stopping-policy',
    title: 'a stop by the policy is told once, in its words',
    given: 'C[u]',
    send: [g.policyStops()],
    state: 'W(cancelled policy)',
    shows: ['DisplayNotice cancelled: enough'],
    also: (walker) => {
      const notices = walker.last().actions.filter(({ type }) => type === 'DisplayNotice');
      assert.equal(notices.length, 1);
    },
  },
]);

const held = (patch = {}): Walker => {
  const walker = bring('C[u]', { autoRearm: 'off', limits: { usd: 1, tokens: 50 }, ...patch });
  walker.send(g.input('later'), g.says('yo', g.usage(2)));
  return walker;
};

check([
  {
    rule: 'raised-limit',
    title: 'another limit that is raised releases nothing',
    given: () => held(),
    send: [g.approve('tokens', 900)],
    state: 'W(budget usd)',
    queue: ['later'],
  },
  {
    rule: 'raised-limit',
    title: 'the right one does',
    given: () => held(),
    send: [g.approve('usd', 9)],
    state: 'C[u]',
    queue: [],
  },
]);

test('a turn that failed names its origin', () => {
  const reasonAfter = (...given: readonly g.Given[]) => {
    const walker = bring('W');
    walker.send(...given);
    const state = walker.state();
    return state.name === 'WaitingForUserInput' && state.reason.kind === 'error'
      ? state.reason.origin
      : null;
  };
  assert.equal(reasonAfter(g.input('hi'), g.refusedRequest), 'llm');
  assert.equal(reasonAfter(g.input('hi'), g.wants(g.grep('1')), g.toolsFail), 'tool');
  assert.equal(reasonAfter(g.inputFails), 'io');
  assert.deepEqual(
    [failureOrigin('compaction'), failureOrigin('tools'), failureOrigin('input')],
    ['llm', 'tool', 'io'],
  );
});

// ---- Clocks ----

const DAY = 86_400_000;
const resumedAt = (at: number): g.Given => ({ type: 'Resumed', at, epoch: 2 });
const delays = (walker: Walker): readonly number[] =>
  walker
    .last()
    .actions.flatMap((action) => (action.type === 'ScheduleTimer' ? [action.delayMs] : []));
const timed = { limits: { timeMs: 60_000 } };

for (const [name, at, left] of [
  ['a day back', g.NOW - DAY, 1_000],
  ['a day on', g.NOW + DAY, 0],
  ['half a second on', g.NOW + 500, 500],
] as const) {
  test(`clock-jumps: after a clock that went ${name} a retry waits ${left} ms`, () => {
    const walker = bring('Er', { retrySchedule: { kind: 'linear', stepMs: 1_000 } });
    walker.send(resumedAt(at));
    assert.deepEqual(delays(walker), [left]);
  });
}

for (const [name, at, left] of [
  ['a day back', g.NOW - DAY, 60_000],
  ['a day on', g.NOW + DAY, 0],
  ['half a minute on', g.NOW + 30_000, 30_000],
] as const) {
  test(`clock-jumps: after a clock that went ${name} a turn has ${left} ms left`, () => {
    const walker = bring('C[u]', timed);
    walker.send(resumedAt(at));
    assert.deepEqual(delays(walker), [left]);
  });
}

test('clock-jumps: what is left is counted from the last time that the session was opened', () => {
  const walker = bring('C[u]', timed);
  walker.send(resumedAt(g.NOW - DAY), { type: 'Resumed', at: g.NOW - DAY + 10_000, epoch: 3 });
  assert.deepEqual(delays(walker), [50_000]);
});

test('time-limit: a limit that is set in a turn without one counts from the beginning of the turn', () => {
  const left = (at: number): readonly number[] => {
    const walker = bring('C[u]');
    walker.send({ type: 'ApproveBudget', at: g.NOW + at, dimension: 'time', limit: 60_000 });
    return delays(walker);
  };
  assert.deepEqual([left(20_000), left(-20_000)], [[40_000], [60_000]]);
});

test('clock-jumps: a limit that is raised after the clock jumped ahead leaves the turn what was added', () => {
  const walker = bring('C[u]', timed);
  walker.send({ type: 'ApproveBudget', at: g.NOW + DAY, dimension: 'time', limit: 90_000 });
  assert.deepEqual(delays(walker), [30_000]);
});

test('clock-jumps: a limit that is raised after the clock went back gives no more than the limit', () => {
  const walker = bring('C[u]', timed);
  walker.send({ type: 'ApproveBudget', at: g.NOW - DAY, dimension: 'time', limit: 90_000 });
  assert.deepEqual(delays(walker), [90_000]);
});
