/**
 * Starts the commands of a session through shells (launcher.sh) that outlive this program, so that
 * a command and its output survive a crash. Only command-sandbox.ts calls it.
 *
 * A command is parked before it is requested: its shell waits behind its fence (the sandbox around
 * one command), because building a fence takes longer than most commands.
 *
 * From top to bottom: `Launcher` and its pool of parked commands; the key that identifies a fence;
 * and `LauncherProcess`, one running launcher.sh.
 */

import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Duplex, Writable } from 'node:stream';
import { followStatus } from '../platform/files.js';
import type { ProgramPath } from '../platform/find-program.js';
import { hasProc } from '../platform/processes.js';
import { SYSTEM_SHELL, startProgram, systemBash } from '../platform/start-program.js';
import {
  type Launched,
  LaunchedCommand,
  type LaunchedEnd,
  type LaunchedProcess,
  type LaunchRequest,
  Spool,
} from './launched-command.js';
import type { OutputReceiver } from './output.js';
import type { FenceProgram } from './sandbox/fence.js';
import {
  COMMAND_INSIDE,
  type CommandLine,
  fencedCommand,
  openCommand,
  openParkedShell,
  parkedShell,
  shellWord,
  shellWords,
  withoutComments,
  wrapCommand,
} from './sandbox/shell-text.js';
import type { NetworkEntry } from './session-network.js';

/**
 * Starts commands that were set up in advance, fenced or not.
 *
 * A command is parked: bubblewrap has built its fence, and the shell inside waits for a line. It is
 * used only if the fence is exactly the requested one, and everything mounted in it is still the
 * same file or folder. One launcher process (launcher.sh) serves one command at a time; each
 * simultaneous command gets another one.
 *
 * In a burst (commands that follow each other closely) PARKED_MAX of them are parked, each in a
 * separate launcher process, and the next one is parked while another runs.
 */
export type Launcher = {
  /**
   * A command parked behind this fence, parked now if necessary. Null if that fails: start the
   * command directly. `next`: the fence for the next parked command; default: the same.
   */
  take(enclosure: Enclosure, next?: Enclosure): Promise<TakenCommand | null>;
  /**
   * Kills all launcher processes. Resolves when none of them can write to the folder any more.
   * Never rejects.
   */
  close(): Promise<void>;
};

/** A parked command that belongs to the caller. */
export type TakenCommand = Launched & {
  readonly process: LaunchedProcess;
  /**
   * Starts it; call it once. `folder`: its working folder if it has no fence. `request` is stored,
   * so that a later process finds the command.
   */
  start(command: CommandLine, folder: string, request: LaunchRequest, to: OutputReceiver): void;
};

/** The filter is expected at descriptor 3. */
export type CommandFence = FenceProgram & {
  /** Path of the system-call filter; null if there is none. */
  readonly filter: string | null;
  /** Words that start a program in the session's network; empty without one. */
  readonly entry: NetworkEntry;
  /** It is for commands that only read. One of these and one of the others are parked. */
  readonly isReading: boolean;
  /**
   * Shell text that runs inside before the command, and ends the shell if the command must not
   * start.
   */
  readonly check?: string;
};

/**
 * A command without a fence. `detach`: words before its own, such as setsid, which starts it in a
 * new session, or sandbox-exec on macOS; none if the launcher makes its process group.
 */
export type OpenStart = {
  readonly detach: readonly [program: ProgramPath, ...words: string[]] | readonly [];
};

/** The surroundings of a parked command: a fence, or none. */
export type Enclosure = CommandFence | OpenStart;

export type LauncherOptions = {
  /** A folder for the files of commands, which only Pawl writes to. It is created. */
  readonly folder: string;
  /** The system's dd. */
  readonly copier: ProgramPath;
  /**
   * Wraps a program so that it inherits no descriptor above `last`. Throws if that is impossible.
   */
  readonly closingOthers: (program: ProgramPath, words: readonly string[], last: number) => Start;
  /** Size of the first and of each further piece of output, in reads of at most 64 kB. */
  readonly pieces?: readonly [first: number, more: number];
  /** False: don't use file change notifications. */
  readonly watches?: boolean;
  /**
   * Running commands continue if this process is killed, for a later process. Default: false.
   */
  readonly outlives?: boolean;
};

export const createLauncher = (options: LauncherOptions): Launcher => new Pool(options);

type Start = { readonly program: ProgramPath; readonly words: readonly string[] };

/**
 * One launcher process, with its parked or running command. Parked: `key` is set. Running: `key` is
 * null, `command` is set. Unused: both are null.
 */
type Slot = {
  readonly launcher: LauncherProcess;
  /** Which commands it takes: reading ones or others, and in which network (`slotKind`). */
  readonly kind: string;
  command: LaunchedCommand | null;
  /** Key of the parked command's fence; null if none is parked. */
  key: string | null;
  /** Number of the command, in the order of parking. */
  number: number;
};

const SLOTS_MAX = 16;
/**
 * Delay before the next command is parked, in ms, so that the result of the last one is processed
 * first.
 */
const PARK_AFTER_MS = 2;
/** A command belongs to a burst if it is requested within this time after the last end, in ms. */
const BURST_MS = 100;
/**
 * Delay before the next command is parked after a cancelled one, in ms. A session that ends cancels
 * its commands, and would then wait for the end of a parked one.
 */
const CANCELLED_MS = 1_000;
/** Number of parked commands in a burst. */
const PARKED_MAX = 2;
/** Number of last ended commands whose files stay. */
const RECENT_MAX = 3;
/** The files of at most this many ended commands wait for a pause between commands. */
const REMOVABLE_MAX = 32;
/** With more bytes of output, a command's files are removed at once. */
const REMOVED_AT_ONCE_BYTES = 1_000_000;

/** The launcher processes of a session, each with one parked or running command. */
class Pool implements Launcher {
  readonly #options: LauncherOptions;
  #slots: readonly Slot[] = [];
  /** Ends of launcher processes that are being killed. */
  readonly #ending = new Set<Promise<void>>();
  /** Resolves when the files of ended commands are removed. */
  #removing: Promise<unknown> = Promise.resolve();
  /** Number of commands that were parked so far. */
  #count = 0;
  #isClosed = false;
  /** When the last command ended, in ms. */
  #endedAt = Number.NEGATIVE_INFINITY;
  /** The timer that calls `#settle`. */
  #settleTimer: NodeJS.Timeout | null = null;
  /** The enclosure for the next parked command: of those that only read (true), and the others. */
  readonly #next = new Map<boolean, Enclosure>();
  /**
   * The last commands that have ended, the oldest first: their results may not be journaled yet.
   */
  readonly #recent: LaunchedCommand[] = [];
  /** Ended commands whose files can be removed. */
  #removable: LaunchedCommand[] = [];

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  async take(enclosure: Enclosure, next = enclosure): Promise<TakenCommand | null> {
    // The second attempt uses a new launcher process, in case the first one has ended meanwhile.
    return (await this.#takeOnce(enclosure, next)) ?? (await this.#takeOnce(enclosure, next));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const killed = this.#slots.map(({ launcher }) => launcher.kill());
    this.#slots = [];
    await Promise.all([...killed, ...this.#ending, this.#removing]);
  }

  async #takeOnce(enclosure: Enclosure, next: Enclosure): Promise<TakenCommand | null> {
    try {
      const slot = this.#slotFor(enclosure, fenceKey(enclosure));
      if (slot === null) return null;
      const { command } = slot;
      slot.key = null;
      const found = command === null ? null : await whileAlive(command.ready);
      if (command === null || found === null || !command.canStart()) {
        this.#drop(slot);
        return null;
      }
      const isInBurst = performance.now() - this.#endedAt < BURST_MS;
      let isCancelled = false;
      void command.ended.then((end) => {
        this.#commandEnded(slot, end);
        const delayMs = isInBurst ? BURST_MS : PARK_AFTER_MS;
        this.#next.set(isReading(next), next);
        this.#settleIn(isCancelled ? CANCELLED_MS : delayMs);
      });
      // after the caller has started the command it took
      if (isInBurst) setImmediate(() => this.#parkAhead(next)).unref();
      return {
        process: found,
        ended: command.ended,
        start(commandLine, folder, request, to) {
          const text =
            'detach' in enclosure
              ? openCommand(commandLine, folder)
              : fencedCommand(commandLine, enclosure.check);
          command.start(text, request, to);
        },
        recordCancellation() {
          isCancelled = true;
          command.recordCancellation();
        },
      };
    } catch {
      return null; // The disk is full or the process limit reached: a direct start reports it.
    }
  }

  /** A slot with a command parked behind this fence, parked now if necessary. */
  #slotFor(enclosure: Enclosure, key: string): Slot | null {
    // a running command is followed even if its launcher has ended
    this.#slots = this.#slots.filter((slot) => slot.launcher.isAlive || slot.key === null);
    const parked = this.#slots.filter((slot) => slot.key !== null);
    const ready = parked
      .toSorted((one, other) => one.number - other.number)
      .find((slot) => slot.key === key && slot.command?.canStart());
    if (ready !== undefined) return ready;
    const unused =
      this.#findUnused(enclosure) ?? this.#findReplaceable(enclosure) ?? this.#open(enclosure);
    if (unused !== null) this.#park(unused, enclosure, key);
    return unused;
  }

  /** A slot without a command, in the right network. */
  #findUnused(enclosure: Enclosure): Slot | null {
    const kind = slotKind(enclosure);
    return this.#slots.find((slot) => isUnused(slot) && slot.kind === kind) ?? null;
  }

  /** A slot with a parked command that may be discarded for one behind this fence. */
  #findReplaceable(enclosure: Enclosure): Slot | null {
    const kind = slotKind(enclosure);
    return this.#slots.find((slot) => slot.key !== null && slot.kind === kind) ?? null;
  }

  /** A new slot, in place of one without a running command if there are too many; else null. */
  #open(enclosure: Enclosure): Slot | null {
    if (this.#isClosed) return null;
    if (this.#slots.length >= SLOTS_MAX) {
      const idle = this.#slots.find((slot) => isUnused(slot) || slot.key !== null);
      if (idle === undefined) return null;
      this.#drop(idle);
    }
    const launcher = new LauncherProcess(this.#options, networkEntry(enclosure));
    const kind = slotKind(enclosure);
    const slot = { launcher, kind, command: null, key: null, number: 0 };
    this.#slots = [...this.#slots, slot];
    return slot;
  }

  /** Parks a command in a slot, in place of a parked one. */
  #park(slot: Slot, enclosure: Enclosure, key: string): void {
    const { command, launcher } = slot;
    if (command !== null) {
      launcher.discard();
      void command.ended.then(() => command.remove());
      slot.command = slot.key = null; // in case the next line throws
    }
    this.#count += 1;
    slot.command = launcher.park(enclosure, this.#count);
    slot.key = key;
    slot.number = this.#count;
  }

  /** Ends the launcher process of a slot, with its parked command. */
  #drop(slot: Slot): void {
    this.#slots = this.#slots.filter((one) => one !== slot);
    const { command } = slot;
    if (command !== null) void command.ended.then(() => command.remove());
    const killed = slot.launcher.kill();
    this.#ending.add(killed);
    void killed.then(() => this.#ending.delete(killed));
  }

  /** The command of a slot has ended. */
  #commandEnded(slot: Slot, { isWhole }: LaunchedEnd): void {
    if (slot.command !== null) this.#recent.push(slot.command);
    if (this.#recent.length > RECENT_MAX) this.#removeSoon(this.#recent.shift());
    slot.command = null;
    if (!isWhole) this.#drop(slot); // its launcher waits for the end of the output
    this.#endedAt = performance.now();
  }

  /** Removes the files of an ended command: large ones at once, the others with many at a time. */
  #removeSoon(command: LaunchedCommand | undefined): void {
    if (command === undefined || command.keepsFiles) return;
    if (command.outputBytes > REMOVED_AT_ONCE_BYTES) command.remove();
    else this.#removable.push(command);
    if (this.#removable.length <= REMOVABLE_MAX) return;
    const commands = this.#removable;
    this.#removable = [];
    // the end of the session removes the rest
    const removed = Promise.allSettled(commands.map((one) => one.removeLater()));
    this.#removing = Promise.all([this.#removing, removed]);
  }

  /** Parks one more command if too few are parked, perhaps in place of one behind another fence. */
  #parkAhead(enclosure: Enclosure): void {
    if (this.#isClosed) return;
    const key = fenceKey(enclosure);
    const parked = this.#slots.filter((slot) => slot.key !== null);
    const others = parked.filter((slot) => slot.key !== key);
    if (parked.length - others.length >= PARKED_MAX) return;
    const kind = slotKind(enclosure);
    const other = others.find((slot) => slot.kind === kind) ?? null;
    this.#tryPark(other ?? this.#findUnused(enclosure), enclosure, key);
  }

  /** Calls `#settle` after a delay, which restarts at the end of another command. */
  #settleIn(delayMs: number): void {
    if (this.#settleTimer !== null) clearTimeout(this.#settleTimer);
    this.#settleTimer = setTimeout(() => this.#settle(), delayMs).unref();
  }

  /** Removes files and adjusts the parked commands, in a pause between commands. */
  #settle(): void {
    if (this.#isClosed) return;
    for (const command of this.#removable) command.remove();
    this.#removable = [];
    for (const enclosure of this.#next.values()) this.#settleFor(enclosure);
  }

  /**
   * Leaves one parked command for reading commands, or for the others: the newest, else a new one.
   * Ends the other idle launcher processes of that kind.
   */
  #settleFor(enclosure: Enclosure): void {
    const idle = this.#slots.filter(
      ({ command, key, kind }) =>
        (command === null || key !== null) && isReading(enclosure) === kind.startsWith(READING),
    );
    const newestFirst = idle.toSorted((one, other) => other.number - one.number);
    const remaining = newestFirst.find(({ key }) => key !== null) ?? idle.find(isUnused);
    for (const slot of idle) if (slot !== remaining) this.#drop(slot);
    if (remaining === undefined || remaining.key !== null) return;
    const isUsable = remaining.kind === slotKind(enclosure); // else it is in another network
    if (!isUsable) this.#drop(remaining);
    this.#tryPark(isUsable ? remaining : null, enclosure, fenceKey(enclosure));
  }

  /** Parks a command, in a new launcher process if there is no free one. */
  #tryPark(unused: Slot | null, enclosure: Enclosure, key: string): void {
    try {
      const slot = unused ?? this.#open(enclosure);
      if (slot !== null) this.#park(slot, enclosure, key);
    } catch {
      // The disk is full or the process limit reached: the next command tries again.
    }
  }
}

const isUnused = ({ command, launcher }: Slot): boolean => command === null && launcher.isAlive;

// ---- The key of a fence ----

/** Words that start a launcher in the network of a fence. */
const networkEntry = (enclosure: Enclosure): NetworkEntry =>
  'detach' in enclosure ? [] : enclosure.entry;

const READING = 'reads\0';
const isReading = (enclosure: Enclosure): boolean => 'seals' in enclosure && enclosure.isReading;

/** The use of a launcher process, as a text: reading commands or others, and the network. */
const slotKind = (enclosure: Enclosure): string =>
  `${isReading(enclosure) ? READING : ''}${networkEntry(enclosure).join('\0')}`;

const BINDS: ReadonlySet<string> = new Set(['--bind', '--ro-bind', '--bind-try', '--ro-bind-try']);

/** Identifies a fence with the present state of everything that it depends on. */
const fenceKey = (enclosure: Enclosure): string => {
  if ('detach' in enclosure) return enclosure.detach.join('\0');
  const { program, words, seals, filter, entry } = enclosure;
  const sources = words.filter((_, at) => BINDS.has(words[at - 1] ?? ''));
  return [
    program,
    filter ?? '',
    ...entry,
    ...words,
    ...seals,
    ...sources.map(identifyMount),
    readHostMounts(),
  ].join('\0');
};

/** Identifies a file or folder. A changed file counts as another one; a changed folder does not. */
const identifyMount = (place: string): string => {
  const status = followStatus(place);
  if (status === null) return 'absent'; // or unreadable for us, so for commands as well
  const { dev, ino, ctimeMs } = status;
  return status.isFile() ? `${dev}:${ino}:${ctimeMs}` : `${dev}:${ino}`;
};

/** The host's mounts. A parked fence does not see later ones. */
const readHostMounts = (): string => {
  try {
    return readFileSync('/proc/self/mountinfo', 'latin1');
  } catch {
    return ''; // not Linux
  }
};

/** Waits with a timer that prevents our process from ending, which a launcher does not. */
const whileAlive = async <T>(promise: Promise<T>): Promise<T> => {
  const timer = setInterval(() => undefined, 60_000);
  try {
    return await promise;
  } finally {
    clearInterval(timer);
  }
};

// ---- One launcher process ----

/** The bundler replaces the calls by the texts. */
const LAUNCHER = withoutComments(
  (hasProc
    ? readFileSync(new URL('./launcher-proc.sh', import.meta.url), 'utf8')
    : readFileSync(new URL('./launcher-ps.sh', import.meta.url), 'utf8')) +
    readFileSync(new URL('./launcher.sh', import.meta.url), 'utf8'),
);

/** The shell that runs it. */
const LAUNCHER_SHELL = hasProc ? SYSTEM_SHELL : (systemBash() ?? SYSTEM_SHELL);

/** Descriptors of launcher.sh: one that closes when Pawl ends, and one for orders. */
const ALIVE = 3;
const ORDERS = 4;

/** How long to wait for a process that the system can't end, in ms. */
const KILLED_MS = 2_000;

/** Default of `pieces`: 32 MB and 8 MB. */
const PIECES = [512, 128] as const;

/** A running launcher.sh and its one parked or started command. */
class LauncherProcess {
  readonly #folder: string;
  readonly #watches: boolean;
  readonly #orders: Writable;
  readonly #alive: Writable;
  #isAlive = true;
  #killed: Promise<void> | null = null;
  #current: { readonly command: LaunchedCommand; readonly number: number } | null = null;

  /** `entry`: starts it in a network, see NetworkEntry. */
  constructor(options: LauncherOptions, [nsenter, ...enter]: NetworkEntry) {
    const { folder, copier, pieces = PIECES, watches = true, outlives = false } = options;
    this.#folder = folder;
    this.#watches = watches;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const words = [
      ...['-c', LAUNCHER, 'pawl-launcher', copier, ...pieces.map(String)],
      ...[outlives ? 'keep' : 'end', `alive-${randomBytes(6).toString('hex')}`],
    ];
    const start =
      nsenter === undefined
        ? options.closingOthers(LAUNCHER_SHELL, words, ORDERS)
        : options.closingOthers(nsenter, [...enter, LAUNCHER_SHELL, ...words], ORDERS);
    const child = startProgram(start.program, start.words, {
      cwd: folder,
      env: {},
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    child.unref();
    this.#orders = pipeAt(child, ORDERS);
    this.#alive = pipeAt(child, ALIVE);
    child.once('error', () => this.#commandEnded());
    child.once('exit', () => this.#commandEnded());
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /**
   * Parks a command. The previous one must have ended or been discarded. Throws if the disk is
   * full.
   */
  park(enclosure: Enclosure, number: number): LaunchedCommand {
    const spool = Spool.create(path.join(this.#folder, String(number)), (command) =>
      runText(enclosure, command),
    );
    const start = (line: string): void => this.#send(`g ${number} ${line}`);
    const options = { watches: this.#watches, isFenced: 'seals' in enclosure };
    const command = new LaunchedCommand(spool, start, options);
    this.#current = { command, number };
    this.#send(`p ${number}`);
    return command;
  }

  /** Discards the parked command. */
  discard(): void {
    if (this.#current !== null) this.#send(`x ${this.#current.number}`);
  }

  /**
   * Kills the launcher and its command. Resolves when none of its processes can write to its folder
   * any more.
   */
  kill(): Promise<void> {
    this.#isAlive = false;
    this.#orders.destroy();
    this.#killed ??= endProcesses(this.#alive);
    return this.#killed;
  }

  #send(line: string): void {
    this.#orders.write(`${line}\n`);
  }

  #commandEnded(): void {
    this.#isAlive = false;
    this.#current?.command.launcherEnded();
  }
}

/**
 * The file `run` of a command, which launcher.sh sources to start its fence. `$sync` is empty or
 * `--sync-fd 8`: bubblewrap then holds the pipe `alive` open, by which other processes see it run.
 */
const runText = (enclosure: Enclosure, command: string): string => {
  if ('detach' in enclosure)
    return `exec ${shellWords([...enclosure.detach, ...openParkedShell()])} 2>&1 8>&-\n`;
  const { program, words, seals, filter } = enclosure;
  const mounted = [...words, '--ro-bind', command, COMMAND_INSIDE];
  const all = wrapCommand({ words: mounted, seals }, parkedShell());
  return [
    ...(filter === null ? [] : [`exec 3<${shellWord(filter)}`]),
    `exec ${shellWord(program)} $sync ${shellWords(all)} 2>&1`,
    '',
  ].join('\n');
};

const pipeAt = (child: ChildProcess, descriptor: number): Writable => {
  const stream = child.stdio[descriptor];
  if (!(stream instanceof Writable)) throw new Error(`descriptor ${descriptor} is no pipe`);
  // A broken pipe needs no handling: `exit` reports that the launcher has ended.
  stream.on('error', () => undefined);
  // A waiting launcher must not keep our process alive.
  if ('unref' in stream && typeof stream.unref === 'function') stream.unref();
  return stream;
};

/**
 * Ends all processes of the launcher and resolves when they have ended. They hold the other end of
 * `alive` open. After the line `end` one of them kills the group, and `alive` closes with the last
 * one.
 */
const endProcesses = (alive: Writable): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, KILLED_MS);
    alive.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    if (alive instanceof Duplex) alive.resume(); // an unread pipe never emits `close`
    alive.end('end\n');
  });
