/** Performs the actions of a session: each kind of action has one performer. */

import type { Action } from '../machine/action.js';
import type { State } from '../machine/state.js';
import { createTimers, type Timers } from '../platform/clock.js';
import { HookRuns } from './after-tool-hooks.js';
import { CheckpointRuns } from './checkpoint-runs.js';
import { Compactions } from './compaction.js';
import type { Equipment, PerformedSession, RunningSession } from './equipment.js';
import { Previews } from './judge-call.js';
import type { Post } from './loop.js';
import { ModelCalls } from './model-call.js';
import { ToolRuns } from './tool-run.js';
import { UserHookRuns } from './user-hooks.js';

export type Performers = {
  readonly models: ModelCalls;
  readonly compactions: Compactions;
  readonly tools: ToolRuns;
  readonly previews: Previews;
  readonly hooks: HookRuns;
  /** null: the user has no hooks. */
  readonly userHooks: UserHookRuns | null;
  readonly checkpoints: CheckpointRuns;
  readonly timers: Timers;
  readonly shutDown: () => void;
};

/**
 * Prepares an action before its event is durable. May only read and post. ToolStarted joins the
 * same group, so that a reply and the start of its calls cost one sync. So does the result of a
 * hook that only reads. Returns the ids of calls whose ToolStarted will be posted later.
 */
export const prepare = (
  action: Action,
  state: State,
  { tools, hooks }: Performers,
): readonly string[] => {
  if (action.type === 'RunHook') hooks.prepare(action, state.session);
  if (action.type !== 'ExecuteTools') return [];
  const { batchId, calls } = action;
  return calls
    .filter((call) => tools.announceStart(batchId, call) === 'later')
    .map(({ callId }) => callId);
};

/**
 * Performs one action after its event is durable. Never throws, never waits; results are posted.
 */
export const perform = (action: Action, state: State, performers: Performers): void => {
  switch (action.type) {
    case 'SendLlmRequest':
      void performers.checkpoints.settle(); // beside the request
      performers.models.send(action.requestId, action.length, state);
      break;
    case 'AbortLlmRequest':
      performers.models.abort(action.requestId);
      break;
    case 'PreviewCall':
      performers.previews.start(action.batchId, action.call);
      break;
    case 'WithdrawApproval': // also for watchers, which may already have asked
      performers.previews.drop(action.batchId, action.callId);
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
    case 'RestoreFiles':
      void performers.checkpoints.restore(
        action.rewindId,
        action.plan,
        state.name === 'Rewinding' && state.conversation === undefined,
      );
      break;
    case 'ScheduleTimer':
      performers.timers.after(action.timerId, action.delayMs);
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
    // Tools start elsewhere: `prepare` has posted ToolStarted, and ToolRuns runs them once it is
    // durable.
    case 'ExecuteTools':
      performers.hooks.keep(action.batchId, action.calls);
      break;
    case 'Shutdown':
      performers.shutDown();
      break;
    case 'PromptForInput':
      void performers.checkpoints.endTurn();
      void performers.userHooks?.asked(action, state);
      break;
    case 'RequestApproval': // this and all that follow are for watchers
      void performers.userHooks?.asked(action, state);
      break;
    case 'DisplayText':
    case 'DisplayToolResult':
    case 'DisplayError':
    case 'DisplayWarning':
    case 'DisplayNotice':
    case 'RetractPartial':
    case 'RestoreQueue':
      break;
    default:
      action satisfies never;
  }
};

/** The user's hooks. The batch of a session that was interrupted in its tools has not ended yet. */
export const createUserHookRuns = (
  { userHooks = null, redactor }: Equipment,
  { name, session }: State,
  post: Post,
): UserHookRuns | null => {
  if (userHooks === null) return null;
  const { batch } = session.counters;
  const ended = name === 'ExecutingTools' || name === 'PostToolsHook' ? batch - 1 : batch;
  return new UserHookRuns(userHooks, redactor, post, ended);
};

/** The performers of one session. They post all their results. */
export const createPerformers = (
  equipment: Equipment,
  { journal, opened, state, post, shutDown, userHooks: shared }: PerformedSession,
): Performers => {
  const userHooks = shared === undefined ? createUserHookRuns(equipment, opened, post) : shared;
  const checkpoints = new CheckpointRuns(
    equipment.checkpoints ?? null,
    post,
    () => equipment.jobs.list().length > 0,
  );
  const session: RunningSession = { journal, state, post, userHooks, checkpoints };
  const tools = new ToolRuns(equipment, session);
  const remember = (): Promise<void> => tools.remember();
  return {
    models: new ModelCalls(equipment, session),
    compactions: new Compactions(equipment, session),
    tools,
    previews: new Previews(equipment, session, remember),
    hooks: new HookRuns(equipment, session, remember),
    userHooks,
    checkpoints,
    timers: createTimers(equipment.clock, (timerId) => post({ type: 'TimerFired', timerId })),
    shutDown,
  };
};
