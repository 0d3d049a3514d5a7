import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from '@pawl/agent/machine/action';
import type { Call } from '@pawl/agent/machine/call';
import type { Event } from '@pawl/agent/machine/event';
import { type In, isBusy, type State, turnRuns } from '@pawl/agent/machine/state';
import * as hand from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { endedBy, flightFaults } from '../../src/invariants.js';

// rules.md#in-flight-is-named, each way of breaking it by hand: work that nobody waits for, and waiting for work
// that nobody does.

const { batch, failed, llm, PROMPT, running, session, waiting } = hand;

const awaiting = (callId: string): Call => ({
  judged: g.grep(callId),
  requestedAt: 1,
  status: 'awaitingApproval',
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
