import type { CommandLevel } from '../../agent/policy/call-sandbox-level.js';
import type { ProcessEnvironment } from '../../base/process-environment.js';
import { FENCE_DEPTH, reportingLeftovers } from '../../launcher/fenced-shell.js';
import { type ProgramPath, searchPrograms } from '../../programs/find-program.js';
import {
  type CommandSandbox,
  type PreparedCommand,
  SandboxRefusal,
  type WaitingCommand,
} from '../../sandbox/command-sandbox.js';
import { type CommandOutput, createCommandOutput } from './command-output.js';
import {
  type CommandProcess,
  type CommandProcessEnd,
  type ShellEnd,
  startPrepared,
  startWaiting,
} from './command-process.js';
import {
  askFencedToEnd,
  askToEnd,
  endLeftovers,
  endTree,
  type ProcessFamily,
  type ProcessRoot,
  rememberFamily,
  watchOver,
} from './end-processes.js';

/**
 * A shell command as a process.
 *
 * 1. It starts one process, which leads its own group and has no terminal and no input.
 * 2. It ends with the shell. A daemon that holds the output open delays the end only for a moment.
 * 3. After the end no process of its group runs. If it was stopped or fenced, no process of the command runs at all.
 * 4. It runs at the requested sandbox level, or not at all.
 */

/** Joins both outputs, so that lines keep their order. */
const JOINED = 'exec 2>&1; ';

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

export type CommandRequest = {
  readonly sandbox: () => Promise<CommandSandbox>;
  readonly level: CommandLevel;
  /** Name of the shell. It is located on the PATH of `ownEnvironment`. */
  readonly program: string;
  readonly ownEnvironment: ProcessEnvironment;
  readonly command: string;
  readonly workspace: string;
  /** Variables for this command only. */
  readonly environment: ProcessEnvironment;
  readonly marker: string;
  /** Time limit in ms, or null. The caller enforces it. It is stored for recovery after a crash. */
  readonly deadlineMs: number | null;
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

/** After any failure here, nothing was started (rule 4). */
const prepare = async (order: CommandRequest, way: StartMode): Promise<Prepared> => {
  const { level, environment, command } = order;
  const shell = findShell(order);
  if (!shell.startsWith('/')) return { kind: 'refused', why: shell };
  const words = ['-c', `${JOINED}${command}`];
  try {
    const sandbox = await order.sandbox();
    if (level !== 'off' && way === 'quick') {
      const waiting = await sandbox.takeWaiting({ level, environment, program: shell, words });
      if (waiting !== null) return { kind: 'waiting', prepared: waiting };
    }
    const shown = level === 'off' ? { program: shell, words } : reportingLeftovers(shell, words);
    return { kind: 'ready', prepared: await sandbox.prepare({ level, environment, ...shown }) };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { kind: 'refused', why: error instanceof SandboxRefusal ? `the sandbox: ${why}` : why };
  }
};

/** A started command. When it is stopped, its processes at that moment are remembered; null if it was not stopped. */
type LiveCommand = {
  readonly root: ProcessRoot;
  readonly process: CommandProcess;
  readonly isFenced: boolean;
  family: ProcessFamily | null;
  swept: Promise<void>;
};

/** Applies rule 3 after the end of the shell. */
const clearUp = async (
  life: LiveCommand,
  { heldOpen, leftBehind }: ShellEnd,
): Promise<CommandEnd['leftovers']> => {
  if (life.family !== null) {
    await endTree(life.root, life.family);
    await life.swept;
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

class Command {
  readonly output: CommandOutput;
  readonly #order: CommandRequest;
  readonly #startedAt = performance.now();
  /** null before the start and after the end, when the pid may belong to another process. */
  #live: LiveCommand | null = null;
  #isUnwanted = false;

  constructor(order: CommandRequest) {
    this.#order = order;
    this.output = createCommandOutput((text) => order.progress(text));
  }

  /** Asks the command to end. If it has not started yet, it never starts. */
  stop(): void {
    this.#isUnwanted = true;
    const life = this.#live;
    if (life === null || life.family !== null) return;
    life.family = rememberFamily(life.root);
    if (life.isFenced) askFencedToEnd(life.root, FENCE_DEPTH);
    else askToEnd(life.root);
  }

  kill(): void {
    this.#isUnwanted = true;
    const life = this.#live;
    if (life === null) return;
    life.family ??= rememberFamily(life.root);
    life.process.killing();
    life.swept = endTree(life.root, life.family);
  }

  async run(way: StartMode = 'quick'): Promise<CommandEnd> {
    const ready = await prepare(this.#order, way);
    if (ready.kind === 'refused') return this.#end({ kind: 'notStarted', why: ready.why });
    const { prepared } = ready;
    if (this.#isUnwanted) {
      if (ready.kind === 'ready') ready.prepared.started();
      return this.#end({ kind: 'killed', signal: 'SIGTERM' }, 'none', await prepared.finish());
    }
    const process = this.#start(ready);
    const life = this.#begin(process);
    const release = life === null ? () => undefined : watchOver(life.root);
    const end = await process.ended;
    const leftovers = life === null ? 'none' : await clearUp(life, end);
    this.#live = null;
    process.close();
    release();
    const notes = await prepared.finish();
    const { how } = end;
    if (how.kind === 'again') return this.run('direct');
    return this.#end(startFault(this.output, how, life?.isFenced ?? false), leftovers, notes);
  }

  #start(ready: Exclude<Prepared, { kind: 'refused' }>): CommandProcess {
    const { level, program, deadlineMs } = this.#order;
    const due = deadlineMs === null ? null : Date.now() + deadlineMs;
    const output = (bytes: Buffer): void => this.output.add(bytes);
    if (ready.kind === 'waiting') return startWaiting(ready.prepared, due, output);
    return startPrepared(ready.prepared, { program, isFenced: level !== 'off' }, output);
  }

  #begin(process: CommandProcess): LiveCommand | null {
    const { marker, level } = this.#order;
    if (process.pid === null) return null;
    const root = { pid: process.pid, marker };
    this.#live = { root, process, isFenced: level !== 'off', family: null, swept: Promise.resolve() };
    return this.#live;
  }

  #end(
    how: CommandProcessEnd,
    leftovers: CommandEnd['leftovers'] = 'none',
    notes: readonly string[] = [],
  ): CommandEnd {
    this.output.finish();
    return { how, leftovers, notes, durationMs: performance.now() - this.#startedAt };
  }
}

/** Starts the command when its sandbox is ready. */
export const startCommand = (order: CommandRequest): RunningCommand => {
  const command = new Command(order);
  return {
    output: command.output,
    ended: command.run(),
    stop: () => command.stop(),
    kill: () => command.kill(),
  };
};
