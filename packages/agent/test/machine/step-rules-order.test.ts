import * as hand from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import {
  checkSteps,
  LATE,
  NOTICE,
  path,
  type StepRow,
  stopped,
  W,
} from '../../../../test/kit/agent/step-rows.js';
import type { Action } from '../../src/machine/action.js';
import type { Call } from '../../src/machine/call.js';
import type { In, SessionData } from '../../src/machine/state.js';

// The order of calls, the limits, shutdown and stops, each broken by hand; what looks like a breach and is none has to pass.

const { batch, endedCall, llm, PROMPT, queued, running, session, waiting } = hand;

// ---- Call order ----

const go: Action = { type: 'ExecuteTools', batchId: 'batch-1', calls: [g.grep('2')] };
const awaiting = { judged: g.grep('1'), requestedAt: 1, status: 'awaitingApproval' } as const;

checkSteps('call-order', [
  {
    title: 'calls start in order',
    before: batch([queued('1'), queued('2')]),
    after: batch([running('2')]),
    actions: [go],
  },
  {
    title: 'a call starts before one that waits',
    before: batch([queued('1'), queued('2')]),
    after: batch([queued('1'), running('2'), queued('3')]),
    actions: [go],
    says: ['call-order: 2 runs before a call that was asked for first'],
  },
  {
    title: 'a call starts before one that waits, and the user is told something',
    before: batch([queued('1'), queued('2')]),
    after: batch([queued('1'), running('2')]),
    actions: [go, NOTICE],
    says: ['call-order: 2 runs before a call that was asked for first'],
  },
  {
    title: 'a call starts that no state knows',
    before: batch([queued('2')]),
    after: waiting(),
    actions: [go],
    says: ['in-flight-is-named: call batch-1 2 goes on, and WaitingForUserInput does not know it'],
  },
  {
    title: 'a call starts before one that awaits an answer',
    before: batch([awaiting, queued('2')]),
    after: batch([awaiting, running('2')]),
    actions: [go],
    says: ['call-order: 2 runs before a call that was asked for first'],
  },
  {
    title: 'a call starts after one that has ended',
    before: batch([queued('2')]),
    after: batch([endedCall('1'), running('2'), queued('3')]),
    actions: [go],
  },
  {
    title: 'a call that ran when one before it was decided anew',
    before: batch([queued('1'), running('2')]),
    after: batch([queued('1'), running('2')]),
    actions: [PROMPT],
  },
]);

// ---- Limits ----

const rich = (limits: Partial<SessionData['settings']['limits']>, costUsd: number): SessionData => {
  const own = session({}, { limits });
  return {
    ...own,
    usage: { ...own.usage, costUsd },
    turn: { ...own.turn, startedAt: g.NOW - 1_000 },
  };
};
const used = rich({ usd: 1 }, 1);
const left = rich({ usd: 1 }, 0.5);
const sends = (own: SessionData): Omit<StepRow, 'title' | 'says'> => ({
  before: waiting(own),
  after: llm(own),
  actions: [hand.send(1)],
});
const compacts = (own: SessionData): Omit<StepRow, 'title' | 'says'> => ({
  before: waiting(own),
  after: {
    name: 'Compacting',
    session: own,
    compactionId: 'compaction-1',
    length: 2,
    mode: { kind: 'mid' },
  },
  actions: [{ type: 'StartCompaction', compactionId: 'compaction-1', length: 2 }],
});

const spending = (callId: string): Call => {
  const call = running(callId);
  return { ...call, judged: { ...call.judged, traits: { ...call.judged.traits, spends: 'yes' } } };
};
const runs = (own: SessionData, ...calls: readonly Call[]): Omit<StepRow, 'title' | 'says'> => ({
  before: batch([], own),
  after: batch(calls, own),
  actions: [{ type: 'ExecuteTools', batchId: 'batch-1', calls: calls.map(({ judged }) => judged) }],
});

checkSteps('limit-before-call', [
  { title: 'calls below the limit', ...runs(left, running('2')) },
  {
    title: 'calls at the limit',
    ...runs(used, running('2')),
    says: ['limit-before-call: calls start at a limit of the session'],
  },
  { title: 'one call that spends', ...runs(left, spending('2')) },
  {
    title: 'two calls that spend, under a limit',
    ...runs(left, spending('1'), spending('2')),
    says: ['limit-before-call: two calls that spend were handed the same budget'],
  },
  {
    title: 'another call beside two that spend already',
    before: batch([spending('1'), spending('2')], left),
    after: batch([spending('1'), spending('2'), running('3')], left),
    actions: [{ type: 'ExecuteTools', batchId: 'batch-1', calls: [running('3').judged] }],
  },
  {
    title: 'two calls that spend, without a limit',
    ...runs(session(), spending('1'), spending('2')),
  },
]);
checkSteps('limit-before-request', [
  { title: 'a request below the limit', ...sends(left) },
  {
    title: 'a request at the limit',
    ...sends(used),
    says: ['limit-before-request: a request is sent at a limit of the session'],
  },
  { title: 'a compaction below the limit', ...compacts(left) },
  {
    title: 'a compaction at the limit',
    ...compacts(used),
    says: ['limit-before-request: a compaction starts at a limit of the session'],
  },
]);

// ---- What is looked at ----

const behind = batch([queued('1'), running('2')]);
checkSteps('a breach', [
  { title: 'in a state that nothing happens to', before: behind },
  {
    title: 'in a state that does something',
    before: behind,
    actions: [go],
    says: ['call-order: 2 runs before a call that was asked for first'],
  },
]);
checkSteps('shutdown', [
  {
    title: 'the session ends',
    after: { name: 'ShuttingDown', session: session() },
    actions: [{ type: 'Shutdown' }],
    path: path('WaitingForUserInput', 'ShuttingDown'),
  },
  {
    title: 'the session ends, and nobody is told',
    after: { name: 'ShuttingDown', session: session() },
    actions: [NOTICE],
    path: path('WaitingForUserInput', 'ShuttingDown'),
    says: ['shutdown: the end says no Shutdown'],
  },
  {
    title: 'the session is over already',
    before: { name: 'ShuttingDown', session: session() },
    actions: [NOTICE],
  },
]);

// ---- Stops ----

const hooking = (hookId: string): In<'PostToolsHook'> => ({
  name: 'PostToolsHook',
  session: session(),
  phase: 'CheckingGitCommits',
  hookId,
  mutated: [],
  tree: 'unknown',
});
const hooked: Action = {
  type: 'RunHook',
  hookId: 'hook-1',
  phase: 'CheckingGitCommits',
  callIds: [],
};
const stopping = { ...batch([]), phase: { mode: 'stopping' } } as const;
const cancelling = {
  ...batch([]),
  phase: { mode: 'cancelling', graceTimerId: null, cause: 'user' },
} as const;
const afterTools = {
  after: hooking('hook-1'),
  actions: [hooked],
  path: path('ExecutingTools', 'PostToolsHook'),
};

checkSteps('grace-period', [
  { ...afterTools, title: 'a batch that runs goes on to its hook', before: batch([]) },
  {
    ...afterTools,
    title: 'a batch that is cancelled goes on to its hook',
    before: cancelling,
    says: ['grace-period: a batch that is cancelling goes on'],
  },
  {
    ...afterTools,
    title: 'a batch that nobody may allow goes on to its hook',
    before: stopping,
    says: ['ask-before-call: a batch that is stopping goes on'],
  },
  {
    title: 'a batch that is cancelled ends the turn',
    before: cancelling,
    after: stopped('user'),
    actions: [NOTICE, PROMPT],
    path: path('ExecutingTools', 'Cancelled', W),
  },
]);

const round = {
  before: hooking('hook-1'),
  after: llm(),
  actions: [hand.send(0)],
  path: path('PostToolsHook', 'CheckingBudget', 'GatheringAdditionalMessages', 'CallingLlm'),
};

checkSteps('hook-veto', [
  { ...round, title: 'a hook lets the turn go on', event: g.hookDone() },
  { ...round, title: 'a hook that fails lets the turn go on', event: g.hookFails() },
  {
    ...round,
    title: 'a hook says stop, and the next round begins',
    event: g.hookDone({ proceed: false }),
    says: ['hook-veto: the turn goes on against a hook'],
  },
  {
    title: 'a hook says stop, and its next phase begins',
    before: hooking('hook-1'),
    event: g.hookDone({ proceed: false }),
    after: hooking('hook-2'),
    actions: [{ ...hooked, hookId: 'hook-2' }],
    path: path('PostToolsHook', 'PostToolsHook'),
    says: ['hook-veto: the turn goes on against a hook'],
  },
  {
    title: 'a hook that is over says stop, and nothing happens',
    before: hooking('hook-1'),
    event: g.hookDone({ hookId: 'hook-0', proceed: false }),
    path: path('PostToolsHook', 'PostToolsHook!'),
    diagnostics: [LATE],
  },
  {
    title: 'a hook says stop, and the turn ends',
    before: hooking('hook-1'),
    event: g.hookDone({ proceed: false }),
    after: stopped('veto'),
    actions: [NOTICE, PROMPT],
    path: path('PostToolsHook', 'Cancelled', W),
  },
]);
