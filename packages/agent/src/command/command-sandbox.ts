/** The sandbox of one workspace: which fence a command gets, and what is checked after it. */

import { closeSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin, statusOf } from '../platform/files.js';
import { findProgram, type ProgramPath } from '../platform/find-program.js';
import { closingOthers, openStart, SandboxRefusal } from '../platform/guarded-start.js';
import { SYSTEM_SHELL, systemBash } from '../platform/start-program.js';
import type { CommandLevel } from '../policy/decide.js';
import type { HistoryPurpose, RepositoryAccess } from '../policy/repository-access.js';
import { removeStale, takeInterruptedGuards, takeUnreadNotes } from './earlier-processes.js';
import { fencedEnvironment, openEnvironment, withVariables } from './environment.js';
import { type CommandOrder, type CommandRecord, type Launched, writeOrder } from './launched-command.js';
import type { CommandFence, Enclosure, Launcher, OpenStart } from './launcher.js';
import type { OutputReceiver } from './output.js';
import { FILTER_DESCRIPTOR, isolationArguments, mountArguments, type Probed } from './sandbox/bubblewrap.js';
import { findRepository } from './sandbox/git-folders.js';
import { createGitHistory, type GitHistory, NO_PURPOSE } from './sandbox/git-history.js';
import {
  type HomeView,
  type HostView,
  homeOf,
  hostSockets,
  isOnHost,
  keptGitSettings,
  viewHome,
  viewHost as viewHostNow,
} from './sandbox/host.js';
import {
  checkOfMounts,
  EXCHANGED,
  type Mount,
  mountedIdentities,
  readable,
  readableIfThere,
  writable,
} from './sandbox/mounts.js';
import {
  createProtectedFiles,
  guardRecordIn,
  type ProtectedFiles,
  protectedMounts,
} from './sandbox/protected-files.js';
import type { Scan } from './sandbox/protected-scan.js';
import { commandFilter } from './sandbox/seccomp.js';
import {
  carryOver,
  commandsFolder,
  INNER_HOME,
  makeFolders,
  makeFreshFolders,
  removeFolders,
  removePrivateFolders,
  type SessionFolders,
  unlinkDownloads,
} from './sandbox/session-folders.js';
import { canBeParked } from './sandbox/shell-text.js';
import { sessionFile } from './session-record.js';
import { type FencedPlace, probeWorkspace, secretPlaces } from './workspace-probe.js';

/**
 * Starts commands, fenced or not. There is no other way to start one.
 *
 * 1. `prepare` returns what to spawn. The caller spawns it, calls `started`, and calls `finish` when it has ended.
 * 2. The sandbox is never weakened silently: `prepare` fails for a fenced level if bubblewrap does not work.
 * 3. /tmp and the home folder belong to the session: a command finds what an earlier one left there. One that reaches
 *    more than the session's level starts with fresh ones, which earlier commands could not prepare; what it leaves there
 *    is moved to those of the session at its end.
 * 4. Commands can't change files that run later without a question (keep-protected-files.ts).
 */

export type CommandSandboxOptions = {
  /** Real path of the folder that commands work in. */
  readonly workspace: string;
  /** Pawl's own environment, from which the variables of commands are chosen. */
  readonly environment: ProcessEnvironment;
  /** A new folder for this session alone, named PID-…, so that folders of killed sessions can be recognized. */
  readonly sessionFolder: string;
  /** Folder for the cached result of the probe, shared by all sessions. Null: no cache. */
  readonly cacheFolder: string | null;
  /** Names of variables that the user passes to commands beside the usual ones. Secrets are allowed. */
  readonly passEnvironment?: readonly string[];
  /** Files and folders that no fenced command may see: Pawl's own state and configuration. */
  readonly hidden?: readonly string[];
  /** How the machine is inspected. Sandboxes that share a view give the same function. */
  readonly viewHost?: (() => HostView) | undefined;
  /** The session, if it can be resumed. */
  readonly sessionId?: string | undefined;
  /** Running commands go on if this process is killed, and are found again by their records. */
  readonly outlives?: boolean;
};

export type CommandSpec = {
  readonly level: CommandLevel;
  /** The command reaches more than the session's level: it gets a home and /tmp of its own. Default: false. */
  readonly fresh?: boolean;
  /** Absolute path. */
  readonly program: string;
  readonly words: readonly string[];
  /** Variables of this command alone, beside those of the session. */
  readonly environment: ProcessEnvironment;
  /** For a recovery. Without it nobody will look for it. */
  readonly record?: CommandRecord | null;
  /** When it must end, in ms since boot, for a recovery. */
  readonly due?: number | null;
  /** How far it may change git folders. Default: `approved`, for programs that the user named. */
  readonly repository?: RepositoryAccess;
  /** What its words do to the history on purpose. Default: nothing. */
  readonly purpose?: HistoryPurpose;
  /** The caller observes `isGuarded` of the prepared command. Default: false. */
  readonly canBeGuarded?: boolean;
};

export type PreparedCommand = {
  readonly program: string;
  readonly words: readonly string[];
  /** The complete environment: nothing of Pawl's own is added. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder to start it in. */
  readonly folder: string;
  /** Open files that the process inherits as 3, 4, … (`stdio: ['ignore', 'pipe', 'pipe', ...descriptors]`). */
  readonly descriptors: readonly number[];
  /** The process needs one more pipe, after `descriptors`: that of its guard (guarded-start.ts). */
  readonly isGuarded: boolean;
  /** Closes `descriptors`. Call it once the spawn has succeeded or failed. */
  started(): void;
  /** Call it after the command has ended. Returns lines for the model about files set aside. Never rejects. */
  finish(): Promise<readonly string[]>;
};

/** A command that is set up and waits for its start. */
export type ParkedCommand = {
  /** Starts it, once. `to` gets stdout and stderr as one. */
  start(to: OutputReceiver): Launched;
  /** As in PreparedCommand. */
  finish(): Promise<readonly string[]>;
};

export type CommandSandbox = {
  /** Rejects with a SandboxRefusal if the command can't be fenced. */
  prepare(spec: CommandSpec): Promise<PreparedCommand>;
  /** Like `prepare`, for a command that the launcher has set up in advance. Null: start it directly. */
  takeParked(spec: CommandSpec): Promise<ParkedCommand | null>;
  /** The user allowed writing to this protected absolute path, so running commands don't cause it to be set aside. */
  allow(place: string): void;
  /** Judges what commands of a killed process have made. Returns lines for the model about files set aside. */
  settle(): readonly string[];
  /** Ends all commands and removes the session's home and /tmp; files that were set aside stay. Never rejects. */
  close(keepsResults?: boolean): Promise<void>;
};

/** Interval in ms at which protected paths are checked while a command runs. */
const SWEEP_MS = 1_000;

const findFor = ({ environment, workspace }: CommandSandboxOptions, name: string): ProgramPath | null =>
  findProgram(name, { environment, workspace });

const bashFor = (options: CommandSandboxOptions): ProgramPath | null =>
  systemBash() ?? findFor(options, 'bash');

const filterFor = ({ filters }: SessionView, isReachable: boolean): string | null =>
  filters === null ? null : isReachable ? filters.withoutLocal : filters.local;

/** Where git can't write it does not try to refresh its index. */
const gitVariables = ({ isWritable, repository }: WorkspaceAccess): ProcessEnvironment =>
  isWritable && repository !== 'read' ? {} : { GIT_OPTIONAL_LOCKS: '0' };

/** The fence, environment and clean-up of one command. */
type Plan<E extends Enclosure> = {
  readonly fence: E;
  /** The fence that the next command probably gets. */
  readonly next: E;
  readonly environment: Readonly<Record<string, string>>;
  finish(): Promise<readonly string[]>;
};

class Sandbox implements CommandSandbox {
  readonly #options: CommandSandboxOptions;
  readonly #protected: ProtectedFiles;
  readonly #workspace: WorkspaceGuard;
  #probed: Promise<Probed> | null = null;
  #view: Promise<SessionView> | null = null;
  #isOnline = false;
  /** After closing, nothing is created that nobody would remove. */
  #isClosed = false;
  #launcher: Launcher | null = null;
  #writers = 0;
  #directCount = 0;
  #freshCount = 0;
  #sweeps: NodeJS.Timeout | null = null;

  constructor(options: CommandSandboxOptions) {
    this.#options = options;
    const { workspace, environment, sessionFolder, sessionId = null } = options;
    const search = { own: sessionFolder, workspace, sessionId };
    this.#protected = createProtectedFiles({
      workspace,
      environment,
      folder: `${sessionFolder}/set-aside`,
      record: guardRecordIn(sessionFolder),
      interrupted: takeInterruptedGuards(search),
      notes: takeUnreadNotes(search),
    });
    if (this.#protected.isInterrupted()) this.#sweepRegularly();
    const git = (): ProgramPath | null => findFor(options, 'git');
    const history = createGitHistory({ workspace, sessionFolder, git });
    this.#workspace = createWorkspaceGuard(workspace, this.#protected, history);
  }

  allow(place: string): void {
    this.#protected.allow(place);
  }

  settle(): readonly string[] {
    return this.#workspace.settle().map((line) => `[the sandbox: ${line}]`);
  }

  async prepare(order: CommandSpec): Promise<PreparedCommand> {
    const prepared = order.level === 'off' ? this.#open(order) : await this.#fence(order);
    this.#recordDirect(order);
    return prepared;
  }

  /** A recovery must not take a command that was started without the launcher for one that was never started. */
  #recordDirect({ record = null, due = null }: CommandSpec): void {
    const { sessionFolder, outlives = false } = this.#options;
    if (record === null || !outlives) return;
    this.#directCount += 1;
    recordDirectCommand(sessionFolder, this.#directCount, { due, record });
  }

  async close(keepsResults = false): Promise<void> {
    this.#isClosed = true;
    if (this.#sweeps !== null) clearInterval(this.#sweeps);
    await this.#launcher?.close();
    this.#workspace.close();
    if (this.#view === null && this.#launcher === null && this.#directCount === 0) return;
    await this.#view?.catch(() => null); // the command that wanted it was refused, and told why
    (keepsResults ? removePrivateFolders : removeFolders)(this.#options.sessionFolder);
  }

  #ask(): Promise<Probed> {
    this.#probed ??= probeWorkspace(this.#options);
    return this.#probed;
  }

  /** Level `off`, the user's own decision: the command sees the whole machine, but no secrets in its environment. */
  #open({ program, words, environment, record = null, canBeGuarded = false }: CommandSpec): PreparedCommand {
    const { workspace, outlives = false } = this.#options;
    const mayOutlive = outlives && record !== null; // a resumed session looks for it
    const start = openStart({ program, words }, bashFor(this.#options), canBeGuarded && !mayOutlive);
    return {
      ...start,
      folder: workspace,
      descriptors: [],
      started: () => undefined,
      environment: this.#openVariables(environment),
      finish: () => this.#acceptChanges(),
    };
  }

  async takeParked(spec: CommandSpec): Promise<ParkedCommand | null> {
    const plan = spec.level === 'off' ? this.#planOpen(spec) : await this.#plan(spec);
    if (plan === null) return null;
    const { program, words, due = null, record = null } = spec;
    const { workspace, passEnvironment = [] } = this.#options;
    const command = { program, words, environment: plan.environment, unwritten: passEnvironment };
    const launcher = canBeParked(command) ? await this.#launch() : null;
    const taken = (await launcher?.take(plan.fence, plan.next)) ?? null;
    if (taken === null) {
      await plan.finish();
      return null;
    }
    return {
      start(to) {
        taken.start(command, workspace, { due, record }, to);
        return taken;
      },
      finish: plan.finish,
    };
  }

  /** Null if nobody will look for the command, or it can't be started by the launcher. */
  #planOpen({ environment }: CommandSpec): Plan<OpenStart> | null {
    const { workspace, outlives = false } = this.#options;
    const setsid = outlives && statusOf(workspace)?.isDirectory() ? findFor(this.#options, 'setsid') : null;
    if (setsid === null) return null;
    this.#refuseIfClosed();
    const { _: ignored, ...variables } = this.#openVariables(environment);
    return {
      fence: { setsid },
      next: { setsid },
      environment: variables,
      finish: () => this.#acceptChanges(),
    };
  }

  /** The end of a command without a fence: no protected file was kept from it, so there is nothing to tell. */
  async #acceptChanges(): Promise<readonly string[]> {
    this.#workspace.accept();
    return [];
  }

  #openVariables(environment: ProcessEnvironment): Readonly<Record<string, string>> {
    const base = openEnvironment(this.#options.environment, this.#options.passEnvironment ?? []);
    return withVariables(base, environment);
  }

  async #fence(order: CommandSpec): Promise<PreparedCommand> {
    const { fence, environment, finish } = await this.#plan(order);
    const { bwrap, filter, check = '' } = fence;
    const checking = check === '' ? [] : [SYSTEM_SHELL, '-c', `${check}exec "$@"`, 'sh'];
    const words = [...fence.words, ...fence.seals, '--', ...checking, order.program, ...order.words];
    const start = closingOthers({ program: bwrap, words }, FILTER_DESCRIPTOR, bashFor(this.#options));
    const descriptors = filter === null ? [] : [openSync(filter, 'r')];
    return {
      ...start,
      folder: this.#options.workspace,
      descriptors,
      environment,
      finish,
      isGuarded: false,
      started: () => {
        for (const descriptor of descriptors) closeSync(descriptor);
      },
    };
  }

  /** Null if dd is missing, which the launcher needs. */
  async #launch(): Promise<Launcher | null> {
    const { createLauncher } = await import('./launcher.js');
    if (this.#isClosed || this.#launcher !== null) return this.#launcher;
    const copier = findFor(this.#options, 'dd');
    if (copier === null) return null;
    this.#launcher ??= createLauncher({
      folder: commandsFolder(this.#options.sessionFolder),
      copier,
      outlives: this.#options.outlives ?? false,
      closingOthers: (program, words, last) =>
        closingOthers({ program, words }, last, bashFor(this.#options)),
    });
    return this.#launcher;
  }

  async #plan(order: CommandSpec): Promise<Plan<CommandFence>> {
    const probed = await this.#ask();
    if (probed.kind === 'missing') throw new SandboxRefusal(`${probed.reason} ${probed.repair}`);
    this.#refuseIfClosed();
    const { workspace, environment, hidden = [], passEnvironment = [] } = this.#options;
    this.#view ??= viewSession({ ...this.#options, hidden });
    const view = await this.#view;
    this.#refuseIfClosed();
    const bwrap = findFor(this.#options, 'bwrap');
    if (bwrap === null) throw new SandboxRefusal('bubblewrap (bwrap) is gone since the session began');
    const network = order.level.endsWith('+net');
    const isFresh = order.fresh === true;
    if (network && !isFresh && !this.#isOnline) unlinkDownloads(view.folders.home, view.home.links);
    this.#isOnline ||= network && !isFresh;
    const folders = isFresh ? this.#freshFolders(view) : view.folders;
    const sockets = hostSockets();
    const { repository = 'approved', purpose = NO_PURPOSE } = order;
    const access = { isWritable: order.level.startsWith('workspace'), repository, purpose };
    const places = this.#workspace.mountsFor(access, view, sockets.paths);
    const expected = mountedIdentities(places.exchangeable.filter((place) => statusOf(place) !== null));
    if (expected === null) {
      places.end();
      throw new SandboxRefusal(EXCHANGED);
    }
    const filter = filterFor(view, network && sockets.abstract);
    const { host } = view;
    const { masked, mounts, usualMounts } = places;
    const isolation = isolationArguments(probed.features, { network, filtered: filter !== null });
    const fenceWith = (inside: readonly Mount[], home: SessionFolders): CommandFence => {
      const arguments_ = mountArguments({ mounts: inside, masked, host, folders: home, network, workspace });
      return { bwrap, words: [...isolation, ...arguments_.mounts], seals: arguments_.seals, filter };
    };
    const isUsual = !access.isWritable || repository === 'read' || repository === 'approved';
    const fence = fenceWith(mounts, folders);
    const inner = { PATH: view.home.searchPath, HOME: INNER_HOME, TMPDIR: '/tmp', PWD: workspace };
    this.#begin();
    return {
      fence: { ...fence, check: checkOfMounts(expected) },
      next: isUsual && !isFresh ? fence : fenceWith(usualMounts, view.folders),
      environment: withVariables(
        { ...fencedEnvironment(environment, passEnvironment), ...inner, ...gitVariables(access) },
        order.environment,
      ),
      finish: async () => {
        const lines = [...places.end()];
        this.#ended();
        if (isFresh) lines.push(...this.#carryOver(folders, view));
        return [...places.refusals, ...lines].map((line) => `[the sandbox: ${line}]`);
      },
    };
  }

  #freshFolders(view: SessionView): SessionFolders {
    this.#freshCount += 1;
    const { home, folders, gitSettings } = view;
    return makeFreshFolders(this.#options.sessionFolder, this.#freshCount, home, folders, gitSettings);
  }

  #carryOver(fresh: SessionFolders, { folders, home }: SessionView): readonly string[] {
    const failures = carryOver(fresh, folders, home);
    if (failures === 0) return [];
    const entries = failures === 1 ? '1 file or folder' : `${failures} files or folders`;
    return [`${entries} that the command left in HOME or /tmp could not be kept for later commands`];
  }

  #refuseIfClosed(): void {
    if (this.#isClosed) throw new SandboxRefusal('the session has ended');
  }

  #begin(): void {
    this.#writers += 1;
    this.#sweepRegularly();
  }

  #sweepRegularly(): void {
    this.#sweeps ??= setInterval(() => {
      this.#workspace.sweep();
      this.#stopSweeps();
    }, SWEEP_MS).unref();
  }

  #ended(): void {
    this.#writers -= 1;
    this.#stopSweeps();
  }

  #stopSweeps(): void {
    if (this.#writers > 0 || this.#protected.isInterrupted() || this.#sweeps === null) return;
    clearInterval(this.#sweeps);
    this.#sweeps = null;
  }
}

export const createCommandSandbox = (options: CommandSandboxOptions): CommandSandbox => new Sandbox(options);

/** The parts of the machine that the commands of one session see, inspected with the first command. */

type SessionPlace = FencedPlace & {
  readonly sessionFolder: string;
  readonly viewHost?: (() => HostView) | undefined;
};

type SessionView = {
  readonly host: HostView;
  readonly home: HomeView;
  readonly folders: SessionFolders;
  /** The user's git settings that commands get, as text. */
  readonly gitSettings: string;
  /** Paths with secrets, which are masked if they would be visible. */
  readonly secrets: readonly string[];
  /** Files with the system-call filter; null where this architecture has none. */
  readonly filters: { readonly local: string; readonly withoutLocal: string } | null;
};

const writeFilters = (folder: string): SessionView['filters'] => {
  const write = (name: string, local: boolean): string | null => {
    const bytes = commandFilter(process.arch, { local });
    if (bytes === null) return null;
    const file = path.join(folder, `${name}.filter`);
    writeFileSync(file, bytes);
    return file;
  };
  const local = write('local', true);
  const withoutLocal = write('without-local', false);
  return local === null || withoutLocal === null ? null : { local, withoutLocal };
};

/** Inspects the machine and makes the session's folders. */
const viewSession = async (place: SessionPlace): Promise<SessionView> => {
  const { workspace, environment, sessionFolder, hidden, viewHost = viewHostNow } = place;
  const secrets = secretPlaces(place);
  const host = viewHost();
  const home = viewHome({ environment, home: homeOf(environment.HOME ?? homedir()), workspace, hidden });
  const git = findProgram('git', { environment, workspace });
  const settings = await keptGitSettings(git, workspace, environment);
  removeStale(sessionFolder, () => git);
  const folders = makeFolders(sessionFolder, home, settings);
  return { host, home, folders, gitSettings: settings, secrets, filters: writeFilters(sessionFolder) };
};

/** Mounts of the workspace and its repository for one command. */

type WorkspaceMounts = {
  readonly mounts: readonly Mount[];
  /** The same with read-only git folders, as most commands get them. */
  readonly usualMounts: readonly Mount[];
  readonly masked: readonly string[];
  /** Reasons why git finds no repository inside the sandbox although there is one. */
  readonly refusals: readonly string[];
  /** Paths of `mounts` whose identity must be compared inside, since other commands could exchange them. */
  readonly exchangeable: readonly string[];
  /** Call it after the command. Returns lines about files that were set aside. */
  end(): readonly string[];
};

/** What a command may change. */
type WorkspaceAccess = {
  readonly isWritable: boolean;
  readonly repository: RepositoryAccess;
  readonly purpose: HistoryPurpose;
};

type WorkspaceGuard = {
  mountsFor(access: WorkspaceAccess, view: SessionView, sockets: readonly string[]): WorkspaceMounts;
  sweep(): void;
  /** Accepts all changes: an unfenced command that the user allowed has ended. */
  accept(): void;
  /** As in ProtectedFiles. */
  settle(): readonly string[];
  /** The session ends, after all commands. */
  close(): void;
};

type Repository = {
  /** Real path of the git folder if it is not the workspace's own `.git`. */
  readonly elsewhere: string | null;
  readonly mounts: (isWritable: boolean) => readonly Mount[];
  readonly refusals: readonly string[];
};

const NO_REPOSITORY: Repository = { elsewhere: null, mounts: () => [], refusals: [] };

/** `secrets`: a repository that contains one of these paths is not shown, such as a whole home under git. */
const repositoryOf = (workspace: string, secrets: readonly string[]): Repository => {
  const found = findRepository(workspace);
  if (found.kind === 'none') return NO_REPOSITORY;
  if (found.kind === 'refused') {
    return { ...NO_REPOSITORY, refusals: [`git finds no repository here, since ${found.why}`] };
  }
  const { top, folder } = found.repository;
  if (top === workspace && isWithin(folder, workspace)) {
    return { ...NO_REPOSITORY, elsewhere: folder === path.join(top, '.git') ? null : folder };
  }
  if (secrets.some((secret) => isWithin(secret, top))) {
    const why = `${top}, where it lies, holds secrets`;
    return { ...NO_REPOSITORY, refusals: [`git finds no repository here, since ${why}`] };
  }
  const mounts = (isWritable: boolean): readonly Mount[] => [
    ...(top === workspace ? [] : [readable(top)]),
    isWritable ? writable(folder) : readable(folder),
  ];
  return { elsewhere: folder, mounts, refusals: [] };
};

/** Number of git folders that a command may change; further ones are read-only for it. */
const CHANGED_MAX = 6;
/** Files of packs that are mounted one by one, so that a command can add others. Each mount costs 0.2 ms. */
const PACK_FILES_MAX = 120;

const isFolder = (place: string): boolean => statusOf(place)?.isDirectory() === true;
const writableIfThere = (place: string): Mount => ({ path: place, words: ['--bind-try', place, place] });

/**
 * Git folders with a history that the command did not make: those of repositories, and bare ones, which are recognized by
 * their configuration. The folder of a linked worktree lies in that of its repository.
 */
const gitFoldersIn = (
  { found }: Scan,
  own: readonly string[],
  workspace: string,
  elsewhere: string | null,
): readonly string[] => {
  const all = [...found.values()];
  const inside = all.filter((one) => one.kind === 'repository' && isFolder(one.path)).map((one) => one.path);
  const known = [...(elsewhere === null ? [] : [elsewhere]), ...inside];
  const configured = all
    .filter((one) => one.inGit && path.basename(one.path) === 'config' && one.kind === 'file')
    .map((one) => path.dirname(one.path));
  const bare = configured.filter((folder) => !known.some((one) => isWithin(folder, one)));
  const modules = configured.filter((folder) =>
    known.some((one) => isWithin(folder, path.join(one, 'modules'))),
  );
  const others = bare.filter((folder) => folder !== workspace && !own.some((top) => isWithin(folder, top)));
  return [
    ...new Set([
      ...known.filter((folder) => !own.some((top) => isWithin(folder, top))),
      ...others,
      ...modules,
    ]),
  ];
};

/** Folders above a git folder. As mounts they can't be renamed, so the git folder stays where it is. */
const foldersAbove = (gitFolder: string, workspace: string): readonly string[] => {
  if (!isWithin(gitFolder, workspace)) return [];
  const parts = path.relative(workspace, path.dirname(gitFolder)).split(path.sep);
  return parts[0] === '' ? [] : parts.map((_, index) => path.join(workspace, ...parts.slice(0, index + 1)));
};

const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return []; // it is not there
  }
};

/** A folder that is not there could be made by a command, as a link. */
const makeObjectFolders = (gitFolder: string): void => {
  if (!isFolder(path.join(gitFolder, 'objects'))) return;
  for (const name of ['pack', 'info']) {
    try {
      mkdirSync(path.join(gitFolder, 'objects', name));
    } catch {
      // It is there, or the folder is closed to us, so to commands as well.
    }
  }
};

/** Mounts of a git folder that a command may change: packs stay as they are, and its parts can't be exchanged. */
const changedGitMounts = (gitFolder: string, addsPacks: boolean): readonly Mount[] => {
  const at = (name: string): string => path.join(gitFolder, name);
  makeObjectFolders(gitFolder);
  const packs = namesIn(at('objects/pack')).filter((name) => /^pack-/.test(name));
  const parts = ['objects', 'refs', 'logs'].map(at).filter(isFolder);
  const mounts = [writable(gitFolder), ...parts.map(writableIfThere)];
  if (!addsPacks || packs.length > PACK_FILES_MAX)
    return [...mounts, readableIfThere(at('objects/pack')), readableIfThere(at('objects/info'))];
  return [
    ...mounts,
    writableIfThere(at('objects/pack')),
    ...packs.map((name) => readableIfThere(at(`objects/pack/${name}`))),
  ];
};

type GitMounts = {
  readonly mounts: readonly Mount[];
  /** Git folders that the command may change and whose history is kept. */
  readonly kept: readonly string[];
};

/** The mounts of the workspace, with git folders as the command may change them. */
const withGitFolders = (
  mounts: readonly Mount[],
  gitFolders: readonly string[],
  access: RepositoryAccess,
  workspace: string,
): GitMounts => {
  if (access === 'approved') return { mounts, kept: [] };
  const isModule = (one: string): boolean =>
    gitFolders.some((outer) => outer !== one && isWithin(one, outer));
  const changed = access === 'read' ? [] : gitFolders.slice(0, CHANGED_MAX);
  const kept = changed.filter((one) => isFolder(path.join(one, 'objects')));
  const closed = gitFolders.filter((one) => !kept.includes(one) && !(access === 'read' && isModule(one)));
  const others = mounts.filter(({ path: place }) => !closed.some((one) => isWithin(place, one)));
  return {
    mounts: [
      ...kept.flatMap((one) => foldersAbove(one, workspace)).map(writableIfThere),
      ...kept.flatMap((one) => changedGitMounts(one, access === 'writePacks')),
      ...others,
      ...closed.map(readableIfThere),
    ],
    kept,
  };
};

type PlannedMounts = GitMounts & {
  readonly bound: ReadonlySet<string>;
  readonly exchangeable: readonly string[];
  /** As usualMounts in WorkspaceMounts. */
  readonly usual: readonly Mount[];
};

/** Mounts of a workspace that the command may only read. */
const readOnlyMounts = (workspace: string, repository: Repository): PlannedMounts => {
  const mounts = [...repository.mounts(false), readable(workspace)];
  return { bound: new Set<string>(), mounts, usual: mounts, kept: [], exchangeable: [] };
};

type WritableWorkspace = {
  readonly workspace: string;
  readonly repository: Repository;
  readonly scan: Scan;
  /** As in ProtectedFiles. */
  readonly own: readonly string[];
};

const writableMounts = (
  { workspace, repository, scan, own }: WritableWorkspace,
  access: RepositoryAccess,
): PlannedMounts => {
  const { mounts, bound, exchangeable } = protectedMounts(scan.found.values(), { workspace, own });
  const gitFolders = gitFoldersIn(scan, own, workspace, repository.elsewhere);
  const all = [...repository.mounts(true), writable(workspace), ...mounts];
  const usual = withGitFolders(all, gitFolders, 'read', workspace).mounts;
  const isUsual = access === 'read';
  const git = isUsual ? { mounts: usual, kept: [] } : withGitFolders(all, gitFolders, access, workspace);
  return { bound, exchangeable, usual, ...git };
};

const createWorkspaceGuard = (
  workspace: string,
  files: ProtectedFiles,
  history: GitHistory,
): WorkspaceGuard => {
  let repository = NO_REPOSITORY;
  /** Sockets that existed while no command ran, so no command made them. */
  let ownSockets: readonly string[] = [];
  let running = 0;

  return {
    sweep: () => files.sweep(repository.elsewhere),
    settle: () => {
      repository = repositoryOf(workspace, []);
      return files.settle(repository.elsewhere);
    },
    close: () => {
      files.close(repository.elsewhere);
      history.close();
    },
    accept: () => {
      history.accept();
      if (running === 0) files.accept(repository.elsewhere);
      else files.acceptNew(repository.elsewhere);
    },
    mountsFor({ isWritable, repository: access, purpose }, view, sockets) {
      repository = repositoryOf(workspace, view.secrets);
      const roots = [workspace, ...repository.mounts(isWritable).map((mount) => mount.path)];
      const isSeen = (place: string): boolean =>
        roots.some((root) => isWithin(place, root)) || isOnHost(place);
      const scan = files.look(repository.elsewhere);
      if (running === 0) ownSockets = scan.sockets;
      const { mounts, usual, bound, kept, exchangeable } = isWritable
        ? writableMounts({ workspace, repository, scan, own: files.own() }, access)
        : readOnlyMounts(workspace, repository);
      const masked = [
        ...view.host.masked,
        ...view.home.masked,
        ...view.secrets.filter(isSeen),
        ...sockets.filter(isSeen),
        ...ownSockets,
      ];
      const token = { bound };
      history.begin(kept); // first, since it fails where there is no room for copies
      if (isWritable) {
        running += 1;
        files.begin(token);
      }
      return {
        mounts: [...view.home.mounts, ...mounts],
        usualMounts: [...view.home.mounts, ...usual],
        masked: [...new Set(masked)].filter((place) => statusOf(place) !== null),
        refusals: repository.refusals,
        exchangeable,
        end: () => {
          if (!isWritable) return [];
          running -= 1;
          const lines = history.end(kept, purpose);
          if (access === 'approved') history.accept();
          return [...files.end(token, repository.elsewhere), ...lines];
        },
      };
    },
  };
};

/**
 * Records a command that starts without the launcher: an order without a status. If that can't be written, the record of
 * the session is removed, so that the command counts as unknown after a crash and never as one that was not started.
 */
const recordDirectCommand = (sessionFolder: string, number: number, order: CommandOrder): void => {
  const folder = path.join(commandsFolder(sessionFolder), `direct-${number}`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeOrder(folder, order);
  } catch {
    rmSync(sessionFile(sessionFolder), { force: true });
  }
};
