import { statOf } from '../../platform/programs/process-identity.js';
import { sinceBoot } from '../launcher/command-recovery-record.js';
import { FENCE_DEPTH } from '../launcher/command-shell-scripts.js';
import type { LaunchedEnd } from '../launcher/follow-command.js';
import type { FollowedCommand, FoundCommand } from '../launcher/found-commands.js';
import type { WaitingCommand } from '../sandbox/command-sandbox-types.js';
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
  endMarked,
  endTree,
  type ProcessFamily,
  type ProcessRoot,
  watchOver,
} from './end-processes.js';
import { type CommandRequest, type Prepared, prepareCommand, type StartMode } from './prepare-command.js';

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
