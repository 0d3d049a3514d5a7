/**
 * `pawl serve --engine`: the sessions of a node on a durable engine.
 *
 * A node is a process that runs sessions for others. A durable engine is a server outside of Pawl
 * (Restate) that keeps the events, timers and running work of sessions: when a node dies, it calls
 * another one. docs/build/many-machines.md draws the parts.
 *
 * A key, in what follows the flags, is that of a client of the node: each session belongs to one.
 * Public keys are the engine's, and keys of models those of their providers.
 *
 * From top to bottom: the flags; `engineSessions`, which starts the node; the agent of a node,
 * which prepares new sessions and equips those that the engine gives it; and the engine's package,
 * which is loaded by its name.
 */

import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import { attempt } from '@pawl/agent/platform/attempt';
import { followStatus } from '@pawl/agent/platform/files';
import type { Model } from '@pawl/agent/ports/model';
import type { NewSession } from '@pawl/agent/ports/session';
import { agentOnEngine, type EngineAgent } from '@pawl/agent/session/create-agent';
import type { SessionDependencies } from '@pawl/agent/session/equipment';
import { isLoopback } from '@pawl/serve/http';
import type { NodeMetrics } from '@pawl/serve/metrics';
import {
  type BlobPlace,
  type EngineNodeOptions,
  type NodeSessionWish,
  readS3Place,
  type SessionToEquip,
  type SharedRuntime,
  sharedSessions,
} from '@pawl/serve/node-runtime';
import type { SpendingStore } from '@pawl/serve/spending';
import { exitCodes, Stop } from '../process/exit-codes.js';
import { packageVersion } from '../process/package-folder.js';
import { type OptionalTools, optionalTools } from '../sessions/open-session.js';
import { chooseNewSession } from '../sessions/session-settings.js';
import { openStateFolder } from '../sessions/stored-sessions.js';
import { openSessionPrompts, type SessionPrompts } from '../sessions/typed-input.js';
import { type Configured, keysIn, withConfig } from '../settings/configuration.js';
import {
  connectModel,
  connectOthers,
  realWorkspace,
  sessionWorkspace,
  type Warn,
} from '../settings/connect-model.js';
import { type RunFlags, usageStop } from '../settings/flags.js';
import { DEFAULT_NODE_PORT, type ServeFlags } from './serve.js';
import {
  blamingClient,
  type ClientKeyFlags,
  clientSessionFlags,
  flagsToEquip,
  type NodeSessions,
} from './serve-sessions.js';

// The flags, as options of the node.

/** The port of the engine's admin address, if no flag names another. */
const ADMIN_PORT = 9070;
/** A node takes three ports: this is the highest for the first of them. */
const FIRST_PORT_MAX = 65_533;

/** `restate://HOST:PORT` as the addresses of the engine. */
const engineUrls = (
  engine: string,
  admin: string | undefined,
): { readonly ingressUrl: string; readonly adminUrl: string } => {
  const [, host, port] = /^restate:\/\/(\[[0-9a-f:]+\]|[\w.-]+):(\d{1,5})$/i.exec(engine) ?? [];
  const ingressUrl = `http://${host}:${port}`;
  if (host === undefined || !URL.canParse(ingressUrl))
    throw usageStop(
      `--engine needs restate://HOST:PORT, the address of the engine's server, not '${engine}'.`,
    );
  const adminUrl = httpUrl('--engine-admin', admin ?? `http://${host}:${ADMIN_PORT}`);
  return { ingressUrl, adminUrl };
};

const httpUrl = (flag: string, value: string): string => {
  const url = URL.canParse(value) ? new URL(value) : null;
  // nothing but the origin: no path, query or password
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw usageStop(`${flag} needs http://HOST:PORT, not '${value}'.`);
  return url.origin;
};

const readNodeName = ({ node }: ServeFlags): string => {
  const name = node ?? hostname().replaceAll(/[^A-Za-z0-9-]/g, '-');
  if (/^[A-Za-z0-9-]{1,64}$/.test(name)) return name;
  throw usageStop(`--node needs a name of at most 64 letters, digits and hyphens, not '${name}'.`);
};

const readFirstPort = ({ nodePorts }: ServeFlags): number => {
  const port = Number(nodePorts ?? DEFAULT_NODE_PORT);
  if (Number.isInteger(port) && port >= 1 && port <= FIRST_PORT_MAX) return port;
  throw usageStop(
    `--node-ports needs the first of three ports, from 1 to ${FIRST_PORT_MAX}, not '${nodePorts}'.`,
  );
};

const readNodeAddress = ({ nodeAddress = '127.0.0.1', engineKey = [] }: ServeFlags): string => {
  if (!/^[\w.:-]+$/.test(nodeAddress))
    throw usageStop(
      `--node-address needs the name or address of this computer, not '${nodeAddress}'.`,
    );
  if (isLoopback(nodeAddress) || engineKey.length > 0) return nodeAddress;
  throw usageStop(
    `--node-address ${nodeAddress} lets other computers reach the node, and whoever does ` +
      'could run commands here. Give the public key of the engine: --engine-key publickeyv1_… ' +
      '(docs/build/many-machines.md).',
  );
};

const readBlobPlace = (place: string | undefined, stateFolder: string): BlobPlace => {
  if (place === undefined) return { kind: 'folder', path: join(stateFolder, 'serve', 'blobs') };
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(place)) return { kind: 'folder', path: resolve(place) };
  const read = readS3Place(place);
  if ('place' in read) return read.place;
  throw usageStop(`--blobs needs a folder, or the address of a bucket; ${read.fault}`);
};

const readNodeOptions = (
  flags: ServeFlags & { readonly engine: string },
  stateFolder: string,
): Omit<EngineNodeOptions, 'equip' | 'applied' | 'report'> => {
  const { engine, engineAdmin, engineKey = [], nodes, peer = [], blobs } = flags;
  const { PAWL_NODE_TOKEN: liveToken = '' } = process.env;
  if (peer.length > 0 && liveToken === '')
    throw usageStop(
      '--peer needs the secret that all nodes share, in the variable PAWL_NODE_TOKEN.',
    );
  const wrongKey = engineKey.find((key) => !key.startsWith('publickeyv1_'));
  if (wrongKey !== undefined)
    throw usageStop(
      `--engine-key needs a public key, which begins with publickeyv1_, not '${wrongKey}'.`,
    );
  return {
    name: readNodeName(flags),
    ...engineUrls(engine, engineAdmin),
    address: readNodeAddress(flags),
    firstPort: readFirstPort(flags),
    // an address that reaches all nodes; without it this is the only one
    sharedUrl: nodes === undefined ? null : httpUrl('--nodes', nodes),
    // the other nodes, for text that is shown while it streams (the live channel), and its secret
    peers: peer.map((url) => httpUrl('--peer', url)),
    liveToken: liveToken === '' ? null : liveToken,
    identityKeys: engineKey, // whose calls the node obeys
    blobs: readBlobPlace(blobs, stateFolder),
  };
};

/** Warns that the setting `tasks` has no effect on an engine. */
const warnOfTasks = async (flags: RunFlags, warn: Warn): Promise<void> => {
  const ignore = (): void => undefined; // checking the surroundings has warned
  const folder = realWorkspace(process.cwd());
  const settled = await withConfig(flags, folder, { command: 'run', resumed: false, warn: ignore });
  if (settled.tasks === true) warn('Sessions on an engine have no tool `task`.');
};

/** A failed start of the node as a `Stop` with its exit code; any other fault as it is. */
const toStop = (fault: Error): Error => {
  if (fault.name !== 'NodeStartError' || !('kind' in fault)) return fault;
  return fault.kind === 'unreachable'
    ? new Stop(exitCodes.unavailable, 'unavailable', fault.message)
    : new Stop(exitCodes.configuration, 'configuration', fault.message);
};

/** What limits the sessions of each client's key, and what counts them. */
type ClientKeyParts = {
  /**
   * The flags for sessions of each key: its preset, and in `forKey` its models, what it may still
   * spend, and the folders that it must not see. Requests to models are charged to the store.
   */
  keyFlagsWith(store: SpendingStore): ClientKeyFlags;
  /** Counts what happens in sessions, where it happens. */
  readonly metrics: NodeMetrics;
  readonly warn: Warn;
};

/** Starts the node on the engine. `sessions`: the flags for its sessions. */
export const engineSessions = async (
  flags: ServeFlags & { readonly engine: string },
  sessions: RunFlags,
  { keyFlagsWith, metrics, warn }: ClientKeyParts,
): Promise<NodeSessions> => {
  const stateFolder = openStateFolder(process.env);
  const nodeOptions = readNodeOptions(flags, stateFolder);
  await warnOfTasks(sessions, warn);
  const { startEngineNode } = await loadEnginePackage();
  const engine = lateRuntime();
  const spending: SpendingStore = {
    // the engine counts what each key spends, for all nodes
    charge: async (...asked) => (await engine.runtime).charge(...asked),
  };
  const keyFlags = keyFlagsWith(spending);
  const findClientKey = rememberClientKeys(engine.runtime);
  const agent = nodeAgent(sessions, { keyFlags, findClientKey, warn });
  const { blobs } = nodeOptions;
  if (blobs.kind === 'folder') mkdirSync(blobs.path, { recursive: true, mode: 0o700 });
  const started = await attempt(() =>
    startEngineNode({
      ...nodeOptions,
      equip: (session) => agent.equip(session),
      applied: (sessionId, change) =>
        // `change`: events, and the state before and after them. The key is unknown while the
        // engine is away: then the figures are nobody's
        void findClientKey(sessionId).then(
          (key) => metrics.applied(key ?? '', change),
          () => metrics.applied('', change),
        ),
      report: (fault) => warn(fault.message),
    }),
  );
  if (started.kind === 'fault') throw toStop(started.fault);
  const { runtime, stop } = started.value;
  engine.resolve(runtime);
  // `blamingClient` reports what a client's wishes cause as its fault, not as the node's
  const prepare = (wish: NodeSessionWish) => blamingClient(() => agent.prepare(wish));
  return {
    // `applied` above has counted the figures, so the node does not
    runtime: { ...sharedSessions(runtime, prepare, nodeOptions.name), isCounted: 'yes' },
    spending,
    recordsFolder: join(stateFolder, 'serve', 'sessions'), // unused: `runtime` has records
    stop,
  };
};

/** The runtime of a node that is still being started: the engine may already give it work. */
const lateRuntime = () => {
  let resolve = (_runtime: SharedRuntime): void => undefined;
  const runtime = new Promise<SharedRuntime>((done) => {
    resolve = done;
  });
  return { runtime, resolve: (started: SharedRuntime) => resolve(started) };
};

const REMEMBERED_MAX = 10_000;

/** Finds the name of a session's key, which never changes; null: a session of nobody. */
const rememberClientKeys = (runtime: Promise<SharedRuntime>) => {
  const known = new Map<string, string>();
  return async (sessionId: string): Promise<string | null> => {
    const name =
      known.get(sessionId) ?? (await (await runtime).records.get(sessionId))?.key ?? null;
    if (known.size >= REMEMBERED_MAX) known.clear();
    if (name !== null) known.set(sessionId, name);
    return name;
  };
};

// The agent of a node: it prepares new sessions, and equips those that the engine gives it.

type NodeAgent = {
  /** The settings and instructions of a session that a client wants. */
  prepare(wish: NodeSessionWish): Promise<NewSession>;
  /** The dependencies of a session on this node; called again after each pause. */
  equip(session: SessionToEquip): Promise<SessionDependencies>;
};

/**
 * The agent of a node on an engine, from flags and configuration: settings of new sessions, and
 * what they work with here.
 */
const nodeAgent = (
  flags: RunFlags,
  { keyFlags, findClientKey, warn: tell }: NodeAgentParts,
): NodeAgent => {
  const warn = warnOnce(tell);
  const findRights = async ({ sessionId }: SessionToEquip) => {
    const key = await findClientKey(sessionId);
    if (key !== null) return { forKey: keyFlags(key).forKey };
    throw new Error(
      `nobody knows whose session ${sessionId} is: it has no record, or a damaged one`,
    );
  };
  return {
    prepare: (wish) => prepareSession({ ...flags, ...keyFlags(wish.key) }, wish, warn),
    equip: async (session) => {
      // a new session has no record yet, and gets only its header here
      const forKey = session.isNew ? {} : await findRights(session);
      return equipSession({ ...flags, ...forKey }, session, warn);
    },
  };
};

type NodeAgentParts = {
  readonly keyFlags: ClientKeyFlags;
  findClientKey(sessionId: string): Promise<string | null>;
  readonly warn: Warn;
};

/** The operator's flags, completed by configuration. */
type SettledFlags = RunFlags & Configured;

/**
 * The folder for calls of a model: any node makes them, also one without the session's workspace.
 */
const modelFolder = (workspace: string): string => {
  const isHere = followStatus(workspace)?.isDirectory() === true;
  return isHere ? workspace : process.cwd();
};

/** Hands on each text once: a session is equipped again and again. */
const warnOnce = (tell: Warn): Warn => {
  const texts = new Set<string>();
  return (text) => {
    if (!texts.has(text)) tell(text);
    texts.add(text);
  };
};

/** No tools that a user has to want: settings and instructions can be made without them. */
const NO_TOOLS: AgentParts['tools'] = {
  options: { moreTools: [], lateTools: null, tasks: false, hooks: [], checkpoints: true },
  secrets: {},
};

type AgentParts = {
  readonly model: Model;
  /** Models that may take over; absent: those that the session names. */
  readonly fallback?: readonly Model[];
  readonly settled: SettledFlags;
  readonly prompts: SessionPrompts;
  readonly tools: Pick<OptionalTools, 'options' | 'secrets'>;
  /**
   * Whether the session works only on this node. It does with MCP servers, which run as processes
   * of this computer; hooks, which do so too, bind it by themselves.
   */
  readonly isBound: boolean;
  readonly warn: Warn;
};

const createEngineAgent = ({
  model,
  fallback = [],
  settled,
  prompts,
  tools,
  isBound,
  warn,
}: AgentParts): EngineAgent =>
  agentOnEngine({
    model,
    fallback,
    connect: connectOthers(model, settled, process.cwd(), warn),
    moreTools: [...tools.options.moreTools, ...prompts.tools],
    hooks: tools.options.hooks,
    isBound,
    moreInstructions: prompts.section,
    secrets: { ...keysIn(settled.variables ?? {}), ...tools.secrets },
    keyFiles: [...(settled.keyFiles ?? []), ...(settled.forKey?.hidden ?? [])],
    passEnvironment: settled.passEnv?.split(',') ?? [],
    report: (fault) => warn(fault.message),
  });

/**
 * The tools of a session of which only models are called here: another node runs them, and its
 * hooks and servers.
 */
const modelTools = async (
  model: Model,
  { variables = {} }: SettledFlags,
): Promise<AgentParts['tools'] & Pick<OptionalTools, 'servers'>> => {
  const { exploreTool } = await import('../sessions/explore-tool.js');
  const explore = exploreTool(model, openStateFolder(process.env), keysIn(variables));
  return { options: { ...NO_TOOLS.options, moreTools: [explore] }, secrets: {}, servers: null };
};

/** Ends the servers of a session when it rests. */
const withServers = (
  dependencies: SessionDependencies,
  servers: SessionServers,
): SessionDependencies => ({
  ...dependencies,
  async close(isFailed) {
    try {
      await servers.close();
    } finally {
      await dependencies.close?.(isFailed);
    }
  },
});

/** The settings and instructions of a new session: the operator's flags with the client's wish. */
const prepareSession = async (
  flags: RunFlags,
  wish: NodeSessionWish,
  warn: Warn,
): Promise<NewSession> => {
  const workspace = sessionWorkspace(wish.workspace);
  const chosen = await chooseNewSession(
    await clientSessionFlags(flags, wish),
    workspace,
    'node',
    warn,
  );
  const { model, fallback, flags: settled, preset, sandbox, settings } = chosen;
  const prompts = await openSessionPrompts({ workspace, flags: settled, isResumed: false, warn });
  return createEngineAgent({
    model,
    fallback,
    settled,
    prompts,
    tools: NO_TOOLS,
    isBound: false,
    warn,
  }).prepare({
    workspace,
    settings,
    unpriced: settled.allowUnknownPrice === true ? 'countAsNothing' : 'refuse',
    ...(preset === null ? {} : { preset }),
    ...(sandbox === null ? {} : { sandbox }),
  });
};

/**
 * What a session works with on this node. If its workspace is on another one (`isHere` is false),
 * only models are called here.
 *
 * A new session is equipped twice. First with `isNew`, for its header alone: all flags count, and
 * no server is connected. Then, as after each pause, to work: its limits, its preset and more stand
 * in its journal by then, so `flagsToEquip` leaves them out.
 */
const equipSession = async (
  flags: RunFlags,
  session: SessionToEquip,
  warn: Warn,
): Promise<SessionDependencies> => {
  const { settings, isNew, isHere, sessionId } = session;
  const workspace = isHere
    ? sessionWorkspace(settings.workspace, 'Put the folder back.')
    : modelFolder(settings.workspace);
  const ignore = (): void => undefined; // `prepare` has warned
  const how = { command: 'run', resumed: !isNew, warn: ignore } as const;
  const settled = await withConfig(isNew ? flags : flagsToEquip(flags), workspace, how);
  const model = await connectModel(settings.model, settled, process.cwd());
  const prompts = await openSessionPrompts({
    workspace,
    flags: settled,
    isResumed: !isNew,
    warn: ignore,
  });
  const tools = isHere
    ? await optionalTools(settled, {
        model,
        stateFolder: openStateFolder(process.env),
        workspace,
        resume: isNew ? null : sessionId,
        keepsTools: true, // no tools join later: a node does not wait for a server
        place: 'node',
        warn,
      })
    : await modelTools(model, settled);
  const { servers } = tools;
  const isBound = isHere && servers !== null;
  const agent = createEngineAgent({ model, settled, prompts, tools, isBound, warn });
  const equipped = await attempt(() => agent.equip(session));
  if (equipped.kind === 'fault') {
    await servers?.close();
    throw equipped.fault;
  }
  const dependencies = equipped.value;
  if (servers === null) return dependencies;
  // of a new session only the header is made now: nothing is connected for it
  if (!isNew) setImmediate(() => servers.connect());
  return withServers(dependencies, servers);
};

// The package with the engine.

/** The type `string` keeps the compiler from looking for the package, which may be missing. */
const ENGINE_PACKAGE: string = '@pawl/restate';

type StartedEngineNode = {
  readonly runtime: SharedRuntime;
  stop(): Promise<void>;
};

/** The exports that are used. The package's own tests check that they fit. */
export type EnginePackage = {
  readonly version: string;
  readonly machineFingerprint: string;
  startEngineNode(options: EngineNodeOptions): Promise<StartedEngineNode>;
};

const packageFault = (message: string): Stop =>
  new Stop(exitCodes.configuration, 'configuration', message);

const isMissing = (fault: Error): boolean =>
  'code' in fault &&
  /MODULE_NOT_FOUND$/.test(String(fault.code)) &&
  fault.message.includes(ENGINE_PACKAGE);

/**
 * The package with the engine. It is not a part of Pawl, so that nobody installs an engine who does
 * not use it: it is loaded by its name, beside Pawl or where Node finds packages, and never from
 * the current folder.
 *
 * Throws a Stop that says what to install.
 */
const loadEnginePackage = async (): Promise<EnginePackage> => {
  const pawlVersion = packageVersion();
  const install = `npm install -g pawl@${pawlVersion} ${ENGINE_PACKAGE}@${pawlVersion}`;
  const loaded = await attempt(async (): Promise<Partial<EnginePackage>> => import(ENGINE_PACKAGE));
  if (loaded.kind === 'fault')
    throw packageFault(
      isMissing(loaded.fault)
        ? `--engine needs the package ${ENGINE_PACKAGE}, which is not installed beside Pawl: ${install}`
        : `The package ${ENGINE_PACKAGE} can't be loaded: ${loaded.fault.message}. Install it again: ` +
            `${install}`,
    );
  const { version = 'unknown', machineFingerprint = '', startEngineNode } = loaded.value;
  if (version !== pawlVersion || startEngineNode === undefined)
    throw packageFault(
      `The package ${ENGINE_PACKAGE} beside Pawl is version ${version}, and this is Pawl ` +
        `${pawlVersion}. Install the same of both: ${install}`,
    );
  if (machineFingerprint !== agentMachine.fingerprint)
    throw packageFault(
      `The package ${ENGINE_PACKAGE} works with another copy of Pawl, whose machine is different. ` +
        `Install both in one place: ${install}`,
    );
  return { version, machineFingerprint, startEngineNode };
};
