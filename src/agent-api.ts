import { readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { defaultSettings, type Limits, type Preset, presetRules, type Settings } from './agent/settings.js';
import type { State } from './agent/state.js';
import { agentMachine } from './journal/replay.js';
import type {
  Clock,
  Input,
  JournalStore,
  Model,
  OpenJournal,
  StoppingPolicy,
  Tool,
  Watcher,
} from './needs.js';
import { systemClock } from './runtime/clock.js';
import { createRuntime, type LocalRuntime } from './runtime/runtime.js';
import { newSessionId } from './runtime/session-id.js';
import { attempt } from './runtime/wall.js';

/** Wires the world to the runtime. What a session may not need is loaded when it is needed. */

export type AgentOptions = {
  readonly model: Model;
  readonly journals: JournalStore;
  /** The agent's own tools, if not given. */
  readonly tools?: readonly Tool[];
  readonly clock?: Clock;
  /** Told of faults that stop nothing; a process warning, if not given. */
  readonly report?: (fault: Error) => void;
};

export type SettingsPatch = Partial<Omit<Settings, 'limits'>> & { readonly limits?: Partial<Limits> };

export type SessionOptions = {
  /** The folder to work in. */
  readonly workspace: string;
  /** What may be done without asking; `auto` if not given (of a session that is resumed: as it was). */
  readonly preset?: Preset;
  /** What is to be set otherwise; a limit that is not named stays as it is. */
  readonly settings?: SettingsPatch;
  /** Called with every step, from the first. */
  readonly watcher?: Watcher;
  /** Asked before every model call of the session; it is to be given again when the session is resumed. */
  readonly stoppingPolicy?: StoppingPolicy;
  /** The session to go on with, in place of a new one. */
  readonly resume?: string;
};

export type Session = {
  readonly id: string;
  /** What was cut off the journal's end, of a session that is resumed. */
  readonly tornTail: OpenJournal['tornTail'];
  /** Durable and applied when it resolves. */
  send(input: Input): Promise<{ readonly seq: number }>;
  state(): Promise<State>;
  /** Calls with every step from now on; the returned function ends that. */
  watch(watcher: Watcher): () => void;
  /** Cancels the turn that runs. */
  cancel(): Promise<void>;
  /** Resolves when nothing happens until the user acts; rejects with what stopped the session, e.g. a full disk. */
  idle(): Promise<State>;
  /** Resolves when the session was shut down; rejects with what stopped it otherwise. */
  readonly ended: Promise<void>;
  /** Shuts down: what runs is ended, the journal's lock is free when it resolves. */
  close(): Promise<void>;
};

export type Agent = {
  readonly runtime: LocalRuntime;
  open(options: SessionOptions): Promise<Session>;
};

const isIdle = ({ name }: State): boolean =>
  name === 'WaitingForUserInput' || name === 'Ready' || name === 'ShuttingDown';

/** How a formatter is set up is code of the repository: it runs unasked only where commands do. */
const presetFormatter: Readonly<Record<Preset, Settings['formatter']>> = {
  plan: 'off',
  careful: 'off',
  auto: 'onChanges',
  ci: 'onChanges',
};

/** Settings that follow from the model and the options; limits that are not named are as they were `before`. */
const settingsFrom = (
  model: Model,
  workspace: string,
  { preset, settings, stoppingPolicy }: SessionOptions,
  before: Limits,
): Partial<Settings> => ({
  model: model.id,
  workspace,
  windowTokens: model.facts.windowTokens,
  ...(model.canAbort === 'no' ? ({ cancelMode: 'drain' } as const) : {}),
  ...(preset === undefined ? {} : { rules: presetRules[preset], formatter: presetFormatter[preset] }),
  ...(preset === 'ci' ? ({ onAsk: 'deny' } as const) : {}),
  userPolicy: stoppingPolicy === undefined ? 'none' : 'ask',
  ...settings,
  limits: { ...before, ...settings?.limits },
});

const newSettings = (model: Model, workspace: string, options: SessionOptions): Settings => ({
  ...defaultSettings,
  model: model.id,
  workspace,
  formatter: presetFormatter.auto,
  ...settingsFrom(model, workspace, options, defaultSettings.limits),
});

/** What `wanted` sets differently. Settings are plain JSON. */
const differences = (before: Settings, wanted: Partial<Settings>): Partial<Settings> =>
  Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof Settings]), // a name in `wanted`
    ),
  );

const refuseUnpriced = (model: Model, { limits }: SettingsPatch): void => {
  if (model.facts.prices !== null || (limits?.usd ?? 0) === 0) return;
  throw new Error(
    `a limit in dollars can't be kept: the price of ${model.id} is not known. Set a limit in tokens, rounds or minutes instead.`,
  );
};

/** Resolves at rest. The watcher is set before the state is looked at, so that no rest is missed. */
const waitForRest = async (runtime: LocalRuntime, id: string, ended: Promise<void>): Promise<State> => {
  let unwatch = (): void => undefined;
  const resting = new Promise<State>((resolve) => {
    unwatch = runtime.watch(id, ({ state }) => {
      if (isIdle(state)) resolve(state);
    });
  });
  const { state } = await runtime.state(id);
  const over = ended.then(() => Promise.reject(new Error(`session ${id} has ended`)));
  return Promise.race([isIdle(state) ? state : resting, over]).finally(unwatch);
};

const connect = (runtime: LocalRuntime, id: string, tornTail: OpenJournal['tornTail']): Session => {
  const ended = runtime.ended(id);
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  ended.then(end, end);
  /** What stopped a session is what every later wish is answered with. */
  const whileOpen = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isOver) await ended;
    return work();
  };
  const state = async (): Promise<State> => (await runtime.state(id)).state;
  return {
    id,
    tornTail,
    ended,
    state,
    send: (input) => whileOpen(() => runtime.send(id, input)),
    watch: (watcher) => runtime.watch(id, watcher),
    cancel: async () => void (await whileOpen(() => runtime.send(id, { type: 'CancelTurn' }))),
    idle: () => whileOpen(() => (isOver ? state() : waitForRest(runtime, id, ended))),
    close: () => (isOver ? ended : runtime.close(id)),
  };
};

/** The branch that is checked out, if the workspace is the top of a repository and on a branch. */
const readBranch = async (workspace: string): Promise<string | undefined> => {
  const head = await attempt(() => readFile(path.join(workspace, '.git', 'HEAD'), 'utf8'));
  // a folder without a repository has no branch, and neither has one whose repository can't be read
  return head.kind === 'done' ? /^ref: refs\/heads\/(.+)\n?$/.exec(head.value)?.[1] : undefined;
};

type Place = { readonly workspace: string; readonly preset: Preset; readonly clock: Clock };

/** What the model is told from now on; what of it could not be used is reported. */
const instruct = async (
  { workspace, preset, clock }: Place,
  report: (fault: Error) => void,
): Promise<string> => {
  const [{ instructionsFor }, { loadAgentsFiles }] = await Promise.all([
    import('./prompt/instructions.js'),
    import('./prompt/agents-files.js'),
  ]);
  const [{ files, warnings }, gitBranch] = await Promise.all([
    loadAgentsFiles(workspace),
    readBranch(workspace),
  ]);
  for (const warning of warnings) report(new Error(warning));
  return instructionsFor({
    workspace,
    platform: process.platform,
    dateIso: new Date(clock.now()).toISOString().slice(0, 10),
    agentsFiles: files,
    preset,
    ...(gitBranch === undefined ? {} : { gitBranch }),
  });
};

const equip = async (model: Model, tools: readonly Tool[] | undefined) => {
  const [{ createFileMemory }, { createJobs }, { compactionInstructions }, { createHooks }, builtin] =
    await Promise.all([
      import('./tools/file-memory.js'),
      import('./tools/jobs.js'),
      import('./prompt/compaction.js'),
      import('./workspace/hooks.js'),
      tools === undefined ? import('./tools/builtin.js') : null,
    ]);
  return {
    model: (modelId: string) => {
      if (modelId === model.id) return model;
      throw new Error(`the model ${modelId} is not connected: this session was opened with ${model.id}`);
    },
    tools: tools ?? builtin?.builtinTools() ?? [],
    files: createFileMemory(),
    jobs: createJobs(),
    compactionInstructions,
    hooks: createHooks({ environment: process.env }),
  };
};

/** An agent: one model, one place for journals, any number of sessions. */
export const createAgent = (options: AgentOptions): Agent => {
  const {
    model,
    journals,
    clock = systemClock,
    tools,
    report = (fault) => process.emitWarning(fault),
  } = options;
  const runtime = createRuntime({
    journals,
    clock,
    machine: agentMachine.fingerprint,
    equip: () => equip(model, tools),
    newSessionId: () => newSessionId(clock),
    random: Math.random,
    report,
  });
  const openAgain = async (id: string, workspace: string, session: SessionOptions): Promise<Session> => {
    const { watcher, stoppingPolicy } = session;
    const { tornTail } = await runtime.open(id, {
      patch: (before) => {
        const wanted = settingsFrom(model, workspace, session, before.limits);
        refuseUnpriced(model, { ...before, ...wanted });
        return differences(before, wanted);
      },
      ...(watcher === undefined ? {} : { watcher }),
      ...(stoppingPolicy === undefined ? {} : { stoppingPolicy }),
    });
    return connect(runtime, id, tornTail);
  };
  const openNew = async (workspace: string, session: SessionOptions): Promise<Session> => {
    const settings = newSettings(model, workspace, session);
    const { preset = 'auto', watcher, stoppingPolicy } = session;
    const instructions = await instruct({ workspace, preset, clock }, report);
    const id = await runtime.create({
      settings,
      instructions,
      ...(stoppingPolicy === undefined ? {} : { stoppingPolicy }),
    });
    if (watcher !== undefined) runtime.watch(id, watcher);
    return connect(runtime, id, null);
  };
  return {
    runtime,
    open: async (session) => {
      refuseUnpriced(model, session.settings ?? {});
      model.prepare?.();
      const workspace = await realpath(session.workspace);
      return session.resume === undefined
        ? openNew(workspace, session)
        : openAgain(session.resume, workspace, session);
    },
  };
};

/** A session of an agent of its own. */
export const openSession = (options: AgentOptions & SessionOptions): Promise<Session> =>
  createAgent(options).open(options);
