/**
 * Connects models, tools, hooks, sandbox and journals to the runtime. Optional parts are loaded on
 * first use.
 *
 * From top to bottom: the options; `createAgent` and `openSession`, which users call; the parts
 * that all sessions of an agent share; starting and resuming a session; its instructions (the
 * system prompt); `equip`, which makes the dependencies of one session; and the agent for sessions
 * that an engine (a durable execution service) runs instead of this process. runtime.ts holds the
 * open sessions.
 */

import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { createSessionSandbox } from '../command/session-sandbox.js';
import type { SessionHook } from '../extensions/hooks/session-hooks.js';
import { agentMachine } from '../journal/journaled-agent-machine.js';
import type { Settings } from '../machine/settings.js';
import { attempt, reportThrough } from '../platform/attempt.js';
import { type Clock, systemClock } from '../platform/clock.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { readTextOrEmpty } from '../platform/files.js';
import type { SandboxLevel } from '../policy/decide.js';
import { matchesPath } from '../policy/patterns.js';
import type { Preset, WrittenRule } from '../policy/presets.js';
import type { Grant } from '../policy/rules.js';
import type { Checkpoints } from '../ports/checkpoints.js';
import type { JournalStore } from '../ports/journal.js';
import type { Model } from '../ports/model.js';
import type { Input, NewSession, StoppingPolicy, Watcher } from '../ports/session.js';
import { createJobs, type FileMemory, type LateTools, type Tool } from '../ports/tool.js';
import { createRedactor, findSecrets } from '../secrets/redactor.js';
import { readUserPlaces, workspaceRefusal } from '../secrets/user-places.js';
import type { ProtectedGitFiles } from '../tools/bash.js';
import type { BuiltinOptions } from '../tools/builtin-tools.js';
import {
  combineWatchers,
  createApprovals,
  endUnapproved,
  type OnApproval,
  type UnapprovedCall,
} from './approvals.js';
import {
  createLateCheckpoints,
  createLateHooks,
  createModels,
  newSessionId,
  type SessionDependencies,
} from './equipment.js';
import { checkModel, checkSettings, checkTool } from './outside-values.js';
import { LocalRuntime } from './runtime.js';
import type { AgentSession, Session } from './session.js';
import {
  fallbackSettings,
  missingSandboxText,
  namedDifferences,
  newSettings,
  type ProbeResult,
  probeUnlessOff,
  refuseUnpriced,
  resumedChanges,
  resumedSettings,
  type SettingsPatch,
  type Unpriced,
} from './session-settings.js';

export type AgentOptions = {
  readonly model: Model;
  /**
   * Finds another model by its id, `provider/name`, for `useModel`; rejects with the reason if
   * there is none.
   */
  readonly connect?: (modelId: string) => Promise<Model>;
  /**
   * Models that take over, one after the other, when a provider is overloaded, unreachable or used
   * up after the last retry; the next turn asks `model` again. Default: none.
   */
  readonly fallback?: readonly Model[];
  readonly journals: JournalStore;
  /** Replaces the built-in tools. */
  readonly tools?: readonly Tool[];
  /** Tools in addition to `tools` or the built-in ones. */
  readonly moreTools?: readonly Tool[];
  /**
   * Tools that may join a session after its start, for example when their server has connected.
   * Sessions that the tool `task` starts don't get them. Default: none.
   */
  readonly lateTools?: LateTools | null;
  /** Hooks at named moments: functions or commands (docs/extend/user-hooks.md). Default: none. */
  readonly hooks?: readonly SessionHook[];
  /**
   * Gives the model the tool `task`: other agents that only read, in separate sessions. Default:
   * no.
   */
  readonly tasks?: boolean;
  /**
   * Keeps what calls change in files, so that it can be taken back; copies lie in the state folder.
   * Default: yes.
   */
  readonly checkpoints?: boolean;
  /** Added at the end of the instructions of each new session. Default: nothing. */
  readonly moreInstructions?: string;
  /** Names of environment variables that sandboxed commands get in addition to the usual ones. */
  readonly passEnvironment?: readonly string[];
  /**
   * Secrets in addition to those in the environment, for example keys read from files. Each key is
   * the name shown in place of its value wherever tool output contains it.
   */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Files with API keys. Reading one is asked about, wherever it lies. Default: none. */
  readonly keyFiles?: readonly string[];
  readonly clock?: Clock;
  /** Receives faults that don't stop the session. Default: a process warning. */
  readonly report?: (fault: Error) => void;
};

export type SessionOptions = {
  /** The folder to work in. */
  readonly workspace: string;
  /**
   * The permission rules: what runs without asking. Default: `auto`; for a resumed session what it
   * had, if that is narrower. `full` has no sandbox and asks and denies nothing but by written
   * rules and hooks: only for a container or a virtual machine.
   */
  readonly preset?: Preset;
  /**
   * What commands can reach. Default: `workspace`, or `read-only` with the preset `plan`. If the
   * sandbox does not work here, each command needs approval or is denied; only `off` runs commands
   * without a sandbox. The preset `full` is always `off`.
   */
  readonly sandbox?: SandboxLevel;
  /**
   * Patterns of hosts that tools may reach without asking (docs/set-up/permissions.md). Default:
   * none. Not taken from the journal: pass them again when you resume.
   */
  readonly hosts?: readonly string[];
  /** Settings to change. Absent limits have their defaults. */
  readonly settings?: SettingsPatch;
  /** Called with every step, beginning with the first. */
  readonly watcher?: Watcher;
  /**
   * Answers approval questions for the user. Not stored: pass it again when you resume. Without it
   * a call that needs an approval ends the turn, whose reason names it, unless `settings.onAsk`
   * says what to do: with `ask` you answer the action `RequestApproval` yourself.
   */
  readonly onApproval?: OnApproval;
  /**
   * Shuts the session down on abort, as `close` does. If it is already aborted, opening rejects
   * with its reason.
   */
  readonly signal?: AbortSignal;
  /** Called before every model call of the session. Not stored: pass it again when you resume. */
  readonly stoppingPolicy?: StoppingPolicy;
  /**
   * With a limit in dollars: refuse a model without a price (default), or count its calls as free.
   */
  readonly unpriced?: Unpriced;
  /**
   * With `resume`: what the user has allowed in this process, for example in the session that was
   * forked. Default: nothing.
   */
  readonly grants?: readonly Grant[];
  /**
   * Id of the session to resume; without it a new session starts. One that this agent has open is
   * joined: `watcher` is added until `close`, and model, rights, `onApproval` and `stoppingPolicy`
   * of the first opening stay. It ends once all who opened it have closed it. Rejects if `preset`,
   * `sandbox`, `hosts` or `settings` name others.
   */
  readonly resume?: string;
  /**
   * With `resume`: even if another process may have the session open. That process stops before it
   * writes again.
   */
  readonly takeOver?: boolean;
  /**
   * With `resume`: end a turn that was interrupted. Nothing of it goes on, but a rewind is
   * finished. Default: false.
   */
  readonly endsTurn?: boolean;
};

export type Agent = {
  readonly runtime: LocalRuntime;
  open(options: SessionOptions): Promise<Session>;
};

/**
 * Creates an agent: one model, one journal store, any number of sessions. Throws a TypeError if the
 * model or a tool is invalid.
 */
export const createAgent = (options: AgentOptions): Agent => {
  const { journals, tasks = false } = options;
  const shared = createParts(options);
  const { model, clock, report } = shared;
  const runtime = new LocalRuntime({
    journals,
    clock,
    machine: agentMachine.fingerprint, // new journals name it
    // `startedBy`: the call of the tool `task` that starts the session; null for one of the user
    equip: async ({ workspace }, sessionId, startedBy) => {
      // set below, since it includes the runtime; no session starts before that
      const taskTools =
        tasks && startedBy === null ? [await createSessionTaskTool(parts, sessionId)] : [];
      const from = startedBy === null ? 'user' : 'task';
      const parent = startedBy?.sessionId;
      return equip(shared, { workspace, sessionId, startedBy: from, parent }, taskTools);
    },
    newSessionId: () => newSessionId(clock),
    random: Math.random,
    report,
  });
  const parts: LocalParts = { ...shared, journals, runtime };
  return {
    runtime,
    open: async (session) => {
      session.signal?.throwIfAborted();
      model.prepare?.(); // loads the modules for its first call in the background
      const workspace = await checkWorkspace(session.workspace);
      const opened =
        session.resume === undefined
          ? startSession(parts, workspace, session)
          : resumeSession(parts, session.resume, workspace, session);
      return closeOn(session.signal, await opened);
    },
  };
};

/** The real path of a workspace. Rejects if the folder can't be one. */
const checkWorkspace = async (folder: string): Promise<string> => {
  const workspace = await realpath(folder);
  const refusal = workspaceRefusal(workspace, process.env);
  if (refusal !== null) throw new Error(refusal);
  return workspace;
};

export { workspaceFault, workspaceRefusal } from '../secrets/user-places.js';
export type { Session } from './session.js';

/** Opens a single session: creates an agent just for it. */
export const openSession = async (options: AgentOptions & SessionOptions): Promise<Session> =>
  createAgent(options).open(options);

/**
 * The parts that all sessions of an agent share. Throws a TypeError if the model or a tool is
 * invalid.
 */
const createParts = ({
  model,
  connect,
  fallback = [],
  clock = systemClock,
  tools,
  moreTools = [],
  lateTools = null,
  hooks = [],
  checkpoints = true,
  moreInstructions = '',
  passEnvironment = [],
  secrets = {},
  keyFiles = [],
  report = (fault) => process.emitWarning(fault),
}: Omit<AgentOptions, 'journals' | 'tasks'>) => {
  for (const one of [model, ...fallback]) checkModel(one);
  for (const tool of [...(tools ?? []), ...moreTools]) checkTool(tool);
  return {
    model,
    fallback,
    models: createModels(model, fallback, connect),
    clock,
    tools,
    moreTools,
    lateTools,
    hooks,
    checkpoints,
    moreInstructions,
    passEnvironment,
    keyFiles,
    redactor: createRedactor(findSecrets(process.env, secrets)),
    report: reportThrough(report),
  };
};
type AgentParts = ReturnType<typeof createParts>;

/**
 * Connects the models that an engine's session names, if the agent does not have them. A failure of
 * a fallback model is only reported: its requests fail later, with the reason.
 */
const connectModels = async (
  { model: first, fallback, models, report }: AgentParts,
  { model, primary, fallback: listed = [] }: Settings,
): Promise<void> => {
  const connected = [first, ...fallback].map(({ id }) => id);
  const isMissing = (id: string): boolean => !connected.includes(id);
  for (const id of [model, primary?.model])
    if (id !== undefined && isMissing(id)) await models.connect(id);
  for (const { model: id } of listed.filter((one) => isMissing(one.model))) {
    const connecting = await attempt(() => models.connect(id));
    if (connecting.kind === 'fault') report(connecting.fault);
  }
};

/** The parts of an agent whose sessions run in this process. */
type LocalParts = AgentParts & { readonly runtime: LocalRuntime; readonly journals: JournalStore };

/**
 * The session's watcher: answers approvals by `onApproval`, or without it ends the turn and adds
 * the call to `unapproved`; and calls the caller's watcher.
 */
const sessionWatcher = (
  { runtime, report }: LocalParts,
  id: string,
  { watcher, onApproval, settings }: SessionOptions,
  unapproved: UnapprovedCall[],
): Watcher | undefined => {
  if (onApproval === undefined && settings?.onAsk !== undefined) return watcher;
  const send = (input: Input): Promise<unknown> => runtime.send(id, input);
  const answers =
    onApproval === undefined
      ? endUnapproved(unapproved, send)
      : createApprovals({ onApproval, send, report });
  return watcher === undefined ? answers : combineWatchers(answers, watcher, report);
};

const reportMissingSandbox = (
  settings: Pick<Settings, 'sandbox' | 'onAsk'>,
  probe: ProbeResult,
  report: (fault: Error) => void,
): void => {
  const text = missingSandboxText(settings, probe);
  if (text !== null) report(new Error(text));
};

const resumeSession = async (
  parts: LocalParts,
  id: string,
  workspace: string,
  session: SessionOptions,
): Promise<Session> => {
  const { runtime, model, report } = parts;
  const { unpriced, takeOver = false, endsTurn = false, grants = [] } = session;
  const fallback = fallbackSettings(parts.fallback, unpriced);
  const probe = await probeUnlessOff(session.sandbox, workspace, session.preset);
  const opening = runtime.opened(id);
  const open = opening === null ? null : await opening;
  if (open !== null && !open.isClosing) return joinSession(parts, open, workspace, session, probe);
  const local = localOptions(session);
  const watcher = sessionWatcher(parts, id, session, local.unapproved);
  return runtime.open(id, {
    // `before`: the settings in the journal. `origin`: whether the session was created in this
    // state folder or brought here, for example by an import.
    patch: (before, origin) => {
      const recorded = { settings: before, origin };
      const settings = resumedSettings(model, workspace, session, recorded, probe);
      reportMissingSandbox({ ...before, ...settings }, probe, report);
      refuseUnpriced(model, settings.limits, unpriced);
      return resumedChanges(recorded, { ...before, ...settings, model: model.id }, fallback);
    },
    takeOver,
    endsTurn,
    grants,
    ...local,
    ...(watcher === undefined ? {} : { watcher }),
  });
};

/** A further opening of an open session: it may watch, and changes no settings. */
const joinSession = (
  { model }: LocalParts,
  open: AgentSession,
  workspace: string,
  options: SessionOptions,
  probe: ProbeResult,
): Session => {
  const { settings } = open.current.session;
  const others = Object.keys(namedDifferences(model, workspace, options, settings, probe));
  if (others.length > 0)
    throw new Error(
      `The session ${open.id} is open in this process with another ${others.join(', ')}: ` +
        'leave that out to join it, or close it first.',
    );
  return open.join(options.watcher);
};

const startSession = async (
  parts: LocalParts,
  workspace: string,
  options: SessionOptions,
): Promise<Session> => {
  const { runtime } = parts;
  const local = localOptions(options);
  const prepared = await prepareSession(parts, workspace, options);
  const session = runtime.find(await runtime.create({ ...prepared, ...local }));
  const watcher = sessionWatcher(parts, session.id, options, local.unapproved);
  if (watcher !== undefined) session.watch(watcher);
  return session;
};

/** Parts of a session that come from the process that opens it, and are not stored. */
const localOptions = ({ stoppingPolicy, unpriced = 'refuse' }: SessionOptions) => ({
  unpriced,
  unapproved: [] as UnapprovedCall[],
  ...(stoppingPolicy === undefined ? {} : { stoppingPolicy }),
});

/** The tool `task` of a session. */
const createSessionTaskTool = async (parts: LocalParts, parentId: string): Promise<Tool> => {
  const { clock, journals, report, redactor } = parts;
  const { createTaskSessions, createTaskTool, taskInstructions } = await import('./task.js');
  const instructTask = async ({
    workspace,
    sandbox = 'off',
    writtenRules,
  }: Settings): Promise<string> => {
    const inputs = {
      ...({ workspace, preset: 'plan', clock, writtenRules } as const),
      settingsAndProbe: Promise.resolve([{ sandbox, onAsk: 'deny' }, null] as const),
    };
    return redactor.clean(`${await composeInstructions(inputs, report)}\n\n${taskInstructions}`);
  };
  return createTaskTool(
    createTaskSessions({
      parentId,
      clock,
      journals,
      runtime: () => parts.runtime,
      instruct: instructTask,
    }),
  );
};

/** Closes the session when the signal is aborted, now or later. */
const closeOn = (signal: AbortSignal | undefined, session: Session): Session => {
  // an error while closing also rejects `ended`, so it can be ignored here
  const end = (): void => void attempt(() => session.close());
  signal?.addEventListener('abort', end, { once: true });
  const forget = (): void => signal?.removeEventListener('abort', end);
  session.ended.then(forget, forget);
  if (signal?.aborted) end();
  return session;
};

/** The settings and instructions of a new session. Reports a sandbox that is missing. */
const prepareSession = async (
  { model, fallback, clock, redactor, moreInstructions, report }: AgentParts,
  workspace: string,
  options: Parameters<typeof newSettings>[2] & Pick<SessionOptions, 'unpriced'>,
): Promise<NewSession> => {
  const { preset = 'auto' } = options;
  checkSettings({ preset }); // throws, as the next line may
  refuseUnpriced(model, options.settings?.limits, options.unpriced);
  const probing = probeUnlessOff(options.sandbox, workspace, options.preset);
  const settingsAndProbe = probing.then(
    (probe) => [newSettings(model, workspace, options, probe), probe] as const,
  );
  settingsAndProbe.catch(() => undefined); // thrown where it is awaited, after the files are read
  const { writtenRules } = options.settings ?? {};
  const standard = await composeInstructions(
    { workspace, preset, clock, settingsAndProbe, writtenRules },
    report,
  );
  const instructions = moreInstructions === '' ? standard : `${standard}\n\n${moreInstructions}`;
  const [chosen, probe] = await settingsAndProbe;
  const settings =
    fallback.length === 0
      ? chosen
      : { ...chosen, fallback: fallbackSettings(fallback, options.unpriced) };
  reportMissingSandbox(settings, probe, report);
  return { settings, instructions: redactor.clean(instructions) };
};

const HEAD_BYTES_MAX = 4_096;

/**
 * The current git branch; undefined if the workspace is not the root of a repository, or HEAD is
 * detached.
 */
const readBranch = async (workspace: string): Promise<string | undefined> => {
  // A missing or unreadable HEAD file gives an empty text, and so no branch.
  const head = await readTextOrEmpty(path.join(workspace, '.git', 'HEAD'), HEAD_BYTES_MAX);
  return /^ref: refs\/heads\/(.+)\n?$/.exec(head)?.[1];
};

type InstructionInputs = {
  readonly workspace: string;
  readonly preset: Preset;
  readonly clock: Clock;
  /** Files that they forbid or ask about are not imported by an AGENTS.md file. */
  readonly writtenRules?: readonly WrittenRule[] | undefined;
  /**
   * A promise, since the sandbox probe takes as long as reading the files; both run at the same
   * time.
   */
  readonly settingsAndProbe: Promise<readonly [Pick<Settings, 'sandbox' | 'onAsk'>, ProbeResult]>;
};

/** Whether a written rule forbids reading the file, or asks first. */
const isRestricted = (file: string, workspace: string, rules: readonly WrittenRule[]): boolean =>
  rules.some(
    (rule) =>
      rule.kind === 'path' &&
      rule.decision !== 'allow' &&
      matchesPath(rule.pattern, file, workspace),
  );

/** Builds the system prompt; reports AGENTS.md files that could not be used. */
const composeInstructions = async (
  { workspace, preset, clock, settingsAndProbe, writtenRules = [] }: InstructionInputs,
  report: (fault: Error) => void,
): Promise<string> => {
  const { findAgentsBelow, instructionsFor, loadAgentsFiles } = await import('./instructions.js');
  const [{ files, warnings }, agentsBelow, gitBranch] = await Promise.all([
    loadAgentsFiles(workspace, (file) => !isRestricted(file, workspace, writtenRules)),
    findAgentsBelow(workspace),
    readBranch(workspace),
  ]);
  for (const warning of warnings) report(new Error(warning));
  const [{ sandbox = 'off', onAsk }, probe] = await settingsAndProbe;
  return instructionsFor({
    workspace,
    platform: process.platform,
    dateIso: new Date(clock.now()).toISOString().slice(0, 10),
    agentsFiles: files,
    agentsBelow,
    preset,
    sandbox,
    unattended: onAsk !== 'ask',
    ...(probe?.kind === 'missing' ? { noSandbox: probe.reason } : {}),
    ...(gitBranch === undefined ? {} : { gitBranch }),
  });
};

type SessionPlace = {
  readonly workspace: string;
  readonly sessionId: string;
  readonly startedBy: 'user' | 'task';
  /** The session whose task it is. */
  readonly parent?: string | undefined;
};

/**
 * Look-ups of the tool `bash` before a command runs; the code is loaded at its first use.
 *
 * - `findDiscarded`: changes of others that a command such as `git restore` would discard.
 * - `findLosses`: files that neither git nor a rewind of the session could bring back.
 * - `askGit`: how git reads words.
 * - `protectedGitFiles`: protected files that git would write, or could not write.
 */
const createLookups = (
  files: FileMemory,
  checkpoints: Checkpoints | null,
  environment: ProcessEnvironment,
): Required<
  Pick<BuiltinOptions, 'findLosses' | 'findDiscarded' | 'askGit' | 'protectedGitFiles'>
> => {
  const load = () => import('../workspace/uncommitted-files.js');
  let loading: Promise<ProtectedGitFiles> | undefined; // one for the session: it has a memory
  const loadProtected = (): Promise<ProtectedGitFiles> => {
    loading ??= import('../workspace/protected-git-files.js').then(({ createProtectedGitFiles }) =>
      createProtectedGitFiles(environment),
    );
    return loading;
  };
  return {
    async findDiscarded(folder, restores) {
      const { discardedByGit } = await load();
      return discardedByGit(environment, (file) => files.ownWrite?.(file))(folder, restores);
    },
    async findLosses(folder, paths) {
      const { lossesBeside, lossesByGit } = await load();
      const byGit = lossesByGit(environment);
      return (checkpoints === null ? byGit : lossesBeside(checkpoints, byGit))(folder, paths);
    },
    askGit: async (...about) => (await load()).answerOfGit(environment)(...about),
    protectedGitFiles: {
      find: async (workspace, moves) => (await loadProtected()).find(workspace, moves),
      beforeCommand: async (workspace, writable) =>
        (await loadProtected()).beforeCommand(workspace, writable),
    },
  };
};

/** The sandboxes of a session, and the user's places that commands may not reach. */
const openSandbox = (
  { passEnvironment, keyFiles, report }: AgentParts,
  environment: ProcessEnvironment,
  sessionId: string,
) => {
  const userPlaces = readUserPlaces(environment, keyFiles);
  const tellUser = (text: string): void => report(new Error(text));
  const options = { environment, passEnvironment, sessionId, userPlaces, tellUser };
  return { userPlaces, sandbox: createSessionSandbox(options) };
};

/** Creates the dependencies of one session. `taskTools`: tools of this session alone. */
const equip = async (
  parts: AgentParts,
  { workspace, sessionId, startedBy, parent }: SessionPlace,
  taskTools: readonly Tool[] = [],
): Promise<SessionDependencies> => {
  const { models, tools, moreTools, lateTools, redactor, hooks } = parts;
  const environment = process.env;
  const [{ createFileMemory }, builtin] = await Promise.all([
    import('../tools/file-change.js'),
    tools === undefined ? import('../tools/builtin-tools.js') : null,
  ]);
  const { sandbox, userPlaces } = openSandbox(parts, environment, sessionId);
  const files = createFileMemory();
  const jobs = createJobs();
  const written = (file: string): string | undefined => files.ownWrite?.(file)?.after;
  const seen = (file: string): string | undefined => files.get(file);
  const hasHooks = hooks.length > 0;
  const checkpoints = parts.checkpoints
    ? createLateCheckpoints({ workspace, sessionId, parent, written, seen, environment, hasHooks })
    : null;
  const lookups = createLookups(files, checkpoints, environment);
  const userHooks =
    hooks.length === 0
      ? null
      : (await import('../extensions/hooks/session-hooks.js')).createSessionHooks(hooks, {
          workspace,
          environment,
          sandbox,
          sessionId,
          startedBy,
        });
  const standardTools =
    tools ?? builtin?.builtinTools({ environment, sandbox, ...lookups, userPlaces }) ?? [];
  return {
    model: models.get,
    connect: models.connect,
    tools: [...standardTools, ...moreTools, ...taskTools],
    lateTools: startedBy === 'user' ? lateTools : null,
    files,
    jobs,
    hooks: createLateHooks({ environment, sandbox, observer: checkpoints }),
    userHooks,
    redactor,
    userPlaces,
    checkpoints,
    // After a crash, lists the background commands of an earlier process and ends its other
    // commands. Those of the calls in `waited` go on: these calls are being recovered.
    async takeOver(waited, unattended) {
      const { settleEarlier } = await import('../tools/bash-recovery.js');
      const place = { workspace, home: environment.HOME ?? '', unattended };
      await settleEarlier(sandbox, jobs, place, waited);
    },
    sentCalls: sandbox.sentCalls,
    close: (isFailed) => sandbox.close(isFailed),
  };
};

// ---- The agent for sessions that an engine runs ----

export type EngineAgentOptions = Omit<AgentOptions, 'journals' | 'tasks'> & {
  /**
   * Asked before every model call of each session that is prepared here. All nodes must have it.
   */
  readonly stoppingPolicy?: StoppingPolicy;
  /** Whether `moreTools` work only where they are connected, as those of MCP servers do. */
  readonly isBound?: boolean;
};

/** It has no tool `task`. A session from a store may still be one that a task started. */
export type EngineAgent = {
  /**
   * The settings and instructions of a new session. Call it where the workspace is: it reads its
   * files.
   */
  prepare(
    session: Pick<
      SessionOptions,
      'workspace' | 'preset' | 'sandbox' | 'hosts' | 'settings' | 'unpriced'
    >,
  ): Promise<NewSession>;
  /** The dependencies of a session on this node. */
  equip(session: {
    readonly settings: Settings;
    readonly sessionId: string;
    /** Present, with any value: a task of another session starts this one. */
    readonly startedBy?: unknown;
  }): Promise<SessionDependencies>;
};

/**
 * The same model, tools, hooks after tools and sandbox as `createAgent` gives to sessions in this
 * process.
 */
export const agentOnEngine = (options: EngineAgentOptions): EngineAgent => {
  const { stoppingPolicy, isBound = false } = options;
  const policy = stoppingPolicy === undefined ? {} : { stoppingPolicy };
  const parts = createParts(options);
  return {
    async prepare(session) {
      const workspace = await checkWorkspace(session.workspace);
      return prepareSession(parts, workspace, { ...session, ...policy });
    },
    async equip({ settings, sessionId, startedBy }) {
      await connectModels(parts, settings);
      const { workspace } = settings;
      const from = startedBy === undefined ? 'user' : 'task';
      const dependencies = await equip(parts, { workspace, sessionId, startedBy: from });
      return { ...dependencies, ...policy, ...(isBound ? { isBound } : {}) };
    },
  };
};
