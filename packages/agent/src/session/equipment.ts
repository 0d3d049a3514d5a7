/**
 * What a session works with. From top to bottom: its dependencies, in two forms; the prompt and the
 * header with which its journal begins; `recordingMemory`, which records what a call has read of
 * files; `createModels`, the models of an agent by their ids; and hooks and checkpoints whose code
 * is loaded at their first use.
 */

import { randomBytes } from 'node:crypto';
import type { SeenFile } from '../machine/call.js';
import { messagesOf } from '../machine/conversation.js';
import { wholeFile } from '../machine/seen-files.js';
import type { Prices, Settings } from '../machine/settings.js';
import type { State } from '../machine/state.js';
import type { Clock } from '../platform/clock.js';
import { stateFolder } from '../platform/environment.js';
import type { CommandLevel } from '../policy/decide.js';
import type { JudgedCall } from '../policy/judged-call.js';
import type { UserPlaces } from '../policy/paths.js';
import type { Decision } from '../policy/presets.js';
import type { Checkpoints } from '../ports/checkpoints.js';
import type { Hooks, UserHooks } from '../ports/hooks.js';
import type { Blobs, FrozenPrompt, Header, Journal, StartedBy } from '../ports/journal.js';
import type { Model, ToolDeclaration } from '../ports/model.js';
import type { StoppingPolicy } from '../ports/session.js';
import type { FileMemory, Jobs, LateTools, SentCalls, Tool } from '../ports/tool.js';
import type { Redactor } from '../secrets/redactor.js';
import { readUserPlaces } from '../secrets/user-places.js';
import type { HooksOptions } from '../workspace/after-tool-hooks.js';
import type { WorkspaceObserver } from '../workspace/checkpoints/own-changes.js';
import type { CheckpointsPlace } from '../workspace/checkpoints/session-checkpoints.js';
import type { Post } from './loop.js';
import { checkModel } from './outside-values.js';
import { NO_REDACTOR, redactJobs } from './result-text.js';
import type { UserHookRuns } from './user-hooks.js';

/** The dependencies of one session, besides its journal. */
export type SessionDependencies = {
  /** The model with this id. Throws if there is none; the request then fails. */
  model(modelId: string): Model;
  /** Connects a model to which the session may change. Absent: there is no other one. */
  connect?(modelOrId: string | Model): Promise<Model>;
  readonly tools: readonly Tool[];
  /** Tools that may come after the start. Absent or null: all are in `tools`. */
  readonly lateTools?: LateTools | null;
  readonly files: FileMemory;
  readonly jobs: Jobs;
  /**
   * The request for a summary, at the end of the conversation, in place of the usual one. `wish`:
   * the user's wish about its content.
   */
  compactionInstructions?(wish: string | null): string;
  /**
   * The hooks after a batch of tools: the look for commits, formatters, auto-commit. null: none are
   * connected, and a phase that the machine asks for fails.
   */
  readonly hooks: Hooks | null;
  /** The user's hooks. Absent or null: there are none. */
  readonly userHooks?: UserHooks | null;
  /**
   * Asked before every model call, unless the session has another policy. Absent: there is none.
   */
  readonly stoppingPolicy?: StoppingPolicy | null;
  /**
   * Whether tools work only where they are connected, so that models are called there too. Absent:
   * no.
   */
  readonly isBound?: boolean;
  /** Replaces secrets in what tools return. Absent: nothing is secret. */
  readonly redactor?: Redactor;
  /** The user's places. Absent: those that the environment of the process names. */
  readonly userPlaces?: UserPlaces;
  /**
   * Takes over what still runs of earlier processes of the session. `waited`: the interrupted calls
   * that are being recovered, each as batch and call. `unattended`: no user can be asked.
   */
  takeOver?(waited: readonly string[], unattended: boolean): Promise<void>;
  /** Stores what calls change in files, so that it can be taken back. Absent or null: it can't. */
  readonly checkpoints?: Checkpoints | null;
  /** Which calls this process has sent. Absent: after a crash that is unknown. */
  readonly sentCalls?: SentCalls;
  /**
   * Releases the resources of the session after all its work has stopped. `isFailed`: the journal
   * may lack results.
   */
  close?(isFailed: boolean): Promise<void>;
};

/** The dependencies in the form that the performers use. */
export type Equipment = Omit<SessionDependencies, 'tools' | 'redactor' | 'userPlaces'> & {
  readonly redactor: Redactor;
  readonly userPlaces: UserPlaces;
  /** By name. */
  readonly tools: ReadonlyMap<string, Tool>;
  /** Fixed at the start of the session. */
  readonly instructions: string;
  /** The tools that requests declare. `join` adds to them. */
  declarations(): readonly ToolDeclaration[];
  join(tools: readonly Tool[]): void;
  readonly clock: Clock;
  /** null: no policy is connected. */
  readonly stoppingPolicy: StoppingPolicy | null;
  /** A number from 0 to 1, for jitter. */
  random(): number;
};

/** The session that the performers work for. */
export type PerformedSession = {
  readonly journal: Pick<Journal, 'header' | 'read' | 'blobs'>;
  /** The state at the creation of the performers. */
  readonly opened: State;
  /** The current state; called on each use. */
  state(): State;
  readonly post: Post;
  /**
   * The user's hooks, if they are shared with other performers of the session. Absent: these create
   * them.
   */
  readonly userHooks?: UserHookRuns | null;
  shutDown(): void;
};

/** The session as each performer sees it. */
export type RunningSession = Pick<PerformedSession, 'journal' | 'state' | 'post'> & {
  /** null: the user has no hooks. */
  readonly userHooks: UserHookRuns | null;
  /** `before` is called before a call takes effect: what it may change in files can be restored. */
  readonly checkpoints: {
    before(
      batchId: string,
      call: JudgedCall,
      level: CommandLevel,
      signal: AbortSignal,
    ): Promise<void>;
    /** See `after` in ports/checkpoints.ts: a line for the model, perhaps empty. */
    after(call: JudgedCall, hasEnded: boolean): Promise<string>;
    /** A call for which `before` was called has not run. */
    withdraw(call: JudgedCall): void;
    /** Takes the checkpoint of calls of a killed process; null if there are none. */
    settleKilled(): Promise<void> | null;
  };
};

// ---- The prompt and the header ----

/** The part of a tool that requests tell the model. */
export const declare = ({ name, description, inputSchema }: Tool): ToolDeclaration => ({
  name,
  description,
  inputSchema,
});

type OfferSettings = Pick<Settings, 'onAsk' | 'preset' | 'rules' | 'writtenRules'>;

/** Whether a rule allows some host, or asks about it if a user can answer. */
const mayReachHosts = ({ onAsk, rules, writtenRules = [] }: OfferSettings): boolean => {
  const mayAllow = (decision: Decision): boolean =>
    decision === 'allow' || (decision === 'ask' && onAsk === 'ask');
  return (
    rules.some(({ hosts, decision }) => hosts !== undefined && mayAllow(decision)) ||
    writtenRules.some(({ kind, decision }) => kind === 'host' && mayAllow(decision))
  );
};

/**
 * Whether a session offers the tool: one that asks only if a user can answer, one that proposes a
 * plan only in the preset `plan`, one that reaches hosts only where it may reach one.
 */
export const isOffered = (
  { traits: { asks }, reaches }: Tool,
  settings: OfferSettings,
): boolean => {
  if (reaches === 'hosts' && !mayReachHosts(settings)) return false;
  if (asks === undefined) return true;
  return settings.onAsk === 'ask' && (asks !== 'plan' || settings.preset === 'plan');
};

/** The part that is the same in every request of the session: the system prompt and the tools. */
export const freezePrompt = (
  instructions: string,
  tools: readonly Tool[],
  settings: OfferSettings,
): FrozenPrompt => ({
  instructions,
  tools: JSON.stringify(tools.filter((tool) => isOffered(tool, settings)).map(declare)),
});

type HeaderFacts = {
  readonly sessionId: string;
  readonly createdAt: number;
  readonly settings: Settings;
  readonly startedBy: StartedBy | undefined;
  readonly machine: string;
  readonly prices: Prices | null;
};

/**
 * Stores the prompt, then makes the header that names it: no header is ever durable without what it
 * names.
 */
export const beginHeader = async (
  { sessionId, createdAt, settings, startedBy, machine, prices }: HeaderFacts,
  frozen: FrozenPrompt,
  blobs: Blobs,
): Promise<Header> => {
  const [instructions, tools] = await Promise.all([
    blobs.put(frozen.instructions),
    blobs.put(frozen.tools),
  ]);
  return {
    version: 1,
    sessionId,
    createdAt,
    workspace: settings.workspace,
    parent: null,
    ...(startedBy === undefined ? {} : { startedBy }),
    machine,
    settings,
    instructions,
    tools,
    prices,
  };
};

/** The dependencies of a session in the form that its performers use. */
export const gatherEquipment = (
  dependencies: SessionDependencies,
  { instructions, tools }: FrozenPrompt,
  runtime: {
    readonly clock: Clock;
    random(): number;
    readonly stoppingPolicy: StoppingPolicy | null;
  },
): Equipment => {
  const redactor = dependencies.redactor ?? NO_REDACTOR;
  const toolsByName = new Map(dependencies.tools.map((tool) => [tool.name, tool]));
  let declarations = JSON.parse(tools) as readonly ToolDeclaration[]; // by freezePrompt
  return {
    ...dependencies,
    ...runtime,
    redactor,
    userPlaces: dependencies.userPlaces ?? readUserPlaces(process.env),
    jobs: redactJobs(redactor, dependencies.jobs),
    tools: toolsByName,
    instructions,
    declarations: () => declarations,
    join(joining) {
      for (const tool of joining) toolsByName.set(tool.name, tool);
      declarations = [...declarations, ...joining.map(declare)];
    },
  };
};

/** Ids sort by time, also as file names. */
export const newSessionId = (clock: Clock): string => {
  const time = new Date(clock.now())
    .toISOString()
    .slice(0, 19)
    .replaceAll(/[-:]/g, '')
    .replace('T', '-');
  return `${time}-${randomBytes(4).toString('hex')}`;
};

// ---- The memory of files as one call has it ----

// What a call sees is recorded for the journal, and lines count as shown while the conversation
// shows them. So a compaction, a rewind or a fork needs no word here.

/**
 * The session's memory of files. What is set in it is also noted in `seen`, by real path. `by`: the
 * call that shows the lines of a file, unless the tool says otherwise. With `state` only lines that
 * the model has before it count as shown.
 */
export const recordingMemory = (
  files: FileMemory,
  seen: Map<string, SeenFile>,
  by: string,
  state?: () => State,
): FileMemory => ({
  get: (path) => files.get(path),
  shownLines: (path) => {
    const lines = files.shownLines?.(path) ?? wholeFile(by);
    if (state === undefined || files.shownLines === undefined) return lines;
    const calls = presentCalls(state());
    return lines.filter((one) => calls.has(one.by));
  },
  hide: (callId) => files.hide?.(callId),
  wrote: (...change) => files.wrote?.(...change),
  ownWrite: (path) => files.ownWrite?.(path),
  addLines: (path, sha256, text) => files.addLines?.(path, sha256, text),
  recall: (path) => files.recall?.(path),
  set: (path, sha256, text, lines = wholeFile(by)) => {
    if (typeof path !== 'string' || typeof sha256 !== 'string')
      throw new TypeError(
        'files.set takes the real path of a file and the sha256 of its bytes, as texts',
      );
    files.set(path, sha256, text, lines);
    seen.set(path, { path, sha256, lines: files.shownLines?.(path) ?? lines });
  },
});

/** The calls with a result in the conversation, and those of the running batch that may write. */
const presentCalls = ({ session, ...state }: State): ReadonlySet<string> => {
  const results = messagesOf(session.conversation).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'result' ? [part.callId] : [])),
  );
  const running = state.name === 'ExecutingTools' ? state.calls : [];
  const writing = running.filter(({ judged }) => judged.traits.mutating);
  return new Set([...results, ...writing.map(({ judged }) => judged.callId)]);
};

// ---- The models of an agent ----

/** The models for the sessions of one agent, by id. */
export type Models = {
  /** A connected model. Throws if it is not connected. */
  get(modelId: string): Model;
  /**
   * Connects a model if necessary. Rejects with the reason, or with a TypeError for an invalid
   * model.
   */
  connect(modelOrId: string | Model): Promise<Model>;
};

/**
 * Starts with a model and those of its fallback. `connect` finds others by id; without it there are
 * no others.
 */
export const createModels = (
  first: Model,
  fallback: readonly Model[] = [],
  connect?: (modelId: string) => Promise<Model>,
): Models => {
  const others = fallback.map((model) => [model.id, model] as const);
  const connected = new Map([...others, [first.id, first]]);
  const find = async (modelId: string): Promise<Model> => {
    if (connect !== undefined) return connect(modelId);
    throw new Error(
      `${modelId} can't be found by its name here: this agent was made without connect. ` +
        'Give the model itself, or make the agent with connect',
    );
  };
  return {
    get: (modelId) => {
      const model = connected.get(modelId);
      if (model !== undefined) return model;
      throw new Error(
        `the model ${modelId} is not connected: this session was opened with ${first.id}`,
      );
    },
    connect: async (modelOrId) => {
      // The id of the model may differ from the requested one: a script has its absolute path.
      const model =
        typeof modelOrId === 'string'
          ? (connected.get(modelOrId) ?? (await find(modelOrId)))
          : modelOrId;
      checkModel(model);
      connected.set(model.id, model);
      model.prepare?.();
      return model;
    },
  };
};

// ---- Hooks and checkpoints that load their code at the first use ----

/**
 * The hooks of one session, whose code is loaded when a call may change files. Most sessions read
 * first, and a start should not pay for git and formatters.
 */
export const createLateHooks = (options: HooksOptions): Hooks => {
  type Loaded = Omit<Hooks, 'deadlinesMs'>;
  let loaded: Loaded | null = null;
  let loading: Promise<Loaded> | null = null;
  const load = (): Promise<Loaded> => {
    loading ??= import('../workspace/after-tool-hooks.js').then(
      ({ createHooks }) => (loaded = createHooks(options)),
    );
    return loading;
  };
  return {
    // reading a repository takes milliseconds, a formatter seconds per file; a model writes the
    // commit message
    deadlinesMs: {
      CheckingGitCommits: 10_000,
      RunningAutoformatters: 60_000,
      AutoCommitting: 60_000,
    },
    before: async (call, settings) => (await load()).before(call, settings),
    after: async (call, settings) => (await load()).after(call, settings),
    // before the first load null, so that `run` is called, which loads
    runNow: (phase, context) => loaded?.runNow?.(phase, context) ?? null,
    run: async (phase, context) => (await load()).run(phase, context),
  };
};

/**
 * The checkpoints of one session, whose code is loaded at the first use: usually when a call may
 * change files.
 */
export const createLateCheckpoints = (
  place: Omit<CheckpointsPlace, 'stateFolder'>,
): Checkpoints & WorkspaceObserver => {
  type Loaded = Checkpoints & WorkspaceObserver;
  let loaded: Loaded | null = null;
  let loading: Promise<Loaded> | null = null;
  const load = (): Promise<Loaded> => {
    loading ??= import('../workspace/checkpoints/session-checkpoints.js').then(
      ({ createCheckpoints }) =>
        (loaded = createCheckpoints({ ...place, stateFolder: stateFolder(place.environment) })),
    );
    return loading;
  };
  return {
    before: async (...begun) => (await load()).before(...begun),
    after: async (...ended) => (await load()).after(...ended),
    withdraw: async (call) => (await load()).withdraw(call),
    take: async (ended) => (await load()).take(ended),
    // without the code loaded there is no checkpoint: nothing to sweep, record or close
    sweep: async (by) => (loading === null ? null : (await load()).sweep(by)),
    recorded: async () => (loading === null ? undefined : (await load()).recorded()),
    lookBefore: async (call) => (await load()).lookBefore(call),
    observe: async () => (await load()).observe(),
    reported: () => loaded?.reported(), // without the code nothing has been reported
    settle: async (files) => (await load()).settle(files),
    unkept: async (paths) => (await load()).unkept(paths),
    describe: async (checkpoints) => (await load()).describe(checkpoints),
    plan: async (request) => (await load()).plan(request),
    planFile: async (version) => (await load()).planFile(version),
    restore: async (plan) => (await load()).restore(plan),
    close: async () => (loading === null ? undefined : (await load()).close()),
  };
};
