import type { Limits } from '@pawl/agent/machine/settings';
import type { Preset } from '@pawl/agent/policy/preset-rules';
import type { NewSession, Runtime } from '@pawl/agent/ports/session-runtime';
import { checkRecord, type RecordStore } from './workspaces/session-records.js';

/** The sessions behind the HTTP API: any runtime, and how this node makes settings for a new session. */

/** What a client chooses for its new session. Everything else is the operator's choice. */
export type NodeSessionWish = {
  /** Real absolute path of the folder to work in. */
  readonly workspace: string;
  /** null: the node's own. */
  readonly preset: Preset | null;
  readonly limits: Partial<Limits>;
};

/** Where the workspaces of sessions are, if several nodes share the sessions. */
export type SessionPlaces = {
  /** This node. */
  readonly node: string;
  /** The node with the session's workspace. */
  nodeOf(sessionId: string): Promise<string>;
  /** Whether that node works. */
  answers(node: string): Promise<boolean>;
  /** Ends what runs of the session, closes it, and lets its tools run here from now on. */
  moveHere(sessionId: string): Promise<void>;
};

export type NodeRuntime = Omit<Runtime, 'create'> & {
  create(wanted: NodeSessionWish): Promise<string>;
  /** Opens a stored session, so that it takes inputs; does nothing if it is open. */
  open(sessionId: string): Promise<void>;
  /** Its sessions run in this process and are closed with the node. Otherwise they go on elsewhere. */
  readonly endsWithNode: boolean;
  /** Absent: all workspaces are on this node. */
  readonly places?: SessionPlaces;
  /** Absent: this node keeps the records of its sessions. */
  readonly records?: RecordStore;
};

/** A runtime that outlives the node. `open`: for sessions that were closed. */
export type LastingRuntime = Runtime & { open?(sessionId: string): Promise<unknown> };

/** A runtime that several nodes use. */
export type SharedRuntime = LastingRuntime & {
  place(sessionId: string): Promise<{ readonly node: string }>;
  answers(node: string): Promise<boolean>;
  move(sessionId: string, node: string): Promise<void>;
  /** What the nodes keep with a session: plain JSON. */
  metadata(sessionId: string): Promise<unknown>;
  setMetadata(sessionId: string, value: unknown): Promise<void>;
  allMetadata(): Promise<readonly unknown[]>;
};

const placesOf = (runtime: SharedRuntime, node: string): SessionPlaces => ({
  node,
  nodeOf: async (sessionId) => (await runtime.place(sessionId)).node,
  answers: async (other) => other === node || runtime.answers(other),
  moveHere: (sessionId) => runtime.move(sessionId, node),
});

const recordsOf = (runtime: SharedRuntime): RecordStore => ({
  get: async (sessionId) => checkRecord(await runtime.metadata(sessionId)) ?? undefined,
  all: async () => (await runtime.allMetadata()).flatMap((stored) => checkRecord(stored) ?? []),
  put: (record) => runtime.setMetadata(record.sessionId, record),
});

type Prepare = (wanted: NodeSessionWish) => Promise<NewSession>;

/** The runtime of a node whose sessions go on without it. */
export const lastingSessions = (runtime: LastingRuntime, prepare: Prepare): NodeRuntime => ({
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

/** The same for a node that serves its sessions together with others. */
export const sharedSessions = (runtime: SharedRuntime, prepare: Prepare, node: string): NodeRuntime => ({
  ...lastingSessions(runtime, prepare),
  places: placesOf(runtime, node),
  records: recordsOf(runtime),
});
