import type { Action } from '../../action.js';
import type { Call, CallOutcome } from '../../call.js';
import type { Event, On, StoppedCall } from '../../event.js';
import type { MoveTo, SessionUpdate } from '../../move-result.js';
import { go } from '../../move-result.js';
import type { Settings } from '../../settings.js';
import type { SessionData } from '../../state.js';
import type { CancelCause } from '../../values/stop-cause.js';
import { appendResults, appendTexts } from '../common/append-message.js';
import { cancelledText, stopNote } from '../common/failure-and-stop-texts.js';
import { isStopping, isStoppingAtLimit } from '../stop-turn.js';
import { countStreaks } from './count-streaks.js';
import {
  closedText,
  type EndedCall,
  endRunning,
  interruptedText,
  neverRan,
  outcomeText,
  resultOfCall,
} from './result-texts.js';
import {
  cancelCalls,
  cancelTimer,
  displayResult,
  isEnded,
  isRunning,
  type ToolBatch,
  withdrawApprovals,
} from './tool-batch.js';

/** Settles a batch: one user message with one result per call, in call order. */

/** Calls start in order, so the last open call is near the end: a search from there takes no time in a large batch. */
const allEnded = ({ calls }: ToolBatch): boolean => calls.findLast((call) => !isEnded(call)) === undefined;
export const stoppedAtLimit = (state: ToolBatch): boolean => allEnded(state) && isStoppingAtLimit(state);
export const stoppedTurn = (state: ToolBatch): boolean => allEnded(state) && isStopping(state);
export const stoppedForApproval = (state: ToolBatch): boolean =>
  allEnded(state) && state.phase.mode === 'stopping';
export const allCallsEnded = (state: ToolBatch): boolean => allEnded(state);

const settled = (session: SessionData, calls: ToolBatch['calls']): SessionData => {
  const ended = calls.filter(isEnded);
  return appendResults(countStreaks(session, ended), ended.map(resultOfCall));
};

export const settleStopped = (state: ToolBatch, _event: Event, cause: CancelCause): SessionUpdate => ({
  session: appendTexts(settled(state.session, state.calls), 'note', [stopNote(cause)]),
  actions: [],
});
/** No user could be asked: no hook and no model call follow (docs/rules.md#ask-before-call). */
export const settleUnapproved = (state: ToolBatch): MoveTo<'Cancelled'> =>
  go({
    name: 'Cancelled',
    session: settled(state.session, state.calls),
    cause: 'approval',
    text: cancelledText('approval'),
  });

/**
 * Whether hooks must look at the effects of a call: a mutating call that ran, however it ended, since a failed command
 * may have written files. With `mutatingOk`, as in the seeds, only if it ended ok.
 */
export const mayHaveChanged = (call: EndedCall, hooks: Settings['hooks']): boolean =>
  call.judged.traits.mutating && (hooks === 'mutatingOk' ? call.status === 'ok' : call.ran);

export const settle = (state: ToolBatch): MoveTo<'PostToolsHook'> =>
  go({
    name: 'PostToolsHook',
    session: settled(state.session, state.calls),
    phase: 'CheckingGitCommits',
    hookId: '',
    mutated: state.calls
      .filter((call) => isEnded(call) && mayHaveChanged(call, state.session.settings.hooks))
      .map((call) => call.judged.callId),
    tree: 'unknown',
  });

/** Exit of ExecutingTools: cancels all grace timers. A timer that fired is no longer in the state. */
export const cancelGraceTimers = (state: ToolBatch): readonly Action[] => {
  const own = state.phase.mode === 'cancelling' ? cancelTimer(state.phase.graceTimerId) : [];
  return [...state.calls.filter(isRunning).flatMap((call) => cancelTimer(call.graceTimerId)), ...own];
};

/** How the calls of a batch end that are still open, for faults and for shutdown. */
type Ends = {
  running(call: Extract<Call, { readonly status: 'starting' | 'running' }>): EndedCall;
  readonly waiting: string;
  readonly outcomes?: readonly StoppedCall[];
};

const settleUnfinished = (
  state: ToolBatch,
  at: number,
  { running, waiting, outcomes = [] }: Ends,
): SessionUpdate => {
  const calls = state.calls.map((call): EndedCall => {
    if (isEnded(call)) return call;
    if (isRunning(call)) return running(call);
    return neverRan(call.judged, call.requestedAt, at, 'cancelled', waiting);
  });
  const withdrawn = withdrawApprovals(state, state.calls);
  const cancelled = cancelCalls(state, state.calls.filter(isRunning), true);
  const shown = calls
    .filter((call, index) => call !== state.calls[index])
    .map((call) => displayResult(state.batchId, call, outcomeOf(state, outcomes, call)));
  return { session: settled(state.session, calls), actions: [...withdrawn, ...cancelled, ...shown] };
};

export const isOtherBatch = (state: ToolBatch, event: On<'ToolsFailed'>): boolean =>
  event.batchId !== state.batchId;

/**
 * ToolsFailed: the runtime can't continue the batch; unfinished calls get error results
 * (docs/rules.md#tools-failed).
 */
export const failBatch = (state: ToolBatch, event: On<'ToolsFailed'>): MoveTo<'Failed'> => {
  const { session, actions } = settleUnfinished(state, event.at, {
    running: (call) => endRunning(call, event.at, { status: 'failed', text: `failed: ${event.message}` }),
    waiting: `not run: ${event.message}`,
  });
  return go({ name: 'Failed', session, error: 'tools', message: event.message }, ...actions);
};

const outcomeOf = (
  { batchId }: ToolBatch,
  outcomes: readonly StoppedCall[],
  { judged }: Call,
): CallOutcome | undefined =>
  outcomes.find((one) => one.batchId === batchId && one.callId === judged.callId)?.outcome;

/** A call whose start is not durable never runs. */
const endAtShutdown = (
  call: Extract<Call, { readonly status: 'starting' | 'running' }>,
  at: number,
  outcome: CallOutcome | undefined,
): EndedCall => {
  if (call.status === 'starting' || outcome?.ran === 'no')
    return neverRan(call.judged, call.requestedAt, at, 'cancelled', closedText);
  if (outcome === undefined || outcome.status === 'cancelled')
    return endRunning(call, at, { status: 'interrupted', text: interruptedText(outcome?.text ?? '') });
  const { status, images } = outcome;
  return endRunning(call, at, {
    status,
    text: outcomeText(outcome, 'user'),
    ...(status === 'ok' && images !== undefined ? { images } : {}),
  });
};

/** Ends the open calls at shutdown (docs/rules.md#shutdown). */
export const settleForShutdown = (
  state: ToolBatch,
  { at, outcomes = [] }: On<'ShutdownRequested'>,
): SessionUpdate =>
  settleUnfinished(state, at, {
    running: (call) => endAtShutdown(call, at, outcomeOf(state, outcomes, call)),
    waiting: closedText,
    outcomes,
  });
