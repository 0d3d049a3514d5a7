/**
 * The processes of this machine: which of them runs, since when, and when the machine was started.
 *
 * What only Linux has (`/proc`) is asked for here and nowhere else. Every other system with `ps`
 * and `sysctl`, macOS above all, gives the same answers by the second implementation. What a system
 * does not tell of one process is empty, and counts as unknown: it is not taken for dead because of
 * it. A list that the system does not give is null.
 */

import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { uptime } from 'node:os';
import { askProgramSync, SYSTEM_PROGRAMS } from './start-program.js';

/** A living process. */
export type ProcessStatus = {
  readonly pid: number;
  /** Of the program that runs, as the kernel has it. */
  readonly name: string;
  readonly parent: number;
  readonly group: number;
  /** 0 where the system does not tell. */
  readonly session: number;
  /** A number that is larger for later processes: see `readProcess`. */
  readonly startedAt: number;
  /** It runs no user code any more. The kernel may need 20 ms to take a fence apart. */
  readonly isEnding: boolean;
  /** The pid with its start time. Unlike a pid it is never reused. */
  readonly identity: string;
};

/** State and start time of a process; both empty if there is none, or unknown. */
type ProcessState = { readonly state: string; readonly started: string };

/** What a system tells of its processes. */
export type ProcessTable = {
  /** Differs after each start of the machine. */
  bootId(): string;
  /** Names the space in which process numbers mean the same. */
  pidNamespace(): string;
  readProcess(pid: number): ProcessState;
  /** All living processes, without zombies. */
  listProcesses(): readonly ProcessStatus[] | null;
  /** The processes among these whose environment has this word in the variable `name`. */
  findByVariable(pids: readonly number[], name: string, word: string): ReadonlySet<number> | null;
};

// ---- Linux ----

/** Empty if it is not there: `readProcess` then counts the process as alive. */
const readProc = (name: string): string => {
  try {
    return readFileSync(`/proc/${name}`, 'latin1').trim();
  } catch {
    return '';
  }
};

/** Indexes of the fields after the name in /proc/PID/stat. */
const FLAGS = 6;
const START_TIME = 19;
const MEMORY = 20;
/** The kernel's flag PF_EXITING. */
const EXITING = 0x4;

/** Longer than any line of a process's stat. Only used within one call. */
const statBlock = Buffer.alloc(4_096);

/**
 * The line of /proc/PID/stat, with the fewest system calls: it is read for every process of the
 * machine.
 */
const readStat = (name: string): string => {
  try {
    const descriptor = openSync(`/proc/${name}/stat`, 'r');
    try {
      const length = readSync(descriptor, statBlock, 0, statBlock.length, 0);
      return statBlock.toString('latin1', 0, length);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return ''; // the process ended meanwhile
  }
};

/** The fields after the process name, which can contain blanks and parentheses. */
const statFields = (line: string): readonly string[] =>
  line.slice(line.lastIndexOf(')') + 2).split(' ');

/** Null for a zombie, and for a process that is gone. */
const parseStat = (pid: number, line: string): ProcessStatus | null => {
  const fields = statFields(line);
  const [state, parent, group, session] = fields;
  if (state === undefined || state === '' || state === 'Z' || state === 'X') return null;
  const startedAt = Number(fields[START_TIME]);
  return {
    pid,
    name: line.slice(line.indexOf('(') + 1, line.lastIndexOf(')')),
    ...{ parent: Number(parent), group: Number(group), session: Number(session), startedAt },
    // It exits, and has given its memory back.
    isEnding: (Number(fields[FLAGS]) & EXITING) !== 0 && fields[MEMORY] === '0',
    identity: `${pid}@${startedAt}`,
  };
};

const namesInProc = (): readonly string[] | null => {
  try {
    return readdirSync('/proc');
  } catch {
    return null; // no /proc here: only groups of processes are known
  }
};

const linuxTable: ProcessTable = {
  bootId: () => readProc('sys/kernel/random/boot_id'),
  pidNamespace() {
    try {
      return readlinkSync('/proc/self/ns/pid');
    } catch {
      return ''; // no /proc here
    }
  },
  /** The start time is in ticks since the start of the machine. */
  readProcess(pid) {
    const fields = statFields(readProc(`${pid}/stat`));
    return { state: fields[0] ?? '', started: fields[START_TIME] ?? '' };
  },
  listProcesses: () =>
    namesInProc()?.flatMap((name) => {
      const pid = Number(name);
      return Number.isInteger(pid) ? (parseStat(pid, readStat(name)) ?? []) : [];
    }) ?? null,
  findByVariable: (pids, name, word) =>
    new Set(
      pids.filter((pid) => {
        const entries = readProc(`${pid}/environ`).split('\0');
        const value = entries.find((entry) => entry.startsWith(`${name}=`));
        return (
          value
            ?.slice(name.length + 1)
            .split(' ')
            .includes(word) ?? false
        );
      }),
    ),
};

// ---- Systems with ps(1) and sysctl(8) ----

/** Process numbers mean the same to all processes of such a system. */
export const ALL_PROCESSES = 'all';

const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';
const STARTED = /^\S+ +(\w{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})$/;

/**
 * A start time as `ps` prints it in the C locale, as the number YYYYMMDDhhmmss; empty for any other
 * text. launcher-ps.sh writes the same.
 */
export const parseStartTime = (text: string): string => {
  const [, month = '', day = '', hour, minute, second, year] = STARTED.exec(text.trim()) ?? [];
  const at = MONTHS.indexOf(month);
  if (month === '' || at % 3 !== 0) return '';
  const number = String(at / 3 + 1).padStart(2, '0');
  return `${year}${number}${day.padStart(2, '0')}${hour}${minute}${second}`;
};

/** The words of ps for these columns, each without a title. */
const columns = (...names: readonly string[]): readonly string[] =>
  names.flatMap((name) => ['-o', `${name}=`]);

const LISTED = /^ *(\d+) +(\d+) +(\d+) +(\S+) +(\S+ +\w{3} +\d+ [\d:]+ \d{4}) +(.*)$/;

const parseListed = (line: string): readonly ProcessStatus[] => {
  const [, pid, parent, group, state = 'Z', text = '', name = ''] = LISTED.exec(line) ?? [];
  const started = parseStartTime(text);
  if (state.startsWith('Z') || started === '') return [];
  const numbers = { pid: Number(pid), parent: Number(parent), group: Number(group), session: 0 };
  return [
    {
      ...{ ...numbers, name, startedAt: Number(started), identity: `${pid}@${started}` },
      isEnding: state.includes('E'),
    },
  ];
};

/** Runs `ps` or `sysctl` and returns its output; empty if it fails. */
type AskSystem = (program: 'ps' | 'sysctl', words: readonly string[]) => string;

/** The table of a system that tells by the output of programs. Start times are whole seconds. */
export const createProgramTable = (ask: AskSystem): ProcessTable => {
  let bootId: string | null = null;
  return {
    bootId() {
      // Unlike the time of the start it stays the same when the clock is set.
      bootId ??= ask('sysctl', ['-n', 'kern.bootsessionuuid']).trim();
      return bootId;
    },
    pidNamespace: () => ALL_PROCESSES,
    readProcess(pid) {
      if (!processExists(pid)) return { state: '', started: '' };
      const line = ask('ps', [...columns('stat', 'lstart'), '-p', String(pid)]).trim();
      const [state = ''] = line.split(' ');
      const started = parseStartTime(line.slice(state.length));
      return started === '' ? { state: '', started } : { state: state.charAt(0), started };
    },
    listProcesses() {
      const text = ask('ps', ['-ax', ...columns('pid', 'ppid', 'pgid', 'stat', 'lstart', 'comm')]);
      return text === '' ? null : text.split('\n').flatMap(parseListed);
    },
    findByVariable(pids, name, word) {
      // Programs of the system hide their environment, also from their user.
      const text = ask('ps', ['-axwwE', ...columns('pid', 'command')]);
      if (text === '') return null;
      const found = text.split('\n').filter((line) => {
        const at = line.lastIndexOf(` ${name}=`);
        return (
          at !== -1 &&
          line
            .slice(at + name.length + 2)
            .split(' ')
            .includes(word)
        );
      });
      const known = new Set(pids);
      return new Set(
        found.map((line) => Number.parseInt(line, 10)).filter((pid) => known.has(pid)),
      );
    },
  };
};

const ANSWER_MS = 5_000;

const askSystem: AskSystem = (program, words) => {
  const answer = askProgramSync(SYSTEM_PROGRAMS[program], words, {
    environment: { LC_ALL: 'C', TZ: 'UTC0' },
    searchPath: ['/usr/bin', '/bin'],
    timeoutMs: ANSWER_MS,
  });
  return answer?.code === 0 ? answer.output : '';
};

// ---- The questions ----

/** Whether processes are seen in /proc, and not by what programs print. */
export const hasProc = process.platform === 'linux';

export const { bootId, pidNamespace, readProcess, listProcesses, findByVariable } = hasProc
  ? linuxTable
  : createProgramTable(askSystem);

/**
 * Time since the start of the machine in whole ms. Unlike the clock of the wall it never jumps, and
 * all processes share it.
 */
export const sinceBoot = (): number => Math.round(uptime() * 1_000);

/** Whether a process with this number exists, of any user. */
export const processExists = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
};

/** Tells a process from a later one with the same pid. Empty strings: unknown on this platform. */
export type ProcessIdentity = {
  readonly pid: number;
  /** Start time: see `readProcess`. */
  readonly started: string;
  readonly bootId: string;
  /** The pid namespace, within which the pid is valid. */
  readonly pids: string;
};

export const identifyProcess = (pid: number = process.pid): ProcessIdentity => ({
  pid,
  started: readProcess(pid).started,
  bootId: bootId(),
  pids: pidNamespace(),
});

/** True if the process has certainly ended, for a number that means the same here and now. */
export const isGoneHere = ({ pid, started }: Pick<ProcessIdentity, 'pid' | 'started'>): boolean => {
  if (!processExists(pid)) return true;
  const now = readProcess(pid);
  if (started !== '' && now.started !== '' && now.started !== started) return true;
  return now.state === 'Z' || now.state === 'X'; // a zombie, or dead
};

/** True if the process has certainly ended; false if it lives, or that is unknown from here. */
export const hasEnded = ({ pid, started, bootId: boot, pids }: ProcessIdentity): boolean => {
  const here = bootId();
  if (boot !== '' && here !== '' && boot !== here) return true;
  return pids !== '' && pids === pidNamespace() && isGoneHere({ pid, started });
};
