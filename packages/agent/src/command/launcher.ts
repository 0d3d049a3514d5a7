/** Starts commands that were set up in advance, through shells that outlive this process. */

import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { Duplex, Writable } from 'node:stream';
import type { ProgramPath } from '../platform/find-program.js';
import { SYSTEM_SHELL, startProgram } from '../platform/start-program.js';
import {
  type CommandOrder,
  followCommand,
  type LaunchedEnd,
  type LaunchedProcess,
  makeSpool,
  type ParkedCommand,
} from './launched-command.js';
import type { OutputReceiver } from './output.js';
import {
  COMMAND_INSIDE,
  commandText,
  goLine,
  openCommandText,
  openGoLine,
  openParkedShell,
  PARKED_SHELL,
  type ShellCommand,
  shellWord,
  shellWords,
} from './sandbox/shell-text.js';

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

/** A running launcher and its one parked or started command. */

export type CommandFence = {
  readonly bwrap: ProgramPath;
  /** Arguments for bubblewrap up to its last mount. The filter is expected at descriptor 3. */
  readonly words: readonly string[];
  /** Arguments between the mounts and the program. */
  readonly seals: readonly string[];
  /** Path of the system-call filter; null if there is none. */
  readonly filter: string | null;
  /** Shell text that runs inside before the command, and ends the shell if the command must not start. */
  readonly check?: string;
};

/** A command without a fence, as the leader of a session and group of its own. */
export type OpenStart = { readonly setsid: ProgramPath };

/** What a command is parked behind. */
export type Enclosure = CommandFence | OpenStart;

export type LauncherOptions = {
  /** A folder for the files of commands, which only Pawl writes to. It is created. */
  readonly folder: string;
  /** The system's dd. */
  readonly copier: ProgramPath;
  /** Wraps a program so that it inherits no descriptor above `last`. Throws if that is impossible. */
  readonly closingOthers: (program: ProgramPath, words: readonly string[], last: number) => Start;
  /** Size of the first and of each further piece of output, in reads of at most 64 kB. */
  readonly pieces?: readonly [first: number, more: number];
  /** False: don't use file change notifications. */
  readonly watches?: boolean;
  /** Running commands go on if this process is killed: somebody will look for them. Default: false. */
  readonly outlives?: boolean;
};

type Start = { readonly program: ProgramPath; readonly words: readonly string[] };

type LauncherProcess = {
  /**
   * Parks a command behind this fence. The previous one must have ended or been discarded. Throws if the disk is full.
   */
  park(enclosure: Enclosure, number: number): ParkedCommand;
  /** Discards the parked command. */
  discard(): void;
  readonly isAlive: boolean;
  /** Kills the launcher and its command. Resolves when none of its processes can write to its folder any more. */
  kill(): Promise<void>;
};

/** Descriptors of the launcher: one that closes when Pawl ends, and one for orders. */
const LIFE = 3;
const ORDERS = 4;

/** How long to wait for a process that the system can't end, in ms. */
const KILLED_MS = 2_000;

/** Pieces of at most 32 MB and 8 MB. */
const PIECES = [512, 128] as const;

const runText = (enclosure: Enclosure, command: string): string => {
  if ('setsid' in enclosure)
    return `exec ${shellWords([enclosure.setsid, ...openParkedShell(command)])} 2>&1 8>&-\n`;
  const { bwrap, words, seals, filter } = enclosure;
  const all = [...words, '--ro-bind', command, COMMAND_INSIDE, ...seals, '--', ...PARKED_SHELL];
  return [
    ...(filter === null ? [] : [`exec 3<${shellWord(filter)}`]),
    `exec ${shellWord(bwrap)} $sync ${shellWords(all)} 2>&1`,
    '',
  ].join('\n');
};

/** In ms: without a fence a process that the command has detached may hold its output open. */
const HELD_OPEN_MS = 100;
const drainingOf = (enclosure: Enclosure) => ('setsid' in enclosure ? { drainingMs: HELD_OPEN_MS } : {});

const streamAt = (child: ChildProcess, descriptor: number): Writable => {
  const stream = child.stdio[descriptor];
  if (!(stream instanceof Writable)) throw new Error(`descriptor ${descriptor} is no pipe`);
  // A broken pipe needs no handling: `exit` reports that the launcher has ended.
  stream.on('error', () => undefined);
  // A waiting launcher must not keep our process alive.
  if ('unref' in stream && typeof stream.unref === 'function') stream.unref();
  return stream;
};

/**
 * Ends all processes of the launcher and resolves when they are gone. They hold the other end of `life` open. At our
 * word one of them kills the group, and `life` closes with the last one.
 */
const whenGone = (life: Writable): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, KILLED_MS);
    life.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    if (life instanceof Duplex) life.resume();
    life.end('end\n');
  });

const startLauncher = (options: LauncherOptions): LauncherProcess => {
  const { folder, copier, pieces = PIECES, watches = true, outlives = false } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const words = [
    '-c',
    LAUNCHER_SCRIPT,
    'pawl-launcher',
    copier,
    ...pieces.map(String),
    outlives ? 'keep' : 'end',
    `alive-${randomBytes(6).toString('hex')}`,
  ];
  const start = options.closingOthers(SYSTEM_SHELL, words, ORDERS);
  const child = startProgram(start.program, start.words, {
    cwd: folder,
    env: {},
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  child.unref();
  const orders = streamAt(child, ORDERS);
  const life = streamAt(child, LIFE);
  let isAlive = true;
  let gone: Promise<void> | null = null;
  let current: { readonly command: ParkedCommand; readonly number: number } | null = null;
  const over = (): void => {
    isAlive = false;
    current?.command.orphaned();
  };
  child.once('error', over);
  child.once('exit', over);
  const send = (line: string): void => void orders.write(`${line}\n`);
  return {
    get isAlive() {
      return isAlive;
    },
    park(enclosure, number) {
      const spool = makeSpool(path.join(folder, String(number)), (command) => runText(enclosure, command));
      const toCommand = (words: string): void => {
        const [word = '', ...rest] = words.split(' ');
        send([word, number, ...rest].join(' '));
      };
      const command = followCommand(spool, toCommand, { watches, ...drainingOf(enclosure) });
      current = { command, number };
      send(`p ${number}`);
      return command;
    },
    discard() {
      if (current !== null) send(`x ${current.number}`);
    },
    kill() {
      isAlive = false;
      orders.destroy();
      gone ??= whenGone(life);
      return gone;
    },
  };
};

/**
 * The launcher: a shell that starts commands, one after the other, so that the agent never forks (docs/reliability.md).
 *
 * 1. Orders come on descriptor 4: `p N` parks command N, `g N WORDS` starts it, `x N` discards it. The end of the
 *    orders discards the parked command.
 * 2. A command is a pipeline of three. The gate waits for `g`, claims the command and passes WORDS on. The runner runs
 *    `N/run`, and writes `run PID START` and `exit CODE UPTIME` to `N/status`. The pump writes the output to `N/out`,
 *    `N/tail.1`, … and then `eof` to `N/status`.
 * 3. Descriptor 3 is open as long as the agent lives. The word `end` on it kills the whole process group. If it closes
 *    without that word, the agent was killed: if `$4` is `keep`, the running command goes on, otherwise the process
 *    group is killed as well.
 * 4. After the agent's death the guard keeps deadlines, each second, until none of the commands in the folder runs. It
 *    leaves a command alone while a process that is named in `N/attached` lives: that one keeps the deadline itself.
 *    A command without a deadline gets one of an hour, so that nothing runs for ever. It kills a command whose file
 *    `why` says `cancelled`: a process in another pid namespace can't do so itself.
 * 5. The runner and the first process of a fence hold the pipe `$5` open while the command runs, and `N/status` names it
 *    (`alive PIPE`). So processes in any pid namespace see whether it runs. The command itself does not have the pipe.
 * 6. It runs in the folder of the commands with an empty environment, in a process group of its own.
 *
 * `$1` is the absolute path of dd. `$2` and `$3` say how many reads, of at most 64 kB each, make the first piece of
 * output and each further one. While four further pieces wait to be read and removed, the command waits too. After the
 * agent's death nobody reads: then the oldest further piece is removed, and `N/removed` says how long it was.
 *
 * Descriptor 0 must not be a socket, or bash would read its start files. Any POSIX shell works. Pipelines instead of
 * `&`, because commands would inherit that INT and QUIT are ignored after `&`. dd instead of cat and head, because it
 * never reads more than it writes. Times are taken from /proc/uptime, because the clock of the wall can jump.
 */
const LAUNCHER_SCRIPT = `
PATH=\${1%/*} first=$2 more=$3 outlives=$4 alive=$5
set -C
exec 7<&3 3<&- <&4 4<&-
isProcess() {
  started=$2
  read -r line <"/proc/$1/stat" || return 1
  set -- \${line##*) }
  case $1 in [ZX]) return 1 ;; esac
  [ "\${20}" = "$started" ]
}
isAttached() {
  read -r pid start <"$1/attached" && isProcess "$pid" "$start"
}
readOrder() {
  pid= start= ended= due=
  while read -r word one two; do
    case $word in
      run) pid=$one start=$two ;;
      exit) ended=1 ;;
    esac
  done <"$1/status"
  [ -e "$1/claim" ] && [ -z "$ended" ] && [ -n "$pid" ] && isProcess "$pid" "$start" || return 1
  read -r due <"$1/order"
}
keepDeadline() {
  isAttached "$1" && return
  why=
  read -r why <"$1/why"
  if [ "$why" != cancelled ]; then
    read -r now _ </proc/uptime
    [ "$due" = - ] && due=$(((orphanedAt + 3600) * 1000))
    [ "\${now%.*}" -gt "$((due / 1000))" ] || return
    echo deadline >"$1/why"
  fi
  readOrder "$1" && kill -9 "-$pid" "$pid"
}
guard() {
  end=
  while read -r word; do
    [ "$word" = end ] && end=1
  done <&7
  [ "$outlives" = keep ] && [ -z "$end" ] || kill -9 0
  echo >|orphaned
  read -r now _ </proc/uptime
  orphanedAt=\${now%.*}
  while :; do
    running=
    for status in */status; do
      readOrder "\${status%/*}" || continue
      running=1
      keepDeadline "\${status%/*}"
    done
    [ -n "$running" ] || kill -0 $$ || break
    sleep 1 || break
  done
}
(guard) </dev/null >/dev/null 2>&1 &
[ "$outlives" = keep ] && mkfifo "$alive" 2>/dev/null
gate() {
  while read -r word number rest; do
    [ "$number" = "$1" ] || continue
    case $word in
      g) true 2>/dev/null >"$1/claim" && printf '%s\\n' "go $rest"; return ;;
      x) return ;;
    esac
  done
}
runner() {
  sync=
  [ -p "$alive" ] && command exec 8<>"$alive" && echo "alive $alive" >&6 && sync='--sync-fd 8'
  (
    read -r pid _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ start _ </proc/self/stat
    echo "run $pid $start" >&6
    exec 6>&- 7<&-
    . "./$1/run"
  )
  code=$?
  read -r now _ </proc/uptime
  echo "exit $code $now" >&6
}
countReads() {
  while read -r line; do
    case $line in
      [0-9]*+[0-9]*' records in') line=\${line%% *}; count=$((\${line%+*} + \${line#*+})) ;;
    esac
  done
}
makeRoom() {
  if [ -e orphaned ] && ! isAttached "$1" 2>/dev/null; then
    echo "$2" $(wc -c <"$1/tail.$2") >>"$1/removed"
    rm "$1/tail.$2"
  else
    sleep 0.02
  fi
}
pump() {
  piece=out last=0 reads=$2
  while :; do
    dd bs=65536 count=$reads of="$1/$piece" 2>|"$1/count" || { echo cut >&6; cat >/dev/null; break; }
    count=0
    countReads <"$1/count"
    [ $count -eq $reads ] || break
    last=$((last + 1)) piece=tail.$last reads=$3
    while [ -e "$1/tail.$((last - 4))" ]; do makeRoom "$1" $((last - 4)) || break; done
  done
  echo eof >&6
}
while read -r word number _; do
  [ "$word" = p ] || continue
  exec 6<>"$number/status"
  gate "$number" | runner "$number" | pump "$number" "$first" "$more"
  exec 6>&-
done
`;
