import type { Call } from '../call.js';
import { changeBatch } from '../change.js';
import type { Event, On } from '../event.js';
import type { Next } from '../move.js';
import { go, ignore } from '../move.js';
import type { CancelCause, State } from '../state.js';
import {
  type Batch,
  cancelCalls,
  cancelTimer,
  causeOf,
  type Found,
  find,
  isRunning,
  isWaiting,
  pump,
  put,
  showEnd,
  withdraw,
} from './batch.js';
import { endRunning, neverRan, notRunText, unknownText } from './outcomes.js';
import { nextId } from './request.js';

/** Cancelling one call (R38) and the whole batch (R64-R66, R77). */

type Same = Next<'ExecutingTools'>;

const running = (state: Batch): boolean => state.phase.mode !== 'cancelling';
export const cancelsWaiting = (state: Batch, event: Found): boolean => {
  const call = find(state, event);
  return running(state) && call !== undefined && isWaiting(call);
};
export const cancelsAgain = (state: Batch, event: Found): boolean => {
  const call = find(state, event);
  return running(state) && call !== undefined && isRunning(call) && call.graceTimerId !== null;
};
export const cancelsRunning = (state: Batch, event: Found): boolean => {
  const call = find(state, event);
  return running(state) && call !== undefined && isRunning(call);
};
export const ignoreCancel = (state: Batch): Same => ignore(state, 'no such call is waiting or running');

export const cancelWaitingCall = (state: Batch, event: On<'CancelTool'>): Same => {
  const call = find(state, event);
  if (call === undefined) return ignoreCancel(state);
  const ended = neverRan(call.judged, call.requestedAt, event.at, 'cancelled', notRunText('user'));
  const pumped = pump(put(state, ended), event.at);
  return go(pumped.state, ...withdraw(state, [call]), showEnd(state.batchId, ended), ...pumped.actions);
};

export const cancelRunningCall = (state: Batch, event: On<'CancelTool'>): Same => {
  const call = find(state, event);
  if (call === undefined || !isRunning(call)) return ignoreCancel(state);
  const [timerId, session] = nextId(state.session, 'timer');
  const dueAt = event.at + session.settings.graceMs;
  const stopped = put(changeBatch(state, { session }), { ...call, graceTimerId: timerId });
  return go(stopped, ...cancelCalls(state, [call], false), { type: 'ScheduleTimer', timerId, dueAt });
};

const graceOf = (state: Batch, timerId: string): Call | undefined =>
  state.calls.find((call) => isRunning(call) && call.graceTimerId === timerId);

const forceCall = (state: Batch, call: Call | undefined, event: Event): Same => {
  if (call === undefined) return ignoreCancel(state);
  const timer = isRunning(call) && event.type !== 'TimerFired' ? cancelTimer(call.graceTimerId) : [];
  const ended = endRunning(call, event.at, 'cancelled', unknownText('user'));
  const pumped = pump(put(state, ended), event.at);
  const actions = [...timer, ...cancelCalls(state, [call], true), showEnd(state.batchId, ended)];
  return go(pumped.state, ...actions, ...pumped.actions);
};
export const forceCancelledCall = (state: Batch, event: On<'CancelTool'>): Same =>
  forceCall(state, find(state, event), event);
export const isCallGrace = (state: Batch, event: On<'TimerFired'>): boolean =>
  graceOf(state, event.timerId) !== undefined;
export const forceLateCall = (state: Batch, event: On<'TimerFired'>): Same =>
  forceCall(state, graceOf(state, event.timerId), event);

// ---- Cancelling the turn (R64-R66, R77) ----

export const isCancelling = (state: Batch): boolean => state.phase.mode === 'cancelling';
export const isBatchGrace = (state: Batch, event: On<'TimerFired'>): boolean =>
  state.phase.mode === 'cancelling' && state.phase.graceTimerId === event.timerId;
export const limitWhileCancelling = (state: Batch, event: On<'TimerFired'>): boolean =>
  isCancelling(state) && state.session.turn.timeLimit?.timerId === event.timerId;

const stopBatch = (state: Batch, cause: CancelCause, at: number): Same => {
  const waiting = state.calls.filter(isWaiting);
  const open = state.calls.filter(isRunning);
  const ended = waiting.map((call) =>
    neverRan(call.judged, call.requestedAt, at, 'cancelled', notRunText(cause)),
  );
  const shown = ended.map((call) => showEnd(state.batchId, call));
  // The batch's own grace takes over from that of single calls (R38).
  const grace = open.flatMap((call) => cancelTimer(call.graceTimerId));
  const left = put(state, ...ended, ...open.map((call): Call => ({ ...call, graceTimerId: null })));
  if (open.length === 0) {
    return go(
      { ...left, phase: { mode: 'cancelling', graceTimerId: null, cause } },
      ...withdraw(state, waiting),
      ...shown,
    );
  }
  const [timerId, session] = nextId(state.session, 'timer');
  const dueAt = at + session.settings.graceMs;
  return go(
    { ...left, session, phase: { mode: 'cancelling', graceTimerId: timerId, cause } },
    ...withdraw(state, waiting),
    ...shown,
    ...grace,
    ...cancelCalls(state, open, false),
    { type: 'ScheduleTimer', timerId, dueAt },
  );
};
export const stopBatchForUser = (state: Batch, event: Event): Same => stopBatch(state, 'user', event.at);
export const stopBatchForTime = (state: Batch, event: Event): Same => stopBatch(state, 'time', event.at);

/** Time is up, or the user asked twice: no process outlives the turn. */
export const forceBatch = (state: Batch, event: Event): Same => {
  const open = state.calls.filter(isRunning);
  const cause = causeOf(state);
  const ended = open.map((call) => endRunning(call, event.at, 'cancelled', unknownText(cause)));
  const timer =
    state.phase.mode === 'cancelling' && event.type !== 'TimerFired'
      ? cancelTimer(state.phase.graceTimerId)
      : [];
  const grace = open.flatMap((call) => cancelTimer(call.graceTimerId));
  const phase = { mode: 'cancelling', graceTimerId: null, cause } as const;
  const left = changeBatch(put(state, ...ended), { phase });
  return go(
    left,
    ...timer,
    ...grace,
    ...cancelCalls(state, open, true),
    ...ended.map((call) => showEnd(state.batchId, call)),
  );
};
/** The time limit of a turn that is being stopped already. */
export const ignoreSecondLimit = <S extends State>(state: S) =>
  ignore(state, 'the turn is being stopped already');
