import type { Step } from '@pawl/machine/kernel/step-types';
import type { Action } from '../action.js';
import { brokenRule } from '../broken-rule-text.js';
import type { Event } from '../event.js';
import { isAsked, isRunning } from '../moves/tools/tool-batch.js';
import type { State } from '../state.js';

/**
 * Checks that the state names all work in flight (docs/rules.md#in-flight-is-named).
 *
 * 1. The next state names the work that a step starts. All work that it names was started and has not ended.
 * 2. Work that a state no longer names has answered, was aborted or never started: nothing is left running.
 */

const inCall = (batchId: string, callId: string): string => `call ${batchId} ${callId}`;
const inApproval = (batchId: string, callId: string): string => `approval ${batchId} ${callId}`;
const inTimer = (timerId: string): string => `timer ${timerId}`;

/** The work in flight that a state names, each as its kind and ids. */
export const inFlight = (state: State): readonly string[] => {
  const limit = state.session.turn.timeLimit;
  const own = ownFlight(state);
  return limit === null ? own : [...own, inTimer(limit.timerId)];
};

const ownFlight = (state: State): readonly string[] => {
  switch (state.name) {
    case 'CallingLlm':
      return [`request ${state.requestId}`];
    case 'Error':
      return [inTimer(state.timerId)];
    case 'ExecutingTools':
      return batchFlight(state);
    case 'PostToolsHook':
      return [`hook ${state.hookId}`];
    case 'Compacting':
      return [`compaction ${state.compactionId}`];
    default:
      return [];
  }
};

const batchFlight = (state: Extract<State, { readonly name: 'ExecutingTools' }>): readonly string[] => {
  const found: string[] = [];
  for (const call of state.calls) {
    if (isAsked(call)) found.push(inApproval(state.batchId, call.judged.callId));
    if (!isRunning(call)) continue;
    found.push(inCall(state.batchId, call.judged.callId));
    if (call.graceTimerId !== null) found.push(inTimer(call.graceTimerId));
  }
  if (state.phase.mode === 'cancelling' && state.phase.graceTimerId !== null)
    found.push(inTimer(state.phase.graceTimerId));
  return found;
};

/** The work that an event ends, or null. */
export const endedBy = (event: Event): string | null => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
    case 'PolicyStopped':
      return `request ${event.requestId}`;
    case 'ToolCompleted':
      return inCall(event.batchId, event.callId);
    case 'CallPreviewed':
    case 'ApprovalAnswered':
      return inApproval(event.batchId, event.callId);
    case 'HookCompleted':
    case 'HookFailed':
      return `hook ${event.hookId}`;
    case 'TimerFired':
      return inTimer(event.timerId);
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return `compaction ${event.compactionId}`;
    default:
      return null;
  }
};

/** Adds the work that an action starts and removes the work that it ends. */
const perform = (going: Set<string>, action: Action): void => {
  switch (action.type) {
    case 'SendLlmRequest':
      going.add(`request ${action.requestId}`);
      break;
    case 'AbortLlmRequest':
      going.delete(`request ${action.requestId}`);
      break;
    case 'ExecuteTools':
      for (const { callId } of action.calls) going.add(inCall(action.batchId, callId));
      break;
    case 'CancelTools':
      if (action.force) for (const callId of action.callIds) going.delete(inCall(action.batchId, callId));
      break;
    case 'PreviewCall':
    case 'RequestApproval':
      going.add(inApproval(action.batchId, action.call.callId));
      break;
    case 'WithdrawApproval':
      going.delete(inApproval(action.batchId, action.callId));
      break;
    case 'RunHook':
      going.add(`hook ${action.hookId}`);
      break;
    case 'AbortHook':
      going.delete(`hook ${action.hookId}`);
      break;
    case 'StartCompaction':
      going.add(`compaction ${action.compactionId}`);
      break;
    case 'AbortCompaction':
      going.delete(`compaction ${action.compactionId}`);
      break;
    case 'ScheduleTimer':
      going.add(inTimer(action.timerId));
      break;
    case 'CancelTimer':
      going.delete(inTimer(action.timerId));
      break;
    default:
      break;
  }
};

/** Work that the runtime settles in a resumed session, if the state still names it: started calls. */
const leftByCrash = (before: State, named: readonly string[]): readonly string[] => {
  if (before.name !== 'ExecutingTools') return [];
  const begun = before.calls.filter((call) => call.status === 'running');
  return begun.map(({ judged }) => inCall(before.batchId, judged.callId)).filter((id) => named.includes(id));
};

/** Differences between the work in flight and the work that the state names. */
export const flightFaults = (before: State, event: Event, step: Step<State, Action>): readonly string[] => {
  const { state, actions } = step;
  if (state === before && actions.length === 0) return [];
  const named = inFlight(state);
  const going = new Set(event.type === 'Resumed' ? leftByCrash(before, named) : inFlight(before));
  const ended = endedBy(event);
  // The time limit of a turn that is already being stopped has no effect, and the state still names it.
  if (ended !== null && !(event.type === 'TimerFired' && named.includes(ended))) going.delete(ended);
  for (const action of actions) perform(going, action);
  const lost = named.filter((id) => !going.delete(id));
  return [
    ...[...going].map((id) =>
      brokenRule('in-flight-is-named', `${id} goes on, and ${state.name} does not know it`),
    ),
    ...lost.map((id) =>
      brokenRule('in-flight-is-named', `${state.name} waits for ${id}, which is not going on`),
    ),
  ];
};
