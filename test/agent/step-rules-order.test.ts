import type { Action } from '../../src/agent/action.js';
import type { In, Session } from '../../src/agent/state.js';
import type { Edge } from '../../src/kernel/step.js';
import * as hand from './by-hand.js';
import * as g from './given.js';
import { checkSteps, LATE, NOTICE, path, type StepRow, stopped, W } from './step-rows.js';

// R31, R33, R50, R0f and R80, each broken by hand; what looks like a breach and is none has to pass.

const { batch, endedCall, llm, PROMPT, queued, running, session, waiting } = hand;

// ---- R33 ----

const go: Action = { type: 'ExecuteTools', batchId: 'batch-1', calls: [g.grep('2')] };
const awaiting = { judged: g.grep('1'), requestedAt: 1, status: 'awaitingApproval' } as const;

checkSteps('R33', [
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
    says: ['R33: 2 runs before a call that was asked for first'],
  },
  {
    title: 'a call starts before one that waits, and the user is told something',
    before: batch([queued('1'), queued('2')]),
    after: batch([queued('1'), running('2')]),
    actions: [go, NOTICE],
    says: ['R33: 2 runs before a call that was asked for first'],
  },
  {
    title: 'a call starts that no state knows',
    before: batch([queued('2')]),
    after: waiting(),
    actions: [go],
    says: ['2.14: call batch-1 2 goes on, and WaitingForUserInput does not know it'],
  },
  {
    title: 'a call starts before one that awaits an answer',
    before: batch([awaiting, queued('2')]),
    after: batch([awaiting, running('2')]),
    actions: [go],
    says: ['R33: 2 runs before a call that was asked for first'],
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

// ---- R31, R50, R0f ----

const rich = (limits: Partial<Session['settings']['limits']>, costUsd: number): Session => {
  const own = session({}, { limits });
  return { ...own, usage: { ...own.usage, costUsd }, turn: { ...own.turn, startedAt: g.NOW - 1_000 } };
};
const used = rich({ usd: 1 }, 1);
const late = rich({ timeMs: 1_000 }, 0);
const left = rich({ usd: 1, timeMs: 1_001 }, 0.5);
const enters = path('CheckingForCancellation', 'ExecutingTools');
const rounds = path('GatheringAdditionalMessages', 'CallingLlm');
const turns = path('WaitingForUserInput', 'CallingLlm');
const begins = (own: Session, taken: readonly Edge[]): Omit<StepRow, 'title' | 'says'> => ({
  before: waiting(own),
  after: llm(own),
  actions: [hand.send(1)],
  path: taken,
});
const runs = (own: Session, actions: readonly Action[], taken = enters): Omit<StepRow, 'title' | 'says'> => ({
  before: batch([running('2')], own),
  after: batch([running('2')], own),
  actions,
  path: taken,
});

checkSteps('R31', [
  { title: 'calls of a new batch below the limit', ...runs(left, [go]) },
  {
    title: 'calls of a new batch at the limit',
    ...runs(used, [go]),
    says: ['R31: calls of a new batch start at a limit'],
  },
  {
    title: 'calls of a new batch at the limit, and the user is told something',
    ...runs(used, [go, NOTICE]),
    says: ['R31: calls of a new batch start at a limit'],
  },
  {
    title: 'calls of a new batch when time is up',
    ...runs(late, [go]),
    says: ['R31: calls of a new batch start at a limit'],
  },
  { title: 'a new batch at the limit of which nothing starts', ...runs(used, [PROMPT]) },
  { title: 'calls of a batch that runs', ...runs(used, [go], []) },
]);
checkSteps('R50', [
  { title: 'a round below the limit', ...begins(left, rounds) },
  { title: 'a round at the limit', ...begins(used, rounds), says: ['R50: a round begins at a limit'] },
  { title: 'a round when time is up', ...begins(late, rounds), says: ['R50: a round begins at a limit'] },
]);
checkSteps('R0f', [
  { title: 'a turn below the limit', ...begins(left, turns) },
  {
    title: 'a turn at the limit',
    ...begins(used, turns),
    says: ['R0f: a turn begins at a limit of the session'],
  },
  { title: 'a turn after one whose time was up', ...begins(late, turns) },
  { title: 'another way to a call, at the limit', ...begins(used, path('Error', 'CallingLlm')) },
]);

// ---- What is looked at ----

const behind = batch([queued('1'), running('2')]);
checkSteps('a breach', [
  { title: 'in a state that nothing happens to', before: behind },
  {
    title: 'in a state that does something',
    before: behind,
    actions: [go],
    says: ['R33: 2 runs before a call that was asked for first'],
  },
]);
checkSteps('R80', [
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
    says: ['R80: the end says no Shutdown'],
  },
  {
    title: 'the session is over already',
    before: { name: 'ShuttingDown', session: session() },
    actions: [NOTICE],
  },
]);

// ---- R46, R66 ----

const hooking = (hookId: string): In<'PostToolsHook'> => ({
  name: 'PostToolsHook',
  session: session(),
  phase: 'CheckingGitCommits',
  hookId,
  mutated: [],
  tree: 'unknown',
});
const hooked: Action = { type: 'RunHook', hookId: 'hook-1', phase: 'CheckingGitCommits', callIds: [] };
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

checkSteps('R66', [
  { ...afterTools, title: 'a batch that runs goes on to its hook', before: batch([]) },
  {
    ...afterTools,
    title: 'a batch that is cancelled goes on to its hook',
    before: cancelling,
    says: ['R66: a batch that is cancelling goes on'],
  },
  {
    ...afterTools,
    title: 'a batch that nobody may allow goes on to its hook',
    before: stopping,
    says: ['R66: a batch that is stopping goes on'],
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

checkSteps('R46', [
  { ...round, title: 'a hook lets the turn go on', event: g.hookDone() },
  { ...round, title: 'a hook that fails lets the turn go on', event: g.hookFails() },
  {
    ...round,
    title: 'a hook says stop, and the next round begins',
    event: g.hookDone({ proceed: false }),
    says: ['R46: the turn goes on against a hook'],
  },
  {
    title: 'a hook says stop, and its next phase begins',
    before: hooking('hook-1'),
    event: g.hookDone({ proceed: false }),
    after: hooking('hook-2'),
    actions: [{ ...hooked, hookId: 'hook-2' }],
    path: path('PostToolsHook', 'PostToolsHook'),
    says: ['R46: the turn goes on against a hook'],
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
