/**
 * Events of a running batch: starts, results, previews, approvals, cancels, and its end.
 *
 * A batch is the tool calls of one reply. tool-batch.ts starts it. From top to bottom: running
 * calls; previews; approvals; cancelling one call; cancelling the turn, with a grace period before
 * calls are ended by force; and settling, which makes one message with a result for each call.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. `rest` in the table is the move with which a
 * state begins to wait. `In<N>` is the state N, `On<T>` the event T.
 */

import { decide } from '../../policy/decide.js';
import { hookRemarks, verdictsIn, withRemarks } from '../../policy/judged-call.js';
import { createGrant, grantCovers } from '../../policy/rules.js';
import type { Action } from '../action.js';
import type { Call, CallOutcome, EndedCall } from '../call.js';
import type { Event, On, StoppedCall } from '../event.js';
import { type Settings, settingsAfterPlan } from '../settings.js';
import {
  appendResults,
  appendTexts,
  type CancelCause,
  changeBatch,
  changeSession,
  go,
  ignore,
  type MoveTo,
  nextId,
  type SessionData,
  type SessionUpdate,
  schedule,
  timerFrom,
} from '../state.js';
import {
  type CallReference,
  cancelCalls,
  cancelTimer,
  closedText,
  displayResult,
  endRunning,
  findCall,
  getCancelCause,
  interruptedText,
  isEnded,
  isRunning,
  isWaiting,
  neverRan,
  notRunText,
  outcomeText,
  refusedText,
  replaceCalls,
  resultOfCall,
  type ToolBatch,
  unknownText,
  withdrawApprovals,
} from './batch-calls.js';
import { countStreaks } from './budget.js';
import { showHooks } from './hooks.js';
import { countToolUsage } from './request.js';
import {
  cancelledText,
  getStopCause,
  isStopping,
  isStoppingAtLimit,
  isTurnLimit,
  stopNote,
} from './stop.js';
import { admit, decideCall, startReadyCalls } from './tool-batch.js';

/** The result of a move that stays in the batch. */
type BatchMove = MoveTo<'ExecutingTools'>;

// ---- Running ----

export const isStarting = (state: ToolBatch, event: On<'ToolStarted'>): boolean =>
  findCall(state, event)?.status === 'starting';
export const markRunning = (state: ToolBatch, event: On<'ToolStarted'>): BatchMove => {
  const call = findCall(state, event);
  // Stryker disable next-line ConditionalExpression: asked before
  if (call?.status !== 'starting') return ignore(state, 'no such call is starting');
  const { judged, requestedAt, allowed, graceTimerId } = call;
  const startedAt = event.at;
  return go(
    replaceCalls(state, {
      judged,
      requestedAt,
      status: 'running',
      allowed,
      startedAt,
      graceTimerId,
    }),
  );
};
export const ignoreStart = (state: ToolBatch): BatchMove =>
  ignore(state, 'no such call is starting');

export const isRunningCall = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return call !== undefined && isRunning(call);
};
/** Progress is shown by the runtime; the machine only says that it belongs to a running call. */
export const showProgress = (state: ToolBatch): BatchMove => go(state);
export const ignoreProgress = (state: ToolBatch): BatchMove =>
  ignore(state, 'no such call is running');

/** Records the outcome of a call; the first report wins (rules.md#first-outcome-wins). */
export const recordOutcome = (state: ToolBatch, event: On<'ToolCompleted'>): BatchMove => {
  const call = findCall(state, event);
  // Stryker disable next-line ConditionalExpression,LogicalOperator: asked before
  if (call === undefined || !isRunning(call)) return ignoreOutcome(state, event);
  const { outcome } = event;
  const { status, images, ran } = outcome;
  const hooks = verdictsIn(outcome.hooks);
  const ended = endRunning(call, event.at, {
    status,
    text: withRemarks(outcomeText(outcome, getCancelCause(state)), hookRemarks(hooks)),
    // Stryker disable next-line ConditionalExpression: a shortcut
    ...(status === 'ok' && images !== undefined ? { images } : {}),
    // Stryker disable next-line ConditionalExpression: a shortcut
    ...(ran === undefined ? {} : { ran }),
  });
  const shown = displayResult(state.batchId, ended, outcome);
  const counted = changeBatch(replaceCalls(state, ended), {
    session: countToolUsage(state.session, event),
  });
  const started = startReadyCalls(counted, event.at);
  return go(
    started.state,
    ...cancelTimer(call.graceTimerId),
    shown,
    ...showHooks(hooks),
    ...started.actions,
  );
};

/** Counts the usage of an abandoned call. */
export const countLate = (state: ToolBatch, event: On<'ToolCompleted'>): BatchMove => {
  const ignored = ignoreOutcome(state, event);
  const session = countToolUsage(state.session, event);
  return session === state.session
    ? ignored
    : { ...ignored, state: changeBatch(state, { session }) };
};

const ignoreOutcome = (state: ToolBatch, event: CallReference): BatchMove => {
  const call = findCall(state, event);
  if (call === undefined) return ignore(state, 'no such call in this batch');
  return ignore(
    state,
    isEnded(call) ? 'the call had ended; its first outcome stands' : 'the call has not started',
  );
};

// ---- Previews ----

export const isPreviewing = (state: ToolBatch, event: On<'CallPreviewed'>): boolean =>
  findCall(state, event)?.status === 'previewing';
export const ignorePreview = (state: ToolBatch): BatchMove =>
  ignore(state, 'no such call is being previewed');

/**
 * A call that can't be done ends without a question. Any other call is decided again, with its
 * diff.
 */
export const takePreview = (state: ToolBatch, event: On<'CallPreviewed'>): BatchMove => {
  const call = findCall(state, event);
  // Stryker disable next-line ConditionalExpression: asked before
  if (call?.status !== 'previewing') return ignorePreview(state);
  // Stryker disable next-line MethodExpression: no later call has a preview
  const before = state.calls.slice(0, state.calls.indexOf(call));
  const { judged, requestedAt } = call;
  const { preview } = event;
  if (preview.kind === 'refused') {
    const text = outcomeText({ status: 'failed', text: preview.text }, getCancelCause(state));
    const refused = neverRan(judged, requestedAt, event.at, 'failed', text);
    const started = startReadyCalls(replaceCalls(state, refused), event.at);
    return go(started.state, displayResult(state.batchId, refused), ...started.actions);
  }
  const context = { session: state.session, batchId: state.batchId, before };
  const diff = preview.kind === 'change' ? preview.diff : null;
  const admission = admit(context, judged, requestedAt, event.at, { diff });
  const { call: next, questions, stops } = admission;
  const batch = stops ? changeBatch(state, { phase: { mode: 'stopping' } }) : state;
  const shown = isEnded(next) ? [displayResult(state.batchId, next)] : [];
  const started = startReadyCalls(replaceCalls(batch, next), event.at);
  return go(started.state, ...shown, ...questions, ...started.actions);
};

// ---- Approvals ----

export const isAwaiting = (state: ToolBatch, event: On<'ApprovalAnswered'>): boolean => {
  const call = findCall(state, event);
  const isApproval = call?.judged.traits.asks === undefined && event.answer.kind !== 'reply';
  return call?.status === 'awaitingApproval' && isApproval;
};
/** The call asks the user something, so the answer is its result and allows nothing else. */
export const isQuestion = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return call?.status === 'awaitingApproval' && call.judged.traits.asks !== undefined;
};
export const ignoreAnswer = (state: ToolBatch): BatchMove =>
  ignore(state, 'no such call awaits approval');

const refuseCall = (state: ToolBatch, call: Call, reason: string, at: number): BatchMove => {
  const text = refusedText(reason, call.judged.traits.asks);
  const denied = neverRan(call.judged, call.requestedAt, at, 'denied', text);
  const started = startReadyCalls(replaceCalls(state, denied), at);
  return go(started.state, displayResult(state.batchId, denied), ...started.actions);
};

/** The user accepts a plan, as it is or in the user's own words. */
export const acceptsPlan = (state: ToolBatch, event: On<'ApprovalAnswered'>): boolean =>
  isQuestion(state, event) &&
  event.answer.kind !== 'deny' &&
  // Stryker disable next-line OptionalChaining: asked before
  findCall(state, event)?.judged.traits.asks === 'plan';

/**
 * The session returns from the preset `plan` to the one before. Earlier grants count again, as
 * after any change of the preset. If the user changed the preset while the plan waited, it stays.
 */
export const acceptPlan = (state: ToolBatch, event: On<'ApprovalAnswered'>): BatchMove => {
  const { settings } = state.session;
  if (settings.preset !== 'plan') return takeReply(state, event);
  const session = changeSession(state.session, { settings: settingsAfterPlan(settings) });
  return takeReply(changeBatch(state, { session }), event);
};

/**
 * Gives the user's words to the call that asked for them. It then runs, and reports them
 * (rules.md#answered-question).
 */
export const takeReply = (state: ToolBatch, event: On<'ApprovalAnswered'>): BatchMove => {
  const call = findCall(state, event);
  // Stryker disable next-line ConditionalExpression: asked before
  if (call?.status !== 'awaitingApproval') return ignoreAnswer(state);
  const { answer } = event;
  if (answer.kind === 'deny') return refuseCall(state, call, answer.reason, event.at);
  const reply = answer.kind === 'reply' ? answer.text : '';
  const judged = { ...call.judged, reply };
  const { requestedAt } = call;
  const answered: Call = { judged, requestedAt, status: 'queued', allowed: 'byUser' };
  const started = startReadyCalls(replaceCalls(state, answered), event.at);
  return go(started.state, ...started.actions);
};

/**
 * Takes the user's answer. Its scope becomes a grant, which may allow other waiting calls
 * (rules.md#answered-approval).
 */
export const takeAnswer = (state: ToolBatch, event: On<'ApprovalAnswered'>): BatchMove => {
  const call = findCall(state, event);
  // Stryker disable next-line ConditionalExpression: asked before
  if (call?.status !== 'awaitingApproval') return ignoreAnswer(state);
  if (event.answer.kind === 'deny') return refuseCall(state, call, event.answer.reason, event.at);
  const { settings } = state.session;
  const { grantable } = decideCall(state.session, call.judged);
  // null: the answer counts for this call alone
  const grant = createGrant(call.judged, event.scope, settings.workspace, grantable);
  const grants = grant === null ? state.session.grants : [...state.session.grants, grant];
  const session = changeSession(state.session, { grants });
  // Only the new grant can cover another call: to decide all of a large batch again by all grants
  // takes quadratic time.
  const covered = (grant === null ? [] : state.calls).filter(
    (other) =>
      other !== call &&
      other.status === 'awaitingApproval' &&
      // Stryker disable next-line ConditionalExpression: asked before
      grant !== null &&
      grantCovers(grant, other.judged, settings.workspace) &&
      decide(session.settings, grants, other.judged).decision === 'allow',
  );
  const allow = ({ judged, requestedAt }: Call): Call => ({
    judged,
    requestedAt,
    status: 'queued',
    allowed: 'byUser',
  });
  const withdrawn = covered.map(
    ({ judged }): Action => ({
      type: 'WithdrawApproval',
      batchId: state.batchId,
      callId: judged.callId,
    }),
  );
  const started = startReadyCalls(
    replaceCalls(changeBatch(state, { session }), allow(call), ...covered.map(allow)),
    event.at,
  );
  return go(started.state, ...withdrawn, ...started.actions);
};

// ---- Cancelling one call (rules.md#cancel-one-call) ----

const isNotCancelling = (state: ToolBatch): boolean => state.phase.mode !== 'cancelling';
export const cancelsWaiting = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return isNotCancelling(state) && call !== undefined && isWaiting(call);
};
export const cancelsAgain = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return (
    isNotCancelling(state) && call !== undefined && isRunning(call) && call.graceTimerId !== null
  );
};
export const cancelsRunning = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return isNotCancelling(state) && call !== undefined && isRunning(call);
};
export const ignoreCancel = (state: ToolBatch): BatchMove =>
  ignore(state, 'no such call is waiting or running');

export const cancelWaitingCall = (state: ToolBatch, event: On<'CancelTool'>): BatchMove => {
  const call = findCall(state, event);
  if (call === undefined) return ignoreCancel(state);
  const ended = neverRan(call.judged, call.requestedAt, event.at, 'cancelled', notRunText('user'));
  const started = startReadyCalls(replaceCalls(state, ended), event.at);
  return go(
    started.state,
    ...withdrawApprovals(state, [call]),
    displayResult(state.batchId, ended),
    ...started.actions,
  );
};

export const cancelRunningCall = (state: ToolBatch, event: On<'CancelTool'>): BatchMove => {
  const call = findCall(state, event);
  // Stryker disable next-line ConditionalExpression,LogicalOperator: asked before
  if (call === undefined || !isRunning(call)) return ignoreCancel(state);
  const [timerId, session] = nextId(state.session, 'timer');
  const timer = timerFrom(timerId, event.at, session.settings.graceMs);
  const stopped = replaceCalls(changeBatch(state, { session }), { ...call, graceTimerId: timerId });
  return go(stopped, ...cancelCalls(state, [call], { force: false }), schedule(timer));
};

/** The call whose grace period this timer ends. */
const callInGrace = (state: ToolBatch, timerId: string): Call | undefined =>
  state.calls.find((call) => isRunning(call) && call.graceTimerId === timerId);

/** Ends one call by force; what it has done is unknown. */
const forceCall = (state: ToolBatch, call: Call | undefined, event: Event): BatchMove => {
  if (call === undefined) return ignoreCancel(state);
  const timer =
    isRunning(call) && event.type !== 'TimerFired' ? cancelTimer(call.graceTimerId) : [];
  const ended = endRunning(call, event.at, { status: 'cancelled', text: unknownText('user') });
  const started = startReadyCalls(replaceCalls(state, ended), event.at);
  const actions = [
    ...timer,
    ...cancelCalls(state, [call], { force: true }),
    displayResult(state.batchId, ended),
  ];
  return go(started.state, ...actions, ...started.actions);
};
export const forceCancelledCall = (state: ToolBatch, event: On<'CancelTool'>): BatchMove =>
  forceCall(state, findCall(state, event), event);
export const isCallGrace = (state: ToolBatch, event: On<'TimerFired'>): boolean =>
  callInGrace(state, event.timerId) !== undefined;
export const forceLateCall = (state: ToolBatch, event: On<'TimerFired'>): BatchMove =>
  forceCall(state, callInGrace(state, event.timerId), event);

// ---- Cancelling the turn ----

export const isCancelling = (state: ToolBatch): boolean => state.phase.mode === 'cancelling';
export const isBatchGrace = (state: ToolBatch, event: On<'TimerFired'>): boolean =>
  state.phase.mode === 'cancelling' && state.phase.graceTimerId === event.timerId;
export const limitWhileCancelling = (state: ToolBatch, event: On<'TimerFired'>): boolean =>
  isCancelling(state) && isTurnLimit(state, event);

/** Cancels the waiting calls, and asks the running ones to stop within the grace period. */
export const stopBatch = (state: ToolBatch, event: Event): BatchMove => {
  const { at } = event;
  const cause = getStopCause(state, event);
  const waiting = state.calls.filter(isWaiting);
  const running = state.calls.filter(isRunning);
  const ended = waiting.map((call) =>
    neverRan(call.judged, call.requestedAt, at, 'cancelled', notRunText(cause)),
  );
  const shown = ended.map((call) => displayResult(state.batchId, call));
  // The grace period of the batch replaces those of single calls (rules.md#cancel-one-call).
  const grace = running.flatMap((call) => cancelTimer(call.graceTimerId));
  const batch = replaceCalls(
    state,
    ...ended,
    ...running.map((call): Call => ({ ...call, graceTimerId: null })),
  );
  if (running.length === 0) {
    return go(
      { ...batch, phase: { mode: 'cancelling', graceTimerId: null, cause } },
      ...withdrawApprovals(state, waiting),
      ...shown,
    );
  }
  const [timerId, session] = nextId(state.session, 'timer');
  return go(
    { ...batch, session, phase: { mode: 'cancelling', graceTimerId: timerId, cause } },
    ...withdrawApprovals(state, waiting),
    ...shown,
    ...grace,
    ...cancelCalls(state, running, { force: false }),
    schedule(timerFrom(timerId, at, session.settings.graceMs)),
  );
};

/** The grace period is over, or the user cancelled twice: ends every call by force. */
export const forceBatch = (state: ToolBatch, event: Event): BatchMove => {
  const running = state.calls.filter(isRunning);
  const cause = getCancelCause(state);
  const ended = running.map((call) =>
    endRunning(call, event.at, { status: 'cancelled', text: unknownText(cause) }),
  );
  const timer =
    state.phase.mode === 'cancelling' && event.type !== 'TimerFired'
      ? cancelTimer(state.phase.graceTimerId)
      : [];
  const grace = running.flatMap((call) => cancelTimer(call.graceTimerId));
  const phase = { mode: 'cancelling', graceTimerId: null, cause } as const;
  return go(
    changeBatch(replaceCalls(state, ...ended), { phase }),
    ...timer,
    ...grace,
    ...cancelCalls(state, running, { force: true }),
    ...ended.map((call) => displayResult(state.batchId, call)),
  );
};

// ---- Settling: one user message with a result for each call ----

/**
 * Calls start in order, so the last open call is near the end: a search from there takes no time in
 * a large batch.
 */
const allEnded = ({ calls }: ToolBatch): boolean =>
  calls.findLast((call) => !isEnded(call)) === undefined;
export const stoppedAtLimit = (state: ToolBatch): boolean =>
  allEnded(state) && isStoppingAtLimit(state);
export const stoppedTurn = (state: ToolBatch): boolean => allEnded(state) && isStopping(state);
export const stoppedForApproval = (state: ToolBatch): boolean =>
  allEnded(state) && state.phase.mode === 'stopping';
export const allCallsEnded = (state: ToolBatch): boolean => allEnded(state);

/** The session with the results of a batch. */
const settledSession = (session: SessionData, calls: ToolBatch['calls']): SessionData => {
  // Stryker disable next-line MethodExpression: asked before
  const ended = calls.filter(isEnded);
  return appendResults(countStreaks(session, ended), ended.map(resultOfCall));
};

export const settleStopped = (
  state: ToolBatch,
  _event: Event,
  cause: CancelCause,
): SessionUpdate => ({
  session: appendTexts(settledSession(state.session, state.calls), 'note', [stopNote(cause)]),
  actions: [],
});
/** No user could be asked: no hook and no model call follow (rules.md#ask-before-call). */
export const settleUnapproved = (state: ToolBatch): MoveTo<'Cancelled'> =>
  go({
    name: 'Cancelled',
    session: settledSession(state.session, state.calls),
    cause: 'approval',
    text: cancelledText('approval'),
  });

/**
 * Whether hooks must look at the effects of a call: a mutating call that ran, however it ended,
 * since a failed command may have written files. With `mutatingOk`, as in other agents' machines,
 * only if it ended ok.
 */
export const mayHaveChanged = (call: EndedCall, hooks: Settings['hooks']): boolean =>
  call.judged.traits.mutating && (hooks === 'mutatingOk' ? call.status === 'ok' : call.ran);

export const settle = (state: ToolBatch): MoveTo<'PostToolsHook'> =>
  go({
    name: 'PostToolsHook',
    session: settledSession(state.session, state.calls),
    phase: 'CheckingGitCommits',
    hookId: '', // the phase gets its id when it starts
    mutated: state.calls
      .filter((call) => isEnded(call) && mayHaveChanged(call, state.session.settings.hooks))
      .map((call) => call.judged.callId),
    tree: 'unknown',
  });

/**
 * Exit of ExecutingTools: cancels all grace timers. A timer that fired is no longer in the state.
 */
export const cancelGraceTimers = (state: ToolBatch): readonly Action[] => {
  const ofBatch = state.phase.mode === 'cancelling' ? cancelTimer(state.phase.graceTimerId) : [];
  return [
    ...state.calls.filter(isRunning).flatMap((call) => cancelTimer(call.graceTimerId)),
    ...ofBatch,
  ];
};

/** How a fault or a shutdown ends open calls. `waiting`: the text of calls that had not started. */
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
  const cancelled = cancelCalls(state, state.calls.filter(isRunning), { force: true });
  const shown = calls
    .filter((call, index) => call !== state.calls[index])
    .map((call) => displayResult(state.batchId, call, findOutcome(state, outcomes, call)));
  return {
    session: settledSession(state.session, calls),
    actions: [...withdrawn, ...cancelled, ...shown],
  };
};

export const isOtherBatch = (state: ToolBatch, event: On<'ToolsFailed'>): boolean =>
  event.batchId !== state.batchId;

/**
 * ToolsFailed: the runtime can't continue the batch; unfinished calls get error results
 * (rules.md#tools-failed).
 */
export const failBatch = (state: ToolBatch, event: On<'ToolsFailed'>): MoveTo<'Failed'> => {
  const { session, actions } = settleUnfinished(state, event.at, {
    running: (call) =>
      endRunning(call, event.at, { status: 'failed', text: `failed: ${event.message}` }),
    waiting: `not run: ${event.message}`,
  });
  return go({ name: 'Failed', session, error: 'tools', message: event.message }, ...actions);
};

const findOutcome = (
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
    return endRunning(call, at, {
      status: 'interrupted',
      text: interruptedText(outcome?.text ?? ''),
    });
  const { status, images } = outcome;
  return endRunning(call, at, {
    status,
    text: outcomeText(outcome, 'user'),
    // Stryker disable next-line ConditionalExpression: a shortcut
    ...(status === 'ok' && images !== undefined ? { images } : {}),
  });
};

/** Ends the open calls at shutdown (rules.md#shutdown). */
export const settleForShutdown = (
  state: ToolBatch,
  { at, outcomes = [] }: On<'ShutdownRequested'>,
): SessionUpdate =>
  settleUnfinished(state, at, {
    running: (call) => endAtShutdown(call, at, findOutcome(state, outcomes, call)),
    waiting: closedText,
    outcomes,
  });
