/**
 * Opens a new or resumed session from flags and environment.
 *
 * All that runs sessions (terminal, editor, `pawl -p`) calls `openFromFlags`. From top to bottom:
 * opening; a session that is resumed, whose journal is held open (`HeldSession`) until its settings
 * and the turns that are shown again are known; servers and tools that the user wants; hooks; and
 * telemetry.
 */

import { existsSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { probeSandbox } from '@pawl/agent/command/session-sandbox';
import type { CommandHook } from '@pawl/agent/extensions/hooks/session-hooks';
import type { McpServer } from '@pawl/agent/extensions/mcp/server-config';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import { isHeldElsewhere } from '@pawl/agent/journal/lock';
import { journalPath, reservePath } from '@pawl/agent/journal/state-folder';
import type { JournalStep } from '@pawl/agent/journal/steps';
import type { Settings } from '@pawl/agent/machine/settings';
import { type State, turnRuns } from '@pawl/agent/machine/state';
import type { ProcessEnvironment } from '@pawl/agent/platform/environment';
import type { JournalStore, OpenJournal } from '@pawl/agent/ports/journal';
import type { Model } from '@pawl/agent/ports/model';
import type { Watcher } from '@pawl/agent/ports/session';
import { combineWatchers } from '@pawl/agent/session/approvals';
import {
  type AgentOptions,
  createAgent,
  type Session,
  type SessionOptions,
} from '@pawl/agent/session/create-agent';
import { hasReplied } from '@pawl/agent/session/model-call';
import type { LocalRuntime } from '@pawl/agent/session/runtime';
import type { SessionOrigin, SessionRights } from '@pawl/agent/session/session-settings';
import { oneLine } from '@pawl/terminal/paint';
import { exitCodes, Stop } from '../process/exit-codes.js';
import {
  type Configured,
  keysIn,
  mcpJsonFiles,
  userExtensions,
} from '../settings/configuration.js';
import { connectOthers, realWorkspace, type Warn } from '../settings/connect-model.js';
import { type RunFlags, refuseTakeOver, usageStop } from '../settings/flags.js';
import type { ExportOptions } from './export-spans.js';
import type { AllowedServers } from './project-trust.js';
import {
  chooseSettings,
  type Place,
  prepareFromFlags,
  refuseBadFlags,
} from './session-settings.js';
import { tornSentence } from './session-text.js';
import {
  CUT_FOREIGN_REWIND,
  findSession,
  lastForeign,
  lastSession,
  openStateFolder,
  type RecordedSettings,
  recordedSettings,
  storedJournals,
} from './stored-sessions.js';
import { openAllPrompts, type SessionPrompts } from './typed-input.js';

export type Opened = {
  readonly session: Session;
  /** The runtime that has only this session open. */
  readonly runtime: LocalRuntime;
  readonly settings: Settings;
  /** Path of the journal. */
  readonly journal: string;
  /** Skills and commands that the user can name. */
  readonly prompts: SessionPrompts;
  /** null: no MCP server is configured. */
  readonly servers: SessionServers | null;
  /** Whether the user is called who looks elsewhere: by title, bell and notification. */
  readonly notifies: boolean;
  /** The turns of a resumed session that are printed again; null for a new session. */
  readonly resumed: { readonly recent: RecentTurns | null } | null;
};

/** Id of the session to resume; null for a new session. */
const chosenSession = async (flags: RunFlags, workspace: string): Promise<string | null> => {
  if (typeof flags.resume === 'string') return findSession(flags.resume);
  if (flags.resume === true)
    throw usageStop('--resume needs the id of a session here. pawl sessions lists them.');
  if (!flags.continue) return null;
  const last = await lastSession('agent', workspace);
  if (last !== null) return last;
  const foreign = await lastForeign(workspace);
  const hint =
    foreign === null
      ? ''
      : ` One was imported or copied, or written by an earlier version: --resume ${foreign}`;
  throw new Stop(
    exitCodes.badInput,
    'notFound',
    `There is no session in ${workspace} to continue.${hint}`,
  );
};

/** How a session that is resumed is opened. */
type Resuming = {
  /** The flags for it, given its settings. Throws if it must not be opened. */
  readonly flagsFor?: (recorded: RecordedSettings) => Promise<RunFlags>;
  /**
   * What the session of this process may do (settings and grants of its user), for one that goes on
   * in its place; absent: what configuration and flags give a new one.
   */
  readonly rights?: SessionRights;
  /** Called with every step of the session so far, in order, while its journal is read. */
  readonly visit?: (step: JournalStep) => void;
};

type OpenOptions = Resuming & {
  readonly resume: string | null;
  readonly place: Place;
  readonly watcher?: Watcher;
  readonly warn: Warn;
  /** Whether configuration files and variables apply. */
  readonly configured: boolean;
  /**
   * MCP servers in addition to those of the user's configuration, which win where names are equal.
   */
  readonly servers?: readonly McpServer[];
  /** Another agent opens the session, which must not get the preset `full`. Default: false. */
  readonly forAgent?: boolean;
};

/**
 * The settings, from the flags as they were typed and from what was prepared with configuration.
 * Throws before the session is opened, so that nothing is written into it.
 */
const settingsFor = (
  typedFlags: RunFlags,
  prepared: Parameters<typeof chooseSettings>[1],
  { place, forAgent = false }: OpenOptions,
): ReturnType<typeof chooseSettings> => {
  const chosen = chooseSettings(typedFlags, prepared, place);
  if (forAgent && chosen.preset === 'full')
    throw usageStop(
      'Your configuration chooses the preset full for it, which no other agent gets. Name another ' +
        'one: plan, careful, auto or ci.',
    );
  return chosen;
};

/**
 * Keeps V8's young generation at its size after the start. A session mostly waits and allocates few
 * long-lived objects; further growth would cost 16 MB after some hundred rounds without a gain
 * (bench: rounds).
 */
const KEEP_YOUNG_GENERATION = '--semi-space-growth-factor=1';

/** The journal reserves space for the end of the session, unless the disk has too little. */
const warnWithoutReserve = (journal: string, warn: Warn): void => {
  if (existsSync(reservePath(journal))) return;
  warn(
    'Too little space is free for the session: if the disk gets full, results that are known ' +
      'may not be stored. Free some space.',
  );
};

/** Opens the session, of which `held` has the journal; null for a new one. */
const openWithJournal = async (
  typedFlags: RunFlags,
  folder: string,
  openOptions: OpenOptions,
  held: HeldSession | null,
): Promise<Opened> => {
  const { resume, place, watcher, warn, rights, servers = [] } = openOptions;
  const prepared = await prepareFromFlags(typedFlags, folder, openOptions, held);
  const { flags, workspace, model, fallback } = prepared;
  if (held !== null && typedFlags.workspace === undefined && workspace !== folder)
    warn(
      `The session works in its own folder, ${oneLine(workspace, Number.POSITIVE_INFINITY)}, ` +
        'and not in this one.',
    );
  const { preset, sandbox, settings } = settingsFor(typedFlags, prepared, openOptions);
  // Probes while the session is prepared: the first probe in a home folder takes 50 ms.
  if (sandbox !== 'off') void probeSandbox(process.env, workspace, 'kept');
  const stateFolder = openStateFolder(process.env);
  // Of servers with one name, the last one counts.
  const serversByName = new Map(
    [...servers, ...(flags.mcpServers ?? [])].map((one) => [one.name, one]),
  );
  const mcpServers = [...serversByName.values()];
  const keepsTools = held?.hasReplies ?? false;
  const toolPlace = { model, stateFolder, workspace, resume, keepsTools, place, warn };
  const tools = await optionalTools({ ...flags, mcpServers }, toolPlace);
  const prompts = await openAllPrompts(
    { workspace, flags, isResumed: resume !== null, warn },
    tools.servers,
  );
  const spans = await watchWithSpans(watcher, flags, warn);
  const options = {
    model,
    fallback,
    connect: connectOthers(model, flags, process.cwd(), warn),
    ...tools.options,
    moreTools: [...tools.options.moreTools, ...prompts.tools],
    moreInstructions: prompts.section, // the list of skills
    secrets: { ...keysIn(flags.variables ?? {}), ...tools.secrets }, // replaced in what is stored
    passEnvironment: flags.passEnv?.split(',') ?? [],
    journals: held?.journals ?? storedJournals(stateFolder), // held: open already
    ...{ workspace, keyFiles: [...(flags.keyFiles ?? []), ...(flags.forKey?.hidden ?? [])] },
    report: (fault: Error) => warn(oneLine(fault.message, Number.POSITIVE_INFINITY)),
    settings: { ...settings, ...rights?.settings },
    // The user accepted that calls of unknown price count as nothing.
    unpriced: flags.allowUnknownPrice === true ? 'countAsNothing' : 'refuse',
    preset: rights?.settings.preset ?? preset,
    ...(rights === undefined ? {} : { grants: rights.grants }),
    ...(sandbox === null ? {} : { sandbox }),
    ...spans.watcher,
    ...(resume === null ? {} : { resume }),
  } satisfies AgentOptions & SessionOptions;
  const agent = createAgent(options);
  const session = await agent.open(options);
  tools.follow(session); // connects MCP servers, and closes them with the session
  spans.follow(session); // telemetry of the session
  setFlagsFromString(KEEP_YOUNG_GENERATION);
  if (held?.origin === 'foreign') warn(foreignText(session.id, held.state));
  const state = await session.state();
  const journal = journalPath(stateFolder, session.id);
  warnWithoutReserve(journal, warn);
  return {
    session,
    runtime: agent.runtime,
    settings: state.session.settings,
    ...{ journal, prompts },
    servers: tools.servers,
    notifies: flags.notifications !== 'off',
    resumed: held,
  };
};

/** `foreign`: not created in this store. `state`: before what was pending in it was ended. */
const foreignText = (sessionId: string, { name }: State): string => {
  const isAtRest = name === 'WaitingForUserInput' || name === 'Ready' || name === 'ShuttingDown';
  const pending =
    name === 'Rewinding' ? CUT_FOREIGN_REWIND : 'What was pending in it was not started.';
  return (
    `The session ${sessionId} was not created here: it was imported or copied, or an earlier ` +
    `version wrote it.${isAtRest ? '' : ` ${pending}`} Your own configuration says what it may ` +
    'do. Your first prompt makes it yours.'
  );
};

/** Opens the session. If that fails, the journal of one to resume is closed again. */
const openOrRelease = async (
  typedFlags: RunFlags,
  folder: string,
  openOptions: OpenOptions,
): Promise<Opened> => {
  refuseBadFlags(typedFlags);
  const { resume, visit, flagsFor, place } = openOptions;
  const holdOptions = {
    takeOver: typedFlags.takeOver === true,
    place,
    ...(visit === undefined ? {} : { visit }),
  };
  if (resume !== null) openStateFolder(process.env); // throws if others can write there
  const held = resume === null ? null : await holdSession(resume, holdOptions);
  try {
    const flags = held === null || flagsFor === undefined ? typedFlags : await flagsFor(held);
    return await openWithJournal(flags, folder, openOptions, held);
  } catch (error) {
    // An incomplete last line, left by a crash, is cut off by now: only this opening knows of it.
    if (held !== null && held.tornTail !== null) openOptions.warn(tornSentence(held.tornTail));
    // The first failure is reported. A session that had begun has closed its journal already.
    await held?.release().catch(() => undefined);
    throw error;
  }
};

/**
 * Throws a `Stop` if the session can't be resumed without a terminal. Called before a fork is made.
 */
export const checkResumable = async (flags: RunFlags, resume: string): Promise<void> => {
  const warn = (): void => undefined; // opening the session warns
  const options = { resume, place: 'headless', warn, configured: true } as const;
  refuseBadFlags(flags);
  const folder = realWorkspace(flags.workspace ?? process.cwd());
  await prepareFromFlags(flags, folder, options, await recordedSettings(resume));
};

/** Opens the session that the flags ask for. `resume` overrides the flags' choice of session. */
export const openFromFlags = async (
  flags: RunFlags,
  place: Place,
  more: Resuming & {
    readonly resume?: string;
    readonly watcher?: Watcher;
    readonly warn: Warn;
    /** `false`: configuration files and variables don't apply. */
    readonly configured?: false;
    readonly servers?: readonly McpServer[];
    readonly forAgent?: boolean;
  },
): Promise<Opened> => {
  const folder = realWorkspace(flags.workspace ?? process.cwd());
  const resume = more.resume ?? (await chosenSession(flags, folder));
  if (resume === null) refuseTakeOver(flags);
  const { configured = true, servers = [], ...others } = more;
  return openOrRelease(flags, folder, { ...others, resume, place, configured, servers });
};

// A session that is resumed. Its journal is opened before the flags are applied, since they depend
// on its settings: so its entries are read and folded once, for the settings, the session and the
// turns that are printed again.

/** The last turns: the state before them, their steps, and whether there are earlier ones. */
export type RecentTurns = {
  readonly before: State;
  /**
   * The state before the first of them, whose first steps may be missing. Null if it was not read:
   * nobody waits for the whole journal to learn what a long turn has cost.
   */
  readonly turnStart: State | null;
  readonly steps: readonly JournalStep[];
  readonly earlierTurns: 'some' | 'none';
};

/** Limits on the turns that are shown again. While reading, up to twice as many steps are kept. */
const TURNS_MAX = 4;
const STEPS_MAX = 1_000;
/** Steps at the end that are visited also where a snapshot of the state would save folding them. */
export const STEPS_MIN = 500;

/** `see` takes the next step; `past` returns the turns so far. */
type RecentTurnsCollector = { see(stepped: JournalStep): void; past(): RecentTurns | null };

type CollectedTurn = {
  readonly before: State;
  readonly start: State | null;
  readonly steps: JournalStep[];
};

/** Collects the last turns while a session's steps are folded. */
export const collectRecentTurns = (): RecentTurnsCollector => {
  let turns: CollectedTurn[] = [];
  let earlierTurns: RecentTurns['earlierTurns'] = 'none';
  let turn = 0;
  let seq = 0;
  const stepsIn = (): number => turns.reduce((sum, one) => sum + one.steps.length, 0);
  /** Drops the first turn if there are too many, and the first steps of a turn that is too long. */
  const shorten = (): void => {
    const [first, ...later] = turns;
    if (first === undefined || (turns.length <= TURNS_MAX && stepsIn() <= 2 * STEPS_MAX)) return;
    earlierTurns = 'some';
    if (later.length > 0) turns = later;
    else
      turns = [
        {
          ...first,
          before: first.steps[STEPS_MAX - 1]?.state ?? first.before,
          steps: first.steps.slice(STEPS_MAX),
        },
      ];
  };
  return {
    see(stepped: JournalStep): void {
      const { before, state } = stepped;
      // The fold begins again at the first step if a stored snapshot of the state proves wrong.
      if (stepped.seq <= seq) turns = [];
      if (seq === 0 || stepped.seq <= seq) earlierTurns = stepped.seq > 1 ? 'some' : 'none';
      ({ seq } = stepped);
      const isNewTurn = turns.length === 0 || state.session.counters.turn !== turn;
      turn = state.session.counters.turn;
      if (stepped.event.type === 'Start') return;
      if (isNewTurn) turns.push({ before, start: turnRuns(before) ? null : before, steps: [] });
      turns.at(-1)?.steps.push(stepped);
      shorten();
    },
    /** null for a session without a turn. */
    past(): RecentTurns | null {
      const [first] = turns;
      if (first === undefined) return null;
      const { before, start: turnStart } = first;
      const steps = turns.flatMap((one) => one.steps);
      return { before, turnStart, steps, earlierTurns };
    },
  };
};

/**
 * Texts that went back to the input line, and that a crash took from there: nothing was sent since,
 * and the session was not closed.
 */
export const returnedTexts = (
  steps: readonly Pick<JournalStep, 'event' | 'actions'>[],
): readonly string[] => {
  let texts: readonly string[] = [];
  for (const { event, actions } of steps) {
    if (event.type === 'UserInput' || event.type === 'ShutdownRequested') texts = [];
    for (const action of actions)
      if (action.type === 'RestoreQueue') texts = [...action.texts, ...texts];
  }
  return texts;
};

type HeldSession = {
  /** The current settings. */
  readonly settings: Settings;
  /** After the last entry. */
  readonly state: State;
  readonly origin: SessionOrigin;
  /** Whether the model has replied in it. */
  readonly hasReplies: boolean;
  readonly recent: RecentTurns | null;
  readonly tornTail: OpenJournal['tornTail'];
  /** The store whose `open` hands out the journal of this session, which is open already. */
  readonly journals: JournalStore;
  /** Closes the journal. For a failure before a session runs. */
  release(): Promise<void>;
};

type HoldOptions = {
  readonly takeOver: boolean;
  /** Turns are collected for a terminal, which shows them. */
  readonly place: Place;
  /** Called with every step of the session, the oldest first. */
  readonly visit?: (step: JournalStep) => void;
};

/** Of a session that runs detached the user can do more than take it over. */
const explainHeld = async (sessionId: string, fault: unknown): Promise<never> => {
  if (isHeldElsewhere(fault)) {
    const { findLive } = await import('./live-records.js');
    const live = await findLive(sessionId);
    if (live?.status === 'runs')
      throw new Stop(
        exitCodes.tryAgain,
        'locked',
        `${sessionId} runs detached, in process ${live.record.process.pid}. To look on and type: ` +
          `pawl attach ${sessionId} · to answer it: pawl answer ${sessionId} · to end it, and go ` +
          `on here: pawl stop ${sessionId}`,
      );
  }
  throw fault;
};

/**
 * Opens the journal of a session and keeps it for the session to come. Takes the session's lock.
 */
const holdSession = async (
  sessionId: string,
  { takeOver, place, visit }: HoldOptions,
): Promise<HeldSession> => {
  const store = storedJournals();
  const { see, past } = collectRecentTurns();
  const last = place === 'terminal' ? { visit: see, visitLast: STEPS_MIN } : {};
  const opened = await store
    .open(sessionId, { takeOver, ...(visit === undefined ? last : { visit }) })
    .catch((fault: unknown) => explainHeld(sessionId, fault));
  return {
    settings: opened.state.session.settings,
    state: opened.state,
    origin: opened.isForeign === undefined ? 'own' : 'foreign',
    hasReplies: hasReplied(opened.state.session),
    recent: past(),
    tornTail: opened.tornTail,
    journals: {
      ...store,
      open: async (id, options) => (id === sessionId ? opened : store.open(id, options)),
    },
    release: () => opened.journal.close(),
  };
};

// Servers and tools that the user wants.

/** What a session has, and where its user is (`place`). */
type SessionPlace = {
  readonly model: Model;
  readonly stateFolder: string;
  readonly workspace: string;
  /** The session to resume; null for a new one. */
  readonly resume: string | null;
  /** Whether no tools join the session: in one with replies that would cost its cached prompt. */
  readonly keepsTools: boolean;
  readonly place: Place;
  readonly warn: (text: string) => void;
};

export type OptionalTools = {
  readonly options: Required<
    Pick<AgentOptions, 'moreTools' | 'lateTools' | 'tasks' | 'hooks' | 'checkpoints'>
  >;
  /** null: no MCP server is configured. */
  readonly servers: SessionServers | null;
  /** Secrets in the settings of the servers, by names that say where they stand. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Connects the MCP servers, and closes them with the session. */
  follow(session: Session): void;
};

/**
 * Says which programs of the project wait for the user's answer. An editor asks with the first
 * prompt, so there the line would only precede the question.
 */
const warnNotRun = ({ place, warn }: SessionPlace): SessionPlace['warn'] =>
  place === 'editor' ? () => undefined : warn;

/**
 * The servers of the project's `.mcp.json` that the user has allowed. Most projects have no such
 * file.
 */
const projectServers = async (
  ownServers: readonly McpServer[],
  place: SessionPlace,
): Promise<AllowedServers> => {
  const { stateFolder, workspace, warn } = place;
  if (mcpJsonFiles(workspace).length === 0) return { servers: [], whyNot: async () => null };
  const [{ allowedServers }, { openTrust }] = await Promise.all([
    import('./project-trust.js'),
    import('@pawl/agent/extensions/trust'),
  ]);
  return allowedServers(
    workspace,
    ownServers,
    openTrust(stateFolder, warn),
    warn,
    warnNotRun(place),
  );
};

type OpenedServers = Pick<OptionalTools, 'servers' | 'secrets'>;

const openServers = async (
  { mcpServers = [], variables = {} }: Configured,
  place: SessionPlace,
): Promise<OpenedServers> => {
  const { stateFolder, workspace, warn, keepsTools } = place;
  const { servers: allowed, whyNot } = await projectServers(mcpServers, place);
  const servers = [...mcpServers, ...allowed];
  if (!servers.some(({ enabled }) => enabled)) return { servers: null, secrets: {} };
  const [{ openServers: openAll }, { secretsByName }, { createRedactor, findSecrets: secretsOf }] =
    await Promise.all([
      import('@pawl/agent/extensions/mcp/session-servers'),
      import('@pawl/agent/extensions/mcp/server-secrets'),
      import('@pawl/agent/secrets/redactor'),
    ]);
  const environment = process.env;
  const secrets = secretsByName(servers, environment, stateFolder);
  const redactor = createRedactor(secretsOf(environment, { ...keysIn(variables), ...secrets }));
  const opened = await openAll({
    servers,
    stateFolder,
    workspace,
    environment,
    warn,
    whyNot,
    redactor,
    // whether the first request waits for tools that are not known yet
    ...(keepsTools
      ? {}
      : { joining: place.place === 'terminal' ? ('waitQuietly' as const) : ('wait' as const) }),
  });
  return { servers: opened, secrets };
};

/**
 * Connecting costs this process time, so the first request goes first. In a terminal the user has
 * to type anyway. An editor opens sessions by itself, with servers that it names: they start with
 * the first prompt.
 */
const connectSoon = (servers: SessionServers, session: Session, place: Place): void => {
  if (place === 'terminal') return void setImmediate(() => servers.connect());
  const unwatch = session.watch(({ actions }) => {
    if (!actions.some(({ type }) => type === 'SendLlmRequest')) return;
    unwatch();
    setImmediate(() => servers.connect());
  });
};

/**
 * The tools that a session has only if the user wants them. A resumed session keeps the tools that
 * it has, which may be any of these, so all of them are provided.
 */
export const optionalTools = async (
  flags: RunFlags & Configured,
  place: SessionPlace,
): Promise<OptionalTools> => {
  const { explore, tasks, variables = {} } = flags;
  const { model, stateFolder } = place;
  const isResumed = place.resume !== null;
  const exploreTools =
    isResumed || explore === true
      ? [(await import('./explore-tool.js')).exploreTool(model, stateFolder, keysIn(variables))]
      : [];
  // where there is a user, now or later, the model gets tools to ask them
  const { place: userPlace } = place;
  const hasUser = userPlace === 'terminal' || userPlace === 'editor' || userPlace === 'detached';
  const askTools =
    isResumed || hasUser ? (await import('@pawl/agent/tools/ask-user')).askingTools : [];
  const { servers, secrets } = await openServers(flags, place);
  const extensions = await userExtensions(process.env);
  for (const fault of extensions.faults) place.warn(fault);
  return {
    options: {
      tasks: isResumed || tasks === true,
      checkpoints: flags.checkpoints !== 'off',
      moreTools: [...exploreTools, ...askTools, ...extensions.tools, ...(servers?.tools ?? [])],
      lateTools: servers?.lateTools ?? null,
      hooks: await openHooks(flags, { ...place, reportNotRun: warnNotRun(place) }),
    },
    servers,
    secrets,
    follow(session) {
      if (servers === null) return;
      connectSoon(servers, session, place.place);
      const close = (): void => void servers.close();
      session.ended.then(close, close);
    },
  };
};

type HooksPlace = {
  readonly workspace: string;
  readonly stateFolder: string;
  readonly warn: (text: string) => void;
  /** Told in one line which hooks wait for an answer of the user. */
  readonly reportNotRun: (text: string) => void;
};

/** The hooks of a session: the user's own, then those of the project that the user has allowed. */
const openHooks = async (
  { userHooks = [], projectHooks = [] }: Configured,
  { workspace, stateFolder, warn, reportNotRun }: HooksPlace,
): Promise<readonly CommandHook[]> => {
  const ownHooks = userHooks
    .filter(({ enabled }) => enabled)
    .map((hook) => ({ ...hook, folder: null }));
  // The variable is set for hooks: one that starts Pawl must not start itself again through it.
  if ((process.env.PAWL_HOOK ?? '') !== '') {
    if (ownHooks.length + projectHooks.length > 0)
      warn('No hook runs: PAWL_HOOK is set, as for a pawl that a hook starts.');
    return [];
  }
  if (projectHooks.length === 0) return ownHooks;
  const [{ allowedHooks }, { openTrust }] = await Promise.all([
    import('./project-trust.js'),
    import('@pawl/agent/extensions/trust'),
  ]);
  const trust = openTrust(stateFolder, warn);
  return [
    ...ownHooks,
    ...(await allowedHooks(workspace, projectHooks, trust, warn, process.env, reportNotRun)),
  ];
};

// Telemetry: spans of the session's work for a collector of OpenTelemetry. Their code is loaded
// only if the user wants them.

type TelemetryFlags = {
  readonly telemetry?: string;
  readonly telemetryEndpoint?: string;
  readonly baseUrl?: string;
};

const isSet = (value: string | undefined): boolean => (value?.trim() ?? '') !== '';

/**
 * OpenTelemetry's names for OTLP over HTTP; both are sent as JSON, which collectors take at the
 * same address.
 */
const PROTOCOLS: ReadonlySet<string> = new Set(['http/json', 'http/protobuf']);

/**
 * Why nothing is sent to a collector that the variables of OpenTelemetry name; null if spans are
 * sent.
 */
const protocolFault = (environment: ProcessEnvironment): string | null => {
  const name = isSet(environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL)
    ? 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
    : 'OTEL_EXPORTER_OTLP_PROTOCOL';
  const protocol = environment[name]?.trim() ?? '';
  return protocol === '' || PROTOCOLS.has(protocol)
    ? null
    : `telemetry: nothing is sent, since ${name} is ${protocol} and Pawl sends JSON over HTTP. ` +
        `Set it to http/json, and the endpoint to the collector's port for HTTP (4318 is usual)`;
};

/**
 * A collector, by the setting or by the variables of OpenTelemetry; undefined if nobody names one.
 */
const findCollector = (
  { telemetry = 'auto', telemetryEndpoint }: TelemetryFlags,
  environment: ProcessEnvironment,
): Pick<ExportOptions, 'endpoint'> | undefined => {
  if (telemetry === 'off' || environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true')
    return undefined;
  if (isSet(telemetryEndpoint)) return { endpoint: telemetryEndpoint ?? null };
  const named = [
    environment.OTEL_EXPORTER_OTLP_ENDPOINT,
    environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  ];
  return environment.OTEL_TRACES_EXPORTER !== 'none' && named.some(isSet)
    ? { endpoint: null }
    : undefined;
};

/**
 * The watcher of a session, which also makes spans if the user wants them; `follow` connects them
 * with it.
 */
type Watching = {
  readonly watcher: { readonly watcher?: Watcher };
  follow(session: Session): void;
};

/**
 * The given watcher, and beside it one that makes spans. A fault in that one is a warning:
 * telemetry may not disturb the session.
 */
export const watchWithSpans = async (
  watcher: Watcher | undefined,
  flags: TelemetryFlags,
  warn: (text: string) => void,
): Promise<Watching> => {
  const ownWatcher = watcher === undefined ? {} : { watcher };
  const collector = findCollector(flags, process.env);
  if (collector === undefined) return { watcher: ownWatcher, follow: () => undefined };
  const fault = collector.endpoint === null ? protocolFault(process.env) : null;
  if (fault !== null) {
    warn(fault);
    return { watcher: ownWatcher, follow: () => undefined };
  }
  const { exportSpans } = await import('./export-spans.js');
  const content = flags.telemetry === 'content' ? 'with' : 'without';
  const spans = exportSpans({ ...collector, content, baseUrl: flags.baseUrl, warn });
  const report = (fault: Error): void => warn(`telemetry: it ends here: ${fault.message}`);
  return {
    watcher: { watcher: combineWatchers(watcher ?? (() => undefined), spans.watcher, report) },
    follow: (session) => spans.attend(session),
  };
};
