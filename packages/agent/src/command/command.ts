/** One shell command, from the request to its end. */

import type { ChildProcess, ChildProcessByStdio } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import type { ProcessEnvironment } from '../platform/environment.js';
import { statusOf } from '../platform/files.js';
import { type ProgramPath, searchPrograms } from '../platform/find-program.js';
import { guardOf, PROGRAM_ENDED, SandboxRefusal } from '../platform/guarded-start.js';
import { statOf } from '../platform/process-identity.js';
import { startProgram } from '../platform/start-program.js';
import type { CommandLevel } from '../policy/decide.js';
import type { HistoryPurpose, RepositoryAccess } from '../policy/repository-access.js';
import {
  askFencedToEnd,
  askToEnd,
  endLeftovers,
  endMarked,
  endTree,
  type ProcessFamily,
  type ProcessRoot,
  watchOver,
} from './end-processes.js';
import {
  type CommandRecord,
  type FollowedCommand,
  type FoundCommand,
  type LaunchedEnd,
  sinceBoot,
} from './launched-command.js';
import type { TakenCommand } from './launcher.js';
import { type CommandOutput, createCommandOutput, type OutputReceiver } from './output.js';
import type { HostView } from './sandbox/host.js';
import { createMarkReader, FENCE_DEPTH, reportingLeftovers } from './sandbox/shell-text.js';

/**
 * A shell command as a process.
 *
 * 1. It starts one process, which leads its own group and has no terminal and no input.
 * 2. It ends with the shell. A daemon that holds the output open delays the end only for a moment.
 * 3. After the end no process of its group runs. If it was stopped or fenced, no process of the command runs at all.
 * 4. It runs at the requested sandbox level, or not at all.
 */

export type CommandEnd = {
  readonly how: CommandProcessEnd;
  readonly durationMs: number;
  /** `ended`: the command left processes, which were ended. `detached`: a process left the group and still runs. */
  readonly leftovers: 'none' | 'ended' | 'detached';
  /** Lines for the model about files that the sandbox has put aside. */
  readonly notes: readonly string[];
};

export type RunningCommand = {
  readonly output: CommandOutput;
  readonly ended: Promise<CommandEnd>;
  /** Asks the command to end. When the shell has ended, all other processes are ended too. */
  stop(): void;
  /** Kills all its processes at once. */
  kill(): void;
};

/**
 * A started command. When it is asked to end, its processes at that moment are remembered; null if it was not asked.
 * `swept`: resolves when all processes of a killed command have ended; null if it was not killed.
 */
type LiveCommand = {
  readonly root: ProcessRoot;
  readonly process: CommandProcess;
  readonly isFenced: boolean;
  family: ProcessFamily | null;
  swept: Promise<void> | null;
};

/** Applies rule 3 after the end of the shell. */
const clearUp = async (
  life: LiveCommand,
  { heldOpen, leftBehind }: ShellEnd,
): Promise<CommandEnd['leftovers']> => {
  if (life.family !== null || life.swept !== null) {
    await (life.swept ?? endTree(life.root, life.family ?? undefined));
    return 'none';
  }
  if (life.isFenced) {
    if (leftBehind) await endTree(life.root);
    return leftBehind ? 'ended' : 'none';
  }
  if (await endLeftovers(life.root)) return 'ended';
  return heldOpen ? 'detached' : 'none';
};

/** The error of bubblewrap if the command never started and printed nothing. */
const startFault = (output: CommandOutput, how: CommandProcessEnd, isFenced: boolean): CommandProcessEnd => {
  const text = output.text();
  const isFault = isFenced && how.kind === 'exited' && how.code === 1 && /^bwrap: [^\n]*\n?$/.test(text);
  return isFault ? { kind: 'notStarted', why: `the sandbox: ${text.trim()}` } : how;
};

/** A command that will be started, or that an earlier process of the session has started. */
type Source = {
  readonly isFound: boolean;
  /** In another pid namespace: it is ended by the guard of its launcher. */
  readonly isForeign: boolean;
  readonly isFenced: boolean;
  readonly marker: string;
  /** The shell, for people. */
  readonly program: string;
  /** In ms since boot. */
  readonly startedAt: number;
  readonly due: number | null;
  prepare(way: StartMode): Promise<Prepared>;
  progress(text: string): void;
};

class Command {
  readonly output: CommandOutput;
  readonly #source: Source;
  readonly #startedAt = performance.now();
  /** null before the start and after the end, when the pid may belong to another process. */
  #live: LiveCommand | null = null;
  /** While it runs in another pid namespace. */
  #foreign: CommandProcess | null = null;
  #unwanted: 'no' | 'stop' | 'kill' = 'no';

  constructor(source: Source) {
    this.#source = source;
    this.output = createCommandOutput((text) => source.progress(text));
  }

  /** Asks the command to end. If it has not started yet, it never starts. */
  stop(): void {
    if (this.#unwanted === 'no') this.#unwanted = 'stop';
    this.#foreign?.killing();
    // The end of a session kills right after it has asked. Then looking for whom to ask would only delay the kill.
    queueMicrotask(() => {
      const life = this.#live;
      if (this.#unwanted !== 'stop' || life === null || life.family !== null) return;
      life.family = life.isFenced ? askFencedToEnd(life.root, FENCE_DEPTH) : askToEnd(life.root);
    });
  }

  kill(): void {
    this.#unwanted = 'kill';
    this.#foreign?.killing();
    const life = this.#live;
    if (life === null) return;
    life.process.killing();
    life.swept = endTree(life.root, life.family ?? undefined);
  }

  async run(way: StartMode = 'quick'): Promise<CommandEnd> {
    const ready = await this.#source.prepare(way);
    if (ready.kind === 'refused') return this.#end({ kind: 'notStarted', why: ready.why });
    const { prepared } = ready;
    if (this.#unwanted !== 'no' && !this.#source.isFound) {
      if (ready.kind === 'ready') ready.prepared.started();
      return this.#end({ kind: 'killed', signal: 'SIGTERM' }, 'none', await prepared.finish());
    }
    const process = this.#start(ready);
    const life = this.#begin(process);
    const release = life === null ? () => undefined : watchOver(life.root, () => process.killing());
    const end = await process.ended;
    const leftovers = await this.#clearUp(life, end);
    this.#live = null;
    this.#foreign = null;
    process.close();
    release();
    const notes = await prepared.finish();
    if (end.how.kind === 'again') return this.run('direct');
    return this.#end(startFault(this.output, end.how, this.#source.isFenced), leftovers, notes, end.endedAt);
  }

  #start(ready: Exclude<Prepared, { kind: 'refused' }>): CommandProcess {
    const { program, isFenced, due } = this.#source;
    if (ready.kind === 'waiting') return startWaiting(ready.prepared, due, this.output, this.#source);
    return startPrepared(ready.prepared, { program, isFenced }, (bytes) => this.output.add(bytes));
  }

  #begin(process: CommandProcess): LiveCommand | null {
    const { marker, isFenced, isForeign } = this.#source;
    if (isForeign) {
      this.#foreign = process;
      if (this.#unwanted !== 'no') process.killing();
      return null;
    }
    if (process.pid === null) return null;
    const root = { pid: process.pid, marker, startedAt: Number(statOf(process.pid).started) };
    this.#live = { root, process, isFenced, family: null, swept: null };
    // only of one that was found: another one would not have been started
    if (this.#unwanted === 'stop') this.stop();
    if (this.#unwanted === 'kill') this.kill();
    return this.#live;
  }

  async #clearUp(life: LiveCommand | null, end: ShellEnd): Promise<CommandEnd['leftovers']> {
    if (life !== null) return clearUp(life, end);
    const { isFound, isFenced, marker } = this.#source;
    if (!isFound) return 'none';
    return (!isFenced && (await endMarked(marker))) || end.leftBehind ? 'ended' : 'none';
  }

  #end(
    how: CommandProcessEnd,
    leftovers: CommandEnd['leftovers'] = 'none',
    notes: readonly string[] = [],
    endedAt: number | null = null,
  ): CommandEnd {
    this.output.finish();
    const { isFound, startedAt } = this.#source;
    const durationMs = isFound
      ? Math.max(0, (endedAt ?? sinceBoot()) - startedAt)
      : performance.now() - this.#startedAt;
    return { how, leftovers, notes, durationMs };
  }
}

const runningOf = (command: Command): RunningCommand => ({
  output: command.output,
  ended: command.run(),
  stop: () => command.stop(),
  kill: () => command.kill(),
});

/** Starts the command when its sandbox is ready. */
export const startCommand = (order: CommandRequest): RunningCommand => {
  const startedAt = sinceBoot();
  const { deadlineMs, level, program, record } = order;
  return runningOf(
    new Command({
      isFound: false,
      isForeign: false,
      isFenced: level !== 'off',
      marker: record.marker,
      program,
      startedAt,
      due: deadlineMs === null ? null : startedAt + deadlineMs,
      prepare: (way) => prepareCommand(order, startedAt, way),
      progress: (text) => order.progress(text),
    }),
  );
};

/** As if it had just been started: its output comes from the beginning. */
const waitingFor = (found: FoundCommand, finish: WaitingCommand['finish']): WaitingCommand => {
  let followed: FollowedCommand | null = null;
  let settle: (end: LaunchedEnd) => void = () => undefined;
  const ended = new Promise<LaunchedEnd>((resolve) => {
    settle = resolve;
  });
  return {
    ended,
    get process() {
      return followed?.process ?? null;
    },
    cancelled: () => followed?.cancelled(),
    go(_, to) {
      followed = found.follow(to);
      void followed.ended.then(settle);
    },
    finish,
  };
};

/** Follows a command that an earlier process of the session has started. `finish`: as in PreparedCommand. */
export const followFound = (
  found: FoundCommand,
  progress: (text: string) => void,
  finish: WaitingCommand['finish'],
): RunningCommand => {
  const { record, due } = found;
  return runningOf(
    new Command({
      isFound: true,
      isForeign: found.view === 'foreign',
      isFenced: record.isFenced,
      marker: record.marker,
      program: '',
      startedAt: record.startedAt,
      due,
      prepare: async () => ({ kind: 'waiting', prepared: waitingFor(found, finish) }),
      progress,
    }),
  );
};

/** From a request for a shell command to one that can be started. */

/** Joins both outputs, so that lines keep their order. */
const JOINED = 'exec 2>&1; ';

export type CommandRequest = {
  readonly sandbox: () => Promise<CommandSandbox>;
  readonly level: CommandLevel;
  /** It reaches more than the session's level. */
  readonly fresh: boolean;
  /** Name of the shell. It is located on the PATH of `ownEnvironment`. */
  readonly program: string;
  readonly ownEnvironment: ProcessEnvironment;
  readonly command: string;
  readonly workspace: string;
  /** What its words say about git folders. */
  readonly git?: Pick<CommandSpec, 'repository' | 'purpose'>;
  /** Variables for this command only. */
  readonly environment: ProcessEnvironment;
  /** Time limit in ms, or null. The caller enforces it; it is stored for a recovery after a crash. */
  readonly deadlineMs: number | null;
  /** Stored for a recovery as well. Its marker is also in the environment of all processes of the command. */
  readonly record: Pick<CommandRecord, 'call' | 'marker' | 'job'>;
  progress(text: string): void;
};

type Prepared =
  | { readonly kind: 'ready'; readonly prepared: PreparedCommand }
  | { readonly kind: 'waiting'; readonly prepared: WaitingCommand }
  | { readonly kind: 'refused'; readonly why: string };

const findShell = ({ program, ownEnvironment, workspace }: CommandRequest): ProgramPath | string => {
  const programs = searchPrograms({ environment: ownEnvironment, workspace });
  const refused = programs.whyNot(program);
  const why = refused === null ? `is missing; install ${program}` : `is not used: ${refused}`;
  return programs.find(program) ?? `${program} ${why}`;
};

/** `quick`: by the launcher, if possible. */
type StartMode = 'quick' | 'direct';

/** Device and inode: a folder that was replaced has the same path, and others. */
export const identityOf = (folder: string): string => {
  const status = statusOf(folder);
  return status === null ? 'gone' : `${status.dev}:${status.ino}`;
};

const recordOf = ({ record, level, workspace }: CommandRequest, startedAt: number): CommandRecord => ({
  ...record,
  startedAt,
  isFenced: level !== 'off',
  workspace: identityOf(workspace),
});

/** After any failure here, nothing was started. */
export const prepareCommand = async (
  order: CommandRequest,
  startedAt: number,
  way: StartMode,
): Promise<Prepared> => {
  const { level, fresh, environment, command } = order;
  const shell = findShell(order);
  if (!shell.startsWith('/')) return { kind: 'refused', why: shell };
  const words = ['-c', `${JOINED}${command}`];
  try {
    const sandbox = await order.sandbox();
    const { deadlineMs } = order;
    const due = deadlineMs === null ? null : startedAt + deadlineMs;
    const record = recordOf(order, startedAt);
    if (way === 'quick') {
      const spec = { ...order.git, level, fresh, environment, program: shell, words, record };
      const waiting = await sandbox.takeWaiting(spec);
      if (waiting !== null) return { kind: 'waiting', prepared: waiting };
    }
    const shown = level === 'off' ? { program: shell, words } : reportingLeftovers(shell, words);
    const spec = { ...order.git, level, fresh, environment, record, due, ...shown, canBeGuarded: true };
    return { kind: 'ready', prepared: await sandbox.prepare(spec) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { kind: 'refused', why: error instanceof SandboxRefusal ? `the sandbox: ${why}` : why };
  }
};

/** The process of a command, started directly or by the launcher. */

type CommandProcessEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | {
      readonly kind: 'killed';
      readonly signal: string;
      /** Of a command that an earlier process has started: the recorded reason. */
      readonly why?: 'deadline' | 'cancelled' | 'lost';
    }
  | { readonly kind: 'notStarted'; readonly why: string };

type ShellEnd = {
  /** `again`: it never started and can be started once more. */
  readonly how: CommandProcessEnd | { readonly kind: 'again' };
  /** A process that left the group holds the output open. */
  readonly heldOpen: boolean;
  /** A fenced command left processes behind. All of them have ended. */
  readonly leftBehind: boolean;
  /** When it ended, in ms since boot, as far as it is known. */
  readonly endedAt?: number | null;
};

type CommandProcess = {
  /** null if it could not be started. */
  readonly pid: number | null;
  readonly ended: Promise<ShellEnd>;
  /** Announces an immediate kill. */
  killing(): void;
  /** Stops reading output. */
  close(): void;
};

/** How long to wait for output that another process holds open after the shell has ended, in ms. */
const HELD_OPEN_MS = 100;

const howItEnded = (code: number | null, signal: NodeJS.Signals | null): CommandProcessEnd =>
  code === null ? { kind: 'killed', signal: signal ?? 'a signal' } : { kind: 'exited', code };

const whyNotStarted = (error: Error, program: string): CommandProcessEnd => {
  const missing = 'code' in error && error.code === 'ENOENT';
  const why = missing
    ? `${program} or the workspace is missing; install ${program}, or look at the workspace`
    : error.message;
  return { kind: 'notStarted', why };
};

/** Turns of the event loop to read remaining output: the last bytes, then the end of the stream. */
const READING_ROUNDS = 3;

/** Calls back after the available output was read. A timer alone may fire too early in a busy program. */
const afterReading = (done: () => void, rounds = READING_ROUNDS): void => {
  setImmediate(() => (rounds === 0 ? done() : afterReading(done, rounds - 1)));
};

type Ended = Pick<ShellEnd, 'how' | 'heldOpen'>;

/** How long to wait for the end of a guard, in ms. Only a stopped one takes long. */
const GUARD_MS = 500;

/** Ends the guard of a command that has ended. Calls back when it is gone: it counts as a process of the command. */
const endGuard = (pipe: Duplex | null, done: () => void): void => {
  if (pipe === null || pipe.destroyed) {
    done();
    return;
  }
  const patience = setTimeout(() => pipe.destroy(), GUARD_MS);
  pipe.once('close', () => {
    clearTimeout(patience);
    done();
  });
  pipe.end(PROGRAM_ENDED);
};

/** Resolves when the shell has ended and its output is closed or no longer awaited. */
const shellEnd = (child: ChildProcess, program: string, guard: Duplex | null): Promise<Ended> =>
  new Promise((resolve) => {
    const closed = new Promise<void>((close) => void child.once('close', () => close()));
    child.once('error', (error) => {
      if (child.pid === undefined) resolve({ how: whyNotStarted(error, program), heldOpen: false });
    });
    child.once('exit', (code, signal) => {
      const how = howItEnded(code, signal);
      endGuard(guard, () => {
        const patience = setTimeout(() => afterReading(() => resolve({ how, heldOpen: true })), HELD_OPEN_MS);
        void closed.then(() => {
          clearTimeout(patience);
          resolve({ how, heldOpen: false });
        });
      });
    });
  });

const STANDARD = ['ignore', 'pipe', 'pipe'] as const;

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** `program`: its name for people. */
const startPrepared = (
  prepared: PreparedCommand,
  { program, isFenced }: { readonly program: string; readonly isFenced: boolean },
  output: (bytes: Buffer) => void,
): CommandProcess => {
  const { words, environment, folder, descriptors, isGuarded } = prepared;
  // bubblewrap or the shell, both located by find-program.ts
  const child = startProgram(prepared.program as ProgramPath, words, {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: [...STANDARD, ...descriptors, ...(isGuarded ? (['pipe'] as const) : [])],
    // The first three entries of `stdio` determine the types of the streams.
  }) as Child;
  prepared.started();
  const marks = createMarkReader(output);
  child.stdout.on('data', output);
  child.stderr.on('data', isFenced ? (bytes: Buffer) => marks.add(bytes) : output);
  return {
    pid: child.pid ?? null,
    ended: shellEnd(child, program, guardOf(child, prepared)).then((end) => ({
      ...end,
      leftBehind: marks.end(),
    })),
    killing: () => undefined,
    close() {
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
};

/** Exit code of a shell whose command was killed by SIGKILL. */
const KILLED_CODE = 128 + 9;
const CUT = '\n[the disk is full: from here on output is missing]\n';

const ENDLESS = '\n[the end of the output is missing: what writes it was killed]\n';

/** What nobody could see happen. */
type Found = { readonly isFound: boolean };

const howLaunchedEnded = (
  { how, why }: LaunchedEnd,
  isKilled: boolean,
  { isFound }: Found,
): ShellEnd['how'] => {
  const killed = { kind: 'killed', signal: 'SIGKILL', ...(isFound && !isKilled ? { why } : {}) } as const;
  switch (how.kind) {
    case 'exited': {
      const wasKilled = isKilled || (isFound && why !== 'lost');
      return wasKilled && how.code === KILLED_CODE ? killed : how;
    }
    case 'killed':
      return killed;
    case 'neverStarted':
      return { kind: 'again' };
    default:
      return how satisfies never;
  }
};

/** Starts a command that waits in its launcher, or follows one that an earlier process has started. */
const startWaiting = (
  waiting: WaitingCommand,
  due: number | null,
  output: CommandOutput,
  found: Found & { readonly isFenced: boolean },
): CommandProcess => {
  let isKilled = false;
  const ended = waiting.ended.then((end): ShellEnd => {
    const { leftBehind, isCut, isWhole, endedAt } = end;
    if (isCut) output.add(Buffer.from(CUT));
    const isEndless = !isWhole && end.how.kind === 'exited';
    if (isEndless && found.isFenced && !isCut) output.add(Buffer.from(ENDLESS));
    const heldOpen = isEndless && !found.isFenced;
    return { how: howLaunchedEnded(end, isKilled, found), heldOpen, leftBehind, endedAt };
  });
  waiting.go(due, { bytes: (bytes) => output.add(bytes), skipped: (count) => output.skip(count) });
  return {
    pid: waiting.process?.pid ?? null,
    ended,
    killing() {
      isKilled = true;
      waiting.cancelled();
    },
    close: () => undefined,
  };
};

/** The commands of a sandbox: types only. */

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
  /** The process needs one more pipe, after `descriptors`: that of its guard (packages/agent/src/platform/programs/end-with-pawl.ts). */
  readonly isGuarded: boolean;
  /** Closes `descriptors`. Call it once the spawn has succeeded or failed. */
  started(): void;
  /** Call it after the command has ended. Returns lines for the model about files set aside. Never rejects. */
  finish(): Promise<readonly string[]>;
};

/** A command that is set up and waits for its start. */
export type WaitingCommand = Pick<TakenCommand, 'ended' | 'cancelled'> & {
  /** Null of a command that an earlier process has started and that has ended. */
  readonly process: TakenCommand['process'] | null;
  /** Starts it, once. `due`: when it will be killed, in ms since boot. `to` gets stdout and stderr as one. */
  go(due: number | null, to: OutputReceiver): void;
  /** As in PreparedCommand. */
  finish(): Promise<readonly string[]>;
};

export type CommandSandbox = {
  /** Rejects with a SandboxRefusal if the command can't be fenced. */
  prepare(order: CommandSpec): Promise<PreparedCommand>;
  /** Like `prepare`, for a command that packages/agent/src/command/launcher/ set up in advance. Null: start it directly. */
  takeWaiting(order: CommandSpec): Promise<WaitingCommand | null>;
  /** The user allowed writing to this protected absolute path, so running commands don't cause it to be set aside. */
  allow(place: string): void;
  /** Judges what commands of a killed process have made. Returns lines for the model about files set aside. */
  settle(): readonly string[];
  /** Ends all commands and removes the session's home and /tmp; files that were set aside stay. Never rejects. */
  close(keepsResults?: boolean): Promise<void>;
};
