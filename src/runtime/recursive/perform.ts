import type { AskTypes } from '../../needs-recursive.js';
import type { TreeAction } from '../../recursive/action.js';
import type { Tree } from '../../recursive/tree-state.js';
import type { Post } from '../posted.js';
import type { Timers } from '../timers.js';
import { attempt } from '../wall.js';
import type { TreeCalls } from './calls.js';
import type { Environments } from './environments.js';
import type { StopPolicy } from './equipment.js';

export type TreePerformers = {
  readonly calls: TreeCalls;
  readonly environments: Environments;
  readonly timers: Timers;
  readonly policy: StopPolicy | null;
  readonly post: Post<AskTypes>;
};

type AskPolicy = Extract<TreeAction, { readonly type: 'AskPolicy' }>;

/** A policy that fails stops the run: what it was to prevent must not happen because of its fault. */
const askPolicy = async (
  { node, policyId, facts }: AskPolicy,
  { policy, post }: TreePerformers,
): Promise<void> => {
  const asked = await attempt(() => policy?.(facts) ?? { kind: 'go' as const });
  const verdict =
    asked.kind === 'done'
      ? asked.value
      : ({ kind: 'stop', reason: 'policy', why: `the policy failed: ${asked.fault.message}` } as const);
  post({ type: 'PolicyAnswered', node, policyId, verdict });
};

/** Performs one action after its event is durable. Never throws, never waits: what comes of it is posted. */
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
      timers.schedule(action.timerId, action.dueAt);
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
