/**
 * The runtime behind a node, in its process or on an engine, and what the node remembers of each
 * session.
 *
 * A "node" is one process of `pawl serve`; an "engine" is a service that runs sessions for several
 * nodes and outlives them. From top to bottom: the runtimes; the record of a session; options of
 * an engine; and the place of long texts.
 */

import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Limits, Settings } from '@pawl/agent/machine/settings';
import { attemptNow } from '@pawl/agent/platform/attempt';
import { errorCode, readTextOrEmpty, writePrivate } from '@pawl/agent/platform/files';
import type { Preset } from '@pawl/agent/policy/presets';
import type { StartedBy } from '@pawl/agent/ports/journal';
import type { NewSession, Runtime } from '@pawl/agent/ports/session';
import type { SessionDependencies } from '@pawl/agent/session/equipment';
import * as v from 'valibot';
import type { AppliedChange } from './metrics.js';
import type { DayCharge, DayCharged } from './spending.js';

/** A client's choices for its new session. Everything else is the operator's choice. */
export type NodeSessionWish = {
  /** Real absolute path of the folder to work in. */
  readonly workspace: string;
  /** The name of the key that wants it. */
  readonly key: string;
  /** null: that of the node. */
  readonly preset: Preset | null;
  /** null: that of the node. */
  readonly model: string | null;
  readonly limits: Partial<Limits>;
};

/** On which node the workspace of a session is, if several nodes share the sessions. */
type SessionPlaces = {
  /** This node. */
  readonly node: string;
  /** The node with the session's workspace. */
  nodeOf(sessionId: string): Promise<string>;
  /** Whether that node works. */
  isUp(node: string): Promise<boolean>;
  /** Ends what runs of the session, closes it, and lets its tools run here from now on. */
  moveHere(sessionId: string): Promise<void>;
};

/** Makes it durable whose session it is. */
export type RecordSession = (sessionId: string) => Promise<void>;

/** What a node needs of a runtime: creates, opens and runs sessions. */
export type NodeRuntime = Omit<Runtime, 'create'> & {
  /**
   * `record` gets the id before anything of the session runs on an engine, whose nodes look up
   * whose it is. A runtime of this process knows it, and does not call it.
   */
  create(wish: NodeSessionWish, record?: RecordSession): Promise<string>;
  /**
   * Opens a stored session, so that it takes inputs; does nothing if it is open. `key`: the name of
   * the key whose session it is.
   */
  open(sessionId: string, key: string): Promise<void>;
  /**
   * Its sessions run in this process and are closed with the node. Otherwise they go on elsewhere.
   */
  readonly endsWithNode: boolean;
  /**
   * Whether a session that rests, and that nobody reads, may be closed until its next input:
   * nothing of it runs in the background. Absent: it stays open.
   */
  mayRest?(sessionId: string): boolean;
  /** Absent: all workspaces are on this node. */
  readonly places?: SessionPlaces;
  /**
   * Answers a request that only the owner may send: the user whose session it is, as of a detached
   * one. Absent: there is no such request.
   */
  own?(sessionId: string, body: unknown): Promise<object>;
  /** Its program counts what happens in sessions, where it happens: the node does not. */
  readonly isCounted?: 'yes';
  /** Absent: this node keeps the records of its sessions. */
  readonly records?: RecordStore;
};

/** A runtime that outlives the node. `open`: for sessions that were closed. */
export type LastingRuntime = Runtime & {
  create(session: NewSession, record?: RecordSession): Promise<string>;
  open?(sessionId: string): Promise<unknown>;
};

/** A runtime that several nodes use. */
export type SharedRuntime = LastingRuntime & {
  whereIs(sessionId: string): Promise<{ readonly node: string }>;
  isUp(node: string): Promise<boolean>;
  move(sessionId: string, node: string): Promise<void>;
  /** Of the sessions of all nodes. */
  readonly records: RecordStore;
  /** Sets money of a key aside, or says what it spent, for all nodes. */
  charge(key: string, asked: DayCharge): Promise<DayCharged>;
};

/** What the session of a wish is created with: settings and all that the operator chose. */
type Prepare = (wish: NodeSessionWish) => Promise<NewSession>;

/** The runtime of a node whose sessions go on without it. */
export const lastingSessions = (runtime: LastingRuntime, prepare: Prepare): NodeRuntime => ({
  create: async (wish, record) => runtime.create(await prepare(wish), record),
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
  list: (sessionIds) => runtime.list(sessionIds),
  close: (sessionId) => runtime.close(sessionId),
});

/** The same for a node that serves its sessions together with others. */
export const sharedSessions = (
  runtime: SharedRuntime,
  prepare: Prepare,
  node: string,
): NodeRuntime => ({
  ...lastingSessions(runtime, prepare),
  places: {
    node,
    nodeOf: async (sessionId) => (await runtime.whereIs(sessionId)).node,
    isUp: async (other) => other === node || runtime.isUp(other),
    moveHere: (sessionId) => runtime.move(sessionId, node),
  },
  records: runtime.records,
});

// ---- The record of a session besides its journal: whose it is, and where it works ----

const workspaceSchema = v.variant('kind', [
  v.object({ kind: v.literal('folder'), path: v.string() }),
  v.object({
    kind: v.literal('worktree'),
    path: v.string(),
    /** The name under which the operator offers the repository. */
    repository: v.string(),
    /** The hash at which a fresh worktree begins. */
    commit: v.string(),
    /** `removed`: by this node, with nothing lost; a resumed session gets it again. */
    state: v.picklist(['present', 'removed']),
  }),
]);

const recordSchema = v.object({
  version: v.literal(1),
  sessionId: v.string(),
  /** The name of the key that created it. */
  key: v.string(),
  workspace: workspaceSchema,
  /** Its client has not closed it. */
  isOpen: v.boolean(),
  /** Told to the model before the next input; empty if there is nothing to tell. */
  notice: v.string(),
  /** The last notice that went with an input that its client can send again. */
  noticed: v.optional(v.object({ requestId: v.string(), notice: v.string() })),
  /** The `Idempotency-Key` of the request that created it. */
  requestId: v.optional(v.string()),
  /** Of its key, and of the request that created it. */
  labels: v.optional(v.record(v.string(), v.string())),
  /** It was created by a tenant, so no answer lets it leave its sandbox. */
  isConfined: v.optional(v.literal('yes')),
});

export type NodeWorkspace = v.InferOutput<typeof workspaceSchema>;
export type NodeSessionRecord = v.InferOutput<typeof recordSchema>;

/**
 * On an engine no answer reads the records of all sessions. Each change is durable when its promise
 * resolves.
 */
export type RecordStore = {
  get(sessionId: string): Promise<NodeSessionRecord | undefined>;
  put(record: NodeSessionRecord): Promise<void>;
  /** At most `limit` of a key, the newest first, older than the session `before`. */
  ofKey(key: string, before: string | null, limit: number): Promise<readonly NodeSessionRecord[]>;
  countOpen(key: string): Promise<number>;
  /** Those of a key that work in a worktree, open or not: forks share that of their session. */
  inWorktree(key: string, path: string): Promise<readonly NodeSessionRecord[]>;
  /** The one that this request of the key created. */
  createdBy(key: string, requestId: string): Promise<NodeSessionRecord | undefined>;
};

const BYTES_MAX = 1024 * 1024;

/** Whether a stored value is a whole record. It keeps fields that this version does not know. */
export const isRecord = (stored: unknown): stored is NodeSessionRecord =>
  v.is(recordSchema, stored);

/**
 * The records of a folder. One process at a time writes there, and holds them in memory. `report`
 * gets the ones that can't be read: their sessions are unknown to every key.
 */
export const openRecords = async (
  folder: string,
  report: (fault: Error) => void,
): Promise<RecordStore> => {
  const all = new Map<string, NodeSessionRecord>();
  const names = await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []; // none yet
    throw error;
  });
  for (const name of names.filter((one) => one.endsWith('.json')).sort()) {
    const file = path.join(folder, name);
    const text = await readTextOrEmpty(file, BYTES_MAX);
    const parsed = attemptNow((): unknown => JSON.parse(text));
    const record = parsed.kind === 'done' && isRecord(parsed.value) ? parsed.value : null;
    if (record !== null && name === `${record.sessionId}.json`) all.set(record.sessionId, record);
    else
      report(
        new Error(
          `${file} is no record of a session, and is left out: no key can use the session.`,
        ),
      );
  }
  // of 20,000 records in memory this takes about a millisecond
  const find = (key: string, isAsked: (record: NodeSessionRecord) => boolean) =>
    [...all.values()].filter((record) => record.key === key && isAsked(record));
  return {
    get: async (sessionId) => all.get(sessionId),
    async put(record) {
      const file = path.join(folder, `${record.sessionId}.json`);
      await writePrivate(file, `${JSON.stringify(record)}\n`);
      all.set(record.sessionId, record);
    },
    ofKey: async (key, before, limit) =>
      find(key, ({ sessionId }) => before === null || sessionId < before)
        .sort((left, right) => (left.sessionId < right.sessionId ? 1 : -1))
        .slice(0, limit),
    countOpen: async (key) => find(key, ({ isOpen }) => isOpen).length,
    inWorktree: async (key, folder) =>
      find(key, ({ workspace }) => workspace.kind === 'worktree' && workspace.path === folder),
    createdBy: async (key, requestId) => find(key, (record) => record.requestId === requestId)[0],
  };
};

// ---- Options of a node on an engine ----

/** A session for which tools and models are to be made ready. */
export type SessionToEquip = {
  readonly settings: Settings;
  readonly sessionId: string;
  readonly startedBy?: StartedBy;
  readonly isNew: boolean;
  /** Whether the session's workspace is on this node; if not, only models are called here. */
  readonly isHere: boolean;
};

/** `pawl serve --engine` passes them to the package of the engine. */
export type EngineNodeOptions = {
  /** The name of the node; it stays the same for ever. */
  readonly name: string;
  /** Where the engine takes calls, and where it takes orders. */
  readonly ingressUrl: string;
  readonly adminUrl: string;
  /** A name or an address by which the engine and the other nodes reach this computer. */
  readonly address: string;
  /**
   * The first of three ports: of what any node can do, of what only this one can do, of the live
   * channel, by which nodes tell each other the steps of sessions. They stay the same, since the
   * engine continues its calls there.
   */
  readonly firstPort: number;
  /** Reaches the first port of all nodes; null: this is the only node. */
  readonly sharedUrl: string | null;
  /** The live channels of the other nodes. */
  readonly peers: readonly string[];
  /** The secret of all live channels; null: this is the only node. */
  readonly liveToken: string | null;
  /** Public keys of the engine: calls that it has not signed are refused. Empty: no check. */
  readonly identityKeys: readonly string[];
  /** The same for all nodes. */
  readonly blobs: BlobPlace;
  equip(session: SessionToEquip): Promise<SessionDependencies>;
  /** Called once for the events that this node has applied to a session. */
  applied(sessionId: string, change: AppliedChange): void;
  report(fault: Error): void;
};

// ---- Where the nodes on an engine keep long texts ----

export type S3Place = {
  readonly kind: 's3';
  readonly bucket: string;
  /** Precedes the names of the objects; empty, or ends with `/`. */
  readonly prefix: string;
  /** null: that of the environment (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL), or Amazon's. */
  readonly endpoint: string | null;
  /** null: that of the environment (AWS_REGION, AWS_DEFAULT_REGION), else `us-east-1`. */
  readonly region: string | null;
  /** Where requests name the bucket. null: in the host of Amazon's store, in the path of others. */
  readonly addressing: 'path' | 'virtual' | null;
};

/** A folder that all nodes reach, or a bucket of an S3-compatible store. */
export type BlobPlace = { readonly kind: 'folder'; readonly path: string } | S3Place;

type ReadS3Place = { readonly place: S3Place } | { readonly fault: string };

/**
 * Reads `s3://BUCKET/PREFIX?endpoint=…&region=…`. The fault does not repeat the text, which may
 * hold a secret.
 */
export const readS3Place = (text: string): ReadS3Place => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const fault = url === null ? 'it is no address' : s3Fault(url);
  if (url === null || fault !== null)
    return { fault: `it can't be used: ${fault}. The form is ${S3_FORM}.` };
  const prefix = url.pathname.replace(/^\//, '');
  return {
    place: {
      kind: 's3',
      bucket: url.host,
      prefix: prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`,
      endpoint: url.searchParams.get('endpoint')?.replace(/\/$/, '') ?? null,
      region: url.searchParams.get('region'),
      addressing:
        ADDRESSINGS.find((one) => one === url.searchParams.get('addressing_style')) ?? null,
    },
  };
};

const S3_FORM =
  's3://BUCKET/PREFIX?endpoint=http://HOST:PORT&region=REGION&addressing_style=path|virtual, of ' +
  'which all after BUCKET may be left out';
const S3_PARAMETERS = ['endpoint', 'region', 'addressing_style'];
const ADDRESSINGS = ['path', 'virtual'] as const;

const hasCredentials = ({ username, password }: URL): boolean => username + password !== '';

const s3Fault = (url: URL): string | null => {
  const endpoint = url.searchParams.get('endpoint') ?? 'http://localhost';
  const endpointUrl = URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (hasCredentials(url) || (endpointUrl !== null && hasCredentials(endpointUrl)))
    return 'it has credentials in it. Put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.host)) return 'it names no bucket';
  if (!/^(\/[\w.-]+)*\/?$/.test(url.pathname))
    return 'its prefix may have letters, digits, "-", "_", "." and "/" only';
  const wrong = [...url.searchParams.keys()].find((name) => !S3_PARAMETERS.includes(name));
  if (wrong !== undefined) return `it has the unknown parameter ${wrong}`;
  const addressing = url.searchParams.get('addressing_style');
  if (addressing !== null && !ADDRESSINGS.some((one) => one === addressing))
    return 'its addressing_style is neither path nor virtual';
  return endpointUrl !== null &&
    /^https?:$/.test(endpointUrl.protocol) &&
    endpointUrl.pathname + endpointUrl.search === '/'
    ? null
    : 'its endpoint is not http://HOST:PORT or https://HOST:PORT';
};
