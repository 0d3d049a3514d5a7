import { attempt } from '@pawl/agent/session/attempt';
import type { Post } from '@pawl/agent/session/posted-event-types';
import type { Timers } from '@pawl/agent/session/timers';
import { faultIn } from '@pawl/machine/kernel/shape';
import type { AskTypes } from '../environment-and-journal-types.js';
import type { TreeAction } from '../run/action.js';
import { verdictShape } from '../run/event-shapes.js';
import type { StopVerdict } from '../run/stop-policies.js';
import type { Tree } from '../tree/tree-state.js';
import type { StopPolicy } from './ask-equipment.js';
import type { TreeCalls } from './model-calls.js';
import type { Environments } from './run-environments.js';

export type TreePerformers = {
  readonly calls: TreeCalls;
  readonly environments: Environments;
  readonly timers: Timers;
  readonly policy: StopPolicy | null;
  readonly post: Post<AskTypes>;
};

type AskPolicy = Extract<TreeAction, { readonly type: 'AskPolicy' }>;

const failed = (why: string): StopVerdict => ({
  kind: 'stop',
  reason: 'policy',
  why: `the policy failed: ${why}`,
});

/** Checks the verdict of a user's policy, which may return anything. */
const takeVerdict = (given: StopVerdict): StopVerdict => {
  const why = faultIn(verdictShape, given, 'its verdict');
  return why === null ? given : failed(why);
};

/** Asks the user's policy. If the policy fails, the run stops, so that a bug can't allow a forbidden call. */
const askPolicy = async (
  { node, policyId, facts }: AskPolicy,
  { policy, post }: TreePerformers,
): Promise<void> => {
  const asked = await attempt(() => policy?.(facts) ?? { kind: 'go' as const });
  const verdict = asked.kind === 'done' ? takeVerdict(asked.value) : failed(asked.fault.message);
  post({ type: 'PolicyAnswered', node, policyId, verdict });
};

/** Performs one action after its event is durable. Never throws or waits; results are posted as events. */
export const performTree = (action: TreeAction, tree: Tree, performers: TreePerformers): void => {
  const { calls, environments, timers } = performers;
  switch (action.type) {
    case 'CallModel': {
      const state = tree.nodes[action.node];
      if (state !== undefined) calls.send(action, state.run);
      break;
    }
    case 'AbortModel':
      calls.abort(action.requestId);
      break;
    case 'StartEnvironment':
      environments.start(action);
      break;
    case 'RunCell':
      environments.run(action);
      break;
    case 'AnswerSubcall':
      environments.answer(action);
      break;
    case 'ReadVariable':
      environments.read(action);
      break;
    case 'CloseEnvironment':
      environments.close(action.node);
      break;
    case 'AskPolicy':
      void askPolicy(action, performers);
      break;
    case 'ScheduleTimer':
      timers.after(action.timerId, action.delayMs);
      break;
    case 'CancelTimer':
      timers.cancel(action.timerId);
      break;
    case 'DisplayWarning': // this and what follows is for watchers
    case 'ReportOutcome':
      break;
    default:
      action satisfies never;
  }
};
