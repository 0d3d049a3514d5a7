import { existsSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import {
  type AgentOptions,
  createAgent,
  type Session,
  type SessionOptions,
} from '@pawl/agent/api/create-agent';
import type { SessionRights } from '@pawl/agent/api/session-settings';
import { probeSandbox } from '@pawl/agent/command/sandbox/session/session-sandbox';
import type { SessionServers } from '@pawl/agent/extensions/mcp/session-servers';
import type { McpServer } from '@pawl/agent/extensions/mcp-servers';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { journalPath, reservePath } from '@pawl/agent/journal/paths-and-durable-writes';
import type { JournalStep } from '@pawl/agent/journal/read/steps';
import type { Settings } from '@pawl/agent/machine/settings';
import type { Watcher } from '@pawl/agent/ports/session-input-output';
import type { LocalRuntime } from '@pawl/agent/session/in-process-runtime';
import { oneLine } from '@pawl/terminal/paint-text';
import { openAllPrompts } from '../commands/mcp/expand-server-mentions.js';
import { watchWithSpans } from '../commands/telemetry/export-if-wanted.js';
import { exitCodes, Stop } from '../exit-codes.js';
import { type RunFlags, refuseTakeOver, usageStop } from '../flags.js';
import { keysIn } from '../settings/apply-config.js';
import { connectOthers, realWorkspace, type Warn } from '../settings/connect-model.js';
import type { SessionPrompts } from '../skills/session-prompts.js';
import { chooseSettings, prepareFromFlags, refuseBadFlags } from './choose-model-and-settings.js';
import type { Place } from './defaults-by-frontend.js';
import { openStateFolder } from './make-state-folder.js';
import { type HeldSession, holdSession, type RecentTurns } from './open-for-resume.js';
import { tornSentence } from './show/torn-journal-text.js';
import {
  findSession,
  lastForeign,
  lastSession,
  type RecordedSettings,
  recordedSettings,
} from './stored-sessions.js';
import { optionalTools } from './tools-servers-and-hooks.js';

/** Opens a new or resumed session from flags and environment. */

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
  throw new Stop(exitCodes.badInput, 'notFound', `There is no session in ${workspace} to continue.${hint}`);
};

/** How a session that is resumed is opened. */
type Resuming = {
  /** The flags for it, given its settings. Throws if it must not be opened. */
  readonly flagsFor?: (recorded: RecordedSettings) => Promise<RunFlags>;
  /** The rights of the session in this process that this one goes on for, instead of those of a new one. */
  readonly rights?: SessionRights;
  /** Called with every step of the session so far, in order, while its journal is read. */
  readonly visit?: (step: JournalStep) => void;
};

type Wanted = Resuming & {
  readonly resume: string | null;
  readonly place: Place;
  readonly watcher?: Watcher;
  readonly warn: Warn;
  /** Whether configuration files and variables apply. */
  readonly configured: boolean;
  /** MCP servers in addition to those of the user's configuration, which win where names are equal. */
  readonly servers?: readonly McpServer[];
};

/**
 * Keeps V8's young generation at its size after the start. A session mostly waits and allocates few long-lived objects;
 * further growth would cost 16 MB after some hundred rounds without a gain (bench: rounds).
 */
const stopGrowing = (): void => setFlagsFromString('--semi-space-growth-factor=1');

/** Of servers with one name, the last one counts. */
const byName = (servers: readonly McpServer[]): readonly McpServer[] => [
  ...new Map(servers.map((one) => [one.name, one])).values(),
];

/** Probes the sandbox while the session is prepared: the first probe in a home folder takes 50 ms. */
const startProbe = (workspace: string): void => void probeSandbox(process.env, workspace, 'kept');

/** The journal reserves space for the end of the session, unless the disk has too little. */
const warnWithoutReserve = (journal: string, warn: Warn): void => {
  if (existsSync(reservePath(journal))) return;
  warn(
    'Too little space is free for the session: if the disk gets full, results that are known may not be stored. Free some space.',
  );
};

const openHeld = async (
  given: RunFlags,
  folder: string,
  wanted: Wanted,
  held: HeldSession | null,
): Promise<Opened> => {
  const { resume, place, watcher, warn, rights, servers = [] } = wanted;
  const prepared = await prepareFromFlags(given, folder, wanted, held);
  const { flags, workspace, model } = prepared;
  if (held !== null && given.workspace === undefined && workspace !== folder)
    warn(
      `The session works in its own folder, ${oneLine(workspace, Number.POSITIVE_INFINITY)}, and not in this one.`,
    );
  const { preset, sandbox, settings } = chooseSettings(given, prepared, place);
  if (sandbox !== 'off') startProbe(workspace);
  const stateFolder = openStateFolder(process.env);
  const mcpServers = byName([...servers, ...(flags.mcpServers ?? [])]);
  const tools = await optionalTools(
    { ...flags, mcpServers },
    { model, stateFolder, workspace, resume, place, warn },
  );
  const prompts = await openAllPrompts({ workspace, flags, isResumed: resume !== null, warn }, tools.servers);
  const spans = await watchWithSpans(watcher, flags, warn);
  const options = {
    model,
    connect: connectOthers(model, flags, process.cwd(), warn),
    ...tools.options,
    moreTools: [...tools.options.moreTools, ...prompts.tools],
    moreInstructions: prompts.section,
    secrets: { ...keysIn(flags.variables ?? {}), ...tools.secrets },
    passEnvironment: flags.passEnv?.split(',') ?? [],
    journals: held?.journals ?? fileJournals({ folder: stateFolder }),
    workspace,
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
  tools.attend(session);
  spans.attend(session);
  stopGrowing();
  if (held?.origin === 'foreign') warn(foreignText(session.id));
  const state = await session.state();
  const journal = journalPath(stateFolder, session.id);
  warnWithoutReserve(journal, warn);
  return {
    session,
    runtime: agent.runtime,
    settings: state.session.settings,
    journal,
    prompts,
    servers: tools.servers,
    resumed: held,
  };
};

const foreignText = (sessionId: string): string =>
  `The session ${sessionId} was not created here: it was imported or copied, or an earlier version wrote it. ` +
  'What was pending in it was not started, and your own configuration says what it may do. Your first prompt makes it yours.';

const open = async (given: RunFlags, folder: string, wanted: Wanted): Promise<Opened> => {
  refuseBadFlags(given);
  const { resume, visit, flagsFor } = wanted;
  const options = { takeOver: given.takeOver === true, ...(visit === undefined ? {} : { visit }) };
  if (resume !== null) openStateFolder(process.env);
  const held = resume === null ? null : await holdSession(resume, options);
  try {
    const flags = held === null || flagsFor === undefined ? given : await flagsFor(held);
    return await openHeld(flags, folder, wanted, held);
  } catch (error) {
    // The torn end is cut off by now, and only this opening knows of it.
    if (held !== null && held.tornTail !== null) wanted.warn(tornSentence(held.tornTail));
    // The first failure is reported. A session that had begun has closed its journal already.
    await held?.release().catch(() => undefined);
    throw error;
  }
};

/** Throws a `Stop` if the session can't be resumed without a terminal. Called before a fork is made. */
export const checkResumable = async (flags: RunFlags, resume: string): Promise<void> => {
  const warn = (): void => undefined; // opening the session warns
  const wanted = { resume, place: 'headless', warn, configured: true } as const;
  refuseBadFlags(flags);
  const folder = realWorkspace(flags.workspace ?? process.cwd());
  await prepareFromFlags(flags, folder, wanted, await recordedSettings(resume));
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
  },
): Promise<Opened> => {
  const folder = realWorkspace(flags.workspace ?? process.cwd());
  const resume = more.resume ?? (await chosenSession(flags, folder));
  if (resume === null) refuseTakeOver(flags);
  const { configured = true, servers = [], ...others } = more;
  return open(flags, folder, { ...others, resume, place, configured, servers });
};
