/**
 * Starts commands in a workspace, fenced (in a sandbox) or not. There is no other way to start one.
 *
 * `prepare` returns what to spawn. The caller spawns it, calls `started`, and calls `finish` when
 * it has ended. The sandbox is never weakened silently: `prepare` fails for a fenced level if
 * bubblewrap does not work.
 *
 * /tmp and the home folder belong to the session: a command finds the files of earlier ones there.
 * One that reaches more than the session's level starts with fresh ones, which earlier commands
 * could not prepare; what it leaves there is moved to those of the session at its end.
 *
 * Words: a fence is bubblewrap around one command. Its level says what the command may change and
 * reach (`CommandLevel` in policy/decide.ts); `off` is no fence. A file that a command created at a
 * protected path is set aside: moved away, so that nothing obeys it. The launcher (launcher.ts) has
 * the next command parked behind its fence before it is asked for; other commands are started
 * directly. `WorkspaceGuard` (workspace-mounts.ts) keeps protected files and git's history.
 *
 * From top to bottom: the types of a request and its answer; what commands see of the machine; and
 * `Sandbox`, which plans a fence, starts it in one of the two ways, and cleans up.
 */

import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { homeFolder, type ProcessEnvironment } from '../platform/environment.js';
import { entryStatus, isWithin } from '../platform/files.js';
import { findProgram, type ProgramPath } from '../platform/find-program.js';
import { hasProc } from '../platform/processes.js';
import {
  closingOthers,
  fencedStart,
  openStart,
  SandboxRefusal,
  SYSTEM_PROGRAMS,
  SYSTEM_SHELL,
  systemBash,
} from '../platform/start-program.js';
import type { CommandLevel } from '../policy/decide.js';
import type { HistoryPurpose, RepositoryAccess } from '../policy/repository-access.js';
import type { FoundPlaces } from '../secrets/user-places.js';
import {
  findInNetwork,
  removeStale,
  takeInterruptedGuards,
  takeUnreadNotes,
} from './earlier-processes.js';
import { fencedEnvironment, openEnvironment, withVariables } from './environment.js';
import { type CommandRecord, type Launched, writeLaunchRequest } from './launched-command.js';
import type { CommandFence, Enclosure, Launcher, OpenStart } from './launcher.js';
import type { OutputReceiver } from './output.js';
import { fenceLayers, mountArguments, type SandboxProbe } from './sandbox/bubblewrap.js';
import { GitHistory, NO_PURPOSE } from './sandbox/git-history.js';
import {
  EXCHANGED,
  findHome,
  type GitFiles,
  type HomeView,
  type HostView,
  hostSockets,
  type Mount,
  mountCheck,
  mountedIdentities,
  NO_SOCKETS,
  readGitFiles,
  type Sockets,
  secretPlaces,
  viewHome,
  viewHost as viewHostNow,
} from './sandbox/host.js';
import { guardRecordIn, ProtectedFiles } from './sandbox/protected-files.js';
import { commandFilter } from './sandbox/seccomp.js';
import {
  carryOver,
  commandsFolder,
  INNER_HOME,
  makeFolders,
  makeFreshFolders,
  removeFolders,
  removePrivateFolders,
  restoreRights,
  type SessionFolders,
  sessionFile,
  unlinkDownloads,
} from './sandbox/session-folders.js';
import { canBeParked, wrapCommand } from './sandbox/shell-text.js';
import { type WorkspaceAccess, WorkspaceGuard } from './sandbox/workspace-mounts.js';
import type { NetworkEntry, SessionNetworkAnswer } from './session-network.js';

export type CommandSandboxOptions = {
  /** Real path of the folder that commands work in. */
  readonly workspace: string;
  /** Pawl's environment, from which the variables of commands are chosen. */
  readonly environment: ProcessEnvironment;
  /**
   * A new folder for this session alone, named PID-…, so that folders of killed sessions can be
   * recognized.
   */
  readonly sessionFolder: string;
  /** Whether commands can be fenced here. Asked with the first of them. Never rejects. */
  readonly probe: () => Promise<SandboxProbe>;
  /**
   * Names of variables that the user passes to commands beside the usual ones. Secrets are allowed.
   */
  readonly passEnvironment?: readonly string[];
  readonly userPlaces: FoundPlaces;
  /** How the machine is inspected. Sandboxes that share a view give the same function. */
  readonly viewHost?: (() => HostView) | undefined;
  /** The session, if it can be resumed. */
  readonly sessionId?: string | undefined;
  /**
   * Running commands go on if this process is killed, and a later process finds them by their
   * records.
   */
  readonly outlives?: boolean;
  /** Tells the user what became of protected files while a command ran. */
  readonly tellUser?: ((text: string) => void) | undefined;
};

export type CommandSpec = {
  /** What it may write to, and whether it has the network. `off`: no fence. */
  readonly level: CommandLevel;
  /**
   * The command reaches more than the session's level: it gets a fresh home and /tmp. Default:
   * false.
   */
  readonly fresh?: boolean;
  readonly program: ProgramPath;
  readonly words: readonly string[];
  /** Variables of this command alone, beside those of the session. */
  readonly environment: ProcessEnvironment;
  /** For a later process, if this one is killed. Absent or null: no later process needs it. */
  readonly record?: CommandRecord | null;
  /** When it must end, in ms since boot: also for a later process. */
  readonly due?: number | null;
  /** How far it may change git folders. Default: `approved`, for programs that the user named. */
  readonly repository?: RepositoryAccess;
  /** What its words do to the history on purpose. Default: nothing. */
  readonly purpose?: HistoryPurpose;
  /** Protected files that it may write: the user allowed that. Default: none. */
  readonly writable?: readonly string[];
  /** It shares localhost with the other commands of the session that do. Default: false. */
  readonly sharesNetwork?: boolean;
  /** The caller observes `isGuarded` of the prepared command. Default: false. */
  readonly canBeGuarded?: boolean;
};

export type PreparedCommand = {
  readonly program: ProgramPath;
  readonly words: readonly string[];
  /** The complete environment: nothing of Pawl's is added. */
  readonly environment: Readonly<Record<string, string>>;
  /** The folder to start it in. */
  readonly folder: string;
  /**
   * Open files that the process inherits as 3, 4, … (`stdio: ['ignore', 'pipe', 'pipe',
   * ...descriptors]`).
   */
  readonly descriptors: readonly number[];
  /** The process needs one more pipe, after `descriptors`: that of its guard (start-program.ts). */
  readonly isGuarded: boolean;
  /** Closes `descriptors`. Call it once the spawn has succeeded or failed. */
  started(): void;
  /**
   * Call it after the command has ended. Returns lines for the model about files set aside. Never
   * rejects.
   */
  finish(): Promise<readonly string[]>;
};

/** A command that is set up and waits for its start. */
export type ParkedCommand = {
  /** Starts it, once. `to` gets stdout and stderr as one. */
  start(to: OutputReceiver): Launched;
  /** Call it after the command has ended. Returns lines for the model about files set aside. */
  finish(): Promise<readonly string[]>;
};

export type CommandSandbox = {
  /** Rejects with a SandboxRefusal if the command can't be fenced. */
  prepare(spec: CommandSpec): Promise<PreparedCommand>;
  /**
   * Like `prepare`, for a command that the launcher has set up in advance. Null: start it directly.
   */
  takeParked(spec: CommandSpec): Promise<ParkedCommand | null>;
  /**
   * The user allowed a tool to write to this protected absolute path: while the running commands
   * run, it is not set aside.
   */
  allow(place: string): void;
  /** Judges the changes of a killed process. Returns lines for the model about files set aside. */
  settle(): readonly string[];
  /**
   * Ends all commands and removes the session's home and /tmp; files that were set aside stay.
   * Never rejects.
   */
  close(keepsResults?: boolean): Promise<void>;
};

/** Interval in ms at which protected paths are checked while a command runs. */
const SWEEP_MS = 1_000;

const findFor = (
  { environment, workspace }: CommandSandboxOptions,
  name: string,
): ProgramPath | null => findProgram(name, { environment, workspace });

const bashFor = (options: CommandSandboxOptions): ProgramPath | null =>
  systemBash() ?? findFor(options, 'bash');

/** What the commands of a session see of the machine, inspected with the first one. */
type SessionView = {
  readonly host: HostView;
  readonly home: HomeView;
  readonly folders: SessionFolders;
  /** The user's files of git that commands get. */
  readonly gitFiles: GitFiles;
  /** Paths with secrets, which are masked if they would be visible. */
  readonly secrets: readonly string[];
  /** Files with the system-call filter; null where this architecture has none. */
  readonly filters: { readonly local: string; readonly withoutLocal: string } | null;
};

/** Those of the places that lie in the workspace. A place that holds all of it does not count. */
const placesIn = ({ obeyed, credentials }: FoundPlaces, workspace: string): readonly string[] => {
  const inside: string[] = [];
  for (const place of new Set([...obeyed, ...credentials]))
    if (place !== workspace && isWithin(place, workspace)) inside.push(place);
  return inside.filter((one) => !inside.some((outer) => outer !== one && isWithin(one, outer)));
};

/** Inspects the machine and makes the session's folders. */
const viewSession = async (options: CommandSandboxOptions): Promise<SessionView> => {
  const { workspace, environment, sessionFolder, userPlaces, viewHost = viewHostNow } = options;
  const secrets = secretPlaces({ environment, userPlaces });
  const host = viewHost();
  const home = viewHome({
    environment,
    home: findHome(homeFolder(environment)),
    workspace,
    hidden: userPlaces.hidden,
  });
  const git = findProgram('git', { environment, workspace });
  const gitFiles = await readGitFiles(git, workspace, environment);
  removeStale(sessionFolder, () => git); // unneeded folders of killed sessions
  const folders = makeFolders(sessionFolder, home, gitFiles);
  return { host, home, folders, gitFiles, secrets, filters: writeFilters(sessionFolder) };
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

/** Where git can't write it does not try to refresh its index. */
const gitVariables = ({ isWritable, repository }: WorkspaceAccess): ProcessEnvironment =>
  isWritable && repository !== 'read' ? {} : { GIT_OPTIONAL_LOCKS: '0' };

/** Where commands are fenced by Seatbelt. */
const onMac = process.platform === 'darwin';

/** The fence, environment and clean-up of one command. */
type Plan<E extends Enclosure> = {
  readonly fence: E;
  /** The fence that the next command probably gets. */
  readonly nextFence: E;
  readonly environment: Readonly<Record<string, string>>;
  finish(): Promise<readonly string[]>;
  /** In place of `finish`, for a command that never starts. */
  abandon(): void;
};

const orAbandon = async <T>(
  plan: Pick<Plan<Enclosure>, 'abandon'>,
  start: () => T | Promise<T>,
): Promise<T> => {
  try {
    return await start();
  } catch (error) {
    plan.abandon();
    throw error;
  }
};

class Sandbox implements CommandSandbox {
  readonly #options: CommandSandboxOptions;
  readonly #protected: ProtectedFiles;
  readonly #workspace: WorkspaceGuard;
  #probed: Promise<SandboxProbe> | null = null;
  #view: Promise<SessionView> | null = null;
  /** A command with network has used the session's home. */
  #isOnline = false;
  /** After closing, no further files are created. */
  #isClosed = false;
  #launcher: Launcher | null = null;
  /** Number of fenced commands that run. */
  #running = 0;
  /** Number of direct starts so far, from which their folders get names. */
  #directCount = 0;
  /** The same of fresh folders. */
  #freshCount = 0;
  /** Checks protected paths while commands run. */
  #sweeps: NodeJS.Timeout | null = null;
  #network: Promise<SessionNetworkAnswer> | null = null;
  /** The fence that a command gets which reaches no more than the session's level. */
  #usualFence: CommandFence | null = null;
  /** Lines for the result of the next command. */
  readonly #notices: string[] = [];

  constructor(options: CommandSandboxOptions) {
    this.#options = options;
    const { workspace, environment, sessionFolder, sessionId = null } = options;
    // Takes over what killed processes were guarding, and the lines that they could not report.
    const search = { processFolder: sessionFolder, workspace, sessionId };
    const found = options.userPlaces;
    const userPlaces = placesIn(found, workspace);
    this.#protected = new ProtectedFiles({
      workspace,
      userPlaces,
      hidden: [...found.hidden, ...found.credentials],
      environment,
      folder: `${sessionFolder}/set-aside`,
      record: guardRecordIn(sessionFolder),
      interrupted: takeInterruptedGuards(search),
      notes: takeUnreadNotes(search),
      tellUser: options.tellUser ?? (() => undefined),
    });
    // Commands of a killed process still run.
    if (this.#protected.isInterrupted()) this.#sweepRegularly();
    const git = (): ProgramPath | null => findFor(options, 'git');
    const history = new GitHistory({ workspace, sessionFolder, git });
    this.#workspace = new WorkspaceGuard(workspace, userPlaces, this.#protected, history);
  }

  allow(place: string): void {
    this.#protected.allowWriting([place]);
  }

  settle(): readonly string[] {
    return this.#workspace.judgeInterrupted().map((line) => `[the sandbox: ${line}]`);
  }

  async prepare(spec: CommandSpec): Promise<PreparedCommand> {
    const prepared = await this.#prepareDirect(spec);
    this.#recordDirect(spec);
    return prepared;
  }

  async #prepareDirect(spec: CommandSpec): Promise<PreparedCommand> {
    if (spec.level !== 'off' && !onMac) return this.#prepareFenced(spec);
    const plan =
      spec.level === 'off'
        ? { ...this.#openPlan(spec), fence: { detach: [] as const } }
        : await this.#planSeatbelt(spec);
    const { environment, finish, fence } = plan;
    const { detach } = fence;
    const program = detach[0] ?? spec.program;
    const words = [...detach, spec.program, ...spec.words].slice(1);
    const { workspace, outlives = false } = this.#options;
    const mayOutlive = outlives && (spec.record ?? null) !== null; // a resumed session looks for it
    const isGuarded = (spec.canBeGuarded ?? false) && !mayOutlive;
    const start = await orAbandon(plan, () =>
      openStart({ program, words }, bashFor(this.#options), isGuarded),
    );
    const started = (): void => undefined;
    return { ...start, folder: workspace, descriptors: [], started, environment, finish };
  }

  /**
   * Level `off`, which the user chose: the command sees the whole machine, but no secrets in its
   * environment.
   */
  #openPlan({
    environment,
    repository,
  }: CommandSpec): Omit<Plan<OpenStart>, 'fence' | 'nextFence'> {
    const { environment: base, passEnvironment = [] } = this.#options;
    const end = this.#workspace.beginUnfenced(repository === 'approved');
    return {
      environment: withVariables(openEnvironment(base, passEnvironment), environment),
      // it could write protected files itself, so only what others did is reported
      finish: async () => end(true).map((line) => `[the sandbox: ${line}]`),
      abandon: () => void this.#notices.push(...end(false)),
    };
  }

  /**
   * Records a command that starts without the launcher: a request without a status. A recovery must
   * not take it for one that was never started. If that can't be written, the record of the session
   * is removed, so that the command counts as unknown after a crash.
   */
  #recordDirect({ record = null, due = null }: CommandSpec): void {
    const { sessionFolder, outlives = false } = this.#options;
    if (record === null || !outlives) return;
    this.#directCount += 1;
    const folder = path.join(commandsFolder(sessionFolder), `direct-${this.#directCount}`);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      writeLaunchRequest(folder, { due, record });
    } catch {
      rmSync(sessionFile(sessionFolder), { force: true });
    }
  }

  async close(keepsResults = false): Promise<void> {
    this.#isClosed = true;
    if (this.#sweeps !== null) clearInterval(this.#sweeps);
    await this.#launcher?.close();
    // the commands that asked for network and view were refused with the reason
    const network = await this.#network?.catch(() => null);
    if (network?.kind === 'works') network.network.close();
    this.#workspace.close();
    if (this.#view === null && this.#launcher === null && this.#directCount === 0) return;
    await this.#view?.catch(() => null);
    (keepsResults ? removePrivateFolders : removeFolders)(this.#options.sessionFolder);
  }

  async takeParked(spec: CommandSpec): Promise<ParkedCommand | null> {
    const isOpen = spec.level === 'off';
    const plan = isOpen
      ? this.#planOpen(spec)
      : await (onMac ? this.#planSeatbelt(spec) : this.#planFenced(spec));
    if (plan === null) return null;
    const { program, words, due = null, record = null } = spec;
    const { workspace, passEnvironment = [] } = this.#options;
    // `unwritten`: names of variables whose values must not be written to disk.
    const command = { program, words, environment: plan.environment, unwritten: passEnvironment };
    const taken = await orAbandon(plan, async () => {
      const launcher = canBeParked(command) ? await this.#getLauncher() : null;
      return (await launcher?.take(plan.fence, plan.nextFence)) ?? null;
    });
    if (taken === null) {
      plan.abandon(); // `prepare` plans it anew
      return null;
    }
    const sharesNetwork = 'entry' in plan.fence && plan.fence.entry.length > 0;
    const request = { due, record: record === null ? null : { ...record, sharesNetwork } };
    return {
      start(to) {
        taken.start(command, workspace, request, to);
        return taken;
      },
      finish: plan.finish,
    };
  }

  /** Null: start the command directly. */
  #planOpen(spec: CommandSpec): Plan<OpenStart> | null {
    const { workspace, outlives = false } = this.#options;
    const detach = outlives && entryStatus(workspace)?.isDirectory() ? this.#detach() : null;
    if (detach === null) return null;
    this.#refuseIfClosed();
    // A shell sets `_` itself, so the parked one can't export it.
    const { environment, ...plan } = this.#openPlan(spec);
    const { _: ignored, ...variables } = environment;
    return { ...plan, fence: { detach }, nextFence: { detach }, environment: variables };
  }

  /** See OpenStart. Null if the launcher can't start a command as the leader of a group. */
  #detach(): OpenStart['detach'] | null {
    if (!hasProc) return systemBash() === null ? null : [];
    const setsid = findFor(this.#options, 'setsid');
    return setsid === null ? null : [setsid];
  }

  /** Plans a fence for a direct start. */
  async #prepareFenced(spec: CommandSpec): Promise<PreparedCommand> {
    const plan = await this.#planFenced(spec);
    const { fence, environment, finish } = plan;
    const { program: bwrap, filter, entry, check = '' } = fence;
    const checking = check === '' ? [] : [SYSTEM_SHELL, '-c', `${check}exec "$@"`, 'sh'];
    const words = wrapCommand(fence, [...checking, spec.program, ...spec.words]);
    return orAbandon(plan, () => {
      const start = fencedStart(
        { bwrap, words, entry, descriptors: filter === null ? 0 : 1 },
        bashFor(this.#options),
        spec.canBeGuarded ?? false,
      );
      const descriptors = filter === null ? [] : [openSync(filter, 'r')];
      const started = (): void => {
        for (const descriptor of descriptors) closeSync(descriptor);
      };
      const folder = this.#options.workspace;
      return { ...start, folder, descriptors, environment, finish, started };
    });
  }

  /** Loads the launcher with the first command. Null if dd is missing, which it needs. */
  async #getLauncher(): Promise<Launcher | null> {
    if (this.#launcher !== null) return this.#launcher;
    const { createLauncher } = await import('./launcher.js');
    if (this.#isClosed) return this.#launcher;
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

  /**
   * Plans the fence of a command, and that behind which the next one is parked. WorkspaceGuard
   * copies what it keeps.
   */
  async #planFenced(spec: CommandSpec): Promise<Plan<CommandFence>> {
    const { workspace } = this.#options;
    const { program: bwrap, features, view } = await this.#inspectMachine();
    const network = spec.level.endsWith('+net');
    const isReading = spec.level === 'reads'; // it needs no server, and gets no local sockets
    const isShared = spec.sharesNetwork === true && !network && !isReading;
    const entry: NetworkEntry = isShared ? await this.#enterNetwork(view) : [];
    this.#refuseIfClosed();

    const sockets = isReading && view.filters !== null ? NO_SOCKETS : hostSockets();
    const planned = this.#planPlaces(spec, view, sockets);
    const { places, folders, isFresh, finish, abandon } = planned;
    // Device and inode of the mounts that another command could exchange while this one is set up.
    // Null: one was exchanged already.
    const expected = mountedIdentities(places.exchangeable);
    if (expected === null) {
      abandon();
      throw new SandboxRefusal(EXCHANGED);
    }

    // No local sockets where those of the machine could be reached, or folders be handed over that
    // would lose their protection.
    const refusesLocal = isReading || (network && sockets.abstract) || !features.locksMounts;
    const filter = view.filters?.[refusesLocal ? 'withoutLocal' : 'local'] ?? null;
    const { outer, inner } = fenceLayers(bwrap, features, {
      network: network || entry.length > 0, // in the session's network it makes none of its own
      filtered: filter !== null,
    });
    const fenceWith = (mounts: readonly Mount[], home: SessionFolders): CommandFence => {
      const inside = mountArguments({ ...planned.contents, mounts, folders: home });
      const words = [...outer, ...inside.mounts];
      const seals = [...inside.seals, ...inner];
      return { program: bwrap, words, seals, filter, entry, isReading };
    };

    // the next command is parked behind the fence that it probably gets
    const fence = fenceWith(places.mounts, folders);
    const nextFence =
      planned.isUsual && !isFresh ? fence : fenceWith(places.usualMounts, view.folders);
    if (!isFresh && !isReading) this.#usualFence = nextFence;
    const own = { PATH: view.home.searchPath, HOME: INNER_HOME, TMPDIR: '/tmp', PWD: workspace };
    return {
      // The check compares them again, inside the fence.
      fence: { ...fence, check: mountCheck(expected) },
      nextFence: isFresh ? (this.#usualFence ?? nextFence) : nextFence,
      environment: planned.environment(own),
      finish,
      abandon,
    };
  }

  /**
   * The same on macOS: sandbox-exec starts the command, as the leader of its group. Its rules name
   * paths and not what lies there, so nothing has to be compared, and the next command is parked
   * behind the same rules.
   */
  async #planSeatbelt(spec: CommandSpec): Promise<Plan<OpenStart>> {
    const { environment, workspace } = this.#options;
    const { program, view } = await this.#inspectMachine();
    const { seatbeltWords } = await import('./sandbox/seatbelt.js');
    this.#refuseIfClosed();
    const { places, folders, contents, ...planned } = this.#planPlaces(spec, view, NO_SOCKETS);
    const home = findHome(homeFolder(environment));
    const hidden = [...(home === null ? [] : [home]), tmpdir(), ...view.secrets];
    const fenceWith = (mounts: readonly Mount[], inner: SessionFolders): OpenStart => ({
      detach: [program, ...seatbeltWords({ ...contents, mounts, folders: inner }, hidden)],
    });
    const fence = fenceWith(places.mounts, folders);
    const isShared = planned.isUsual && !planned.isFresh;
    const nextFence = isShared ? fence : fenceWith(places.usualMounts, view.folders);
    const { searchPath: PATH } = view.home;
    const variables = { PATH, HOME: folders.home, TMPDIR: folders.temporary, PWD: workspace };
    const { finish, abandon } = planned;
    return { fence, nextFence, environment: planned.environment(variables), finish, abandon };
  }

  /**
   * What a command gets of the workspace. From here on it counts as running, until `finish` or
   * `abandon`. `isUsual`: the next one probably gets the same mounts.
   */
  #planPlaces(spec: CommandSpec, view: SessionView, sockets: Sockets) {
    const { workspace, environment, passEnvironment = [] } = this.#options;
    const network = spec.level.endsWith('+net');
    const isReading = spec.level === 'reads';
    const { repository = 'approved', purpose = NO_PURPOSE, fresh: isFresh = false } = spec;
    const folders = this.#foldersFor(view, network, isFresh);
    const isWritable = spec.level.startsWith('workspace');
    const access = { isWritable, repository, purpose, writable: spec.writable ?? [] };
    const places = this.#workspace.mountsFor(access, view, sockets);
    this.#running += 1;
    this.#sweepRegularly();
    const end = (): readonly string[] => {
      const lines = places.end();
      this.#running -= 1;
      this.#stopSweeps();
      return isFresh ? [...lines, ...this.#carryOver(folders, view)] : lines;
    };
    return {
      ...{ places, folders, isFresh },
      isUsual: !isWritable || repository === 'read' || repository === 'approved',
      contents: {
        ...{ masked: places.masked, host: view.host, network, workspace },
        allowed: access.writable,
        isHomeWritable: !isReading,
      },
      environment: (own: ProcessEnvironment) =>
        withVariables(
          {
            ...fencedEnvironment(environment, passEnvironment, network),
            ...own,
            ...gitVariables(access),
          },
          spec.environment,
        ),
      finish: async (): Promise<readonly string[]> => {
        const lines = [...places.refusals, ...end(), ...this.#notices.splice(0)];
        return lines.map((line) => `[the sandbox: ${line}]`);
      },
      abandon: (): void => {
        this.#notices.push(...end());
      },
    };
  }

  /**
   * What all fences of the session have in common. Throws a SandboxRefusal if there can be no
   * fence.
   */
  async #inspectMachine() {
    this.#probed ??= this.#options.probe();
    const probed = await this.#probed;
    if (probed.kind === 'missing') throw new SandboxRefusal(`${probed.reason} ${probed.repair}`);
    this.#refuseIfClosed();
    this.#view ??= viewSession(this.#options).catch((error: unknown) => {
      this.#view = null; // the next command tries it again
      removePrivateFolders(this.#options.sessionFolder);
      throw error;
    });
    const view = await this.#view;
    this.#refuseIfClosed();
    const program = onMac ? SYSTEM_PROGRAMS.sandboxExec : findFor(this.#options, 'bwrap');
    if (program === null)
      throw new SandboxRefusal('bubblewrap (bwrap) is gone since the session began');
    return { program, features: probed.features, view };
  }

  /** Empty where the session can have no network of its own: the next result says so. */
  async #enterNetwork({ host }: SessionView): Promise<NetworkEntry> {
    this.#network ??= this.#openNetwork(host).catch((error: unknown) => {
      this.#network = null; // likewise
      throw error;
    });
    const answer = await this.#network;
    return answer.kind === 'works' ? answer.network.entry : [];
  }

  async #openNetwork({ mounts }: HostView): Promise<SessionNetworkAnswer> {
    const { sessionFolder, sessionId } = this.#options;
    const { openSessionNetwork } = await import('./session-network.js');
    const bwrap = findFor(this.#options, 'bwrap');
    const nsenter = findFor(this.#options, 'nsenter');
    const answer: SessionNetworkAnswer =
      bwrap === null || nsenter === null
        ? { kind: 'missing', why: 'nsenter (of util-linux) is not installed' }
        : await openSessionNetwork(
            { bwrap, nsenter },
            mounts,
            sessionId === undefined ? [] : findInNetwork(sessionFolder, sessionId),
          );
    if (answer.kind === 'missing')
      this.#notices.push(
        `each command has a localhost of its own here, so a server and what asks it must run in ` +
          `one command: ${answer.why}`,
      );
    return answer;
  }

  /**
   * The home and /tmp of a command. The first command with network ends the session's use of the
   * user's downloads (caches of package managers).
   */
  #foldersFor(view: SessionView, network: boolean, isFresh: boolean): SessionFolders {
    const { home, folders, gitFiles } = view;
    if (isFresh) {
      this.#freshCount += 1;
      return makeFreshFolders(
        this.#options.sessionFolder,
        this.#freshCount,
        home,
        folders,
        gitFiles,
      );
    }
    restoreRights(folders);
    // They get empty folders in the session's home in their place.
    if (network && !this.#isOnline) unlinkDownloads(folders.home, home.links);
    this.#isOnline ||= network;
    return folders;
  }

  /** Moves the files of a command from its fresh home and /tmp to those of the session. */
  #carryOver(fresh: SessionFolders, { folders, home, gitFiles }: SessionView): readonly string[] {
    const failures = carryOver(fresh, folders, home, gitFiles);
    if (failures === 0) return [];
    const entries = failures === 1 ? '1 file or folder' : `${failures} files or folders`;
    return [
      `${entries} that the command left in HOME or /tmp could not be kept for later commands`,
    ];
  }

  #refuseIfClosed(): void {
    if (this.#isClosed) throw new SandboxRefusal('the session has ended');
  }

  #sweepRegularly(): void {
    this.#sweeps ??= setInterval(() => {
      this.#protected.sweep();
      this.#stopSweeps();
    }, SWEEP_MS).unref();
  }

  #stopSweeps(): void {
    if (this.#running > 0 || this.#protected.isInterrupted() || this.#sweeps === null) return;
    clearInterval(this.#sweeps);
    this.#sweeps = null;
  }
}

export const createCommandSandbox = (options: CommandSandboxOptions): CommandSandbox =>
  new Sandbox(options);
