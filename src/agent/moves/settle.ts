import type { Action } from '../action.js';
import type { On } from '../event.js';
import type { Next } from '../move.js';
import { go } from '../move.js';
import type { Session } from '../state.js';
import {
  type Batch,
  cancelCalls,
  cancelTimer,
  isEnded,
  isRunning,
  isWaiting,
  showEnd,
  withdraw,
} from './batch.js';
import { closedText, type EndedCall, endRunning, neverRan, resultOfCall } from './outcomes.js';
import { countStreaks } from './streaks.js';
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

const settled = (session: Session, calls: Batch['calls']): Session => {
  const ended = calls.filter(isEnded);
  return answer(countStreaks(session, ended), ended.map(resultOfCall));
};

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

/** Exit of ExecutingTools: no grace timer outlives the batch. One that rang is not in the state any more. */
export const cancelGraceTimers = (state: Batch): readonly Action[] => {
  const own = state.phase.mode === 'cancelling' ? cancelTimer(state.phase.graceTimerId) : [];
  return [...state.calls.filter(isRunning).flatMap((call) => cancelTimer(call.graceTimerId)), ...own];
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
