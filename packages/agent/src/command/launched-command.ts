/** A command of a launcher, seen through its files: parked, running, ended, or found again after a crash. */

import {
  closeSync,
  constants,
  existsSync,
  type FSWatcher,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import * as v from 'valibot';
import { statOf } from '../platform/process-identity.js';
import { createSpoolReader, type OutputReceiver, type SpoolReader } from './output.js';
import { createMarkReader } from './sandbox/shell-text.js';

/**
 * One command from its parking to its end, followed through the files of its spool.
 *
 * The system notifies us of changed files. The files are also polled, in case a notification is missing.
 */

export type LaunchedEnd = {
  readonly how:
    | { readonly kind: 'exited'; readonly code: number }
    /** It has no exit code. */
    | { readonly kind: 'killed' }
    /** It did not begin and never will, so it can be started again. */
    | { readonly kind: 'neverStarted' };
  /** It left processes running, which were ended with it. */
  readonly leftBehind: boolean;
  /** Output is missing because the disk was full. */
  readonly isCut: boolean;
  /** The end of its output is known. False if what writes it was killed, or if a detached process holds it open. */
  readonly isWhole: boolean;
  /** When it ended, in ms since boot; null if that is unknown. */
  readonly endedAt: number | null;
  /** The recorded reason for which it was to be killed. */
  readonly why: 'deadline' | 'cancelled' | 'lost';
};

export type ParkedCommand = {
  /** The process of bubblewrap, once it exists; null if it does not appear in time. */
  readonly ready: Promise<LaunchedProcess | null>;
  /** Resolves when it has ended, even if it was never started. */
  readonly ended: Promise<LaunchedEnd>;
  readonly folder: string;
  /** Bytes of output so far. */
  readonly outputBytes: number;
  /** Its files are kept until the session ends: it is a job, whose output can be read at any time. */
  readonly isKept: boolean;
  /** Whether it is parked and can be started. */
  isWaiting(): boolean;
  /** Starts the command; call it once. */
  go(start: CommandStart, to: OutputReceiver): void;
  /** Records that the command will be killed because it was cancelled. */
  cancelled(): void;
  /** Call it when its launcher has ended. */
  orphaned(): void;
  remove(): void;
  /** The same, beside other work. */
  removeLater(): Promise<void>;
};

/** `text` is for the parked shell, `line` for its stdin; `order` is recorded for a recovery. */
type CommandStart = { readonly text: string; readonly line: string; readonly order: CommandOrder };

type FollowOptions = {
  /** False: don't use file change notifications. */
  readonly watches?: boolean;
  /** How long to wait for the end of the output after the exit code, in ms. */
  readonly drainingMs?: number;
};

const READ_MAX = 1024 * 1024;
const PARKING_MS = 10_000;
/** Polling intervals in ms, with and without file change notifications. */
const LOOK_MS = 200;
const BLIND_LOOK_MS = 5;
/** Grace periods in ms: without a process or an exit code, and with an exit code but no end of the output. */
const LOST_MS = 1_000;
const DRAINING_MS = 5_000;

const IGNORED: OutputReceiver = { bytes: () => undefined, skipped: () => undefined };

type Facts = { readonly status: CommandStatus; readonly isClaimed: boolean; readonly isAlive: boolean };

class Command implements ParkedCommand {
  readonly ready: Promise<LaunchedProcess | null>;
  readonly ended: Promise<LaunchedEnd>;
  readonly #spool: Spool;
  readonly #send: (words: string) => void;
  readonly #watcher: FSWatcher | null;
  readonly #marks = createMarkReader((bytes) => this.#receiver.bytes(bytes));
  readonly #drainingMs: number;
  #timer: NodeJS.Timeout | null = null;
  readonly #parkingTimer: NodeJS.Timeout;
  #state: 'parking' | 'waiting' | 'running' | 'ending' | 'ended' = 'parking';
  #process: LaunchedProcess | null = null;
  #isOrphan = false;
  #isKept = false;
  #outputBytes = 0;
  /** Since when the command seems stuck; null if it does not. */
  #stuckSince: number | null = null;
  #receiver = IGNORED;
  #draining: NodeJS.Timeout | null = null;
  #tellReady: (process: LaunchedProcess | null) => void = () => undefined;
  #tellEnd: (end: LaunchedEnd) => void = () => undefined;

  constructor(spool: Spool, send: (words: string) => void, options: FollowOptions) {
    this.#spool = spool;
    this.#send = send;
    this.#drainingMs = options.drainingMs ?? DRAINING_MS;
    this.ready = new Promise((resolve) => {
      this.#tellReady = resolve;
    });
    this.ended = new Promise((resolve) => {
      this.#tellEnd = resolve;
    });
    this.#watcher = (options.watches ?? true) ? this.#watch() : null;
    this.#lookRegularly();
    this.#parkingTimer = setTimeout(() => this.#parked(null), PARKING_MS).unref();
  }

  get folder(): string {
    return this.#spool.folder;
  }

  get outputBytes(): number {
    return this.#outputBytes;
  }

  get isKept(): boolean {
    return this.#isKept;
  }

  isWaiting(): boolean {
    this.#look();
    return this.#state === 'waiting' && this.#process !== null && this.#spool.isAlive();
  }

  go({ text, line, order }: CommandStart, to: OutputReceiver): void {
    if (this.#state !== 'waiting') return;
    this.#run(to);
    this.#isKept = (order.record?.job ?? null) !== null;
    this.#spool.order(text, order);
    this.#send(`g ${line}`);
  }

  /** Follows a command that an earlier agent has started. */
  attach(to: OutputReceiver): void {
    this.#parked(this.#spool.status().process);
    this.#isOrphan = true;
    this.#run(to);
    this.#look();
  }

  #run(to: OutputReceiver): void {
    this.#receiver = to;
    this.#state = 'running';
    this.#lookRegularly().ref();
  }

  cancelled(): void {
    this.#spool.killedFor('cancelled');
  }

  orphaned(): void {
    this.#isOrphan = true;
    if (this.#state === 'parking' || this.#state === 'waiting') this.#end();
  }

  remove(): void {
    this.#spool.remove();
  }

  removeLater(): Promise<void> {
    return this.#spool.removeLater();
  }

  /** Null if the system's limit of watches is reached. */
  #watch(): FSWatcher | null {
    try {
      const watcher = watch(this.#spool.folder, { persistent: false }, (_, name) => {
        if (name === null || isTelling(name)) this.#look();
      });
      watcher.on('error', () => undefined);
      return watcher;
    } catch {
      return null;
    }
  }

  #lookRegularly(): NodeJS.Timeout {
    const look = (): void => {
      this.#look();
      this.#judgeStuck();
    };
    const timer = setInterval(look, this.#watcher === null ? BLIND_LOOK_MS : LOOK_MS).unref();
    this.#timer = timer;
    return timer;
  }

  #parked(process: LaunchedProcess | null): void {
    if (this.#state !== 'parking') return;
    clearTimeout(this.#parkingTimer);
    this.#state = 'waiting';
    this.#process = process;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#tellReady(process);
  }

  #look(): void {
    if (this.#state === 'ending' || this.#state === 'ended') return;
    const status = this.#spool.status();
    if (status.process !== null) this.#parked(status.process);
    if (status.exitCode !== null && status.isComplete) this.#end();
    else if (this.#state === 'running') this.#read();
    if (status.exitCode !== null) this.#draining ??= setTimeout(() => this.#end(), this.#drainingMs).unref();
  }

  #read(): boolean {
    return this.#spool.read(READ_MAX, {
      bytes: (bytes) => {
        this.#outputBytes += bytes.length;
        this.#marks.add(bytes);
      },
      skipped: (count) => this.#receiver.skipped(count),
    });
  }

  /** Checks the process first, so that its last output is not missed. */
  #facts(): Facts {
    const isAlive = this.#process !== null && this.#spool.isAlive();
    return { status: this.#spool.status(), isClaimed: this.#spool.isClaimed(), isAlive };
  }

  /** Ends a command that has no process and no exit code. */
  #judgeStuck(): void {
    if (this.#state !== 'running') return;
    const { status, isClaimed, isAlive } = this.#facts();
    const isWell = status.exitCode !== null || isAlive || (!isClaimed && !this.#isOrphan);
    const now = performance.now();
    if (isWell) this.#stuckSince = null;
    else this.#stuckSince ??= now;
    if (now - (this.#stuckSince ?? now) >= LOST_MS) this.#end();
  }

  #end(): void {
    if (this.#state === 'ending' || this.#state === 'ended') return;
    const hasRun = this.#state === 'running';
    this.#state = 'ending';
    if (hasRun) this.#drain();
    else this.#tell();
  }

  /** Reads the rest of the output in parts. */
  #drain(): void {
    if (this.#read()) setImmediate(() => this.#drain());
    else this.#tell();
  }

  #tell(): void {
    const how = this.#howItEnded();
    const { isCut, isComplete, endedAt } = this.#spool.status();
    const why = whyKilled(this.#spool.why());
    const end = { how, leftBehind: this.#marks.end(), isCut, isWhole: isComplete, endedAt, why };
    this.#state = 'ended';
    clearTimeout(this.#parkingTimer);
    if (this.#draining !== null) clearTimeout(this.#draining);
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#watcher?.close();
    this.#spool.close();
    this.#tellReady(null);
    this.#tellEnd(end);
  }

  #howItEnded(): LaunchedEnd['how'] {
    const facts = this.#facts();
    // After our claim it can't begin any more.
    const verdict = verdictOf({ ...facts, isClaimed: !this.#spool.claim(), why: '' });
    switch (verdict.kind) {
      case 'neverStarted':
        return { kind: 'neverStarted' };
      case 'draining':
      case 'finished':
        return { kind: 'exited', code: verdict.exitCode };
      case 'running':
      case 'killed':
        return { kind: 'killed' };
      default:
        return verdict satisfies never;
    }
  }
}

/** `send` takes an order without the number of the command. */
export const followCommand = (
  spool: Spool,
  send: (words: string) => void,
  options: FollowOptions,
): ParkedCommand => new Command(spool, send, options);

/** Follows a command that an earlier agent has started and that was claimed. */
const attachCommand = (spool: Spool, to: OutputReceiver, options: FollowOptions): ParkedCommand => {
  const command = new Command(spool, () => undefined, options);
  command.attach(to);
  return command;
};

/**
 * The state of a command, judged from the files of its launcher. It is the same for the process that started the
 * command and for one that finds the files after a crash.
 */

/**
 * The process of bubblewrap. Its start time (ticks since boot) distinguishes it from a later process with the same
 * number.
 */
export type LaunchedProcess = { readonly pid: number; readonly startedAt: number };

/** The content of the file `status`. */
type CommandStatus = {
  /** Null before the process exists. */
  readonly process: LaunchedProcess | null;
  readonly exitCode: number | null;
  /** When it ended, in ms since boot; null if that is unknown. */
  readonly endedAt: number | null;
  /** All of the output is written. */
  readonly isComplete: boolean;
  /** Output is missing because the disk was full. */
  readonly isCut: boolean;
  /** Name of the pipe that its runner and its fence hold open; null if there is none. */
  readonly alivePipe: string | null;
};

export type LaunchFacts = {
  /** Whether the file `claim` exists. */
  readonly isClaimed: boolean;
  readonly status: CommandStatus;
  /** Whether that process runs. Determine it before reading `status`, so that its last lines are not missed. */
  readonly isAlive: boolean;
  /** The file `why`: the reason why the command was killed; empty if there is none. */
  readonly why: string;
};

export type CommandVerdict =
  /** It never began. After claiming it now, it never will. */
  | { readonly kind: 'neverStarted' }
  | { readonly kind: 'running'; readonly process: LaunchedProcess | null }
  /** It has ended; more of its output may come for a moment. */
  | { readonly kind: 'draining'; readonly exitCode: number }
  | { readonly kind: 'finished'; readonly exitCode: number }
  /** It ended without an exit code. `lost`: nobody intended that. */
  | { readonly kind: 'killed'; readonly why: 'deadline' | 'cancelled' | 'lost' };

const numberIn = (line: string | undefined, at: number): number => Number(line?.split(' ')[at]);

/** Parses `status`: lines, then blanks. A line without a newline is not complete yet. */
export const readStatus = (text: string): CommandStatus => {
  const lines = text.split('\n').slice(0, -1);
  const run = lines.find((line) => /^run \d+ \d+$/.test(line));
  const exit = lines.find((line) => /^exit \d+(?: \d+(?:\.\d+)?)?$/.test(line));
  const seconds = numberIn(exit, 2);
  return {
    process: run === undefined ? null : { pid: numberIn(run, 1), startedAt: numberIn(run, 2) },
    exitCode: exit === undefined ? null : numberIn(exit, 1),
    endedAt: Number.isNaN(seconds) ? null : seconds * 1000,
    isComplete: lines.includes('eof'),
    isCut: lines.includes('cut'),
    alivePipe: /^alive (alive-[\da-f]+)$/m.exec(lines.join('\n'))?.[1] ?? null,
  };
};

/** The meaning of the file `why`. */
const whyKilled = (why: string): 'deadline' | 'cancelled' | 'lost' => {
  const word = why.trim();
  return word === 'deadline' || word === 'cancelled' ? word : 'lost';
};

export const verdictOf = ({ isClaimed, status, isAlive, why }: LaunchFacts): CommandVerdict => {
  if (!isClaimed) return { kind: 'neverStarted' };
  const { exitCode, isComplete, process } = status;
  if (exitCode !== null) return { kind: isComplete ? 'finished' : 'draining', exitCode };
  if (isAlive) return { kind: 'running', process };
  return { kind: 'killed', why: whyKilled(why) };
};

/**
 * The files of one command, in a folder that commands can't write to. launcher-script.ts says who writes which.
 *
 * `run`: shell text that starts the fence. `command`: shell text for the parked shell. `order`: see command-recovery-record.ts.
 * `out`, `tail.1`, `tail.2`, …, `removed`: its output, see spool-reader.ts. `status`, `claim` and `why`: see
 * command-verdict.ts. `attached`: the later agent that follows it.
 */
type Spool = {
  readonly folder: string;
  /** Path of the file `command`, which the parked shell sees. */
  readonly command: string;
  status(): CommandStatus;
  /** Writes what to run, before the start. */
  order(command: string, order: CommandOrder): void;
  /** See spool-reader.ts. */
  read: SpoolReader['read'];
  /** Claims the command, so that it never begins. False if it has begun or the claim can't be written. */
  claim(): boolean;
  isClaimed(): boolean;
  /** Whether its process runs. Call it before `status` is read again, so that its last lines are not missed. */
  isAlive(): boolean;
  /** Records why the command will be killed. */
  killedFor(why: 'deadline' | 'cancelled'): void;
  /** The recorded reason, or an empty text. */
  why(): string;
  /** Tells the launcher of a dead agent that this process follows the command from now on. */
  attach(): void;
  close(): void;
  remove(): void;
  removeLater(): Promise<void>;
};

/** Size allocated in advance, so that a full disk can't lose an exit code. */
const STATUS_BYTES = 512;

/** Whether a change of this file is worth a look at the command. */
const isTelling = (name: string): boolean => name === 'status' || name === 'out' || name.startsWith('tail.');

const readIfThere = (file: string): string => {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return ''; // nobody has written it
  }
};

/**
 * Whether any process holds a pipe open. Unlike a process number that means the same in every pid namespace. True if
 * nobody can tell.
 */
const isPipeHeld = (file: string): boolean => {
  try {
    closeSync(openSync(file, constants.O_WRONLY | constants.O_NONBLOCK));
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    return code !== 'ENXIO' && code !== 'ENOENT';
  }
};

/** `foreign`: processes of another pid namespace, so their numbers mean nothing here. */
type ProcessView = 'own' | 'foreign';

const spoolAt = (folder: string, isFound: boolean, view: ProcessView): Spool => {
  const at = (name: string): string => path.join(folder, name);
  const command = at('command');
  const status = openSync(at('status'), 'r');
  const reader = createSpoolReader(folder, { hasGaps: isFound });
  const block = Buffer.alloc(STATUS_BYTES);
  const readNow = (): CommandStatus =>
    readStatus(block.toString('latin1', 0, readSync(status, block, 0, STATUS_BYTES, 0)));
  return {
    folder,
    command,
    status: readNow,
    isAlive() {
      const { process, alivePipe } = readNow();
      if (view === 'own') return process !== null && isRunning(process);
      return alivePipe !== null && isPipeHeld(path.join(folder, '..', alivePipe));
    },
    order(text, order) {
      // In place, because this very file is mounted for the parked shell.
      writeFileSync(command, text, { flag: 'r+' });
      writeOrder(folder, order);
    },
    read: (bytesMax, to) => reader.read(bytesMax, to),
    claim() {
      try {
        writeFileSync(at('claim'), '', { flag: 'wx' });
        return true;
      } catch {
        return false; // it has begun, or nobody can tell: then it must not be started again
      }
    },
    isClaimed: () => existsSync(at('claim')),
    killedFor(why) {
      try {
        writeFileSync(at('why'), why);
      } catch {
        // It is killed all the same; a recovery would call it lost.
      }
    },
    why: () => readIfThere(at('why')),
    attach() {
      const { started } = statOf(process.pid);
      if (started !== '') writeFileSync(at('attached'), `${process.pid} ${started}\n`);
    },
    close() {
      closeSync(status);
      reader.close();
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
    removeLater: () => rm(folder, { recursive: true, force: true }),
  };
};

/** Makes the files. `run` returns text for a shell. Throws if a file can't be made. */
export const makeSpool = (folder: string, run: (command: string) => string): Spool => {
  const at = (name: string): string => path.join(folder, name);
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(at('run'), run(at('command')));
  writeFileSync(at('command'), '');
  writeFileSync(at('status'), ' '.repeat(STATUS_BYTES));
  return spoolAt(folder, false, 'own');
};

/** The files that an earlier process made. Throws if they are gone. */
const openSpool = (folder: string, view: ProcessView): Spool => spoolAt(folder, true, view);

/** Whether exactly this process runs. A zombie does not. */
const isRunning = ({ pid, startedAt }: LaunchedProcess): boolean => {
  const { state, started } = statOf(pid);
  return started !== '' && Number(started) === startedAt && !/[ZX]/.test(state);
};

/**
 * What a later process must know of a command: the file `order` beside its output, written before it starts.
 *
 * The first line is for the launcher's shell: when the command is due, in ms since boot, or `-`. The second line is JSON.
 */

export type CommandRecord = {
  /** Identifies the call in its session; also in the environment of all its processes. */
  readonly call: string;
  readonly marker: string;
  readonly isFenced: boolean;
  /** In ms since boot. */
  readonly startedAt: number;
  /** Device and inode of the workspace. */
  readonly workspace: string;
  /** Of a background command. */
  readonly job: { readonly jobId: string; readonly command: string } | null;
};

const recordSchema: v.GenericSchema<unknown, CommandRecord> = v.object({
  call: v.string(),
  marker: v.string(),
  isFenced: v.boolean(),
  startedAt: v.number(),
  workspace: v.string(),
  job: v.nullable(v.object({ jobId: v.string(), command: v.string() })),
});

/** `due`: null without a deadline. */
export type CommandOrder = { readonly due: number | null; readonly record: CommandRecord | null };

/** Time since boot in ms. Unlike the clock of the wall it never jumps, and all processes share it. */
export const sinceBoot = (): number => {
  try {
    return Number.parseFloat(readFileSync('/proc/uptime', 'latin1')) * 1000;
  } catch {
    return performance.now(); // not Linux: nothing is recovered there
  }
};

const fileIn = (folder: string): string => path.join(folder, 'order');

export const writeOrder = (folder: string, { due, record }: CommandOrder): void =>
  writeFileSync(fileIn(folder), `${due ?? '-'}\n${record === null ? '' : `${JSON.stringify(record)}\n`}`);

/** Null if there is none, or none that was written to its end. */
const readOrder = (folder: string): (CommandOrder & { readonly record: CommandRecord }) | null => {
  try {
    const [due = '', json = ''] = readFileSync(fileIn(folder), 'utf8').split('\n');
    const record = v.parse(recordSchema, JSON.parse(json));
    return { due: due === '-' ? null : Number(due), record };
  } catch {
    return null; // the agent was killed before: then the command was not started either
  }
};

/** Commands that a process which was killed has started, found by their files. */

export type FoundCommand = {
  readonly record: CommandRecord;
  /** When it must end, in ms since boot; null without a deadline. */
  readonly due: number | null;
  /** Whether its process numbers mean anything here. */
  readonly view: ProcessView;
  /**
   * How it stands now. `direct`: it was started without the launcher, so nothing is known of its end. `unseen`: it began
   * in another pid namespace, and nothing shows from here whether it still runs.
   */
  verdict(): CommandVerdict | { readonly kind: 'direct' | 'unseen' };
  /** Prevents that it begins. False if it has begun. */
  claim(): boolean;
  /** Follows a command that has begun, from the beginning of its output. */
  follow(to: OutputReceiver): FollowedCommand;
  /**
   * What its files say, for a command of another machine or of an earlier start of this one: process numbers mean
   * nothing then, so none is looked up. Changes no file.
   */
  readLeft(): Pick<CommandStatus, 'exitCode' | 'endedAt'> & { readonly hasBegun: boolean };
  /** Reads the output that such a command has left. Changes no file. */
  readOutput(to: OutputReceiver): void;
};

export type FollowedCommand = {
  /** Its process, if it runs and can be seen from here. */
  readonly process: LaunchedProcess | null;
  readonly ended: Promise<LaunchedEnd>;
  /** Records that it will be killed because it was cancelled. The guard of its launcher reads that, too. */
  cancelled(): void;
};

/** In ms: what writes the rest of an output may still run, or was killed with everything else. */
const FOUND_DRAINING_MS = 2_000;

const verdictIn = (
  folder: string,
  view: ProcessView,
  { isFenced }: CommandRecord,
): ReturnType<FoundCommand['verdict']> => {
  const spool = openSpool(folder, view);
  try {
    const isAlive = spool.isAlive();
    const status = spool.status();
    const verdict = verdictOf({ isClaimed: spool.isClaimed(), status, isAlive, why: spool.why() });
    // Without a fence only the runner holds the pipe, and may have been killed alone.
    const isUnseen = view === 'foreign' && (status.alivePipe === null || !isFenced);
    return verdict.kind === 'killed' && verdict.why === 'lost' && isUnseen ? { kind: 'unseen' } : verdict;
  } finally {
    spool.close();
  }
};

const readLeftIn = (folder: string): ReturnType<FoundCommand['readLeft']> => {
  const spool = openSpool(folder, 'foreign');
  try {
    const { exitCode, endedAt } = spool.status();
    return { exitCode, endedAt, hasBegun: spool.isClaimed() };
  } finally {
    spool.close();
  }
};

const readOutputIn = (folder: string, to: OutputReceiver): void => {
  const reader = createSpoolReader(folder, { hasGaps: true, keepsPieces: true });
  try {
    reader.read(Number.POSITIVE_INFINITY, to);
  } finally {
    reader.close();
  }
};

const foundIn = (folder: string, view: ProcessView): FoundCommand | null => {
  const order = readOrder(folder);
  if (order === null) return null;
  const isDirect = !existsSync(path.join(folder, 'status'));
  return {
    ...order,
    view,
    verdict() {
      if (isDirect) return { kind: view === 'own' ? 'direct' : 'unseen' };
      return verdictIn(folder, view, order.record);
    },
    claim() {
      const spool = openSpool(folder, view);
      spool.close();
      return spool.claim();
    },
    readLeft: () => (isDirect ? { exitCode: null, endedAt: null, hasBegun: true } : readLeftIn(folder)),
    readOutput: (to) => readOutputIn(folder, to),
    follow(to) {
      const spool = openSpool(folder, view);
      const { process } = spool.status();
      const isAlive = view === 'own' && spool.isAlive();
      if (view === 'own') spool.attach();
      const command = attachCommand(spool, to, { drainingMs: FOUND_DRAINING_MS });
      return {
        process: isAlive ? process : null,
        ended: command.ended,
        cancelled: () => command.cancelled(),
      };
    },
  };
};

const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return []; // no command was started
  }
};

/** The launcher's commands have numbers. A direct start may be the second attempt of one of them, so it comes later. */
const rankOf = (name: string): number => (/^\d+$/.test(name) ? Number(name) : Number.MAX_SAFE_INTEGER);

/** The commands that were ordered, the oldest first. */
export const findCommands = (folder: string, view: ProcessView): readonly FoundCommand[] =>
  namesIn(folder)
    .toSorted((one, other) => rankOf(one) - rankOf(other))
    .map((name) => foundIn(path.join(folder, name), view))
    .filter((found) => found !== null);

export const isCommandAlive = (found: FoundCommand): boolean => {
  const { kind } = found.verdict();
  return kind === 'running' || kind === 'draining';
};
