/** Which work an action starts or stops, and which event ends it: pure. */

import type { Action, Event, Posted } from 'pawl/engine';

/** Models are called on any node, all else where the workspace is. */
type Place = 'model' | 'workspace';

export type StartedWork = {
  readonly kind: 'start';
  readonly workId: string;
  readonly place: Place;
  readonly action: Action;
};
type StoppedWork = { readonly kind: 'stop'; readonly workId: string };

/** The ids of the work of calls begin with it. */
export const CALL_WORK = 'call-';
const callWorkId = (batchId: string, id: string): string => `${CALL_WORK}${batchId}-${id}`;
const previewWorkId = (batchId: string, id: string): string => `preview-${batchId}-${id}`;

const start = (workId: string, place: Place, action: Action): StartedWork => ({
  kind: 'start',
  workId,
  place,
  action,
});
const stop = (workId: string): StoppedWork => ({ kind: 'stop', workId });

/** Empty for an action for watchers, or for the session itself. */
export const listWork = (action: Action): readonly (StartedWork | StoppedWork)[] => {
  switch (action.type) {
    case 'SendLlmRequest':
      return [start(action.requestId, 'model', action)];
    case 'AbortLlmRequest':
      return [stop(action.requestId)];
    case 'StartCompaction':
      return [start(action.compactionId, 'model', action)];
    case 'AbortCompaction':
      return [stop(action.compactionId)];
    case 'PreviewCall':
      return [start(previewWorkId(action.batchId, action.call.callId), 'workspace', action)];
    case 'WithdrawApproval':
      return [stop(previewWorkId(action.batchId, action.callId))];
    case 'ExecuteTools':
      return action.calls.map((call) =>
        start(callWorkId(action.batchId, call.callId), 'workspace', { ...action, calls: [call] }),
      );
    case 'CancelTools':
      return action.callIds.map((id) => stop(callWorkId(action.batchId, id)));
    case 'RunHook':
      return [start(action.hookId, 'workspace', action)];
    case 'AbortHook':
      return [stop(action.hookId)];
    default:
      return [];
  }
};

/** The id of the work that the event ends; null if it ends none. */
export const endedWork = (event: Event | Posted): string | null => {
  switch (event.type) {
    case 'LlmCompleted':
    case 'LlmFailed':
    case 'PolicyStopped':
      return event.requestId;
    case 'CompactionCompleted':
    case 'CompactionFailed':
      return event.compactionId;
    case 'CallPreviewed':
      return previewWorkId(event.batchId, event.callId);
    case 'ToolCompleted':
      return callWorkId(event.batchId, event.callId);
    case 'HookCompleted':
    case 'HookFailed':
      return event.hookId;
    default:
      return null;
  }
};

/**
 * How work ends that has no result. `jitter`: the model may be asked again; null: it may not.
 */
type WorkFault = {
  readonly message: string;
  /** Of calls. `lost`: they may have been begun. */
  readonly status?: 'failed' | 'lost';
  readonly jitter?: number | null;
};

/** The events that end the work, which nobody does any more. */
export const failedWork = (
  action: Action,
  { message, status = 'failed', jitter = null }: WorkFault,
): readonly Posted[] => {
  switch (action.type) {
    case 'SendLlmRequest': {
      const retryable = jitter !== null;
      const kind = retryable ? 'unreachable' : 'malformed';
      const error = { kind, message, retryable, retryAfterMs: null } as const;
      const { requestId } = action;
      return [{ type: 'LlmFailed', requestId, error, usage: null, jitter: jitter ?? 0 }];
    }
    case 'StartCompaction':
      return [
        { type: 'CompactionFailed', compactionId: action.compactionId, message, usage: null },
      ];
    case 'RunHook':
      return [{ type: 'HookFailed', hookId: action.hookId, message }];
    case 'PreviewCall': {
      const { batchId, call } = action;
      return [{ type: 'CallPreviewed', batchId, callId: call.callId, preview: { kind: 'none' } }];
    }
    case 'ExecuteTools':
      return action.calls.map(({ callId }) => ({
        type: 'ToolCompleted',
        batchId: action.batchId,
        callId,
        outcome: { status, text: message },
      }));
    default:
      return [];
  }
};

/**
 * The action that stops the work. Only calls know two ways: with their outcome, or at once and
 * without a word.
 */
export const stoppingAction = (action: Action, force: boolean): Action | null => {
  switch (action.type) {
    case 'SendLlmRequest':
      return { type: 'AbortLlmRequest', requestId: action.requestId };
    case 'StartCompaction':
      return { type: 'AbortCompaction', compactionId: action.compactionId };
    case 'PreviewCall':
      return { type: 'WithdrawApproval', batchId: action.batchId, callId: action.call.callId };
    case 'ExecuteTools': {
      const callIds = action.calls.map((call) => call.callId);
      return { type: 'CancelTools', batchId: action.batchId, callIds, force };
    }
    case 'RunHook':
      return { type: 'AbortHook', hookId: action.hookId };
    default:
      return null;
  }
};
