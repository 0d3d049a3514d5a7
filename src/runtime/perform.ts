import type { Action } from '../agent/action.js';
import type { State } from '../agent/state.js';
import type { Compactions } from './compaction.js';
import type { HookRuns } from './hook-run.js';
import type { ModelCalls } from './model-call.js';
import type { Timers } from './timers.js';
import type { ToolRuns } from './tool-run.js';

export type Performers = {
  readonly models: ModelCalls;
  readonly compactions: Compactions;
  readonly tools: ToolRuns;
  readonly hooks: HookRuns;
  readonly timers: Timers;
  readonly shutDown: () => void;
};

/**
 * What an action may do before its event is durable: post, and look. Its ToolStarted joins the same group, so that a
 * reply and the start of its calls cost one sync. Returns the ids of calls whose ToolStarted is still to be posted.
 */
export const prepare = (action: Action, { tools }: Performers): readonly string[] => {
  if (action.type !== 'ExecuteTools') return [];
  const { batchId, calls } = action;
  return calls.filter((call) => tools.prepare(batchId, call) === 'later').map(({ callId }) => callId);
};

/** Performs one action after its event is durable. Never throws, never waits: what comes of it is posted. */
export const perform = (action: Action, state: State, performers: Performers): void => {
  switch (action.type) {
    case 'SendLlmRequest':
      performers.models.send(action.requestId, action.length, state);
      break;
    case 'AbortLlmRequest':
      performers.models.abort(action.requestId);
      break;
    case 'CancelTools':
      performers.tools.cancel(action.batchId, action.callIds, action.force);
      break;
    case 'StartCompaction':
      performers.compactions.start(action, state);
      break;
    case 'AbortCompaction':
      performers.compactions.abort(action.compactionId);
      break;
    case 'ScheduleTimer':
      performers.timers.schedule(action.timerId, action.dueAt);
      break;
    case 'CancelTimer':
      performers.timers.cancel(action.timerId);
      break;
    case 'RunHook':
      performers.hooks.start(action, state.session);
      break;
    case 'AbortHook':
      performers.hooks.abort(action.hookId);
      break;
    case 'ExecuteTools': // the calls were prepared with the group, and begin when their ToolStarted is durable
      performers.hooks.keep(action.batchId, action.calls);
      break;
    case 'Shutdown':
      performers.shutDown();
      break;
    case 'RequestApproval': // this and what follows is for watchers
    case 'WithdrawApproval':
    case 'DisplayText':
    case 'DisplayToolResult':
    case 'DisplayError':
    case 'DisplayWarning':
    case 'DisplayNotice':
    case 'RetractPartial':
    case 'RestoreQueue':
    case 'PromptForInput':
      break;
    default:
      action satisfies never;
  }
};
