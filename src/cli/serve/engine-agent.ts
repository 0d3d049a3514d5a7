import { statSync } from 'node:fs';
import { agentOnEngine, type EngineAgent } from '../../api/agent-on-engine.js';
import type { Model } from '../../ports/model.js';
import type { NewSession } from '../../ports/runtime.js';
import type { Tool } from '../../ports/tool.js';
import type { SessionDependencies } from '../../runtime/dependencies.js';
import type { SessionToEquip } from '../../serve/engine-node.js';
import type { NodeSessionWish } from '../../serve/node-runtime.js';
import type { RunFlags } from '../flags.js';
import { openStateFolder } from '../sessions/make-state-folder.js';
import { chooseNewSession } from '../sessions/prepare-session.js';
import { type Configured, keysIn, withConfig } from '../settings/apply-config.js';
import { connectModel, connectOthers, realWorkspace, type Warn } from '../settings/connect-model.js';
import { openSessionPrompts, type SessionPrompts } from '../skills/session-prompts.js';
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

type AgentParts = {
  readonly model: Model;
  readonly settled: SettledFlags;
  readonly prompts: SessionPrompts;
  readonly tools: readonly Tool[];
  readonly warn: Warn;
};

const agentOf = ({ model, settled, prompts, tools, warn }: AgentParts): EngineAgent =>
  agentOnEngine({
    model,
    connect: connectOthers(model, settled, process.cwd(), warn),
    moreTools: [...tools, ...prompts.tools],
    moreInstructions: prompts.section,
    secrets: keysIn(settled.variables ?? {}),
    passEnvironment: settled.passEnv?.split(',') ?? [],
    report: (fault) => warn(fault.message),
  });

const exploreTools = async (model: Model, { variables = {} }: SettledFlags): Promise<readonly Tool[]> => {
  const { exploreTool } = await import('../ask/explore-tool.js');
  return [exploreTool(model, openStateFolder(process.env), keysIn(variables))];
};

const prepareWith = async (flags: RunFlags, wish: NodeSessionWish, warn: Warn): Promise<NewSession> => {
  const workspace = realWorkspace(wish.workspace);
  const chosen = await chooseNewSession(await wishedFlags(flags, wish), workspace, 'node', warn);
  const { model, flags: settled, preset, sandbox, settings } = chosen;
  if ((settled.projectHooks ?? []).length > 0)
    warn(`${workspace}: the hooks of the project do not run in sessions on an engine.`);
  const prompts = await openSessionPrompts({ workspace, flags: settled, isResumed: false, warn });
  return agentOf({ model, settled, prompts, tools: [], warn }).prepare({
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
  const { settings, isNew } = session;
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
  // A session that goes on may have declared the tool.
  const tools = isNew && settled.explore !== true ? [] : await exploreTools(model, settled);
  return agentOf({ model, settled, prompts, tools, warn }).equip(session);
};

export const nodeAgent = (flags: RunFlags, tell: Warn): NodeAgent => {
  const warn = once(tell);
  return {
    prepare: (wish) => prepareWith(flags, wish, warn),
    equip: (session) => equipWith(flags, session, warn),
  };
};
