/**
 * A command that launcher.sh starts, followed by its files: in the process that requested it, or in
 * a later one that finds the files after a crash. Both judge it in the same way.
 *
 * - fence: the sandbox around one command; a command without one is "open".
 * - parked: its shell has been started, in its fence, and waits for a line with the command.
 * - claim: the file that decides whether a parked command begins. Only one process can create it:
 *   the launcher, which then starts the command, or a process of Pawl, so that the command never
 *   begins. So no command runs twice. A command is claimed once the file exists.
 * - spool: the folder of one command, with its output and its status.
 * - guard: the part of launcher.sh that outlives Pawl, and then ends commands at their deadlines.
 *
 * From top to bottom: the status of a command (`judgeCommand`); its record for a later process;
 * `Spool`, its files; `LaunchedCommand`, which this process follows; and `FoundCommand`, a command
 * of a killed process.
 */

import {
  closeSync,
  constants,
  existsSync,
  type FSWatcher,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import * as v from 'valibot';
import { attemptNow } from '../platform/attempt.js';
import { errorCode, namesIn, writePrivateSync } from '../platform/files.js';
import { processExists, readProcess } from '../platform/processes.js';
import { type OutputReceiver, SpoolReader, type SpoolReaderOptions } from './output.js';
import { createMarkReader, type EndReport, type ShellText } from './sandbox/shell-text.js';

/**
 * The process of the fence, or of the command. Its start time (`readProcess`) distinguishes it from
 * a later process with the same number.
 */
export type LaunchedProcess = { readonly pid: number; readonly startedAt: number };

/** The content of the file `status`. */
export type CommandStatus = {
  /** Null before the process exists. */
  readonly process: LaunchedProcess | null;
  readonly exitCode: number | null;
  /** When it ended, in ms since boot; null if that is unknown. */
  readonly endedAt: number | null;
  /** All of the output is written. */
  readonly isComplete: boolean;
  /** Output is missing because the disk was full. */
  readonly isCut: boolean;
  /**
   * Name of the pipe that its fence, and the part of launcher.sh that started it, hold open for
   * reading while it runs; null: none.
   */
  readonly alivePipe: string | null;
};

/**
 * Parses `status`: the lines `alive PIPE`, `run PID START`, `exit CODE [UPTIME]`, `cut`, `eof`, in
 * any order, then blanks. A line without a newline is not complete yet.
 */
export const readStatus = (text: string): CommandStatus => {
  const lines = text.split('\n').slice(0, -1);
  const run = lines.find((line) => /^run \d+ \d+$/.test(line));
  const exit = lines.find((line) => /^exit \d+(?: \d+(?:\.\d+)?)?$/.test(line));
  const seconds = numberAt(exit, 2);
  return {
    process: run === undefined ? null : { pid: numberAt(run, 1), startedAt: numberAt(run, 2) },
    exitCode: exit === undefined ? null : numberAt(exit, 1),
    endedAt: Number.isNaN(seconds) ? null : seconds * 1000,
    isComplete: lines.includes('eof'),
    isCut: lines.includes('cut'),
    alivePipe: /^alive (alive-[\da-f]+)$/m.exec(lines.join('\n'))?.[1] ?? null,
  };
};

const numberAt = (line: string | undefined, at: number): number => Number(line?.split(' ')[at]);

/** The reason for which a command was killed. `lost`: Pawl did not kill it. */
export type KillReason = 'deadline' | 'cancelled' | 'lost';

/** The reason in the file `why`. */
const killReason = (why: string): KillReason => {
  const word = why.trim();
  return word === 'deadline' || word === 'cancelled' ? word : 'lost';
};

export type LaunchFacts = {
  /** Whether the file `claim` exists. */
  readonly isClaimed: boolean;
  readonly status: CommandStatus;
  /** Whether its process runs. Check it before reading `status`, to get the last lines. */
  readonly isAlive: boolean;
  /** The file `why`: the reason why the command was killed; empty if there is none. */
  readonly why: string;
};

export type CommandVerdict =
  /** It is not claimed, so it does not run, and never will if the caller claims it now. */
  | { readonly kind: 'neverStarted' }
  | { readonly kind: 'running'; readonly process: LaunchedProcess | null }
  /** It has ended; more of its output may come for a moment. */
  | { readonly kind: 'draining'; readonly exitCode: number }
  | { readonly kind: 'finished'; readonly exitCode: number }
  /** It ended without an exit code. */
  | { readonly kind: 'killed'; readonly why: KillReason };

export const judgeCommand = ({ isClaimed, status, isAlive, why }: LaunchFacts): CommandVerdict => {
  if (!isClaimed) return { kind: 'neverStarted' };
  const { exitCode, isComplete, process } = status;
  if (exitCode !== null) return { kind: isComplete ? 'finished' : 'draining', exitCode };
  if (isAlive) return { kind: 'running', process };
  return { kind: 'killed', why: killReason(why) };
};

/** The facts about a command for a later process. */
export type CommandRecord = {
  /** Identifies the call in its session: its batch and its id. */
  readonly call: string;
  /** A text in the environment of all its processes, by which they are found. */
  readonly marker: string;
  readonly isFenced: boolean;
  /** It runs in the session's network. Default: false, as in records of earlier versions. */
  readonly sharesNetwork?: boolean | undefined;
  /** In ms since boot. */
  readonly startedAt: number;
  /** Device and inode of the workspace. */
  readonly workspace: string;
  /** The job, if it is a background command. */
  readonly job: { readonly jobId: string; readonly command: string } | null;
};

const recordSchema: v.GenericSchema<unknown, CommandRecord> = v.object({
  call: v.string(),
  marker: v.string(),
  isFenced: v.boolean(),
  sharesNetwork: v.optional(v.boolean()),
  startedAt: v.number(),
  workspace: v.string(),
  job: v.nullable(v.object({ jobId: v.string(), command: v.string() })),
});

/** `due`: deadline in ms since boot, or null. `record`: null if no later process needs it. */
export type LaunchRequest = { readonly due: number | null; readonly record: CommandRecord | null };

const requestFile = (folder: string): string => path.join(folder, 'order');

/** The first line is for launcher.sh: `due`, or `-`. The second line is JSON. */
export const writeLaunchRequest = (folder: string, { due, record }: LaunchRequest): void =>
  writeFileSync(
    requestFile(folder),
    `${due ?? '-'}\n${record === null ? '' : `${JSON.stringify(record)}\n`}`,
  );

/** Null if the request is missing or incomplete. */
const readLaunchRequest = (
  folder: string,
): (LaunchRequest & { readonly record: CommandRecord }) | null => {
  try {
    const [due = '', json = ''] = readFileSync(requestFile(folder), 'utf8').split('\n');
    const record = v.parse(recordSchema, JSON.parse(json));
    return { due: due === '-' ? null : Number(due), record };
  } catch {
    return null; // the agent was killed before: then the command was not started either
  }
};

/** `foreign`: processes of another pid namespace, so their numbers mean nothing here. */
export type ProcessView = 'own' | 'foreign';

/** Size allocated in advance, so that a full disk can't lose an exit code. */
const STATUS_BYTES = 512;

/**
 * The files of one command, in a folder that commands can't write to. launcher.sh lists their
 * writers.
 *
 * - `run`: shell text that starts the fence.
 * - `command`: shell text for the parked shell.
 * - `order`: see writeLaunchRequest.
 * - `out`, `tail.1`, `tail.2`, …: its output; `removed`: the lengths of removed pieces.
 * - `status`, `claim` and `why`: see LaunchFacts.
 * - `attached`: the later agent that follows it.
 */
export class Spool {
  readonly folder: string;
  readonly #view: ProcessView;
  readonly #status: number;
  readonly #block = Buffer.alloc(STATUS_BYTES);
  readonly #output: SpoolReader;

  /** Opens the files of an earlier process. Throws if they are gone. */
  constructor(folder: string, view: ProcessView, options: SpoolReaderOptions = { hasGaps: true }) {
    this.folder = folder;
    this.#view = view;
    this.#status = openSync(this.#at('status'), 'r');
    this.#output = new SpoolReader(folder, options);
  }

  /**
   * Creates the files. `run` gets the path of the file `command`, and returns shell text. Throws if
   * a file can't be created.
   */
  static create(folder: string, run: (command: string) => string): Spool {
    const at = (name: string): string => path.join(folder, name);
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(at('run'), run(at('command')));
    writeFileSync(at('command'), '');
    writeFileSync(at('status'), ' '.repeat(STATUS_BYTES));
    return new Spool(folder, 'own', { hasGaps: false }); // this process reads all the time
  }

  status(): CommandStatus {
    const length = readSync(this.#status, this.#block, 0, STATUS_BYTES, 0);
    return readStatus(this.#block.toString('latin1', 0, length));
  }

  /** Whether its process runs. Call it before `status`, to get the last lines there. */
  isAlive(): boolean {
    const { process, alivePipe } = this.status();
    if (this.#view === 'own') return process !== null && isRunning(process);
    return alivePipe !== null && isPipeHeld(path.join(this.folder, '..', alivePipe));
  }

  isClaimed(): boolean {
    return existsSync(this.#at('claim'));
  }

  facts(): LaunchFacts {
    const isAlive = this.isAlive();
    return { isAlive, status: this.status(), isClaimed: this.isClaimed(), why: this.why() };
  }

  /** Writes what to run, before the start. */
  write(text: string, request: LaunchRequest): void {
    // in place, because this very file is mounted for the parked shell
    writeFileSync(this.#at('command'), text, { flag: 'r+' });
    writeLaunchRequest(this.folder, request);
  }

  /** Passes on at most `bytesMax` of new output. Returns whether more may be available at once. */
  read(bytesMax: number, to: OutputReceiver): boolean {
    return this.#output.read(bytesMax, to);
  }

  /**
   * Claims the command, so that it never begins. False if it is claimed already and may run, or the
   * claim can't be written.
   */
  claim(): boolean {
    try {
      writeFileSync(this.#at('claim'), '', { flag: 'wx' });
      return true;
    } catch {
      return false; // it may run already, so it must not be started again
    }
  }

  /** Records that the command will be killed because it was cancelled. */
  recordCancellation(): void {
    // If that fails, it is killed anyway; a recovery would report it as lost.
    attemptNow(() => writeFileSync(this.#at('why'), 'cancelled'));
  }

  /** The recorded reason for a kill, or an empty text. */
  why(): string {
    try {
      return readFileSync(this.#at('why'), 'latin1');
    } catch {
      return ''; // not written
    }
  }

  /** Tells the launcher of a dead agent that this process follows the command from now on. */
  attach(): void {
    const { started } = readProcess(process.pid);
    if (started === '') return;
    // On a full disk it counts as not followed: then its launcher keeps the deadline as well.
    attemptNow(() => writePrivateSync(this.#at('attached'), `${process.pid} ${started}\n`));
  }

  close(): void {
    closeSync(this.#status);
    this.#output.close();
  }

  #at(name: string): string {
    return path.join(this.folder, name);
  }
}

/**
 * Whether exactly this process runs; false for a zombie. If the system does not report start times,
 * any process with this number counts.
 */
const isRunning = ({ pid, startedAt }: LaunchedProcess): boolean => {
  const { state, started } = readProcess(pid);
  if (started === '') return processExists(pid);
  return Number(started) === startedAt && !/[ZX]/.test(state);
};

/** Whether any process, in any pid namespace, holds a pipe open for reading. True if unknown. */
const isPipeHeld = (file: string): boolean => {
  try {
    closeSync(openSync(file, constants.O_WRONLY | constants.O_NONBLOCK));
    return true;
  } catch (error) {
    return !['ENXIO', 'ENOENT'].includes(errorCode(error));
  }
};

export type LaunchedEnd = {
  readonly how:
    | { readonly kind: 'exited'; readonly code: number }
    /** It has no exit code. */
    | { readonly kind: 'killed' }
    /** It did not begin and never will, so it can be started again. */
    | { readonly kind: 'neverStarted' };
  /** The report of the shell in its fence: whether processes outlived the command. */
  readonly report: EndReport;
  /** Output is missing: the disk was full, or too many files were open. */
  readonly isCut: boolean;
  /**
   * The output is complete. False if its writer was killed, or if a detached process holds it open.
   */
  readonly isWhole: boolean;
  /** When it ended, in ms since boot; null if that is unknown. */
  readonly endedAt: number | null;
  /** The recorded reason for a kill. */
  readonly why: KillReason;
};

/** A started command, as its follower sees it. */
export type Launched = {
  /** Its process; null if it does not run or can't be seen from here. */
  readonly process: LaunchedProcess | null;
  readonly ended: Promise<LaunchedEnd>;
  /**
   * Records that it will be killed because it was cancelled. The guard of its launcher reads that,
   * too.
   */
  recordCancellation(): void;
};

export type FollowOptions = {
  /** False: don't use file change notifications. */
  readonly watches?: boolean;
  /** How long to wait for the end of the output after the exit code, in ms. */
  readonly drainingMs?: number;
  /** False: a process that it has detached may hold its output open. Default: true. */
  readonly isFenced?: boolean;
};

/** Most bytes of output in one read. */
const READ_MAX = 1024 * 1024;
/** How long to wait for the process of a command that is being parked, in ms. */
const PARKING_MS = 10_000;
/** Polling intervals, with and without file change notifications. */
const POLL_MS = 200;
const POLL_UNNOTIFIED_MS = 5;
/** How long to wait, in ms, for the exit code of a command whose process has ended. */
const LOST_MS = 1_000;
/** The same while its launcher lives and the output is not complete: it may write one late. */
const LATE_MS = 20_000;
/** How long to wait for the end of the output after the exit code, in ms. */
const DRAINING_MS = 5_000;
/** The same after the end mark of an open command: a detached process holds the output open. */
const HELD_OPEN_MS = 100;

const IGNORE_OUTPUT: OutputReceiver = { bytes: () => undefined, skipped: () => undefined };

/** Whether a change of this file may change the state of the command. */
const isRelevant = (name: string): boolean =>
  name === 'status' || name === 'out' || name.startsWith('tail.');

/**
 * One command from its parking to its end. Follows its files by change notifications, and by
 * polling in case one is missing.
 */
export class LaunchedCommand {
  /** Its process, once it exists; null if it does not appear in time. */
  readonly ready: Promise<LaunchedProcess | null>;
  /** Resolves when it has ended, even if it was never started. */
  readonly ended: Promise<LaunchedEnd>;
  readonly #spool: Spool;
  readonly #sendLine: (line: string) => void;
  readonly #watcher: FSWatcher | null;
  /** Takes the marks out of the output. `hasEnded`: the end mark has come (shell-text.ts). */
  readonly #marks = createMarkReader((bytes) => this.#receiver.bytes(bytes));
  readonly #drainingMs: number;
  readonly #isFenced: boolean;
  #timer: NodeJS.Timeout | null = null;
  readonly #parkingTimer: NodeJS.Timeout;
  #state: 'parking' | 'parked' | 'running' | 'ending' | 'ended' = 'parking';
  #process: LaunchedProcess | null = null;
  /** Its launcher has ended, or belonged to an earlier process, so the command can't begin. */
  #hasNoLauncher = false;
  #keepsFiles = false;
  /** The last attempt to read its output has failed. */
  #isUnread = false;
  #outputBytes = 0;
  /** The time since which the command seems stuck; null: it does not. */
  #stuckSince: number | null = null;
  #receiver = IGNORE_OUTPUT;
  #draining: NodeJS.Timeout | null = null;
  #detachedOutput: NodeJS.Timeout | null = null;
  #resolveReady: (process: LaunchedProcess | null) => void = () => undefined;
  #resolveEnded: (end: LaunchedEnd) => void = () => undefined;

  /** `sendLine` sends a line of shell text to the parked shell, which starts the command. */
  constructor(spool: Spool, sendLine: (line: string) => void, options: FollowOptions) {
    this.#spool = spool;
    this.#sendLine = sendLine;
    this.#drainingMs = options.drainingMs ?? DRAINING_MS;
    this.#isFenced = options.isFenced ?? true;
    this.ready = new Promise((resolve) => {
      this.#resolveReady = resolve;
    });
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    this.#watcher = (options.watches ?? true) ? this.#watch() : null;
    this.#poll();
    this.#parkingTimer = setTimeout(() => this.#park(null), PARKING_MS).unref();
  }

  /** Bytes of output so far, with marks. */
  get outputBytes(): number {
    return this.#outputBytes;
  }

  /** Whether its files stay until the session ends, for a job, whose output can be read later. */
  get keepsFiles(): boolean {
    return this.#keepsFiles;
  }

  /** Whether it is parked and can be started. */
  canStart(): boolean {
    this.#update();
    return this.#state === 'parked' && this.#process !== null && this.#spool.isAlive();
  }

  /** Starts the command if `canStart`. */
  start({ file, line }: ShellText, request: LaunchRequest, to: OutputReceiver): void {
    if (this.#state !== 'parked') return;
    try {
      this.#spool.write(file, request);
    } catch {
      // The disk is full. It never begins, since nobody sends its line: it is started directly.
      this.#finish({ kind: 'neverStarted' });
      return;
    }
    this.#run(to);
    this.#keepsFiles = (request.record?.job ?? null) !== null;
    this.#sendLine(line);
  }

  /** Follows a claimed command of an earlier process, instead of `start`. */
  attach(to: OutputReceiver): void {
    this.#park(this.#spool.status().process);
    this.#hasNoLauncher = true;
    this.#run(to);
    this.#update();
  }

  recordCancellation(): void {
    this.#spool.recordCancellation();
  }

  /** Call it when its launcher has ended. A running command goes on. */
  launcherEnded(): void {
    this.#hasNoLauncher = true;
    if (this.#state === 'parking' || this.#state === 'parked') this.#end();
  }

  /** Removes its files. What a broken or a network disk keeps goes with the session's folder. */
  remove(): void {
    attemptNow(() => rmSync(this.#spool.folder, { recursive: true, force: true }));
  }

  /** Like `remove`, asynchronously. */
  removeLater(): Promise<void> {
    return rm(this.#spool.folder, { recursive: true, force: true });
  }

  /** Null if the system's limit of watches is reached. */
  #watch(): FSWatcher | null {
    try {
      const watcher = watch(this.#spool.folder, { persistent: false }, (_, name) => {
        if (name === null || isRelevant(name)) this.#update();
      });
      watcher.on('error', () => undefined);
      return watcher;
    } catch {
      return null;
    }
  }

  #poll(): NodeJS.Timeout {
    const poll = (): void => {
      this.#update();
      this.#endIfStuck();
    };
    const timer = setInterval(poll, this.#watcher === null ? POLL_UNNOTIFIED_MS : POLL_MS).unref();
    this.#timer = timer;
    return timer;
  }

  /** `process`: null if it did not appear in time. */
  #park(process: LaunchedProcess | null): void {
    if (this.#state !== 'parking') return;
    clearTimeout(this.#parkingTimer);
    this.#state = 'parked';
    this.#process = process;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#resolveReady(process);
  }

  #run(to: OutputReceiver): void {
    this.#receiver = to;
    this.#state = 'running';
    this.#poll().ref(); // a running command keeps this process alive
  }

  /** Reads the status and new output, and updates the state. */
  #update(): void {
    if (this.#state === 'ending' || this.#state === 'ended') return;
    const status = this.#spool.status();
    if (status.process !== null) this.#park(status.process);
    if (status.exitCode !== null && status.isComplete) {
      this.#end();
      return;
    }
    if (this.#state === 'running') this.#read();
    if (status.exitCode === null) return; // until then an end mark is output of the command
    this.#draining ??= setTimeout(() => this.#end(), this.#drainingMs).unref();
    if (this.#marks.hasEnded && !this.#isFenced)
      this.#detachedOutput ??= setTimeout(() => this.#end(), HELD_OPEN_MS).unref();
  }

  /** Passes on new output. Returns whether more may be available at once. */
  #read(): boolean {
    this.#isUnread = true;
    try {
      const isMore = this.#spool.read(READ_MAX, {
        bytes: (bytes) => {
          this.#outputBytes += bytes.length;
          this.#marks.add(bytes);
        },
        skipped: (count) => this.#receiver.skipped(count),
      });
      this.#isUnread = false;
      return isMore;
    } catch {
      // Too many files are open. The next poll tries again; after the last one `isCut` tells it.
      return false;
    }
  }

  /** Ends a command that has had no process and no exit code for a while. */
  #endIfStuck(): void {
    if (this.#state !== 'running') return;
    const { status, isClaimed, isAlive } = this.#facts();
    // its launcher will still claim it
    const isExpected = !isClaimed && !this.#hasNoLauncher;
    const now = performance.now();
    if (status.exitCode !== null || isAlive || isExpected) this.#stuckSince = null;
    else this.#stuckSince ??= now;
    // The launcher writes the exit code before `eof`, so after `eof` none is expected.
    const graceMs = this.#hasNoLauncher || status.isComplete ? LOST_MS : LATE_MS;
    if (now - (this.#stuckSince ?? now) >= graceMs) this.#end();
  }

  #facts(): LaunchFacts {
    const facts = this.#spool.facts();
    // a process that did not appear in time is not waited for
    return this.#process === null ? { ...facts, isAlive: false } : facts;
  }

  #end(): void {
    if (this.#state === 'ending' || this.#state === 'ended') return;
    const hasRun = this.#state === 'running';
    this.#state = 'ending';
    if (hasRun) this.#drain();
    else this.#finish();
  }

  /** Reads the rest of the output in parts. */
  #drain(): void {
    if (this.#read()) setImmediate(() => this.#drain());
    else this.#finish();
  }

  #finish(how = this.#findEnd()): void {
    const { isComplete, endedAt, ...status } = this.#spool.status();
    const isCut = status.isCut || this.#isUnread;
    const why = killReason(this.#spool.why());
    const end = { how, report: this.#marks.end(), isCut, isWhole: isComplete, endedAt, why };
    this.#state = 'ended';
    clearTimeout(this.#parkingTimer);
    for (const timer of [this.#draining, this.#detachedOutput])
      if (timer !== null) clearTimeout(timer);
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#watcher?.close();
    this.#spool.close();
    this.#resolveReady(null);
    this.#resolveEnded(end);
  }

  #findEnd(): LaunchedEnd['how'] {
    const facts = this.#facts();
    // If our claim succeeds, the command was not claimed, and it can't begin any more.
    const verdict = judgeCommand({ ...facts, isClaimed: !this.#spool.claim() });
    switch (verdict.kind) {
      case 'neverStarted':
        return { kind: 'neverStarted' };
      case 'draining':
      case 'finished':
        return { kind: 'exited', code: verdict.exitCode };
      case 'running': // the claim can't be written: its parked shell ends with the launcher
      case 'killed':
        return { kind: 'killed' };
      default:
        return verdict satisfies never;
    }
  }
}

/** Like DRAINING_MS for a found command, whose output writer may have been killed. */
const FOUND_DRAINING_MS = 2_000;

/**
 * The state of a FoundCommand. `direct`: it was started without the launcher, so its end is
 * unknown. `unseen`: it began in another pid namespace, so it is unknown whether it still runs.
 */
export type FoundVerdict = CommandVerdict | { readonly kind: 'direct' | 'unseen' };

/** A command of a killed process, known by its files. A direct one can't be claimed or followed. */
export class FoundCommand {
  readonly record: CommandRecord;
  /** When it must end, in ms since boot; null without a deadline. */
  readonly due: number | null;
  /** Whether its process numbers mean anything here. */
  readonly view: ProcessView;
  readonly #folder: string;
  /** It was started without the launcher. */
  readonly #isDirect: boolean;

  constructor(folder: string, view: ProcessView, due: number | null, record: CommandRecord) {
    this.record = record;
    this.due = due;
    this.view = view;
    this.#folder = folder;
    this.#isDirect = !existsSync(path.join(folder, 'status'));
  }

  verdict(): FoundVerdict {
    if (this.#isDirect) return { kind: this.view === 'own' ? 'direct' : 'unseen' };
    return this.#withSpool((spool) => {
      const facts = spool.facts();
      const verdict = judgeCommand(facts);
      if (verdict.kind !== 'killed' || verdict.why !== 'lost' || this.view === 'own')
        return verdict;
      // without a fence only launcher.sh holds the pipe, and may have been killed alone
      const isSeen = facts.status.alivePipe !== null && this.record.isFenced;
      return isSeen ? verdict : { kind: 'unseen' };
    });
  }

  /** Its process, if it runs and can be seen from here. */
  runningProcess(): LaunchedProcess | null {
    const verdict = this.verdict();
    return this.view === 'own' && verdict.kind === 'running' ? verdict.process : null;
  }

  /** Prevents that it begins. False if it runs already. */
  claim(): boolean {
    return this.#withSpool((spool) => spool.claim());
  }

  /** Follows a started command from the beginning of its output. */
  follow(to: OutputReceiver): Launched {
    const spool = new Spool(this.#folder, this.view);
    const { process } = spool.status();
    const isAlive = this.view === 'own' && spool.isAlive();
    if (this.view === 'own') spool.attach();
    // It has been started already, so no line is sent to its shell.
    const command = new LaunchedCommand(spool, () => undefined, {
      drainingMs: FOUND_DRAINING_MS,
      isFenced: this.record.isFenced,
    });
    command.attach(to);
    return {
      process: isAlive ? process : null,
      ended: command.ended,
      recordCancellation: () => command.recordCancellation(),
    };
  }

  /**
   * The status in its files, for a command of another machine or of an earlier boot: process
   * numbers are meaningless then. Changes no file.
   */
  readStatus(): Pick<CommandStatus, 'exitCode' | 'endedAt'> & { readonly hasBegun: boolean } {
    if (this.#isDirect) return { exitCode: null, endedAt: null, hasBegun: true };
    return this.#withSpool((spool) => {
      const { exitCode, endedAt } = spool.status();
      return { exitCode, endedAt, hasBegun: spool.isClaimed() };
    });
  }

  /** Reads the output of such a command. Changes no file. */
  readOutput(to: OutputReceiver): void {
    const reader = new SpoolReader(this.#folder, { hasGaps: true, keepsPieces: true });
    const marks = createMarkReader((bytes) => to.bytes(bytes));
    try {
      reader.read(Number.POSITIVE_INFINITY, {
        bytes: (bytes) => marks.add(bytes),
        skipped: (count) => to.skipped(count),
      });
      marks.end();
    } finally {
      reader.close();
    }
  }

  #withSpool<T>(use: (spool: Spool) => T): T {
    const spool = new Spool(this.#folder, this.view);
    try {
      return use(spool);
    } finally {
      spool.close();
    }
  }
}

/**
 * The launcher's commands have numbers. A direct start may be the second attempt of one of them, so
 * it comes later.
 */
const startNumber = (name: string): number =>
  /^\d+$/.test(name) ? Number(name) : Number.MAX_SAFE_INTEGER;

/** The requested commands, the oldest first. */
export const findCommands = (folder: string, view: ProcessView): readonly FoundCommand[] =>
  namesIn(folder)
    .toSorted((one, other) => startNumber(one) - startNumber(other))
    .flatMap((name) => {
      const place = path.join(folder, name);
      const request = readLaunchRequest(place);
      return request === null ? [] : [new FoundCommand(place, view, request.due, request.record)];
    });

/**
 * Whether it is known to run, or only the end of its output is missing. False if that is unknown:
 * `direct` and `unseen`.
 */
export const isCommandAlive = (command: FoundCommand): boolean => {
  const { kind } = command.verdict();
  return kind === 'running' || kind === 'draining';
};
