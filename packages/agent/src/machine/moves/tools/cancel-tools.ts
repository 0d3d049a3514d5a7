import type { Call } from '../../call.js';
import { changeBatch } from '../../change-state.js';
import type { Event, On } from '../../event.js';
import type { MoveTo } from '../../move-result.js';
import { go, ignore } from '../../move-result.js';
import { nextId } from '../common/next-id.js';
import { schedule, timerFrom } from '../common/timers.js';
import { isTurnLimit, stopCauseOf } from '../stop-turn.js';
import { endRunning, neverRan, notRunText, unknownText } from './result-texts.js';
import { startReadyCalls } from './start-calls.js';
import {
  type CallReference,
  cancelCalls,
  cancelCauseOf,
  cancelTimer,
  displayResult,
  findCall,
  isRunning,
  isWaiting,
  replaceCalls,
  type ToolBatch,
  withdrawApprovals,
} from './tool-batch.js';

/** Cancels one call (docs/rules.md#cancel-one-call) or the whole batch. */

type Same = MoveTo<'ExecutingTools'>;

const running = (state: ToolBatch): boolean => state.phase.mode !== 'cancelling';
export const cancelsWaiting = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return running(state) && call !== undefined && isWaiting(call);
};
export const cancelsAgain = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return running(state) && call !== undefined && isRunning(call) && call.graceTimerId !== null;
};
export const cancelsRunning = (state: ToolBatch, event: CallReference): boolean => {
  const call = findCall(state, event);
  return running(state) && call !== undefined && isRunning(call);
};
export const ignoreCancel = (state: ToolBatch): Same => ignore(state, 'no such call is waiting or running');

export const cancelWaitingCall = (state: ToolBatch, event: On<'CancelTool'>): Same => {
  const call = findCall(state, event);
  if (call === undefined) return ignoreCancel(state);
  const ended = neverRan(call.judged, call.requestedAt, event.at, 'cancelled', notRunText('user'));
  const pumped = startReadyCalls(replaceCalls(state, ended), event.at);
  return go(
    pumped.state,
    ...withdrawApprovals(state, [call]),
    displayResult(state.batchId, ended),
    ...pumped.actions,
  );
};

export const cancelRunningCall = (state: ToolBatch, event: On<'CancelTool'>): Same => {
  const call = findCall(state, event);
  if (call === undefined || !isRunning(call)) return ignoreCancel(state);
  const [timerId, session] = nextId(state.session, 'timer');
  const timer = timerFrom(timerId, event.at, session.settings.graceMs);
  const stopped = replaceCalls(changeBatch(state, { session }), { ...call, graceTimerId: timerId });
  return go(stopped, ...cancelCalls(state, [call], false), schedule(timer));
};

const graceOf = (state: ToolBatch, timerId: string): Call | undefined =>
  state.calls.find((call) => isRunning(call) && call.graceTimerId === timerId);

const forceCall = (state: ToolBatch, call: Call | undefined, event: Event): Same => {
  if (call === undefined) return ignoreCancel(state);
  const timer = isRunning(call) && event.type !== 'TimerFired' ? cancelTimer(call.graceTimerId) : [];
  const ended = endRunning(call, event.at, { status: 'cancelled', text: unknownText('user') });
  const pumped = startReadyCalls(replaceCalls(state, ended), event.at);
  const actions = [...timer, ...cancelCalls(state, [call], true), displayResult(state.batchId, ended)];
  return go(pumped.state, ...actions, ...pumped.actions);
};
export const forceCancelledCall = (state: ToolBatch, event: On<'CancelTool'>): Same =>
  forceCall(state, findCall(state, event), event);
export const isCallGrace = (state: ToolBatch, event: On<'TimerFired'>): boolean =>
  graceOf(state, event.timerId) !== undefined;
export const forceLateCall = (state: ToolBatch, event: On<'TimerFired'>): Same =>
  forceCall(state, graceOf(state, event.timerId), event);

// ---- Cancelling the turn ----

export const isCancelling = (state: ToolBatch): boolean => state.phase.mode === 'cancelling';
export const isBatchGrace = (state: ToolBatch, event: On<'TimerFired'>): boolean =>
  state.phase.mode === 'cancelling' && state.phase.graceTimerId === event.timerId;
export const limitWhileCancelling = (state: ToolBatch, event: On<'TimerFired'>): boolean =>
  isCancelling(state) && isTurnLimit(state, event);

export const stopBatch = (state: ToolBatch, event: Event): Same => {
  const { at } = event;
  const cause = stopCauseOf(state, event);
  const waiting = state.calls.filter(isWaiting);
  const open = state.calls.filter(isRunning);
  const ended = waiting.map((call) =>
    neverRan(call.judged, call.requestedAt, at, 'cancelled', notRunText(cause)),
  );
  const shown = ended.map((call) => displayResult(state.batchId, call));
  // The grace period of the batch replaces those of single calls (docs/rules.md#cancel-one-call).
  const grace = open.flatMap((call) => cancelTimer(call.graceTimerId));
  const left = replaceCalls(state, ...ended, ...open.map((call): Call => ({ ...call, graceTimerId: null })));
  if (open.length === 0) {
    return go(
      { ...left, phase: { mode: 'cancelling', graceTimerId: null, cause } },
      ...withdrawApprovals(state, waiting),
      ...shown,
    );
  }
  const [timerId, session] = nextId(state.session, 'timer');
  return go(
    { ...left, session, phase: { mode: 'cancelling', graceTimerId: timerId, cause } },
    ...withdrawApprovals(state, waiting),
    ...shown,
    ...grace,
    ...cancelCalls(state, open, false),
    schedule(timerFrom(timerId, at, session.settings.graceMs)),
  );
};

/** The grace period is over, or the user cancelled twice: ends every call by force. */
export const forceBatch = (state: ToolBatch, event: Event): Same => {
  const open = state.calls.filter(isRunning);
  const cause = cancelCauseOf(state);
  const ended = open.map((call) =>
    endRunning(call, event.at, { status: 'cancelled', text: unknownText(cause) }),
  );
  const timer =
    state.phase.mode === 'cancelling' && event.type !== 'TimerFired'
      ? cancelTimer(state.phase.graceTimerId)
      : [];
  const grace = open.flatMap((call) => cancelTimer(call.graceTimerId));
  const phase = { mode: 'cancelling', graceTimerId: null, cause } as const;
  const left = changeBatch(replaceCalls(state, ...ended), { phase });
  return go(
    left,
    ...timer,
    ...grace,
    ...cancelCalls(state, open, true),
    ...ended.map((call) => displayResult(state.batchId, call)),
  );
};
