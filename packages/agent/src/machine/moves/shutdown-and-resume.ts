/**
 * Moves of the session as a whole: shutdown, resuming, changed settings.
 *
 * An "epoch" is one opening of the session. A `Resumed` with an old epoch is a duplicate and
 * changes nothing.
 *
 * The table (table.ts) uses guards, which answer whether a branch is taken, and moves: these return
 * `go(state, ...actions)`, or `ignore(state, why)`. `rest` in the table is the move with which a
 * state begins to wait. `In<N>` is the state N, `On<T>` the event T.
 */

import type { JudgedCall } from '../../policy/judged-call.js';
import type { Action } from '../action.js';
import type { Call, EndedCall } from '../call.js';
import type { On } from '../event.js';
import { readLimits } from '../settings.js';
import {
  type CancelCause,
  changeBatch,
  changeCalling,
  changeSession,
  go,
  type In,
  ignore,
  type MoveTo,
  measuredId,
  type RestingState,
  remainingTimer,
  type SessionUpdate,
  type State,
  type Stay,
  schedule,
  withoutReservations,
  withSession,
} from '../state.js';
import {
  callWithId,
  cancelCalls,
  displayResult,
  endInvalid,
  endRunning,
  isAsked,
  isEnded,
  isRunning,
  isWaiting,
  neverRan,
  notRunText,
  replaceCalls,
  type ToolBatch,
  unknownText,
  withdrawApprovals,
} from './batch-calls.js';
import { forceBatch, settleForShutdown } from './batch-events.js';
import { resetClock, resumeClock } from './budget.js';
import { hookAgain } from './hooks.js';
import { closeOldProcess, retractPartial } from './request.js';
import { noteCutRewind } from './rewind.js';
import { keepPartial } from './stop.js';
import { admit, expectNeeds, spendingIds, startingIds, startReadyCalls } from './tool-batch.js';
import { enqueue, isBlank } from './turn.js';

/** Ends the work of the state. Its exit cancels the timers. */
const endWork = (state: RestingState, event: On<'ShutdownRequested'>): SessionUpdate => {
  switch (state.name) {
    case 'CallingLlm': {
      // stores the text of the reply so far, or takes blank text off the screen
      const { session, actions } = keepPartial(state, 'shutdown');
      return {
        session,
        actions: [{ type: 'AbortLlmRequest', requestId: state.requestId }, ...actions],
      };
    }
    case 'ExecutingTools':
      return settleForShutdown(state, event);
    case 'PostToolsHook':
      return { session: state.session, actions: [{ type: 'AbortHook', hookId: state.hookId }] };
    case 'Compacting':
      return {
        session: state.session,
        actions: [{ type: 'AbortCompaction', compactionId: state.compactionId }],
      };
    case 'Rewinding':
      return { session: noteCutRewind(state.session), actions: [] };
    case 'Ready':
    case 'WaitingForUserInput':
    case 'Error':
    case 'ShuttingDown':
      return { session: state.session, actions: [] };
    default:
      return state satisfies never;
  }
};

export const shutDown = (
  state: RestingState,
  event: On<'ShutdownRequested'>,
): MoveTo<'ShuttingDown'> => {
  const { session, actions } = endWork(state, event);
  return go({ name: 'ShuttingDown', session }, ...actions);
};

/** Rest of ShuttingDown. */
export const sayGoodbye = (state: In<'ShuttingDown'>): MoveTo<'ShuttingDown'> =>
  go(state, { type: 'Shutdown' });

/** Keeps input after the end for the next opening (rules.md#after-shutdown). */
export const keepInput = (
  state: In<'ShuttingDown'>,
  event: On<'UserInput'>,
): MoveTo<'ShuttingDown'> =>
  isBlank(state, event)
    ? ignore(state, 'the session is over')
    : {
        ...go({ ...state, session: enqueue(state.session, event) }),
        late: 'the session is over; the text stays queued',
      };

/*
 * ---- Resuming ----
 *
 * The state alone says what was in flight. The runtime settles calls that were running with
 * ordinary events: it runs them again, checks whether they had their effect, or reports them lost.
 */

/** The session in its new epoch, with what the old process left uncounted. */
const enterEpoch = (state: RestingState, { epoch }: On<'Resumed'>): SessionUpdate => {
  const resumed = { running: spendingIds(state), again: measuredId(state) };
  const { session, actions } = closeOldProcess(state.session, resumed);
  return { session: changeSession(session, { epoch }), actions };
};

/** The same, with the time limit of the turn continued. */
const openEpoch = (state: RestingState, event: On<'Resumed'>): SessionUpdate => {
  const { session, actions: notices } = enterEpoch(state, event);
  const { session: timed, actions } = resumeClock(session, event);
  return { session: timed, actions: [...notices, ...actions] };
};

/** The actions that restart the work of a state; other states have another move for that. */
const restartActions = (state: RestingState): readonly Action[] => {
  switch (state.name) {
    case 'PostToolsHook':
      return [hookAgain(state)];
    case 'CallingLlm':
    case 'Error':
    case 'Compacting':
    case 'Rewinding':
    case 'ExecutingTools':
    case 'Ready':
    case 'WaitingForUserInput':
    case 'ShuttingDown':
      return [];
    default:
      return state satisfies never;
  }
};

export const isOldEpoch = (state: RestingState, event: On<'Resumed'>): boolean =>
  event.epoch <= state.session.epoch;
export const ignoreEpoch = <S extends RestingState>(state: S): Stay<S> =>
  ignore(state, 'stale: the session was opened since');

/** Default: the state stays and its work restarts (rules.md#resume-rest). */
export const goOn = <S extends RestingState>(state: S, event: On<'Resumed'>): Stay<S> => {
  if (isOldEpoch(state, event)) return ignoreEpoch(state);
  const { session, actions } = openEpoch(state, event);
  return go(withSession(state, session), ...actions, ...restartActions(state));
};

/** The retry waits for the rest of its delay, without the time while the session was stopped. */
export const goOnRetrying = (state: In<'Error'>, event: On<'Resumed'>): MoveTo<'Error'> => {
  const { session, actions } = openEpoch(state, event);
  const timer = remainingTimer(state, event.at, event.stoppedAt);
  return go({ ...state, ...timer, session }, ...actions, schedule(timer));
};

/** Prompts the user again. */
export const goOnWaiting = (
  state: In<'WaitingForUserInput'>,
  event: On<'Resumed'>,
): MoveTo<'WaitingForUserInput'> => {
  const { session, actions } = openEpoch(state, event);
  return go(withSession(state, session), ...actions, { type: 'PromptForInput' });
};

/** Opens a session that was closed cleanly (rules.md#open-again). */
export const openAgain = (
  state: In<'ShuttingDown'>,
  event: On<'Resumed'>,
): MoveTo<'WaitingForUserInput'> => {
  const { session, actions } = openEpoch(state, event);
  const reason = { kind: 'resumed' } as const;
  return go({ name: 'WaitingForUserInput', session, reason, next: 'rest' }, ...actions);
};

// ---- CallingLlm (rules.md#resume-request) ----

/** Sends the same request under the same id. */
export const sendSame = (state: In<'CallingLlm'>, event: On<'Resumed'>): MoveTo<'CallingLlm'> => {
  const { session, actions } = openEpoch(state, event);
  const unsaid = retractPartial(state.requestId, state.partial);
  return go(changeCalling(state, { session, partial: '' }), ...unsaid, ...actions);
};
/** The request was already cancelled: sends nothing. */
export const endDrain = (
  state: In<'CallingLlm'>,
  event: On<'Resumed'>,
  cause: CancelCause,
): SessionUpdate => {
  const { session, actions } = keepPartial(state, cause);
  const resumed = openEpoch({ ...state, session }, event);
  return { session: resumed.session, actions: [...actions, ...resumed.actions] };
};

/** Starts the same compaction under the same id. */
export const compactSame = (
  state: In<'Compacting'>,
  event: On<'Resumed'>,
): MoveTo<'Compacting'> => {
  const { session, actions } = openEpoch(state, event);
  return go({ ...state, session }, ...actions);
};

/** Continues with the same plan. */
export const rewindSame = (state: In<'Rewinding'>, event: On<'Resumed'>): MoveTo<'Rewinding'> => {
  const { session, actions } = openEpoch(state, event);
  return go({ ...state, session }, ...actions);
};

// ---- ExecutingTools (rules.md#resume-calls) ----

/** The batch was being cancelled: ends it as if the grace period were over, and starts nothing. */
export const endBatch = (batch: ToolBatch, event: On<'Resumed'>): MoveTo<'ExecutingTools'> => {
  const { state, actions } = forceBatch(dropStartingIds(batch), event);
  // Without the time limit, since the turn ends with this step.
  const { session, actions: notices } = enterEpoch(state, event);
  return go(changeBatch(state, { session }), ...actions, ...notices);
};

/** An approval of a call that has not begun ends with the process that asked, like the grants. */
const asUndecided = (call: Call, judged: JudgedCall): Call => {
  const { requestedAt, status } = call;
  // Stryker disable next-line ConditionalExpression: a shortcut
  if (status === 'previewing' || status === 'awaitingApproval') return { ...call, judged };
  return { judged, requestedAt, status: 'queued', allowed: 'notYet' };
};

/**
 * The batch with its pending calls as their tools judge them now; `ended`: calls that are no longer
 * valid. Events of earlier versions carry no judgements.
 */
const updateJudgements = (
  state: ToolBatch,
  { judged = [], at }: On<'Resumed'>,
): { readonly batch: ToolBatch; readonly ended: readonly EndedCall[] } => {
  const changed: Call[] = [];
  const ended: EndedCall[] = [];
  for (const rejudged of judged) {
    const call = callWithId(state.calls, rejudged.callId);
    if (call === undefined || call.judged.tool !== rejudged.tool) continue;
    if (!isWaiting(call) && call.status !== 'starting') continue;
    if (call.status === 'starting' && call.graceTimerId !== null) continue; // it is being cancelled
    const fault = endInvalid(rejudged, call.requestedAt, at);
    if (fault === null) changed.push(asUndecided(call, rejudged));
    else ended.push(fault);
  }
  return { batch: replaceCalls(state, ...changed, ...ended), ended };
};

/** The batch without open ids and reservations of calls that never ran. */
const dropStartingIds = (batch: ToolBatch): ToolBatch => {
  const { session } = batch;
  const unstarted = startingIds(batch);
  return changeBatch(batch, {
    session: changeSession(session, {
      unaccounted: session.unaccounted.filter((id) => !unstarted.includes(id)),
      reserved: withoutReservations(session, unstarted),
    }),
  });
};

/**
 * Resumes a batch, after `dropStartingIds`: decides again about calls that were asked for, since
 * the rules may have changed and the user may be gone (rules.md#resume-calls); `startReadyCalls`
 * decides about queued ones. Calls that were starting never ran: they start again if they still
 * may.
 */
const restartBatch = (batch: ToolBatch, at: number): Stay<ToolBatch> => {
  const shown: Action[] = [];
  let stops = false;
  const { session, batchId } = batch;
  const calls: Call[] = [];
  for (const call of batch.calls) {
    const { judged, requestedAt } = call;
    if (call.status === 'starting')
      calls.push({ judged, requestedAt, status: 'queued', allowed: call.allowed });
    else if (!isAsked(call)) calls.push(call);
    else {
      const needing = expectNeeds(session, judged);
      const admitted = admit({ session, batchId, before: calls }, needing, requestedAt, at);
      stops ||= admitted.stops;
      shown.push(...admitted.questions);
      if (!isAsked(admitted.call)) shown.push(...withdrawApprovals(batch, [call]));
      if (isEnded(admitted.call)) shown.push(displayResult(batchId, admitted.call));
      calls.push(admitted.call);
    }
  }
  const phase = stops ? ({ mode: 'stopping' } as const) : batch.phase;
  const started = startReadyCalls(changeBatch(batch, { calls, phase }), at);
  return go(started.state, ...shown, ...started.actions);
};

/**
 * Decides again about calls that have not run. Calls that were being cancelled end: a starting call
 * never ran, a running call is ended by force before another call starts.
 */
export const goOnWithBatch = (
  before: ToolBatch,
  event: On<'Resumed'>,
): MoveTo<'ExecutingTools'> => {
  const { batch: state, ended: invalid } = updateJudgements(dropStartingIds(before), event);
  const { batchId } = state;
  const cancelled = state.calls.filter(isRunning).filter((call) => call.graceTimerId !== null);
  const ended = cancelled.map((call) => endCancelled(call, event.at));
  const batch = replaceCalls(state, ...ended);
  const { session, actions } = openEpoch(batch, event);
  const started = restartBatch(changeBatch(batch, { session }), event.at);
  const forced = cancelCalls(
    state,
    cancelled.filter(({ status }) => status === 'running'),
    { force: true },
  );
  const shown = [...ended, ...invalid].map((call) => displayResult(batchId, call));
  return go(started.state, ...actions, ...forced, ...shown, ...started.actions);
};

/** The end of a call that was being cancelled. */
const endCancelled = (call: Call, at: number): EndedCall =>
  call.status === 'starting'
    ? neverRan(call.judged, call.requestedAt, at, 'cancelled', notRunText('user'))
    : endRunning(call, at, { status: 'cancelled', text: unknownText('user') });

// ---- Changed settings ----

/**
 * SettingsChanged: takes effect from the next decision. New limits also become the slices of
 * autoRearm; the event may replace the grants.
 */
export const changeSettings = <S extends State>(
  state: S,
  event: On<'SettingsChanged'>,
): Stay<S> => {
  const before = state.session;
  const { patch, grants = before.grants } = event;
  const limits = patch.limits === undefined ? before.settings.limits : readLimits(patch.limits);
  const { primary, ...changedSettings } = { ...before.settings, ...patch, limits };
  // A model that the user chooses stays.
  const fallsBack = primary !== undefined && patch.model === undefined;
  const settings = fallsBack ? { ...changedSettings, primary } : changedSettings;
  if (JSON.stringify([settings, grants]) === JSON.stringify([before.settings, before.grants]))
    return ignore(state, 'the settings are as they were');
  const slices =
    patch.limits === undefined ? before.slices : { usd: limits.usd, tokens: limits.tokens };
  const changed = changeSession(before, { settings, slices, grants });
  const { session, actions } = resetClock(state, before, changed, event.stoppedAt ?? event.at);
  return go(withSession(state, session), ...actions);
};
