/**
 * One shell command, from the request to its end.
 *
 * It starts one process, which leads a group and has no terminal and no input. It ends with
 * the shell: a daemon that holds the output open delays the end only for a moment. After the end no
 * process of its group runs; if it was stopped, or fenced (run in a sandbox), no process of the
 * command runs at all. It runs at the requested sandbox level (what it may change and reach), or
 * not at all.
 *
 * From top to bottom: the types; `Command`, from start to end; `startCommand`, `followFound` and
 * `prepareCommand`; and its process, which waits parked in the launcher (`startParked`) or is
 * started directly (`startDirect`). The tool bash starts commands here; command-sandbox.ts makes
 * their fence, the sandbox around one command; launched-command.ts follows what the launcher runs.
 */

import type { ChildProcess, ChildProcessByStdio } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import type { ProcessEnvironment } from '../platform/environment.js';
import { entryStatus, errorCode } from '../platform/files.js';
import { type ProgramSearch, searchPrograms } from '../platform/find-program.js';
import { hasProc, readProcess, sinceBoot } from '../platform/processes.js';
import {
  guardPipe,
  PROGRAM_ENDED,
  SandboxRefusal,
  startProgram,
} from '../platform/start-program.js';
import type { CommandLevel } from '../policy/decide.js';
import type {
  CommandSandbox,
  CommandSpec,
  ParkedCommand,
  PreparedCommand,
} from './command-sandbox.js';
import {
  askFencedToEnd,
  askToEnd,
  endLeftovers,
  endMarked,
  endTree,
  killNow,
  type Leftovers,
  type ProcessFamily,
  type ProcessRoot,
} from './end-processes.js';
import type { CommandRecord, FoundCommand, KillReason, LaunchedEnd } from './launched-command.js';
import { type CommandOutput, createCommandOutput } from './output.js';
import { createMarkReader, type EndReport, reportingLeftovers } from './sandbox/shell-text.js';

export type CommandRequest = {
  readonly sandbox: () => Promise<CommandSandbox>;
  readonly level: CommandLevel;
  /** It reaches more than the session's level, so it gets an empty home and /tmp. */
  readonly fresh: boolean;
  /** Name of the shell. It is located on the PATH of `ownEnvironment`. */
  readonly program: string;
  readonly ownEnvironment: ProcessEnvironment;
  readonly command: string;
  readonly workspace: string;
  /** What its words say about git folders. */
  readonly git?: Pick<CommandSpec, 'repository' | 'purpose' | 'writable'>;
  /** Variables for this command only. */
  readonly environment: ProcessEnvironment;
  /**
   * Time limit in ms, or null. The caller enforces it; it is stored for a recovery after a crash.
   */
  readonly deadlineMs: number | null;
  /**
   * Stored for a recovery as well. Its marker is also in the environment of all processes of the
   * command.
   */
  readonly record: Pick<CommandRecord, 'call' | 'marker' | 'job'>;
  progress(text: string): void;
};

/** How the process of a command has ended. */
export type ProcessEnd =
  | { readonly kind: 'exited'; readonly code: number }
  | {
      readonly kind: 'killed';
      readonly signal: string;
      /**
       * Why an earlier process has killed it. `lost`: nobody saw its end; the signal is a guess.
       * Absent: this process saw it, or killed it.
       */
      readonly why?: KillReason;
    }
  | { readonly kind: 'notStarted'; readonly why: string };

export type CommandEnd = {
  readonly how: ProcessEnd;
  readonly durationMs: number;
  /**
   * `ended`: leftover processes were ended. `detached`: one is outside the group and still runs.
   */
  readonly leftovers: Leftovers | 'detached';
  /** Lines for the model about files that the sandbox has put aside. */
  readonly notes: readonly string[];
};

/**
 * `root`: null if its processes can't be seen, since it runs in another pid namespace or could not
 * be started.
 */
type Running = {
  readonly name: 'running';
  readonly process: CommandProcess;
  readonly root: ProcessRoot | null;
  /** Its processes when it was asked to end; null if it was not asked. */
  asked: ProcessFamily | null;
  /** Resolves when all processes of a killed command have ended; null if it was not killed. */
  killed: Promise<boolean> | null;
};

type CommandState = { readonly name: 'parked' } | Running | { readonly name: 'ended' };

/** A command that will be started, or that an earlier process of the session has started. */
type CommandSource = {
  /** An earlier process of the session has started it. */
  readonly isFound: boolean;
  /** It runs in another pid namespace, where we can't signal it: its launcher's guard ends it. */
  readonly isForeign: boolean;
  /**
   * Whether all processes of a command end with the first one. A fence of macOS does not hold them
   * together: there they are ended as those of a command without one.
   */
  readonly isFenced: boolean;
  readonly marker: string;
  /** The shell, for people. */
  readonly program: string;
  /** In ms since boot. */
  readonly startedAt: number;
  prepare(mode: StartMode): Promise<Prepared>;
  progress(text: string): void;
};

/** `quick`: by the launcher, if possible. `direct`: without it. */
type StartMode = 'quick' | 'direct';

/** What `prepare` of a source answers. */
type Prepared =
  | { readonly kind: 'direct'; readonly prepared: PreparedCommand }
  | { readonly kind: 'parked'; readonly prepared: ParkedCommand }
  | { readonly kind: 'refused'; readonly why: string };

/** A command that runs, has ended, or is about to start. */
export class Command {
  readonly output: CommandOutput;
  readonly ended: Promise<CommandEnd>;
  readonly #source: CommandSource;
  readonly #createdAt = performance.now();
  #state: CommandState = { name: 'parked' };
  /** Lines for the model about an attempt that started nothing. */
  #notes: readonly string[] = [];
  /** What the caller wants. It may come before there is a process. */
  #wish: 'run' | 'stop' | 'kill' = 'run';

  constructor(source: CommandSource) {
    this.#source = source;
    this.output = createCommandOutput((text) => source.progress(text));
    this.ended = this.#run('quick');
  }

  /**
   * Asks the command to end. When the shell has ended, all other processes are ended too. If the
   * command has not started yet, it never starts.
   */
  stop(): void {
    if (this.#wish === 'run') this.#wish = 'stop';
    if (this.#source.isForeign && this.#state.name === 'running')
      this.#state.process.announceKill();
    // The end of a session kills right after it has asked. Then looking for whom to ask would only
    // delay the kill.
    queueMicrotask(() => this.#ask());
  }

  /** Kills all its processes at once. */
  kill(): void {
    this.#wish = 'kill';
    const state = this.#state;
    if (state.name !== 'running') return;
    if (this.#source.isForeign || state.root !== null) state.process.announceKill();
    if (state.root !== null) state.killed = endTree(state.root, state.asked ?? undefined);
  }

  /** Asks its processes to end, once. */
  #ask(): void {
    const state = this.#state;
    if (this.#wish !== 'stop' || state.name !== 'running') return;
    const { root } = state;
    if (root === null || state.asked !== null) return;
    state.asked = this.#source.isFenced ? askFencedToEnd(root) : askToEnd(root);
  }

  async #run(mode: StartMode): Promise<CommandEnd> {
    const { isFound, isFenced } = this.#source;
    const start = await this.#source.prepare(mode);
    if (start.kind === 'refused') return this.#end({ kind: 'notStarted', why: start.why });
    const { prepared } = start;

    // It was stopped while it was prepared, so it never starts.
    if (this.#wish !== 'run' && !isFound) {
      // Closes the files that its process would have inherited.
      if (start.kind === 'direct') start.prepared.started();
      return this.#end({ kind: 'killed', signal: 'SIGTERM' }, 'none', await prepared.finish());
    }

    let process: CommandProcess;
    try {
      process =
        start.kind === 'direct'
          ? startDirect(start.prepared, this.#source, this.output)
          : startParked(start.prepared, this.#source, this.output);
    } catch (error) {
      // The files of a found command are gone or can't be opened, so nobody knows how it ended.
      const how: ProcessEnd = isFound
        ? { kind: 'killed', signal: 'SIGKILL', why: 'lost' }
        : { kind: 'notStarted', why: String(error) };
      return this.#end(how, 'none', await prepared.finish());
    }
    const running = this.#follow(process);
    const release =
      running.root === null
        ? () => undefined
        : // If Pawl exits meanwhile, it kills the command.
          watchOver(running.root, () => process.announceKill());
    const { how, endedAt = null, ...facts } = await process.ended;
    const leftovers = await this.#clearUp(running, facts);

    this.#state = { name: 'ended' };
    process.close();
    release();
    const notes = await prepared.finish();
    if (how.kind !== 'again')
      return this.#end(
        isFenced && facts.report === 'missing' ? startFault(this.output, how) : how,
        leftovers,
        notes,
        endedAt,
      );
    // `again`: the launcher has ended before it could start the command.
    this.#state = { name: 'parked' };
    this.#notes = notes;
    return this.#run('direct');
  }

  /** Enters the state `running`. */
  #follow(process: CommandProcess): Running {
    const { marker, isForeign } = this.#source;
    const { pid } = process;
    const root =
      isForeign || pid === null
        ? null
        : { pid, marker, startedAt: Number(readProcess(pid).started) };
    const running: Running = { name: 'running', process, root, asked: null, killed: null };
    this.#state = running;
    // The wish may be older than the process: then an earlier process of Pawl has started it.
    if (this.#wish === 'stop') this.stop();
    if (this.#wish === 'kill') this.kill();
    return running;
  }

  /** Ends the processes that outlive the shell. */
  async #clearUp(
    { root, asked, killed }: Running,
    { heldOpen, report }: Pick<ShellEnd, 'heldOpen' | 'report'>,
  ): Promise<CommandEnd['leftovers']> {
    const { isFound, isFenced, marker } = this.#source;
    const leftBehind = report === 'leftBehind';
    if (root === null) {
      // Its processes can't be seen from here. With its fence they have all ended.
      if (!isFound) return 'none';
      const leftovers = isFenced ? 'none' : await endMarked(marker);
      return leftovers === 'none' && leftBehind ? 'ended' : leftovers;
    }
    if (asked !== null || killed !== null) {
      return (await (killed ?? endTree(root, asked ?? undefined))) ? 'none' : 'unseen';
    }
    if (isFenced) {
      if (!leftBehind) return 'none';
      return (await endTree(root)) ? 'ended' : 'unseen';
    }
    const leftovers = await endLeftovers(root);
    return leftovers === 'none' && heldOpen ? 'detached' : leftovers;
  }

  #end(
    how: ProcessEnd,
    leftovers: CommandEnd['leftovers'] = 'none',
    notes: readonly string[] = [],
    endedAt: number | null = null,
  ): CommandEnd {
    this.output.finish();
    const { isFound, startedAt } = this.#source;
    const durationMs = isFound
      ? Math.max(0, (endedAt ?? sinceBoot()) - startedAt)
      : performance.now() - this.#createdAt;
    return { how, leftovers, notes: [...this.#notes, ...notes], durationMs };
  }
}

/** Commands that run, and what is called before they are killed. */
const alive = new Map<ProcessRoot, () => void>();
const killAlive = (): void => {
  for (const [root, beforeKill] of alive) {
    beforeKill();
    killNow(root);
  }
};

/**
 * When Pawl exits by itself, it kills this command too, until the returned function is called.
 * `beforeKill` is called right before.
 */
const watchOver = (root: ProcessRoot, beforeKill: () => void): (() => void) => {
  if (alive.size === 0) process.once('exit', killAlive);
  alive.set(root, beforeKill);
  return () => {
    alive.delete(root);
    if (alive.size === 0) process.off('exit', killAlive);
  };
};

/**
 * The end of a fenced command without a report: it never started if all that was printed is an
 * error of bubblewrap or nsenter.
 */
const startFault = (output: CommandOutput, how: ProcessEnd): ProcessEnd => {
  const text = output.text().trim();
  const isFault = how.kind === 'exited' && how.code === 1 && /^(?:bwrap|nsenter): .*$/.test(text);
  return isFault ? { kind: 'notStarted', why: `the sandbox: ${text}` } : how;
};

/** Starts the command when its sandbox is ready. */
export const startCommand = (request: CommandRequest): Command => {
  const startedAt = sinceBoot();
  return new Command({
    isFound: false,
    isForeign: false,
    isFenced: request.level !== 'off' && hasProc,
    marker: request.record.marker,
    program: request.program,
    startedAt,
    prepare: (mode) => prepareCommand(request, startedAt, mode),
    progress: (text) => request.progress(text),
  });
};

/**
 * Follows a command that an earlier process of the session has started. `finish`: called when it
 * has ended; resolves with lines for the model about files that the sandbox has set aside.
 */
export const followFound = (
  foundCommand: FoundCommand,
  progress: (text: string) => void,
  finish: PreparedCommand['finish'],
): Command => {
  const { isFenced, marker, startedAt } = foundCommand.record;
  const prepared: ParkedCommand = { start: (to) => foundCommand.follow(to), finish };
  return new Command({
    isFound: true,
    isForeign: foundCommand.view === 'foreign',
    isFenced,
    marker,
    program: '',
    startedAt,
    prepare: async () => ({ kind: 'parked', prepared }),
    progress,
  });
};

/** Joins both outputs, so that lines keep their order. */
const JOINED = 'exec 2>&1; ';

/** After any failure here, nothing was started. */
export const prepareCommand = async (
  request: CommandRequest,
  startedAt: number,
  mode: StartMode,
): Promise<Prepared> => {
  const { level, fresh, environment, git, workspace, deadlineMs } = request;
  const programs = searchPrograms({ environment: request.ownEnvironment, workspace });
  const shell = programs.find(request.program);
  if (shell === null) return { kind: 'refused', why: whyNoShell(programs, request.program) };
  const words = ['-c', `${JOINED}${request.command}`];
  try {
    const sandbox = await request.sandbox();
    const due = deadlineMs === null ? null : startedAt + deadlineMs;
    const isFenced = level !== 'off' && hasProc;
    const record = { ...request.record, startedAt, isFenced, workspace: identifyFolder(workspace) };
    const spec = { ...git, level, fresh, environment, record, due, sharesNetwork: true };
    if (mode === 'quick') {
      const parked = await sandbox.takeParked({ ...spec, program: shell, words });
      if (parked !== null) return { kind: 'parked', prepared: parked };
    }
    // In a fence a shell around the command reports the processes that outlive it.
    const start = isFenced ? reportingLeftovers(shell, words) : { program: shell, words };
    return {
      kind: 'direct',
      prepared: await sandbox.prepare({ ...spec, ...start, canBeGuarded: true }),
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { kind: 'refused', why: error instanceof SandboxRefusal ? `the sandbox: ${why}` : why };
  }
};

const whyNoShell = (programs: ProgramSearch, program: string): string => {
  const refused = programs.whyNot(program);
  return refused === null
    ? `${program} is missing; install ${program}`
    : `${program} is not used: ${refused}`;
};

/** Device and inode: a folder that was replaced has the same path, and others. */
export const identifyFolder = (folder: string): string => {
  const status = entryStatus(folder);
  return status === null ? 'gone' : `${status.dev}:${status.ino}`;
};

/** The process of a command, started directly or by the launcher. */
type CommandProcess = {
  /** null if it could not be started. */
  readonly pid: number | null;
  readonly ended: Promise<ShellEnd>;
  /**
   * Call it right before a kill, so that the end counts as one, also after a crash. In another pid
   * namespace this is the kill: the guard there reads it.
   */
  announceKill(): void;
  /** Stops reading output of a direct start. */
  close(): void;
};

type ShellEnd = {
  /** `again`: it never started and can be started once more. */
  readonly how: ProcessEnd | { readonly kind: 'again' };
  /** A process outside the group holds the output open. */
  readonly heldOpen: boolean;
  /** Processes that a fenced command left have all ended. */
  readonly report: EndReport;
  /** When it ended, in ms since boot, as far as it is known. */
  readonly endedAt?: number | null;
};

/** Exit code of a shell whose command was killed by SIGKILL. */
const KILLED_CODE = 128 + 9;
const CUT = '\n[from here on output is missing: the disk is full, or too many files are open]\n';
const ENDLESS = '\n[the end of the output is missing: what writes it was killed]\n';

/**
 * Starts a command that waits in its launcher, or follows one that an earlier process has started.
 */
const startParked = (
  parked: ParkedCommand,
  { isFound, isFenced }: Pick<CommandSource, 'isFound' | 'isFenced'>,
  output: CommandOutput,
): CommandProcess => {
  let isKilled = false;
  const launched = parked.start({
    bytes: (bytes) => output.add(bytes),
    skipped: (count) => output.skip(count),
  });
  const ended = launched.ended.then((end): ShellEnd => {
    const { report, isCut, isWhole, endedAt } = end;
    if (isCut) output.add(Buffer.from(CUT));
    const isEndless = !isWhole && end.how.kind === 'exited';
    if (isEndless && isFenced && !isCut) output.add(Buffer.from(ENDLESS));
    return {
      how: launchedHow(end, isKilled, isFound),
      heldOpen: isEndless && !isFenced,
      report,
      endedAt,
    };
  });
  return {
    pid: launched.process?.pid ?? null,
    ended,
    announceKill() {
      isKilled = true;
      launched.recordCancellation();
    },
    close: () => undefined,
  };
};

/**
 * How a command of the launcher has ended. `isFound`: an earlier process may have killed it, which
 * only its files tell.
 */
const launchedHow = (
  { how, why }: LaunchedEnd,
  isKilled: boolean,
  isFound: boolean,
): ShellEnd['how'] => {
  const killed = { kind: 'killed', signal: 'SIGKILL', ...(isKilled ? {} : { why }) } as const;
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

const STANDARD = ['ignore', 'pipe', 'pipe'] as const;

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Starts a command as a child of this process, without the launcher. */
const startDirect = (
  prepared: PreparedCommand,
  { program, isFenced }: Pick<CommandSource, 'program' | 'isFenced'>,
  output: CommandOutput,
): CommandProcess => {
  const { words, environment, folder, descriptors, isGuarded } = prepared;
  const child = startProgram(prepared.program, words, {
    cwd: folder,
    env: environment,
    detached: true,
    stdio: [...STANDARD, ...descriptors, ...(isGuarded ? (['pipe'] as const) : [])],
    // The first three entries of `stdio` determine the types of the streams.
  }) as Child;
  prepared.started(); // the process has its own copies of the open files now
  const add = (bytes: Buffer): void => output.add(bytes);
  // Takes the report of reportingLeftovers off the end of stderr.
  const marks = createMarkReader(add);
  child.stdout.on('data', add);
  child.stderr.on('data', isFenced ? (bytes: Buffer) => marks.add(bytes) : add);
  return {
    pid: child.pid ?? null,
    ended: shellEnd(child, program, guardPipe(child, prepared)).then((end) => ({
      ...end,
      report: marks.end(),
    })),
    announceKill: () => undefined, // its end is seen by this process alone
    close() {
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
};

/** How long to wait for output that another process holds open after the shell has ended, in ms. */
const HELD_OPEN_MS = 100;

/** Resolves when the shell has ended and its output is closed or no longer awaited. */
const shellEnd = (
  child: ChildProcess,
  program: string,
  guard: Duplex | null,
): Promise<Pick<ShellEnd, 'how' | 'heldOpen'>> =>
  new Promise((resolve) => {
    const closed = new Promise<void>((close) => void child.once('close', () => close()));
    child.once('error', (error) => {
      if (child.pid === undefined) resolve({ how: whyNotStarted(error, program), heldOpen: false });
    });
    child.once('exit', (code, signal) => {
      const how: ProcessEnd =
        code === null ? { kind: 'killed', signal: signal ?? 'a signal' } : { kind: 'exited', code };
      endGuard(guard, () => {
        const timer = setTimeout(
          () => afterReading(() => resolve({ how, heldOpen: true })),
          HELD_OPEN_MS,
        );
        void closed.then(() => {
          clearTimeout(timer);
          resolve({ how, heldOpen: false });
        });
      });
    });
  });

const whyNotStarted = (error: Error, program: string): ProcessEnd => {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: `${program} or the workspace is missing; install ${program}, or look at the workspace`,
    E2BIG: 'the command is too long; write it into a file, and run that',
  };
  return { kind: 'notStarted', why: reasons[errorCode(error)] ?? error.message };
};

/** How long to wait for the end of a guard, in ms. Only a stopped one takes long. */
const GUARD_MS = 500;

/**
 * Ends the guard of a directly started command that has ended: a process beside it which would have
 * killed it if Pawl had died (start-program.ts). Calls back when it is gone, since it counts as a
 * process of the command.
 */
const endGuard = (pipe: Duplex | null, done: () => void): void => {
  if (pipe === null || pipe.destroyed) {
    done();
    return;
  }
  const timer = setTimeout(() => pipe.destroy(), GUARD_MS);
  pipe.once('close', () => {
    clearTimeout(timer);
    done();
  });
  pipe.end(PROGRAM_ENDED);
};

/** Turns of the event loop to read remaining output: the last bytes, then the end of the stream. */
const READING_ROUNDS = 3;

/**
 * Calls back after the available output was read. A timer alone may fire too early in a busy
 * program.
 */
const afterReading = (done: () => void, rounds = READING_ROUNDS): void => {
  setImmediate(() => (rounds === 0 ? done() : afterReading(done, rounds - 1)));
};
