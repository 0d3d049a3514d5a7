import type { Preset } from '../agent/policy/preset-rules.js';
import type { Limits } from '../agent/settings.js';
import type { NewSession, Runtime } from '../ports/runtime.js';

/** The sessions behind the HTTP API: any runtime, and how this node makes settings for a new session. */

/** What a client chooses for its new session. Everything else is the operator's choice. */
export type NodeSessionWish = {
  /** Real absolute path of the folder to work in. */
  readonly workspace: string;
  /** null: the node's own. */
  readonly preset: Preset | null;
  readonly limits: Partial<Limits>;
};

export type NodeRuntime = Omit<Runtime, 'create'> & {
  create(wanted: NodeSessionWish): Promise<string>;
  /** Opens a stored session, so that it takes inputs; does nothing if it is open. */
  open(sessionId: string): Promise<void>;
  /** Its sessions run in this process and are closed with the node. Otherwise they go on elsewhere. */
  readonly endsWithNode: boolean;
};

/** The sessions of a runtime that outlives the node, such as one on an engine. `open`: for those that were closed. */
export const lastingSessions = (
  runtime: Runtime & { open?(sessionId: string): Promise<unknown> },
  prepare: (wanted: NodeSessionWish) => Promise<NewSession>,
): NodeRuntime => ({
  create: async (wanted) => runtime.create(await prepare(wanted)),
  open: async (sessionId) => {
    const { state } = await runtime.state(sessionId);
    if (state.name === 'ShuttingDown') await runtime.open?.(sessionId);
  },
  endsWithNode: false,
  send: (sessionId, input) => runtime.send(sessionId, input),
  read: (sessionId, from) => runtime.read(sessionId, from),
  watch: (sessionId, watcher) => runtime.watch(sessionId, watcher),
  state: (sessionId) => runtime.state(sessionId),
  fork: (sessionId, seq) => runtime.fork(sessionId, seq),
  list: () => runtime.list(),
  close: (sessionId) => runtime.close(sessionId),
});
