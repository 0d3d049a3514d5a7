import type { Action } from '../action.js';
import type { Event, On } from '../event.js';
import type { Next } from '../move.js';
import { go } from '../move.js';
import type { Session } from '../state.js';
import { type Batch, cancelCalls, isEnded, isRunning, isWaiting, showEnd, withdraw } from './batch.js';
import { closedText, type EndedCall, endRunning, neverRan, resultOfCall } from './outcomes.js';
import { answer, tell } from './tell.js';
import { stopNote } from './words.js';

/** Settle: exactly one user message with one result per call, in call order, before anything else happens. */

const allEnded = (state: Batch): boolean => state.calls.every(isEnded);
export const cancelledByTime = (state: Batch): boolean =>
  allEnded(state) && state.phase.mode === 'cancelling' && state.phase.cause === 'time';
export const cancelledByUser = (state: Batch): boolean =>
  allEnded(state) && state.phase.mode === 'cancelling';
export const stoppedForApproval = (state: Batch): boolean =>
  allEnded(state) && state.phase.mode === 'stopping';
export const allCallsEnded = (state: Batch): boolean => allEnded(state);

const settled = (session: Session, calls: Batch['calls']): Session =>
  answer(session, calls.filter(isEnded).map(resultOfCall));

const withNote = (state: Batch, cause: 'user' | 'time'): Session =>
  tell(settled(state.session, state.calls), 'note', [stopNote(cause)]);

export const settleCancelled = (state: Batch): Next<'Cancelled'> =>
  go({ name: 'Cancelled', session: withNote(state, 'user'), cause: 'user' });
export const settleOutOfTime = (state: Batch): Next<'BudgetExceeded'> =>
  go({ name: 'BudgetExceeded', session: withNote(state, 'time'), dimension: 'time' });
/** Nobody was there to ask: no hook and no model call follow (R31a). */
export const settleUnapproved = (state: Batch): Next<'Cancelled'> =>
  go({ name: 'Cancelled', session: settled(state.session, state.calls), cause: 'approval' });

export const settle = (state: Batch): Next<'PostToolsHook'> =>
  go({
    name: 'PostToolsHook',
    session: settled(state.session, state.calls),
    phase: 'CheckingGitCommits',
    hookId: '',
    mutated: state.calls
      .filter((call) => call.status === 'ok' && call.judged.traits.mutating)
      .map((call) => call.judged.callId),
    tree: 'unknown',
  });

/** Exit of ExecutingTools: no grace timer outlives the batch. */
export const cancelGraceTimers = (state: Batch, event: Event): readonly Action[] => {
  const ids = state.calls.flatMap((call) => (isRunning(call) ? [call.graceTimerId] : []));
  const own = state.phase.mode === 'cancelling' ? [...ids, state.phase.graceTimerId] : ids;
  return own
    .filter((timerId): timerId is string => timerId !== null)
    .filter((timerId) => event.type !== 'TimerFired' || event.timerId !== timerId)
    .map((timerId) => ({ type: 'CancelTimer', timerId }));
};

/** Ends every open call of a batch with the words given: for faults and for shutdown. */
const settleUnfinished = (
  state: Batch,
  at: number,
  ended: { readonly status: 'failed' | 'interrupted'; readonly running: string; readonly waiting: string },
): { readonly session: Session; readonly actions: readonly Action[] } => {
  const calls = state.calls.map((call): EndedCall => {
    if (isEnded(call)) return call;
    const { judged, requestedAt } = call;
    if (isWaiting(call)) return neverRan(judged, requestedAt, at, 'cancelled', ended.waiting);
    return endRunning(call, at, ended.status, ended.running);
  });
  const withdrawn = withdraw(state, state.calls);
  const cancelled = cancelCalls(state, state.calls.filter(isRunning), true);
  const shown = calls
    .filter((call) => !state.calls.includes(call))
    .map((call) => showEnd(state.batchId, call));
  return { session: settled(state.session, calls), actions: [...withdrawn, ...cancelled, ...shown] };
};

export const isOtherBatch = (state: Batch, event: On<'ToolsFailed'>): boolean =>
  event.batchId !== state.batchId;

/** ToolsFailed: the runtime could not go on with the batch; unfinished calls get error results (R39). */
export const failBatch = (state: Batch, event: On<'ToolsFailed'>): Next<'Failed'> => {
  const words = {
    status: 'failed',
    running: `failed: ${event.message}`,
    waiting: `not run: ${event.message}`,
  } as const;
  const { session, actions } = settleUnfinished(state, event.at, words);
  return go({ name: 'Failed', session, error: 'tools', message: event.message }, ...actions);
};

/** What shutdown says of the calls it meets (R80). */
export const settleForShutdown = (state: Batch, at: number) =>
  settleUnfinished(state, at, {
    status: 'interrupted',
    running: 'interrupted while running, effects unknown',
    waiting: closedText,
  });
