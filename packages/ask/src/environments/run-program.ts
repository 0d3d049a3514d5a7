/**
 * Runs a program in a sandbox of bubblewrap: the interpreter of the programs that a model writes
 * in `pawl ask`. Shell commands run in another sandbox (bubblewrap.ts), and the programs that Pawl
 * itself uses, such as git, in none.
 *
 * 1. The program sees read-only the files that are bound for it, and an empty /tmp. It sees nothing
 *    else of the machine: no home, workspace, /proc, network, environment variables or inherited
 *    open files.
 * 2. It is one process, the first of its namespace, and can start no other: the system-call filter
 *    (seccomp.ts) forbids that. If it or Pawl is killed, all of it ends.
 * 3. Its memory is limited. It can't write files, because file names use memory that no limit
 *    counts.
 * 4. All processes of a start are one group, with a guard: a process that kills the group when
 *    Pawl dies. It is needed while bubblewrap starts: then its inner process is not yet bound to
 *    the outer one, and would wait for ever if only the outer one ended.
 */

import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { programFilter } from '@pawl/agent/command/sandbox/seccomp';
import {
  explainFailure,
  notInstalled,
  otherSystem,
  thisMachine,
} from '@pawl/agent/command/surroundings';
import { ownPrograms, type ProgramPath } from '@pawl/agent/platform/find-program';
import {
  askProgram,
  CLOSING_SCRIPT,
  guardScript,
  inheritedDescriptors,
  SYSTEM_SHELL,
  startProgram,
  systemBash,
} from '@pawl/agent/platform/start-program';

type Binding = { readonly from: string; readonly to: string };

export type SandboxedProgram = {
  /** Real path, the same inside the sandbox. It is bound without an entry in `readable`. */
  readonly program: string;
  readonly words: readonly string[];
  /** Files and folders; a parent stands before its contents. */
  readonly readable: readonly Binding[];
  /** Folders within `readable` that appear empty to the program. */
  readonly hidden: readonly string[];
  /** Limit for the program's private memory, in bytes, from its start on. */
  readonly memoryMax: number;
};

export type SandboxedEnd = {
  readonly code: number | null;
  readonly signal: string | null;
  /** The last part of its stderr. */
  readonly stderr: string;
};

export type SandboxedProcess = {
  /** Duplex channel; file descriptor 3 inside the sandbox. */
  readonly channel: Duplex;
  /** SIGINT, to the program itself. */
  interrupt(): void;
  /** Pauses the program until `release`. */
  hold(): void;
  release(): void;
  /** Ends it at once. */
  kill(): void;
  /** Resolves when the program has ended completely. Never rejects. */
  readonly ended: Promise<SandboxedEnd>;
};

/** Size of a folder that is to be empty. */
const EMPTY_BYTES = 4_096;
const OPEN_FILES_MAX = 256;
/** Characters of stderr that are kept. */
const STDERR_KEPT = 4_000;
const DEVICES = ['/dev/null', '/dev/zero', '/dev/random', '/dev/urandom'];

/**
 * File descriptors of the started program: for the caller, what bubblewrap says of it, the
 * system-call filter, and one that closes when Pawl dies.
 */
const CHANNEL_FD = 3;
const INFORMATION_FD = 4;
const FILTER_FD = 5;
const GUARD_FD = 6;

/**
 * The guard, then resource limits, which the program inherits, then the program. `$0`: memory in
 * kB. A limit that is already lower stays.
 */
const LIMITED =
  `${guardScript(GUARD_FD, [CHANNEL_FD, INFORMATION_FD, FILTER_FD])}ulimit -c 0; ulimit -n ` +
  `${OPEN_FILES_MAX} 2>/dev/null; ulimit -d "$0" 2>/dev/null; exec "$@"`;
/** Exit code of a shell that does not find a program. */
const NOT_FOUND = 127;
const CANNOT_CLOSE =
  'echo "there are inherited open files, and bash, which closes them, is missing" >&2; exit 126';

/**
 * Without --new-session: it would leave the group. Its purpose, to have no terminal, is served by
 * `detached`.
 */
const FENCE = [
  ['--unshare-all', '--die-with-parent', '--as-pid-1'],
  ['--cap-drop', 'ALL', '--clearenv', '--hostname', 'sandbox'],
].flat();

/** Arguments of bubblewrap. */
const wordsFor = (options: SandboxedProgram): readonly string[] => [
  ...FENCE,
  ...['--info-fd', String(INFORMATION_FD)],
  ...['--seccomp', String(FILTER_FD)],
  ...options.readable.flatMap(({ from, to }) => ['--ro-bind', from, to]),
  ...['--ro-bind', options.program, options.program],
  ...options.hidden.flatMap((folder) => emptyFolder(folder)),
  ...DEVICES.flatMap((device) => ['--dev-bind', device, device]),
  ...emptyFolder('/tmp'),
  ...['--remount-ro', '/', '--chdir', '/tmp'],
  ...Object.entries({ HOME: '/tmp', TMPDIR: '/tmp', LANG: 'C.UTF-8', TZ: 'UTC' }).flatMap(
    ([name, value]) => ['--setenv', name, value],
  ),
  ...['--', options.program, ...options.words],
];

/** An empty, read-only folder. A writable one could hold memory that no limit counts. */
const emptyFolder = (folder: string): readonly string[] => [
  ...['--size', String(EMPTY_BYTES), '--tmpfs', folder, '--remount-ro', folder],
];

const streamAt = (child: ChildProcess, fd: number): Duplex => {
  const stream = child.stdio[fd];
  if (!(stream instanceof Duplex)) throw new Error(`file descriptor ${fd} is no pipe`);
  return stream;
};

/**
 * A pipe reports the end of its reader as an error. `ended` already tells that the program has
 * ended.
 */
const ignoreBroken = (stream: Readable | Writable): void => {
  stream.on('error', () => undefined);
};

/**
 * The program's pid, once bubblewrap has reported it. Signals go to the program, not to bubblewrap.
 */
const listenForPid = (child: ChildProcess): (() => number | null) => {
  let text = '';
  const information = streamAt(child, INFORMATION_FD);
  ignoreBroken(information);
  information.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1');
  });
  return () => {
    const pid = /"child-pid":\s*(\d+)/.exec(text)?.[1];
    return pid === undefined ? null : Number(pid);
  };
};

const collectStderr = (child: ChildProcess): (() => string) => {
  let stderr = '';
  child.stderr?.on('data', (bytes: Buffer) => {
    stderr = (stderr + bytes.toString('latin1')).slice(-STDERR_KEPT);
  });
  return () => Buffer.from(stderr, 'latin1').toString('utf8').trim();
};

const sendSignal = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended meanwhile, which `ended` tells.
  }
};

/**
 * What to start: the system's shell, or bash around it, which closes the open files that Pawl
 * itself has inherited. `words`: for the system's shell.
 */
const withoutOthers = (words: readonly string[]): readonly [ProgramPath, readonly string[]] => {
  if (inheritedDescriptors().length === 0) return [SYSTEM_SHELL, words];
  const closing = systemBash() ?? ownPrograms().find('bash');
  if (closing === null) return [SYSTEM_SHELL, ['-c', CANNOT_CLOSE]];
  // The script closes all descriptors above the first word, GUARD_FD, which is the last of ours.
  return [closing, ['-c', CLOSING_SCRIPT, String(GUARD_FD), SYSTEM_SHELL, ...words]];
};

/**
 * Starts the program. `ended` reports a missing or refusing bubblewrap. Call it from the main
 * thread: the program ends with the thread that started it. Throws without a system-call filter
 * for this architecture, which `probeProgramSandbox` tells.
 */
export const startSandboxed = (options: SandboxedProgram): SandboxedProcess => {
  const filter = programFilter(process.arch);
  if (filter === null) throw new Error(noFilterText());
  const kilobytes = String(Math.ceil(options.memoryMax / 1024));
  // The shell ends with NOT_FOUND if bwrap is missing, as for any missing program.
  const bubblewrap = ownPrograms().find('bwrap') ?? '/nonexistent/bwrap';
  const words = ['-c', LIMITED, kilobytes, bubblewrap, ...wordsFor(options)];
  const [program, inner] = withoutOthers(words);
  const child = startProgram(program, inner, {
    // A new session and group, without a terminal: a Ctrl-C there is ours to answer.
    detached: true,
    env: {},
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
  });
  const pid = listenForPid(child);
  const stderr = collectStderr(child);
  const channel = streamAt(child, CHANNEL_FD);
  const filterPipe = streamAt(child, FILTER_FD);
  const guard = streamAt(child, GUARD_FD);
  ignoreBroken(guard);
  ignoreBroken(channel);
  ignoreBroken(filterPipe);
  filterPipe.resume(); // `close` of the child waits until each pipe is read to its end
  filterPipe.end(filter);
  let hasEnded = false;
  const signal = (name: NodeJS.Signals): void => {
    const target = pid();
    if (target !== null && !hasEnded) sendSignal(target, name);
  };
  const ended = new Promise<SandboxedEnd>((resolve) => {
    child.once('error', (error) =>
      resolve({ code: NOT_FOUND, signal: null, stderr: error.message }),
    );
    child.once('exit', () => {
      hasEnded = true;
      guard.destroy();
    });
    child.once('close', (code, signal) => resolve({ code, signal, stderr: stderr() }));
  });
  return {
    channel,
    interrupt: () => signal('SIGINT'),
    hold: () => signal('SIGSTOP'),
    release: () => signal('SIGCONT'),
    kill() {
      if (child.pid !== undefined && !hasEnded) sendSignal(-child.pid, 'SIGKILL');
    },
    ended,
  };
};

/** What helps whatever is in the way. */
const REPAIR = 'pawl doctor says what to do; --environment quickjs needs no sandbox of the system';
const noFilterText = (): string => `Pawl has no filter of system calls for ${process.arch}.`;
/** A sandbox that does not start by then hangs: a folder of it may be on a dead server. */
const PROBE_MS = 10_000;

/** Why a program ended at its start, and what the user can do. */
export const whyNotStarted = ({ code, signal, stderr }: SandboxedEnd, program: string): string => {
  const machine = thisMachine(process.env);
  if (code === NOT_FOUND)
    return `${notInstalled(machine, ownPrograms().whyNot('bwrap')).reason} ${REPAIR}`;
  if (stderr.startsWith('bwrap:')) return `${explainFailure(machine, stderr).reason} ${REPAIR}`;
  const reason =
    stderr === '' ? `it ended with ${signal ?? `code ${code}`}` : stderr.replaceAll('\n', ' ');
  return `${program} does not start behind bubblewrap: ${reason}. Try another installation of it`;
};

/**
 * Tries the sandbox with a program that ends at once. Null if that works, otherwise the reason and
 * what to do.
 */
export const probeProgramSandbox = async (options: SandboxedProgram): Promise<string | null> => {
  const other = otherSystem(thisMachine(process.env), false);
  if (other !== null) return `${other.reason} ${REPAIR}`;
  if (programFilter(process.arch) === null) return `${noFilterText()} ${REPAIR}`;
  const started = startSandboxed(options);
  started.channel.resume(); // unread, it would delay `ended`
  const timer = setTimeout(() => started.kill(), PROBE_MS);
  const end = await started.ended;
  clearTimeout(timer);
  return end.code === 0 ? null : whyNotStarted(end, options.program);
};

/** Library folders to use where `ldd` tells none. */
const LIBRARY_FOLDERS: readonly string[] = ['/lib', '/lib64', '/usr/lib', '/usr/lib64'];

/** `libm.so.6 => /lib/…/libm.so.6 (0x…)` or `/lib64/ld-linux-x86-64.so.2 (0x…)`. */
const findLibrary = (line: string): readonly string[] => {
  const library = /^\s*(?:\S+ => )?(\/\S+)(?: \(0x[0-9a-f]+\))?$/.exec(line)?.[1];
  return library === undefined ? [] : [library];
};

/**
 * Paths of a program's libraries. The program must be trusted, since `ldd` may start it. A static
 * program may still load files from the usual folders.
 */
export const listLibraries = async (program: string): Promise<readonly string[]> => {
  const programs = ownPrograms();
  const ldd = programs.find('ldd');
  const environment = { ...process.env, LC_ALL: 'C' };
  const answer =
    ldd === null
      ? null
      : await askProgram(ldd, [program], { environment, searchPath: programs.folders });
  return answer === null || answer.code !== 0
    ? LIBRARY_FOLDERS.filter((folder) => existsSync(folder))
    : answer.output.split('\n').flatMap(findLibrary);
};
