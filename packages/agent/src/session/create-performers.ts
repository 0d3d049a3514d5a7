import type { State } from '../machine/state.js';
import type { Journal } from '../ports/journal.js';
import type { Equipment } from './dependency-types.js';
import { createCompactions } from './model/compaction-call.js';
import { ModelCalls } from './model/model-call.js';
import type { Performers } from './perform.js';
import type { Post } from './posted-event-types.js';
import { createTimers } from './timers.js';
import { HookRuns } from './tools/after-tool-hook-runs.js';
import { Previews } from './tools/preview.js';
import { ToolRuns } from './tools/tool-run.js';
import { UserHookRuns } from './user-hooks/user-hook-runs.js';

/** The session that the performers work for. */
export type PerformedSession = {
  readonly journal: Pick<Journal, 'read' | 'blobs'>;
  /** The state when the performers are made. */
  readonly opened: State;
  /** The current state; called on each use. */
  state(): State;
  readonly post: Post;
  /** The user's hooks, if they are shared with other performers of the session. Absent: these make their own. */
  readonly userHooks?: UserHookRuns | null;
  shutDown(): void;
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

/** What performs the actions of one session: all of its results are posted. */
export const createPerformers = (
  equipment: Equipment,
  { journal, opened, state, post, shutDown, userHooks: shared }: PerformedSession,
): Performers => {
  const session = (): State['session'] => state().session;
  const userHooks = shared === undefined ? createUserHookRuns(equipment, opened, post) : shared;
  const tools = new ToolRuns(equipment, journal.blobs, { session, post, hooks: userHooks });
  const remember = (): Promise<void> => tools.remember();
  return {
    models: new ModelCalls(equipment, journal.blobs, post, userHooks, state),
    compactions: createCompactions(equipment, post, userHooks),
    tools,
    previews: new Previews(equipment, session, remember, post),
    hooks: new HookRuns(equipment, journal, remember, post),
    userHooks,
    timers: createTimers(equipment.clock, (timerId) => post({ type: 'TimerFired', timerId })),
    shutDown,
  };
};
