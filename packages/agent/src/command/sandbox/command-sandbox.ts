import { closeSync, openSync } from 'node:fs';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import { statusOf } from '../../platform/files/entry-status.js';
import { findProgram, type ProgramPath } from '../../platform/programs/find-program.js';
import { SYSTEM_SHELL, systemBash } from '../../platform/programs/start-program.js';
import { canBeParked } from '../launcher/command-shell-scripts.js';
import type { Launcher } from '../launcher/launcher-pool.js';
import type { CommandFence, Enclosure, OpenStart } from '../launcher/launcher-process.js';
import { FILTER_DESCRIPTOR, isolationArguments, mountArguments } from './bubblewrap-arguments.js';
import { closingOthers } from './close-inherited-descriptors.js';
import { fencedEnvironment, openEnvironment, withVariables } from './command-environment.js';
import type {
  CommandSandbox,
  CommandSandboxOptions,
  CommandSpec,
  PreparedCommand,
  WaitingCommand,
} from './command-sandbox-types.js';
import { hostSockets } from './host/host-sockets.js';
import { createGitHistory, NO_PURPOSE } from './keep-git-history.js';
import type { Mount } from './mounts.js';
import { guardRecordIn } from './protected/interrupted-guard.js';
import { createProtectedFiles, type ProtectedFiles } from './protected/keep-protected-files.js';
import { checkOfMounts, EXCHANGED, mountedIdentities } from './protected/mounted-identity.js';
import type { Probed } from './sandbox-probe.js';
import { SandboxRefusal } from './sandbox-refusal.js';
import { takeInterruptedGuards, takeUnreadNotes } from './session/find-interrupted-guards.js';
import { probeWorkspace } from './session/probe-workspace.js';
import { recordDirectCommand } from './session/record-direct-command.js';
import {
  carryOver,
  commandsFolder,
  INNER_HOME,
  makeFreshFolders,
  removeFolders,
  removePrivateFolders,
  type SessionFolders,
  unlinkDownloads,
} from './session/session-folders.js';
import { type SessionView, viewSession } from './session/visible-machine.js';
import { openStart } from './unsandboxed-command.js';
import { createWorkspaceGuard, type WorkspaceAccess, type WorkspaceGuard } from './workspace-mounts.js';

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

  async takeWaiting(order: CommandSpec): Promise<WaitingCommand | null> {
    const plan = order.level === 'off' ? this.#planOpen(order) : await this.#plan(order);
    if (plan === null) return null;
    const { program, words, record = null } = order;
    const command = {
      program,
      words,
      environment: plan.environment,
      unwritten: this.#options.passEnvironment ?? [],
    };
    const launcher = canBeParked(command) ? await this.#launch() : null;
    const taken = (await launcher?.take(plan.fence, plan.next)) ?? null;
    if (taken === null) {
      await plan.finish();
      return null;
    }
    const { process, ended, cancelled } = taken;
    return {
      process,
      ended,
      cancelled,
      finish: plan.finish,
      go: (due, to) => taken.go(command, this.#options.workspace, { due, record }, to),
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
    const { createLauncher } = await import('../launcher/launcher-pool.js');
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
