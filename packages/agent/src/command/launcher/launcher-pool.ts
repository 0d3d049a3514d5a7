import { readFileSync, statSync } from 'node:fs';
import type { CommandOrder } from './command-recovery-record.js';
import {
  commandText,
  goLine,
  openCommandText,
  openGoLine,
  type ShellCommand,
} from './command-shell-scripts.js';
import type { LaunchedProcess } from './command-verdict.js';
import type { LaunchedEnd, ParkedCommand } from './follow-command.js';
import {
  type Enclosure,
  type LauncherOptions,
  type LauncherProcess,
  startLauncher,
} from './launcher-process.js';
import type { OutputReceiver } from './spool-reader.js';

/**
 * Starts commands that were set up in advance, fenced or not.
 *
 * 1. A parked command is used only if its fence is exactly the requested one, and everything mounted in it is still the
 *    same file or folder.
 * 2. One launcher serves one command at a time. Each simultaneous command gets another launcher.
 * 3. Setting up a command takes longer than a short command runs. While commands follow each other closely, AHEAD of
 *    them are parked, each in its own launcher, and the next one is set up while another runs.
 * 4. After a command that was cancelled, the next one is parked only a second later: a session that ends cancels its
 *    commands, and would wait for what was set up meanwhile.
 */
export type Launcher = {
  /**
   * A parked command behind this fence, set up now if necessary. Null if that fails: start the command directly. `next`:
   * the fence behind which the next command is parked; default: the same.
   */
  take(enclosure: Enclosure, next?: Enclosure): Promise<TakenCommand | null>;
  /** Kills all launchers. Resolves when none of them can write to the folder any more. Never rejects. */
  close(): Promise<void>;
};

export type TakenCommand = Pick<ParkedCommand, 'cancelled'> & {
  /** Starts it, once, in this folder; a fence has its own. `order` is recorded for a recovery. */
  go(command: ShellCommand, folder: string, order: CommandOrder, to: OutputReceiver): void;
  readonly process: LaunchedProcess;
  readonly ended: ParkedCommand['ended'];
};

type Slot = {
  readonly launcher: LauncherProcess;
  command: ParkedCommand | null;
  /** Key of the parked command's fence; null if none is parked. */
  key: string | null;
  /** Number of the command, in the order of parking. */
  number: number;
};

const SLOTS_MAX = 16;
/** Delay before the next command is parked, in ms, so that the result of the last one is processed first. */
const PARK_AFTER_MS = 2;
/** Commands follow each other closely if the next one is requested within this time, in ms. */
const CLOSE_MS = 100;
/** Delay before the next command is parked after one that was cancelled (rule 4). */
const CANCELLED_MS = 1_000;
/** Number of parked commands in that case. */
const AHEAD = 2;
/** Number of ended commands whose files are kept in any case. */
const RECENT_MAX = 3;
/** Files of so many commands are kept until none is wanted at once, which is when they disturb nobody. */
const OVER_MAX = 32;
/** Bytes of output with which a command's files are removed at once. */
const OVER_BYTES = 1_000_000;

const BINDS: ReadonlySet<string> = new Set(['--bind', '--ro-bind', '--bind-try', '--ro-bind-try']);

/** Identifies a file or folder. A changed file counts as another one; a changed folder does not. */
const identityOf = (place: string): string => {
  try {
    const status = statSync(place, { throwIfNoEntry: false });
    if (status === undefined) return 'absent';
    const { dev, ino, ctimeMs } = status;
    return status.isFile() ? `${dev}:${ino}:${ctimeMs}` : `${dev}:${ino}`;
  } catch {
    return 'closed'; // to us, so to commands as well
  }
};

/** The host's mounts. A parked fence does not see later ones. */
const mountsOfHost = (): string => {
  try {
    return readFileSync('/proc/self/mountinfo', 'latin1');
  } catch {
    return ''; // not Linux
  }
};

/** Key of everything that a fence depends on, as it is now. */
const keyOf = (enclosure: Enclosure): string => {
  if ('setsid' in enclosure) return enclosure.setsid;
  const { bwrap, words, seals, filter } = enclosure;
  const sources = words.filter((_, at) => BINDS.has(words[at - 1] ?? ''));
  return [bwrap, filter ?? '', ...words, ...seals, ...sources.map(identityOf), mountsOfHost()].join('\0');
};

const startOf = (enclosure: Enclosure, command: ShellCommand, folder: string) =>
  'setsid' in enclosure
    ? { text: openCommandText(command, folder), line: openGoLine(command) }
    : { text: commandText(command, enclosure.check), line: goLine(command) };

/** Keeps our process alive while a caller waits. Launchers and parked commands alone don't. */
const whileAlive = async <T>(promise: Promise<T>): Promise<T> => {
  const reason = setInterval(() => undefined, 60_000);
  try {
    return await promise;
  } finally {
    clearInterval(reason);
  }
};

class Pool implements Launcher {
  readonly #options: LauncherOptions;
  #slots: readonly Slot[] = [];
  /** Ends of launchers that are being killed. */
  readonly #dropped = new Set<Promise<void>>();
  #removing: Promise<unknown> = Promise.resolve();
  #count = 0;
  #isClosed = false;
  /** When the last command ended, in ms. */
  #endedAt = Number.NEGATIVE_INFINITY;
  #settling: NodeJS.Timeout | null = null;
  /** The last commands that have ended, the oldest first: their results may not be journaled yet. */
  readonly #recent: ParkedCommand[] = [];
  /** Ended commands whose files can be removed. */
  #over: ParkedCommand[] = [];

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  async take(enclosure: Enclosure, next = enclosure): Promise<TakenCommand | null> {
    // The second attempt uses a new launcher, in case the first one has ended meanwhile.
    return (await this.#takeOnce(enclosure, next)) ?? (await this.#takeOnce(enclosure, next));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const killed = this.#slots.map(({ launcher }) => launcher.kill());
    this.#slots = [];
    await Promise.all([...killed, ...this.#dropped, this.#removing]);
  }

  async #takeOnce(enclosure: Enclosure, next: Enclosure): Promise<TakenCommand | null> {
    try {
      const slot = this.#slotFor(enclosure, keyOf(enclosure));
      if (slot === null) return null;
      const { command } = slot;
      slot.key = null;
      const process = command === null ? null : await whileAlive(command.ready);
      if (command === null || process === null || !command.isWaiting()) {
        this.#drop(slot);
        return null;
      }
      const isClose = performance.now() - this.#endedAt < CLOSE_MS;
      let isCancelled = false;
      void command.ended.then((end) => {
        this.#ended(slot, end);
        const soonMs = isClose ? CLOSE_MS : PARK_AFTER_MS;
        this.#settleIn(isCancelled ? CANCELLED_MS : soonMs, next);
      });
      // after the caller has started the command it took
      if (isClose) setImmediate(() => this.#parkAhead(next)).unref();
      const { ended } = command;
      return {
        process,
        ended,
        go: (shellCommand, folder, order, to) =>
          command.go({ ...startOf(enclosure, shellCommand, folder), order }, to),
        cancelled() {
          isCancelled = true;
          command.cancelled();
        },
      };
    } catch {
      return null; // The disk is full or the process limit reached: a direct start reports it.
    }
  }

  /** A slot with a command that is parked behind this fence. */
  #slotFor(enclosure: Enclosure, key: string): Slot | null {
    this.#slots = this.#slots.filter((slot) => slot.launcher.isAlive || slot.key === null);
    const waiting = this.#slots.filter((slot) => slot.key !== null);
    const ready = waiting
      .toSorted((one, other) => one.number - other.number)
      .find((slot) => slot.key === key && slot.command?.isWaiting());
    if (ready !== undefined) return ready;
    const free = this.#slots.find(isFree) ?? waiting[0] ?? this.#open();
    if (free !== null) this.#park(free, enclosure, key);
    return free;
  }

  #open(): Slot | null {
    if (this.#isClosed || this.#slots.length >= SLOTS_MAX) return null;
    const launcher = startLauncher(this.#options);
    const slot = { launcher, command: null, key: null, number: 0 };
    this.#slots = [...this.#slots, slot];
    return slot;
  }

  /** Parks a command in place of the one that is parked there. */
  #park(slot: Slot, enclosure: Enclosure, key: string): void {
    this.#discard(slot);
    this.#count += 1;
    slot.command = slot.launcher.park(enclosure, this.#count);
    slot.key = key;
    slot.number = this.#count;
  }

  #discard(slot: Slot): void {
    const { command } = slot;
    if (command === null) return;
    slot.launcher.discard();
    void command.ended.then(() => command.remove());
  }

  #drop(slot: Slot): void {
    this.#slots = this.#slots.filter((one) => one !== slot);
    const { command, key } = slot;
    if (key !== null && command !== null) void command.ended.then(() => command.remove());
    const killed = slot.launcher.kill();
    this.#dropped.add(killed);
    void killed.then(() => this.#dropped.delete(killed));
  }

  #ended(slot: Slot, { isWhole }: LaunchedEnd): void {
    if (slot.command !== null) this.#recent.push(slot.command);
    if (this.#recent.length > RECENT_MAX) this.#isOver(this.#recent.shift());
    slot.command = null;
    if (!isWhole) this.#drop(slot); // its launcher waits for the end of the output
    this.#endedAt = performance.now();
  }

  #settleIn(delayMs: number, enclosure: Enclosure): void {
    if (this.#settling !== null) clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#settle(enclosure), delayMs).unref();
  }

  #isOver(command: ParkedCommand | undefined): void {
    if (command === undefined || command.isKept) return;
    if (command.outputBytes > OVER_BYTES) command.remove();
    else this.#over.push(command);
    if (this.#over.length <= OVER_MAX) return;
    const over = this.#over;
    this.#over = [];
    // What can't be removed goes with the session's folder.
    const removed = Promise.allSettled(over.map((one) => one.removeLater()));
    this.#removing = Promise.all([this.#removing, removed]);
  }

  #clearUp(): void {
    for (const command of this.#over) command.remove();
    this.#over = [];
  }

  /** Rule 3: parks one more command if too few are parked. It may replace one behind another fence. */
  #parkAhead(enclosure: Enclosure): void {
    if (this.#isClosed) return;
    const key = keyOf(enclosure);
    const waiting = this.#slots.filter((slot) => slot.key !== null);
    const others = waiting.filter((slot) => slot.key !== key);
    if (waiting.length - others.length >= AHEAD) return;
    this.#tryPark(others[0] ?? this.#slots.find(isFree) ?? null, enclosure);
  }

  /** After a burst of commands: keeps one parked command, and ends all other idle launchers. */
  #settle(enclosure: Enclosure): void {
    if (this.#isClosed) return;
    this.#clearUp();
    const idle = this.#slots.filter(({ command, key }) => command === null || key !== null);
    const newestFirst = idle.toSorted((one, other) => other.number - one.number);
    const kept = newestFirst.find(({ key }) => key !== null) ?? idle.find(isFree);
    for (const slot of idle) if (slot !== kept) this.#drop(slot);
    if (kept !== undefined && kept.key === null) this.#tryPark(kept, enclosure);
  }

  /** Parks a command, in a new launcher if none is given. */
  #tryPark(free: Slot | null, enclosure: Enclosure): void {
    try {
      const slot = free ?? this.#open();
      if (slot !== null) this.#park(slot, enclosure, keyOf(enclosure));
    } catch {
      // The disk is full or the process limit reached: the next command tries again.
    }
  }
}

const isFree = ({ command, launcher }: Slot): boolean => command === null && launcher.isAlive;

export const createLauncher = (options: LauncherOptions): Launcher => new Pool(options);
