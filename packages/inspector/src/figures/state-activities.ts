import type { State } from '@pawl/agent/machine/state';
import { titleOf } from '@pawl/agent/machine/values/call-title';

/** What a session does in a state. `tool` and `approval` can be several at a time, the others are alone. */
export type ActivityKind = 'request' | 'retry' | 'compaction' | 'approval' | 'tool' | 'hook' | 'idle';

/** `id` is that of the request, timer, compaction, call (`batch/call`) or hook; empty for `idle`. */
export type Activity = {
  readonly kind: ActivityKind;
  readonly id: string;
  /** The model, the kind of the error, the tool or the phase of the hook. */
  readonly name: string;
  /** One line for people; may be empty. */
  readonly about: string;
};

const IDLE: Activity = { kind: 'idle', id: '', name: 'user', about: '' };

const activityOfStatus = (status: string): 'approval' | 'tool' | null => {
  if (status === 'previewing' || status === 'awaitingApproval') return 'approval';
  return status === 'starting' || status === 'running' ? 'tool' : null;
};

/** What goes on in a state; empty in a closed session, and where only transient states are left. */
export const activitiesOf = (state: State): readonly Activity[] => {
  const { settings } = state.session;
  switch (state.name) {
    case 'Ready':
    case 'WaitingForUserInput':
      return [IDLE];
    case 'CallingLlm':
      return [{ kind: 'request', id: state.requestId, name: settings.model, about: '' }];
    case 'Error':
      return [{ kind: 'retry', id: state.timerId, name: state.error.kind, about: state.error.message }];
    case 'Compacting':
      return [{ kind: 'compaction', id: state.compactionId, name: settings.model, about: '' }];
    case 'ExecutingTools':
      return state.calls.flatMap(({ judged, status }) => {
        const kind = activityOfStatus(status);
        if (kind === null) return [];
        const about = titleOf(judged, settings.workspace);
        return [{ kind, id: `${state.batchId}/${judged.callId}`, name: judged.tool, about }];
      });
    case 'PostToolsHook':
      return [{ kind: 'hook', id: state.hookId, name: state.phase, about: '' }];
    default:
      return [];
  }
};
