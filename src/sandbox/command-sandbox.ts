import { closeSync, openSync } from 'node:fs';
import type { CommandLevel } from '../agent/policy/call-sandbox-level.js';
import type { ProcessEnvironment } from '../base/process-environment.js';
import { canBeParked } from '../launcher/fenced-shell.js';
import type { Launcher, TakenCommand } from '../launcher/launcher.js';
import type { CommandFence } from '../launcher/launcher-process.js';
import { findProgram, type ProgramPath, searchPrograms } from '../programs/find-program.js';
import { systemBash } from '../programs/start-program.js';
import {
  FILTER_DESCRIPTOR,
  isolationArguments,
  mountArguments,
  probeArguments,
} from './bubblewrap-arguments.js';
import { fencedEnvironment, openEnvironment, withVariables } from './command-environment.js';
import { viewHost } from './host/host-folders.js';
import { hostSockets } from './host/host-sockets.js';
import { closingOthers } from './inherited-descriptors.js';
import { createProtectedFiles, type ProtectedFiles } from './protected/keep-protected-files.js';
import { notInstalled, notLinux, type Probed, probeBubblewrap, type SandboxProbe } from './sandbox-probe.js';
import { SandboxRefusal } from './sandbox-refusal.js';
import { commandsFolder, INNER_HOME, removeFolders, unlinkDownloads } from './session/session-folders.js';
import { type SessionView, unfitWorkspace, viewSession } from './session/visible-machine.js';
import { commandFilter } from './system-calls/command-system-calls.js';
import { createWorkspaceGuard, type WorkspaceGuard } from './workspace-mounts.js';

export type { SandboxProbe } from './sandbox-probe.js';
export { SandboxRefusal } from './sandbox-refusal.js';

/**
 * Starts commands, fenced or not. There is no other way to start one.
 *
 * 1. `prepare` returns what to spawn. The caller spawns it, calls `started`, and calls `finish` when it has ended.
 * 2. The sandbox is never weakened silently: `prepare` fails for a fenced level if bubblewrap does not work.
 * 3. /tmp and the home folder belong to the session: a command finds what an earlier one left there.
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
};

export type CommandSpec = {
  readonly level: CommandLevel;
  /** Absolute path. */
  readonly program: string;
  readonly words: readonly string[];
  /** Variables of this command alone, beside those of the session. */
  readonly environment: ProcessEnvironment;
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
  /** Closes `descriptors`. Call it once the spawn has succeeded or failed. */
  started(): void;
  /** Call it after the command has ended. Returns lines for the model about files set aside. Never rejects. */
  finish(): Promise<readonly string[]>;
};

/** A fenced command that is set up and waits for its start. */
export type WaitingCommand = Pick<TakenCommand, 'process' | 'ended' | 'cancelled'> & {
  /** Starts it, once. `due`: when it will be killed, in ms since 1970. `output` gets stdout and stderr as one. */
  go(due: number | null, output: (bytes: Buffer) => void): void;
  /** As in PreparedCommand. */
  finish(): Promise<readonly string[]>;
};

export type CommandSandbox = {
  /** Whether fenced commands work on this machine. The answer is cached. Never rejects. */
  probe(): Promise<SandboxProbe>;
  /** Rejects with a SandboxRefusal if the command can't be fenced. */
  prepare(order: CommandSpec): Promise<PreparedCommand>;
  /** Like `prepare`, with a fence that src/launcher/ set up in advance. Null: start it directly. Fenced levels only. */
  takeWaiting(order: CommandSpec): Promise<WaitingCommand | null>;
  /** The user allowed writing to this protected absolute path, so running commands don't cause it to be set aside. */
  allow(place: string): void;
  /** Removes the session's home and /tmp; files that were set aside stay. Never rejects. */
  close(): Promise<void>;
};

/** Interval in ms at which protected paths are checked while a command runs. */
const SWEEP_MS = 1_000;
const ELSEWHERE = 'Start Pawl in a folder of the project, or use --sandbox off.';

const findFor = ({ environment, workspace }: CommandSandboxOptions, name: string): ProgramPath | null =>
  findProgram(name, { environment, workspace });

const bashFor = (options: CommandSandboxOptions): ProgramPath | null =>
  systemBash() ?? findFor(options, 'bash');

const filterFor = ({ filters }: SessionView, isReachable: boolean): string | null =>
  filters === null ? null : isReachable ? filters.withoutLocal : filters.local;

/** The fence, environment and clean-up of one fenced command. */
type FencePlan = {
  readonly fence: CommandFence;
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
  #sweeps: NodeJS.Timeout | null = null;

  constructor(options: CommandSandboxOptions) {
    this.#options = options;
    this.#protected = createProtectedFiles(options.workspace, `${options.sessionFolder}/set-aside`);
    this.#workspace = createWorkspaceGuard(options.workspace, this.#protected);
  }

  async probe(): Promise<SandboxProbe> {
    const probed = await this.#ask();
    return probed.kind === 'works' ? { kind: 'works' } : probed;
  }

  allow(place: string): void {
    this.#protected.allow(place);
  }

  async prepare(order: CommandSpec): Promise<PreparedCommand> {
    return order.level === 'off' ? this.#open(order) : this.#fence(order);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#sweeps !== null) clearInterval(this.#sweeps);
    await this.#launcher?.close();
    if (this.#view === null) return;
    await this.#view.catch(() => null); // the command that wanted it was refused, and told why
    removeFolders(this.#options.sessionFolder);
  }

  #ask(): Promise<Probed> {
    this.#probed ??= this.#askNow();
    return this.#probed;
  }

  async #askNow(): Promise<Probed> {
    const { environment, workspace, cacheFolder, sessionFolder, hidden = [] } = this.#options;
    if (process.platform !== 'linux') return notLinux();
    const unfit = unfitWorkspace({ workspace, environment, sessionFolder, hidden });
    if (unfit !== null) return { kind: 'missing', reason: unfit, repair: ELSEWHERE };
    const bwrap = findFor(this.#options, 'bwrap');
    if (bwrap === null) return notInstalled(searchPrograms({ environment, workspace }).whyNot('bwrap'));
    const filter = commandFilter(process.arch, { local: true });
    const isFiltered = filter !== null;
    return probeBubblewrap(
      { bwrap, filter, words: (features) => probeArguments(features, viewHost(), isFiltered) },
      cacheFolder,
    );
  }

  /** Level `off`, the user's own decision: the command sees the whole machine, but no secrets in its environment. */
  #open({ program, words, environment }: CommandSpec): PreparedCommand {
    const { workspace, passEnvironment = [] } = this.#options;
    const base = openEnvironment(this.#options.environment, passEnvironment);
    const started = closingOthers({ program, words }, 2, bashFor(this.#options));
    return {
      ...{ ...started, folder: workspace, descriptors: [], started: () => undefined },
      environment: withVariables(base, environment),
      finish: async () => {
        this.#workspace.accept();
        return [];
      },
    };
  }

  async takeWaiting(order: CommandSpec): Promise<WaitingCommand | null> {
    const plan = await this.#plan(order);
    const { program, words } = order;
    const command = {
      program,
      words,
      environment: plan.environment,
      unwritten: this.#options.passEnvironment ?? [],
    };
    const launcher = canBeParked(command) ? await this.#launch() : null;
    const taken = (await launcher?.take(plan.fence)) ?? null;
    if (taken === null) {
      await plan.finish();
      return null;
    }
    const { process, ended, cancelled } = taken;
    return {
      ...{ process, ended, cancelled, finish: plan.finish },
      go: (due, output) => taken.go(command, due, output),
    };
  }

  async #fence(order: CommandSpec): Promise<PreparedCommand> {
    const { fence, environment, finish } = await this.#plan(order);
    const { bwrap, filter } = fence;
    const words = [...fence.words, ...fence.seals, '--', order.program, ...order.words];
    const start = closingOthers({ program: bwrap, words }, FILTER_DESCRIPTOR, bashFor(this.#options));
    const descriptors = filter === null ? [] : [openSync(filter, 'r')];
    return {
      ...{ ...start, folder: this.#options.workspace, descriptors, environment, finish },
      started: () => {
        for (const descriptor of descriptors) closeSync(descriptor);
      },
    };
  }

  /** Null if dd is missing, which the launcher needs. */
  async #launch(): Promise<Launcher | null> {
    const { createLauncher } = await import('../launcher/launcher.js');
    if (this.#isClosed || this.#launcher !== null) return this.#launcher;
    const copier = findFor(this.#options, 'dd');
    if (copier === null) return null;
    this.#launcher ??= createLauncher({
      folder: commandsFolder(this.#options.sessionFolder),
      copier,
      closingOthers: (program, words, last) =>
        closingOthers({ program, words }, last, bashFor(this.#options)),
    });
    return this.#launcher;
  }

  async #plan(order: CommandSpec): Promise<FencePlan> {
    const probed = await this.#ask();
    if (probed.kind === 'missing') throw new SandboxRefusal(`${probed.reason} ${probed.repair}`);
    this.#refuseIfClosed();
    const { workspace, environment, sessionFolder, hidden = [], passEnvironment = [] } = this.#options;
    this.#view ??= viewSession({ workspace, environment, sessionFolder, hidden });
    const view = await this.#view;
    this.#refuseIfClosed();
    const bwrap = findFor(this.#options, 'bwrap');
    if (bwrap === null) throw new SandboxRefusal('bubblewrap (bwrap) is gone since the session began');
    const network = order.level.endsWith('+net');
    if (network && !this.#isOnline) unlinkDownloads(view.folders.home, view.home.links);
    this.#isOnline ||= network;
    const sockets = hostSockets();
    const places = this.#workspace.mountsFor(order.level.startsWith('workspace'), view, sockets.paths);
    const filter = filterFor(view, network && sockets.abstract);
    const { host, folders } = view;
    const { mounts, seals } = mountArguments({ ...places, host, folders, network, workspace });
    const words = [...isolationArguments(probed.features, { network, filtered: filter !== null }), ...mounts];
    const inner = { PATH: view.home.searchPath, HOME: INNER_HOME, TMPDIR: '/tmp', PWD: workspace };
    this.#begin();
    return {
      fence: { bwrap, words, seals, filter },
      environment: withVariables(
        { ...fencedEnvironment(environment, passEnvironment), ...inner },
        order.environment,
      ),
      finish: async () => {
        const lines = places.end();
        this.#ended();
        return [...places.refusals, ...lines].map((line) => `[the sandbox: ${line}]`);
      },
    };
  }

  #refuseIfClosed(): void {
    if (this.#isClosed) throw new SandboxRefusal('the session has ended');
  }

  #begin(): void {
    this.#writers += 1;
    this.#sweeps ??= setInterval(() => this.#workspace.sweep(), SWEEP_MS).unref();
  }

  #ended(): void {
    this.#writers -= 1;
    if (this.#writers > 0 || this.#sweeps === null) return;
    clearInterval(this.#sweeps);
    this.#sweeps = null;
  }
}

export const createCommandSandbox = (options: CommandSandboxOptions): CommandSandbox => new Sandbox(options);
