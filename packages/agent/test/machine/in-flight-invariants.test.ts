import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as hand from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import type { Action } from '../../src/machine/action.js';
import type { Call } from '../../src/machine/call.js';
import type { Event } from '../../src/machine/event.js';
import { endedBy, flightFaults, inFlight } from '../../src/machine/invariants.js';
import {
  type In,
  isBusy,
  type SessionData,
  type State,
  turnRuns,
} from '../../src/machine/state.js';

// rules.md#in-flight-is-named, each way of breaking it by hand: work that nobody waits for, and waiting for work
// that nobody does.

const { batch, endedCall, failed, llm, PROMPT, queued, running, session, waiting } = hand;

const awaiting = (callId: string): Call => ({
  judged: g.grep(callId),
  requestedAt: 1,
  status: 'awaitingApproval',
});
const starting = (callId: string): Call => ({
  judged: g.grep(callId),
  requestedAt: 1,
  status: 'starting',
  allowed: 'byPolicy',
  graceTimerId: null,
});
const stopping = (callId: string, graceTimerId: string): Call => ({
  judged: g.grep(callId),
  requestedAt: 1,
  status: 'running',
  allowed: 'byPolicy',
  startedAt: 1,
  graceTimerId,
});
const cancelling = (
  graceTimerId: string | null,
  own: SessionData = session(),
): In<'ExecutingTools'> => ({
  ...batch([running('1')], own),
  phase: { mode: 'cancelling', graceTimerId, cause: 'user' },
});
const hook = (phase: In<'PostToolsHook'>['phase'] = 'CheckingGitCommits'): State => ({
  name: 'PostToolsHook',
  session: session(),
  phase,
  hookId: 'hook-1',
  mutated: [],
  tree: 'unknown',
});
const compacting: State = {
  name: 'Compacting',
  session: session(),
  compactionId: 'compaction-1',
  length: 2,
  mode: { kind: 'mid' },
};
const timed = (own: SessionData = session()): SessionData => ({
  ...own,
  turn: { ...own.turn, timeLimit: { timerId: 'timer-9', dueAt: 9, delayMs: 1_000 } },
});

// ---- What a state names ----

const named: readonly (readonly [string, State, readonly string[]])[] = [
  ['waiting', waiting(), []],
  ['waiting under a time limit', waiting(timed()), ['timer timer-9']],
  ['a request', llm(), ['request req-1']],
  ['a request under a time limit', llm(timed()), ['request req-1', 'timer timer-9']],
  ['a retry', failed(session(), 1), ['timer timer-1']],
  ['a hook', hook(), ['hook hook-1']],
  ['a compaction', compacting, ['compaction compaction-1']],
  [
    'a batch: calls that have begun, calls that wait for an answer',
    batch([endedCall('1'), running('2'), starting('3'), awaiting('4'), queued('5')]),
    ['call batch-1 2', 'call batch-1 3', 'approval batch-1 4'],
  ],
  [
    'a call that is being stopped',
    batch([stopping('1', 'timer-3')]),
    ['call batch-1 1', 'timer timer-3'],
  ],
  ['a batch that is being stopped', cancelling('timer-4'), ['call batch-1 1', 'timer timer-4']],
  ['a batch that is being stopped at once', cancelling(null), ['call batch-1 1']],
];

for (const [title, state, expected] of named) {
  test(`in flight, ${title}: ${expected.join(', ') || 'nothing'}`, () =>
    assert.deepEqual(inFlight(state), expected));
}

// ---- How each kind of work begins and ends ----

type Work = {
  readonly what: string;
  readonly state: State;
  readonly start: Action;
  readonly stop: Action;
  readonly ends: readonly g.Given[];
};
const ofBatch = { batchId: 'batch-1', callId: '1' } as const;

const works: readonly Work[] = [
  {
    what: 'request req-1',
    state: llm(),
    start: hand.send(1),
    stop: { type: 'AbortLlmRequest', requestId: 'req-1' },
    ends: [g.says('yes'), g.fails(), g.policyStops()],
  },
  {
    what: 'hook hook-1',
    state: hook(),
    start: { type: 'RunHook', hookId: 'hook-1', phase: 'CheckingGitCommits', callIds: [] },
    stop: { type: 'AbortHook', hookId: 'hook-1' },
    ends: [g.hookDone(), g.hookFails()],
  },
  {
    what: 'compaction compaction-1',
    state: compacting,
    start: { type: 'StartCompaction', compactionId: 'compaction-1', length: 2 },
    stop: { type: 'AbortCompaction', compactionId: 'compaction-1' },
    ends: [g.compacts(), g.compactionFails],
  },
  {
    what: 'timer timer-1',
    state: failed(session(), 1),
    start: { type: 'ScheduleTimer', timerId: 'timer-1', dueAt: 1, delayMs: 1_000 },
    stop: { type: 'CancelTimer', timerId: 'timer-1' },
    ends: [g.rings()],
  },
  {
    what: 'call batch-1 1',
    state: batch([running('1')]),
    start: { type: 'ExecuteTools', batchId: 'batch-1', calls: [g.grep('1')] },
    stop: { type: 'CancelTools', batchId: 'batch-1', callIds: ['1'], force: true },
    ends: [g.ended('1')],
  },
  {
    what: 'approval batch-1 1',
    state: batch([awaiting('1')]),
    start: { type: 'RequestApproval', batchId: 'batch-1', call: g.grep('1'), why: 'it asks' },
    stop: { type: 'WithdrawApproval', ...ofBatch },
    ends: [g.allows('1'), g.denies('1')],
  },
];

const faults = (
  before: State,
  event: Event,
  state: State,
  actions: readonly Action[] = [],
): readonly string[] => flightFaults(before, event, { state, actions, path: [], diagnostics: [] });

const again = (state: State): State => ({ ...state });
const goesOn = (what: string, name = 'WaitingForUserInput'): readonly string[] => [
  `in-flight-is-named: ${what} goes on, and ${name} does not know it`,
];
const waitsFor = (what: string, { name }: State): readonly string[] => [
  `in-flight-is-named: ${name} waits for ${what}, which is not going on`,
];

for (const { what, state, start, stop, ends } of works) {
  test(`${what} has to be started where it is named, and named where it is started`, () => {
    const other = hand.event;
    assert.deepEqual(faults(waiting(), other, state, [start]), []);
    assert.deepEqual(faults(waiting(), other, state), waitsFor(what, state));
    assert.deepEqual(faults(waiting(), other, waiting(), [start]), goesOn(what));
    assert.deepEqual(faults(waiting(), other, waiting(), [start, stop]), []);
    assert.deepEqual(faults(state, other, again(state)), []);
  });
  test(`${what} has to be stopped where it is left`, () => {
    assert.deepEqual(faults(state, hand.event, waiting(), [PROMPT]), goesOn(what));
    assert.deepEqual(faults(state, hand.event, waiting(), [stop, PROMPT]), []);
    assert.deepEqual(faults(state, hand.event, state, [stop]), waitsFor(what, state));
  });
  test(`${what} is over when it answers`, () => {
    for (const given of ends) {
      const event = g.eventOf(given, state);
      assert.equal(endedBy(event), what);
      assert.deepEqual(faults(state, event, waiting(), [PROMPT]), []);
      if (event.type === 'TimerFired') continue;
      assert.deepEqual(faults(state, event, again(state)), waitsFor(what, state));
      assert.deepEqual(faults(state, event, state, [PROMPT]), waitsFor(what, state));
      // An event that changed nothing is another rule's business.
      assert.deepEqual(faults(state, event, state), []);
    }
  });
}

test('closing ends a restore of files, and nothing else', () => {
  const own = session();
  const restoring: State = {
    name: 'Rewinding',
    session: own,
    rewindId: 'rewind-1',
    to: 0,
    plan: 'plan-1',
  };
  const closed: State = { name: 'ShuttingDown', session: own };
  assert.deepEqual(faults(restoring, g.shutdown, closed, [{ type: 'Shutdown' }]), []);
  const left = goesOn('request req-1', 'ShuttingDown');
  assert.deepEqual(faults(llm(own), g.shutdown, closed, [{ type: 'Shutdown' }]), left);
});

test('input, pieces and progress neither start nor end work', () => {
  const state = batch([running('1')]);
  for (const given of [
    g.input('hi'),
    g.delta('x', 'req-1'),
    g.progress('1'),
    g.cancel,
    g.resumed,
  ]) {
    assert.equal(endedBy(g.eventOf(given, state)), null);
  }
});

test('a call that was asked to stop goes on until it is forced', () => {
  const asked: Action = { type: 'CancelTools', batchId: 'batch-1', callIds: ['1'], force: false };
  assert.deepEqual(
    faults(batch([running('1')]), hand.event, waiting(), [asked]),
    goesOn('call batch-1 1'),
  );
});

test('the time limit of a turn that is being stopped rings for nothing', () => {
  const state = cancelling('timer-4', timed());
  const rings = g.eventOf(g.rings('timer-9'), state);
  assert.deepEqual(faults(state, rings, again(state), [PROMPT]), []);
  const left: Action[] = [
    { type: 'CancelTools', batchId: 'batch-1', callIds: ['1'], force: true },
    { type: 'CancelTimer', timerId: 'timer-4' },
  ];
  assert.deepEqual(faults(state, rings, waiting(), left), []);
  assert.deepEqual(faults(state, hand.event, waiting(), left), goesOn('timer timer-9'));
});

test('several faults are all told: first what goes on, then what is waited for', () => {
  assert.deepEqual(faults(llm(), hand.event, hook()), [
    ...goesOn('request req-1', 'PostToolsHook'),
    ...waitsFor('hook hook-1', hook()),
  ]);
});

// ---- After a crash nothing goes on by itself ----

const resumed = (before: State, state: State, actions: readonly Action[] = []): readonly string[] =>
  faults(before, g.eventOf(g.resumed, before), state, actions);

test('after a crash a request, a wait, a hook, a compaction, an approval are started again', () => {
  for (const { what, state, start } of works) {
    if (what.startsWith('call')) continue;
    assert.deepEqual(resumed(state, again(state)), waitsFor(what, state));
    assert.deepEqual(resumed(state, again(state), [start]), []);
    assert.deepEqual(resumed(state, waiting(), [PROMPT]), []);
  }
});

test('after a crash a call that had begun is the business of the runtime, if it is still waited for', () => {
  assert.deepEqual(resumed(batch([running('1')]), batch([running('1')])), []);
  assert.deepEqual(resumed(batch([running('1')]), batch([endedCall('1')])), []);
});

test('after a crash a call that had not begun is started again', () => {
  const state = batch([starting('1')]);
  assert.deepEqual(resumed(state, again(state)), waitsFor('call batch-1 1', state));
});

test('after a crash every phase of the hooks is started again, a commit too', () => {
  for (const phase of ['CheckingGitCommits', 'RunningAutoformatters', 'AutoCommitting'] as const) {
    const state = hook(phase);
    assert.deepEqual(resumed(state, again(state)), waitsFor('hook hook-1', state));
    const run: Action = { type: 'RunHook', hookId: 'hook-1', phase, callIds: [], interrupted: [] };
    assert.deepEqual(resumed(state, again(state), [run]), []);
  }
});

test('after a crash the clock of the turn is set again', () => {
  const state = llm(timed());
  assert.deepEqual(resumed(state, again(state), [hand.send(1)]), waitsFor('timer timer-9', state));
  const clock: Action = { type: 'ScheduleTimer', timerId: 'timer-9', dueAt: 9, delayMs: 1_000 };
  assert.deepEqual(resumed(state, again(state), [hand.send(1), clock]), []);
});

test('the program is busy in a turn, in any compaction and in a rewind; a failed turn still runs', () => {
  const idle: State = { ...compacting, mode: { kind: 'idle', resume: 'rest' } };
  const rewinding: State = {
    name: 'Rewinding',
    session: session(),
    rewindId: 'rewind-1',
    to: 0,
    plan: 'plan-1',
  };
  const ending: State = { name: 'Failed', session: session(), error: 'tools', message: '' };
  const states: readonly State[] = [waiting(), llm(), compacting, idle, rewinding, ending];
  assert.deepEqual(states.map(turnRuns), [false, true, true, false, false, true]);
  assert.deepEqual(states.map(isBusy), [false, true, true, true, true, true]);
});
