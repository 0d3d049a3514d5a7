import { type FSWatcher, watch } from 'node:fs';
import { isTelling, type Spool } from './command-files.js';
import type { CommandOrder } from './command-recovery-record.js';
import { createMarkReader } from './command-shell-scripts.js';
import { type CommandStatus, type LaunchedProcess, verdictOf, whyKilled } from './command-verdict.js';
import type { OutputReceiver } from './spool-reader.js';

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
export type CommandStart = { readonly text: string; readonly line: string; readonly order: CommandOrder };

export type FollowOptions = {
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
export const attachCommand = (spool: Spool, to: OutputReceiver, options: FollowOptions): ParkedCommand => {
  const command = new Command(spool, () => undefined, options);
  command.attach(to);
  return command;
};
