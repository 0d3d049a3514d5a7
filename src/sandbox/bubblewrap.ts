import { type ChildProcess, spawn } from 'node:child_process';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { systemCallFilter } from './system-calls.js';

/**
 * A program behind bubblewrap.
 *
 * 1. It sees the files that are bound for it, to read, and a small /tmp of its own that ends with it; nothing else of
 *    the machine: no home, no workspace, no /proc, no network, no variable of ours.
 * 2. It is one process, first of its own namespace: killing it, or us, ends all of it. See system-calls.ts.
 * 3. Its memory is limited.
 */

type Binding = { readonly from: string; readonly to: string };

export type SandboxedProgram = {
  /** Real path; it has the same path inside. Bound without being named below. */
  readonly program: string;
  readonly words: readonly string[];
  /** Files and folders, parents before what is in them. */
  readonly readable: readonly Binding[];
  /** Folders inside of readable ones that it finds empty. */
  readonly hidden: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Bytes of memory that is its own, all of it, from its start on. */
  readonly memoryMax: number;
};

export type ProcessEnd = {
  readonly code: number | null;
  readonly signal: string | null;
  /** The end of what it wrote to stderr. */
  readonly stderr: string;
};

export type SandboxedProcess = {
  /** Both ways; file descriptor 3 inside. */
  readonly channel: Duplex;
  /** SIGINT, to the program itself. */
  interrupt(): void;
  /** Nothing of it runs until `release`. */
  hold(): void;
  release(): void;
  /** Ends it at once. */
  kill(): void;
  /** When nothing of it is left. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
};

const TEMPORARY_BYTES = 16 * 1024 * 1024;
const EMPTY_BYTES = 4_096;
const OPEN_FILES_MAX = 256;
const STDERR_KEPT = 4_000;
const DEVICES = ['/dev/null', '/dev/zero', '/dev/random', '/dev/urandom'];

/** File descriptors of the started program. */
const CHANNEL_FD = 3;
const INFORMATION_FD = 4;
const FILTER_FD = 5;

/** Limits are inherited by everything that follows; a limit that is lower already stays. */
const LIMITED = `ulimit -c 0; ulimit -n ${OPEN_FILES_MAX} 2>/dev/null; ulimit -d "$0" 2>/dev/null; exec "$@"`;
const NOT_FOUND = 127;

const FENCE = [
  ['--unshare-all', '--die-with-parent', '--new-session', '--as-pid-1'],
  ['--cap-drop', 'ALL', '--clearenv', '--hostname', 'sandbox'],
].flat();

const wordsFor = (order: SandboxedProgram, filtered: boolean): readonly string[] => [
  ...FENCE,
  ...['--info-fd', String(INFORMATION_FD)],
  ...(filtered ? ['--seccomp', String(FILTER_FD)] : []),
  ...order.readable.flatMap(({ from, to }) => ['--ro-bind', from, to]),
  ...['--ro-bind', order.program, order.program],
  ...order.hidden.flatMap((folder) => emptyFolder(folder)),
  ...DEVICES.flatMap((device) => ['--dev-bind', device, device]),
  ...['--size', String(TEMPORARY_BYTES), '--tmpfs', '/tmp', '--remount-ro', '/', '--chdir', '/tmp'],
  ...Object.entries({
    HOME: '/tmp',
    TMPDIR: '/tmp',
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    ...order.environment,
  }).flatMap(([name, value]) => ['--setenv', name, value]),
  ...['--', order.program, ...order.words],
];

/** A writable folder would be a place for memory that no limit counts. */
const emptyFolder = (folder: string): readonly string[] => [
  ...['--size', String(EMPTY_BYTES), '--tmpfs', folder, '--remount-ro', folder],
];

const streamAt = (child: ChildProcess, fd: number): Duplex => {
  const stream = child.stdio[fd];
  if (!(stream instanceof Duplex)) throw new Error(`file descriptor ${fd} is no pipe`);
  return stream;
};

/** A pipe whose other end is gone says so as an error; that the program ended is told by `ended`. */
const ignoreBroken = (stream: Readable | Writable): void => {
  stream.on('error', () => undefined);
};

/** The pid of the program, which bubblewrap tells; signals go to it, not to bubblewrap. */
const listenForPid = (child: ChildProcess): (() => number | null) => {
  let told = '';
  const information = streamAt(child, INFORMATION_FD);
  ignoreBroken(information);
  information.on('data', (bytes: Buffer) => {
    told += bytes.toString('latin1');
  });
  return () => {
    const pid = /"child-pid":\s*(\d+)/.exec(told)?.[1];
    return pid === undefined ? null : Number(pid);
  };
};

const keepStderr = (child: ChildProcess): (() => string) => {
  let kept = '';
  child.stderr?.on('data', (bytes: Buffer) => {
    kept = (kept + bytes.toString('latin1')).slice(-STDERR_KEPT);
  });
  return () => Buffer.from(kept, 'latin1').toString('utf8').trim();
};

const sendSignal = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended meanwhile, which `ended` tells.
  }
};

/** Starts it. Where bubblewrap is missing or refuses, `ended` tells. To be called from the main thread: it ends with the thread. */
export const startSandboxed = (order: SandboxedProgram): SandboxedProcess => {
  const filter = systemCallFilter(process.arch);
  const kilobytes = String(Math.ceil(order.memoryMax / 1024));
  const child = spawn('/bin/sh', ['-c', LIMITED, kilobytes, 'bwrap', ...wordsFor(order, filter !== null)], {
    // A Ctrl-C in the terminal is ours to answer.
    detached: true,
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  });
  const pid = listenForPid(child);
  const stderr = keepStderr(child);
  const channel = streamAt(child, CHANNEL_FD);
  const filterPipe = streamAt(child, FILTER_FD);
  ignoreBroken(channel);
  ignoreBroken(filterPipe);
  filterPipe.resume();
  filterPipe.end(filter ?? undefined);
  let hasEnded = false;
  const signal = (name: NodeJS.Signals): void => {
    const target = pid();
    if (target !== null && !hasEnded) sendSignal(target, name);
  };
  const ended = new Promise<ProcessEnd>((resolve) => {
    child.once('error', (error) => resolve({ code: NOT_FOUND, signal: null, stderr: error.message }));
    child.once('exit', () => {
      hasEnded = true;
    });
    child.once('close', (code, signal) => resolve({ code, signal, stderr: stderr() }));
  });
  return {
    channel,
    interrupt: () => signal('SIGINT'),
    hold: () => signal('SIGSTOP'),
    release: () => signal('SIGCONT'),
    kill: () => void child.kill('SIGKILL'),
    ended,
  };
};

const INSTALL =
  'Install it: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora), pacman -S bubblewrap (Arch)';
const ALLOW_NAMESPACES =
  'Let users make user namespaces: sysctl -w user.max_user_namespaces=10000; on Ubuntu also sysctl -w kernel.apparmor_restrict_unprivileged_userns=0. In a container, give it the right to make namespaces';

/** Why a program that should have gone on ended at its start, and what to do. */
export const whyNotStarted = ({ code, signal, stderr }: ProcessEnd, program: string): string => {
  if (code === NOT_FOUND) return `bubblewrap (bwrap) is not installed. ${INSTALL}`;
  const said = stderr === '' ? `it ended with ${signal ?? `code ${code}`}` : stderr.replaceAll('\n', ' ');
  const isOwn = stderr.startsWith('bwrap:');
  if (isOwn && /unknown option/i.test(stderr))
    return `bubblewrap is too old: ${said}. Version 0.8 or newer is needed`;
  if (isOwn && /namespace|uid map|permission|permitted|RTM_NEWADDR/i.test(stderr))
    return `bubblewrap may not work here: ${said}. ${ALLOW_NAMESPACES}`;
  return `${program} does not start behind bubblewrap: ${said}. Try another installation of it`;
};

/** Null if this program, with words that let it end at once, runs here; otherwise why not, and what to do. */
export const probeSandbox = async (order: SandboxedProgram): Promise<string | null> => {
  if (process.platform !== 'linux') return 'bubblewrap exists for Linux only';
  const started = startSandboxed(order);
  started.channel.resume();
  const end = await started.ended;
  return end.code === 0 ? null : whyNotStarted(end, order.program);
};
