/**
 * The agent of a node on an engine: it prepares new sessions, and equips those that the engine
 * gives it. A key is that of a client of the node: each session belongs to one.
 */

import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import { attempt } from '@pawl/agent/platform/attempt';
import { followStatus } from '@pawl/agent/platform/files';
import type { Model } from '@pawl/agent/ports/model';
import type { NewSession } from '@pawl/agent/ports/session';
import { agentOnEngine, type EngineAgent } from '@pawl/agent/session/create-agent';
import type { SessionDependencies } from '@pawl/agent/session/equipment';
import type { NodeSessionWish, SessionToEquip } from '@pawl/serve/node-runtime';
import { type OptionalTools, optionalTools } from '../sessions/open-session.js';
import { chooseNewSession } from '../sessions/session-settings.js';
import { openStateFolder } from '../sessions/stored-sessions.js';
import { openSessionPrompts, type SessionPrompts } from '../sessions/typed-input.js';
import { type Configured, keysIn, withConfig } from '../settings/configuration.js';
import {
  connectModel,
  connectOthers,
  sessionWorkspace,
  type Warn,
} from '../settings/connect-model.js';
import type { RunFlags } from '../settings/flags.js';
import { type ClientKeyFlags, clientSessionFlags, flagsToEquip } from './serve-sessions.js';

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
export const nodeAgent = (
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
      const rights = session.isNew ? {} : await findRights(session);
      return equipSession({ ...flags, ...rights }, session, warn);
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

/** No optional tools (MCP servers, hooks, `task`): settings and instructions need none. */
const NO_TOOLS: AgentParts['tools'] = {
  options: { moreTools: [], lateTools: null, tasks: false, hooks: [], checkpoints: true },
  secrets: {},
};

type AgentParts = {
  readonly model: Model;
  /** Models that may take over, of a new session; others are connected as the session names them. */
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
  // later: to connect costs this process time
  if (!isNew) setImmediate(() => servers.connect());
  return withServers(dependencies, servers);
};
