import type { Settings } from '../../machine/settings.js';
import type { State } from '../../machine/state.js';
import type { Clock } from '../../ports/clock.js';
import type { JournalStore, StartedBy } from '../../ports/journal.js';
import type { AgentSession } from '../../session/agent-session.js';
import type { LocalRuntime } from '../../session/in-process-runtime.js';

/** A task may take that long. */
export const TASK_DEADLINE_MS = 30 * 60_000;

/** A task that an earlier process of the session has started. */
export type StoredTask = { readonly sessionId: string; readonly createdAt: number; readonly state: State };

/** The sessions of the tasks of one session. */
export type TaskSessions = {
  readonly clock: Clock;
  /** The current settings of the session that starts tasks. */
  settings(): Settings;
  /** Creates the session of a task. It has no input yet. */
  start(settings: Settings, call: Omit<StartedBy, 'sessionId'>): Promise<AgentSession>;
  /** The task of this call, or null. Rejects if the sessions can't be read. */
  find(call: Omit<StartedBy, 'sessionId'>): Promise<StoredTask | null>;
  /** Opens the session of a task again; it goes on with what it was doing. */
  reopen(sessionId: string): Promise<AgentSession>;
};

type Needs = {
  readonly parentId: string;
  readonly clock: Clock;
  readonly journals: JournalStore;
  runtime(): LocalRuntime;
  instruct(settings: Settings): Promise<string>;
};

export const createTaskSessions = ({
  parentId,
  clock,
  journals,
  runtime,
  instruct,
}: Needs): TaskSessions => ({
  clock,
  settings: () => runtime().find(parentId).state.session.settings,
  async start(settings, call) {
    const startedBy = { sessionId: parentId, ...call };
    const id = await runtime().create({ settings, instructions: await instruct(settings), startedBy });
    return runtime().find(id);
  },
  async find({ batchId, callId }) {
    for await (const { sessionId, startedBy, createdAt } of journals.list()) {
      if (startedBy?.sessionId !== parentId || startedBy.batchId !== batchId || startedBy.callId !== callId)
        continue;
      const { state } = await journals.peek(sessionId);
      return { sessionId, createdAt, state };
    }
    return null;
  },
  async reopen(sessionId) {
    await runtime().open(sessionId);
    return runtime().find(sessionId);
  },
});
