/**
 * The one place where processes are started.
 *
 * A program is an absolute path that find-program.ts has checked, or one of the constants below.
 * No shell is involved.
 *
 * From top to bottom: the start itself (`startProgram`); a question to a program (`askProgram`);
 * what is done when Pawl exits; the user's browser; the guard, a process that ends a program when
 * Pawl is killed; and descriptors that a program must not inherit.
 */

import {
  ChildProcess,
  type ChildProcessByStdio,
  execFile,
  type SpawnOptions,
  type SpawnOptionsWithStdioTuple,
  type StdioNull,
  type StdioPipe,
  spawn,
  spawnSync,
} from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Duplex, type Readable } from 'node:stream';
import type { ProcessEnvironment } from './environment.js';
import { type ProgramPath, searchPrograms } from './find-program.js';

/** The Node that runs us, so it is trusted. */
export const NODE_PROGRAM = process.execPath as ProgramPath;

/** The system's shell, at its path on every POSIX system. */
export const SYSTEM_SHELL = '/bin/sh' as ProgramPath;

/**
 * At their paths on macOS and the BSDs, in folders of the system: what tells of processes there,
 * and what makes the sandbox of macOS.
 */
export const SYSTEM_PROGRAMS = {
  ps: '/bin/ps',
  sysctl: '/usr/sbin/sysctl',
  sandboxExec: '/usr/bin/sandbox-exec',
} as Record<'ps' | 'sysctl' | 'sandboxExec', ProgramPath>; // only root changes them

/** The system's bash; null if it is not at its usual paths. */
export const systemBash = (): ProgramPath | null => {
  const found = ['/bin/bash', '/usr/bin/bash'].find((file) => existsSync(file));
  // Fixed paths in folders of the system.
  return found === undefined ? null : (found as ProgramPath);
};

type StartProgram = {
  (
    program: ProgramPath,
    words: readonly string[],
    options: Omit<SpawnOptionsWithStdioTuple<StdioNull, StdioPipe, StdioPipe>, 'shell'>,
  ): ChildProcessByStdio<null, Readable, Readable>;
  (
    program: ProgramPath,
    words: readonly string[],
    options: Omit<SpawnOptions, 'shell'>,
  ): ChildProcess;
};

/** A stream for a process that could not be started. */
const endedStream = (): Duplex =>
  new Duplex({
    read() {
      this.push(null);
    },
    write: (_piece, _encoding, done) => done(),
  });

/**
 * Adds the missing streams: if no more files can be opened, Node returns a child without streams
 * before its `error` event.
 */
const withStreams = (child: ChildProcess, { stdio }: Omit<SpawnOptions, 'shell'>): ChildProcess => {
  // Its type claims that they always exist.
  if ((child.stdio as ChildProcess['stdio'] | undefined) !== undefined) return child;
  const kinds = Array.isArray(stdio) ? stdio : [stdio, stdio, stdio];
  const streams = kinds.map((kind) => (kind === 'pipe' ? endedStream() : null));
  const [stdin = null, stdout = null, stderr = null] = streams;
  return Object.assign(child, { stdio: streams, stdin, stdout, stderr });
};

/** Without a process there is none to kill: Node would kill its own group. */
const failedChild = (fault: unknown): ChildProcess => {
  const child = Object.assign(new ChildProcess(), { kill: () => false });
  process.nextTick(() => child.emit('error', fault));
  return child;
};

/**
 * Like `spawn` of node:child_process, but every failure to start is an `error` event of the child.
 */
export const startProgram: StartProgram = (
  program: ProgramPath,
  words: readonly string[],
  options: Omit<SpawnOptions, 'shell'>,
) => {
  let child: ChildProcess;
  try {
    child = spawn(program, words, { ...options, shell: false });
  } catch (error) {
    child = failedChild(error); // such as E2BIG
  }
  // The streams depend on `options`, as the overloads above declare.
  return withStreams(child, options) as ChildProcessByStdio<null, Readable, Readable>;
};

// ---- A question to a program ----

type AskProgramOptions = {
  readonly environment: ProcessEnvironment;
  /** The program's PATH. Scripts need it, for example for `#!/usr/bin/env bash`. */
  readonly searchPath: readonly string[];
  readonly folder?: string;
  /** In milliseconds. Default: no limit. */
  readonly timeoutMs?: number;
  /** Its name for people. Default: that of the program. */
  readonly title?: string;
};

type AskProgramSyncOptions = AskProgramOptions & {
  readonly input?: string;
  /** Most bytes of output. Default: no limit. */
  readonly bytesMax?: number;
};

type ProgramAnswer = {
  /** Exit code; 1 if a signal ended it. */
  readonly code: number;
  readonly output: string;
  readonly errors: string;
  /** What went wrong, in a few words; null if the exit code is 0. */
  readonly fault: string | null;
};

const withPath = (
  environment: AskProgramOptions['environment'],
  searchPath: readonly string[],
): NodeJS.ProcessEnv => ({ ...environment, PATH: searchPath.join(path.delimiter) });

/** Names of the programs whose answer Pawl waits for, by their processes. */
export const awaited = new Map<ChildProcess, string>();

/**
 * Runs a program to its end and returns its output, which must be small. Null if it can't be
 * started. Never rejects. The program ends when Pawl exits.
 */
export const askProgram = (
  program: ProgramPath,
  words: readonly string[],
  {
    environment,
    searchPath,
    folder,
    timeoutMs = 0,
    title = path.basename(program),
  }: AskProgramOptions,
): Promise<ProgramAnswer | null> =>
  new Promise<ProgramAnswer | null>((resolve) => {
    const options = {
      encoding: 'utf8' as const,
      env: withPath(environment, searchPath),
      timeout: timeoutMs,
      ...(folder === undefined ? {} : { cwd: folder }),
    };
    const child = execFile(program, words, options, (error, output, errors) => {
      release();
      awaited.delete(child);
      if (error === null) return resolve({ code: 0, output, errors, fault: null });
      if (child.pid === undefined) return resolve(null);
      const code = typeof error.code === 'number' ? error.code : 1;
      resolve({ code, output, errors, fault: error.message });
    });
    const release = atExit(() => void child.kill('SIGKILL')); // it changes nothing
    awaited.set(child, title);
  }).catch(() => null); // some faults of a start are thrown, such as E2BIG

/**
 * Like `askProgram`, but blocks until the program has ended. Null also if it has taken too long or
 * printed too much.
 */
export const askProgramSync = (
  program: ProgramPath,
  words: readonly string[],
  {
    environment,
    searchPath,
    folder,
    timeoutMs = 0,
    input = '',
    bytesMax = Number.POSITIVE_INFINITY,
  }: AskProgramSyncOptions,
): ProgramAnswer | null => {
  const ran = spawnSync(program, words, {
    encoding: 'utf8',
    env: withPath(environment, searchPath),
    shell: false,
    input,
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    maxBuffer: bytesMax,
    ...(folder === undefined ? {} : { cwd: folder }),
  });
  if (ran.error !== undefined) return null;
  const fault =
    ran.status === 0 ? null : `it ended with ${ran.signal ?? `exit code ${ran.status}`}`;
  return { code: ran.status ?? 1, output: ran.stdout, errors: ran.stderr, fault };
};

// ---- The exit of Pawl, and the browser ----

const duties = new Set<() => void>();

const doAll = (): void => {
  for (const duty of duties) duty();
};

/** Calls a synchronous function when this program exits; the returned function cancels that. */
export const atExit = (duty: () => void): (() => void) => {
  if (duties.size === 0) process.once('exit', doAll);
  duties.add(duty);
  return () => {
    duties.delete(duty);
    if (duties.size === 0) process.off('exit', doAll);
  };
};

/**
 * Opens an address in the user's browser, where there is a screen. A convenience: the address is
 * also printed, so faults are ignored.
 */
export const openBrowser = (
  address: string,
  environment: ProcessEnvironment,
  workspace: string,
): void => {
  const isMac = process.platform === 'darwin';
  if (!isMac && !environment.DISPLAY && !environment.WAYLAND_DISPLAY) return;
  const opener = searchPrograms({ environment, workspace }).find(isMac ? 'open' : 'xdg-open');
  if (opener === null) return;
  const child = startProgram(opener, [address], {
    cwd: '/',
    env: { ...environment },
    detached: true,
    stdio: 'ignore',
  });
  child.once('error', () => undefined); // the address stands in the terminal
  child.unref();
};

// ---- The guard ----

type ProgramStart = {
  readonly program: ProgramPath;
  readonly words: readonly string[];
};

/** A command can't be confined as it must be. `message` says why, for people and for the model. */
export class SandboxRefusal extends Error {}

/**
 * The beginning of a shell script: starts a guard, and closes its pipe at `pipe` for everything
 * that follows. The script must lead its own process group. `others`: further open descriptors,
 * which the guard must not hold open.
 *
 * The guard is a process in the group of the program. It reads a pipe of which only Pawl holds the
 * other end. A line says that the program has ended. If the pipe closes without it, the guard kills
 * the group: Pawl is dead, and nothing of its own code runs any more. The guard starts before the
 * program, so there is no moment without it. It stays when its group is asked to end.
 */
export const guardScript = (pipe: number, others: readonly number[] = []): string => `(
  (trap '' HUP INT QUIT TERM; read -r line <&${pipe} || kill -9 0) </dev/null ${silenced(others)} &
) || exit 126
exec ${pipe}<&-
`;

/** Shell words that close outputs and other descriptors, so that the guard holds none open. */
const silenced = (others: readonly number[]): string =>
  ['>/dev/null 2>/dev/null', ...others.map((descriptor) => `${descriptor}<&-`)].join(' ');

/**
 * The same for bubblewrap, the program that makes the sandbox. It writes the number of its inner
 * process to descriptor `report`, and only then lets that process go on. The guard kills the inner
 * process too: for a moment it has left the group and does not yet die with the outer process. If
 * the outer one were killed in that moment, the inner one would run for ever. Needs bash.
 */
const fenceGuardScript = (pipe: number, others: readonly number[], report: number): string => `
exec ${report}> >(
  (
    trap '' HUP INT QUIT TERM
    child=
    while read -r word value && [ "$word" != '}' ]; do
      [ "$word" = '"child-pid":' ] && child=\${value%,}
    done
    read -r line <&${pipe} || kill -9 $child 0
  ) <&0 ${silenced(others)} &
) || exit 126
exec ${pipe}<&-
`;

/** Tells the guard that the program has ended. */
export const PROGRAM_ENDED = 'ended\n';

/** Number of the standard streams, and the last of their descriptors. */
const STANDARD_STREAMS = 3;
const STANDARD_MAX = 2;

/**
 * Pawl's end of the guard's pipe, which comes after `descriptors`. Null if there is no guard, or it
 * could not be started. The guard ends with the group of its program.
 */
export const guardPipe = (
  child: Pick<ChildProcess, 'stdio'>,
  {
    isGuarded,
    descriptors,
  }: { readonly isGuarded: boolean; readonly descriptors: readonly number[] },
): Duplex | null => {
  const pipe = isGuarded ? child.stdio[STANDARD_STREAMS + descriptors.length] : null;
  if (!(pipe instanceof Duplex)) return null;
  pipe.on('error', () => undefined); // the guard is gone, and its program with it
  pipe.resume(); // nothing comes through it, but an unread stream never closes
  return pipe;
};

/**
 * `--norc`, `-p`: bash runs neither ~/.bashrc nor the file in BASH_ENV. Unlike other shells it
 * passes on variables with any name.
 */
const GUARD_OPTIONS = ['--norc', '-p', '-c'];

/** The start of a program with a guard. The guard's pipe is its descriptor 3. */
export const guardedStart = ({ program, words }: ProgramStart, bash: ProgramPath): ProgramStart => {
  const script = `${guardScript(STANDARD_STREAMS)}exec "$@"`;
  return { program: bash, words: [...GUARD_OPTIONS, script, 'pawl-guard', program, ...words] };
};

/**
 * How to start a command without the sandbox. A guard needs bash: `isGuarded` in the result says
 * whether there is one.
 */
export const openStart = (
  start: ProgramStart,
  bash: ProgramPath | null,
  isGuarded: boolean,
): ProgramStart & { readonly isGuarded: boolean } =>
  bash === null || !isGuarded
    ? { ...closingOthers(start, STANDARD_MAX, bash), isGuarded: false }
    : { ...closingOthers(guardedStart(start, bash), STANDARD_MAX + 1, bash), isGuarded: true };

type FenceStart = {
  readonly bwrap: ProgramPath;
  readonly words: readonly string[];
  /**
   * A program with its words that starts bubblewrap inside a network made for the command. Empty:
   * bubblewrap is started directly.
   */
  readonly entry: readonly [program: ProgramPath, ...words: string[]] | readonly [];
  /** How many open files it inherits; they stand from descriptor 3 on. */
  readonly descriptors: number;
};

/** How to start a command in the sandbox, by bubblewrap. `isGuarded` as in openStart. */
export const fencedStart = (
  { bwrap, words, entry, descriptors }: FenceStart,
  bash: ProgramPath | null,
  isGuarded: boolean,
): ProgramStart & { readonly isGuarded: boolean } => {
  const pipe = STANDARD_STREAMS + descriptors;
  const report = pipe + 1;
  const others = Array.from({ length: descriptors }, (_, index) => STANDARD_STREAMS + index);
  const program = entry[0] ?? bwrap;
  const first = entry.length === 0 ? [] : [...entry.slice(1), bwrap];
  if (bash === null || !isGuarded) {
    const start = { program, words: [...first, ...words] };
    return { ...closingOthers(start, pipe - 1, bash), isGuarded: false };
  }
  const script = `${fenceGuardScript(pipe, others, report)}exec "$@"`;
  const fenced = [program, ...first, '--info-fd', String(report), ...words];
  const start = { program: bash, words: [...GUARD_OPTIONS, script, 'pawl-guard', ...fenced] };
  return { ...closingOthers(start, pipe, bash), isGuarded: true };
};

// ---- Descriptors that a program must not inherit ----

/** O_CLOEXEC: the descriptor is closed in programs that we start. */
const CLOSED_AT_START = 0o2000000;

/** The flags of an open file of ours. */
const readFlags = (descriptor: string): number => {
  try {
    const found = /^flags:\s*([0-7]+)/m.exec(
      readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'),
    )?.[1];
    return Number.parseInt(found ?? '0', 8);
  } catch {
    return CLOSED_AT_START; // it was closed meanwhile, for example the one that listed them
  }
};

/**
 * Descriptors above 2 that a started program would inherit. Node closes its own files in child
 * processes, but passes on those that Pawl was started with. A descriptor of a folder leads out of
 * any sandbox. Empty without /proc.
 */
export const inheritedDescriptors = (): readonly number[] => {
  let names: readonly string[];
  try {
    names = readdirSync('/proc/self/fd');
  } catch {
    return [];
  }
  return names
    .filter((name) => Number(name) > STANDARD_MAX && (readFlags(name) & CLOSED_AT_START) === 0)
    .map(Number);
};

/**
 * A bash script that closes all descriptors above `$0`, then runs the program in its arguments.
 * Other shells can't address descriptors above 9.
 */
export const CLOSING_SCRIPT =
  'for file in /proc/self/fd/*; do n=$' +
  '{file##*/}; if [ "$n" -gt "$0" ]; then eval "exec $n>&-" 2>/dev/null; fi; done; exec "$@"';

/** Wraps a program so that it inherits no descriptor above `last`. Needs bash. */
export const closingOthers = (
  start: ProgramStart,
  last: number,
  bash: ProgramPath | null,
): ProgramStart => {
  if (inheritedDescriptors().length === 0) return start;
  if (bash === null)
    throw new SandboxRefusal(
      'Pawl was started with open files, and bash, which would close them, is missing. ' +
        'Install bash',
    );
  // Pipes of Node are sockets, and with a socket as stdin bash takes itself for a remote shell and
  // reads ~/.bashrc.
  return {
    program: bash,
    words: [...GUARD_OPTIONS, CLOSING_SCRIPT, String(last), start.program, ...start.words],
  };
};
