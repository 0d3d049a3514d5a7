import { statSync } from 'node:fs';
import { agentOnEngine, type EngineAgent } from '@pawl/agent/api/agent-for-engine-sessions';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import type { Model } from '@pawl/agent/ports/model';
import type { NewSession } from '@pawl/agent/ports/session-runtime';
import type { SessionDependencies } from '@pawl/agent/session/dependency-types';
import type { NodeSessionWish } from '@pawl/serve/adapt-runtime-to-node';
import type { SessionToEquip } from '@pawl/serve/engine-node-options-types';
import type { RunFlags } from '../../flags.js';
import { chooseNewSession } from '../../sessions/choose-model-and-settings.js';
import { openStateFolder } from '../../sessions/make-state-folder.js';
import { type OptionalTools, optionalTools } from '../../sessions/tools-servers-and-hooks.js';
import { type Configured, keysIn, withConfig } from '../../settings/apply-config.js';
import { connectModel, connectOthers, sessionWorkspace, type Warn } from '../../settings/connect-model.js';
import { openSessionPrompts, type SessionPrompts } from '../../skills/session-prompts.js';
import { flagsToGoOn, wishedFlags } from './client-session-flags.js';

/** The agent of a node on an engine, from flags and configuration: settings of new sessions, and what they work with here. */

export type NodeAgent = {
  /** The settings and instructions of a session that a client wants. */
  prepare(wish: NodeSessionWish): Promise<NewSession>;
  /** What a session works with on this node; asked again after each pause. */
  equip(session: SessionToEquip): Promise<SessionDependencies>;
};

type SettledFlags = RunFlags & Configured;

/** A model is called on any node, also where the session's workspace is not. */
const folderOn = (workspace: string): string => {
  const isHere = statSync(workspace, { throwIfNoEntry: false })?.isDirectory() === true;
  return isHere ? workspace : process.cwd();
};

/** Hands on each text once: a session is equipped again and again. */
const once = (tell: Warn): Warn => {
  const told = new Set<string>();
  return (text) => {
    if (!told.has(text)) tell(text);
    told.add(text);
  };
};

const NO_TOOLS: AgentParts['tools'] = { options: { moreTools: [], tasks: false, hooks: [] }, secrets: {} };

type AgentParts = {
  readonly model: Model;
  readonly settled: SettledFlags;
  readonly prompts: SessionPrompts;
  readonly tools: Pick<OptionalTools, 'options' | 'secrets'>;
  /** Whether the session works only on this node. */
  readonly isBound: boolean;
  readonly warn: Warn;
};

const agentOf = ({ model, settled, prompts, tools, isBound, warn }: AgentParts): EngineAgent =>
  agentOnEngine({
    model,
    connect: connectOthers(model, settled, process.cwd(), warn),
    moreTools: [...tools.options.moreTools, ...prompts.tools],
    hooks: tools.options.hooks,
    isBound,
    moreInstructions: prompts.section,
    secrets: { ...keysIn(settled.variables ?? {}), ...tools.secrets },
    passEnvironment: settled.passEnv?.split(',') ?? [],
    report: (fault) => warn(fault.message),
  });

/** The tools of a session of which only models are called here: another node runs them, and its hooks and servers. */
const modelTools = async (
  model: Model,
  { variables = {} }: SettledFlags,
): Promise<AgentParts['tools'] & Pick<OptionalTools, 'servers'>> => {
  const { exploreTool } = await import('../ask/explore-tool.js');
  const explore = exploreTool(model, openStateFolder(process.env), keysIn(variables));
  return { options: { ...NO_TOOLS.options, moreTools: [explore] }, secrets: {}, servers: null };
};

/** Ends the servers of a session when it rests. */
const withServers = (needs: SessionDependencies, servers: SessionServers): SessionDependencies => ({
  ...needs,
  async close(isFailed) {
    await servers.close();
    await needs.close?.(isFailed);
  },
});

const prepareWith = async (flags: RunFlags, wish: NodeSessionWish, warn: Warn): Promise<NewSession> => {
  const workspace = sessionWorkspace(wish.workspace);
  const chosen = await chooseNewSession(await wishedFlags(flags, wish), workspace, 'node', warn);
  const { model, flags: settled, preset, sandbox, settings } = chosen;
  const prompts = await openSessionPrompts({ workspace, flags: settled, isResumed: false, warn });
  return agentOf({ model, settled, prompts, tools: NO_TOOLS, isBound: false, warn }).prepare({
    workspace,
    settings,
    ...(preset === null ? {} : { preset }),
    ...(sandbox === null ? {} : { sandbox }),
  });
};

const equipWith = async (
  flags: RunFlags,
  session: SessionToEquip,
  warn: Warn,
): Promise<SessionDependencies> => {
  const { settings, isNew, isHere, sessionId } = session;
  const workspace = folderOn(settings.workspace);
  const ignore = (): void => undefined; // `prepare` has said it
  const how = { command: 'run', resumed: !isNew, warn: ignore } as const;
  const settled = await withConfig(isNew ? flags : flagsToGoOn(flags), workspace, how);
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
        place: 'node',
        warn,
      })
    : await modelTools(model, settled);
  const { servers } = tools;
  const { userHooks = [], projectHooks = [] } = settled;
  const isBound = servers !== null || userHooks.length + projectHooks.length > 0;
  const needs = await agentOf({ model, settled, prompts, tools, isBound, warn }).equip(session);
  if (servers === null) return needs;
  if (!isNew) setImmediate(() => servers.connect());
  return withServers(needs, servers);
};

export const nodeAgent = (flags: RunFlags, tell: Warn): NodeAgent => {
  const warn = once(tell);
  return {
    prepare: (wish) => prepareWith(flags, wish, warn),
    equip: (session) => equipWith(flags, session, warn),
  };
};
