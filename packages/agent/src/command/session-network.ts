/**
 * The network that the fenced commands of a session share: a private loopback only. So later
 * commands can reach a server in the background.
 *
 * It is a pair of open files: a network namespace and the user namespace that owns it. No process
 * holds it, so no command can end it, and it disappears when this process and the session's last
 * command have ended. Launchers enter it with nsenter and make their fences inside, so that mounts,
 * processes and rights are those of a fence with its own network.
 */

import { closeSync, fstatSync, openSync, readlinkSync, statSync } from 'node:fs';
import type { ProgramPath } from '../platform/find-program.js';
import { readProcess } from '../platform/processes.js';
import { askProgram, SYSTEM_SHELL, startProgram } from '../platform/start-program.js';
import type { LaunchedProcess } from './launched-command.js';
import { type Mount, mountWords } from './sandbox/host.js';

type SessionNetwork = {
  readonly entry: NetworkEntry;
  close(): void;
};

/** Words before a program that start it in a network. Empty: the network of this machine. */
export type NetworkEntry = readonly [nsenter: ProgramPath, ...words: string[]] | readonly [];

/** `why`: half a sentence. */
export type SessionNetworkAnswer =
  | { readonly kind: 'works'; readonly network: SessionNetwork }
  | { readonly kind: 'missing'; readonly why: string };

/**
 * The network of the session: that of its still running commands of an earlier process (`running`,
 * the newest first), or a new one. Never rejects.
 */
export const openSessionNetwork = async (
  { bwrap, nsenter }: NetworkPrograms,
  mounts: readonly Mount[],
  running: readonly LaunchedProcess[],
): Promise<SessionNetworkAnswer> => {
  if (!hasOwnProc()) return { kind: 'missing', why: '/proc is that of other processes' };
  let opened: Namespaces | string | null = null;
  for (const earlier of running) opened ??= openRunningNetwork(earlier);
  opened ??= await createNetwork(bwrap, mounts);
  if (typeof opened === 'string') return { kind: 'missing', why: opened };
  const namespaces = opened;
  const entry = entryTo(namespaces, nsenter);
  if (await canEnter(entry))
    return { kind: 'works', network: { entry, close: () => closeNamespaces(namespaces) } };
  closeNamespaces(namespaces);
  return { kind: 'missing', why: 'nsenter may not enter a network here' };
};

type NetworkPrograms = { readonly bwrap: ProgramPath; readonly nsenter: ProgramPath };

type Namespaces = { readonly user: number; readonly network: number };

const closeNamespaces = ({ user, network }: Namespaces): void => {
  closeSync(user);
  closeSync(network);
};

/**
 * Opens the namespaces of a process. Throws if it has ended or belongs to another user, and if it
 * has the network of this machine: then /proc shows other processes than ours.
 */
const openNamespaces = (pid: number): Namespaces => {
  const user = openSync(`/proc/${pid}/ns/user`, 'r');
  try {
    const network = openSync(`/proc/${pid}/ns/net`, 'r');
    if (fstatSync(network).ino !== statSync('/proc/self/ns/net').ino) return { user, network };
    closeSync(network);
    throw new Error('it would be that of the machine');
  } catch (error) {
    closeSync(user);
    throw error;
  }
};

/** Opens the network of a command of an earlier process. Null if the command has ended. */
const openRunningNetwork = ({ pid, startedAt }: LaunchedProcess): Namespaces | null => {
  try {
    const namespaces = openNamespaces(pid);
    // checked after opening, so the open files belong to exactly this process
    if (Number(readProcess(pid).started) === startedAt) return namespaces;
    closeNamespaces(namespaces);
  } catch {
    // it has ended meanwhile
  }
  return null;
};

const READY_MS = 10_000;
/** Prints its process number, and waits until its input is closed. */
const HOLDER = 'echo $$; read -r _';

/**
 * Creates a network. A shell holds it until its files are open. It has no device folder and no
 * process namespace, since bubblewrap would put these below a further user namespace.
 */
const createNetwork = (
  bwrap: ProgramPath,
  mounts: readonly Mount[],
): Promise<Namespaces | string> =>
  new Promise((resolve) => {
    const words = ['--unshare-user', '--unshare-net', '--die-with-parent', ...mountWords(mounts)];
    const child = startProgram(bwrap, [...words, '--', SYSTEM_SHELL, '-c', HOLDER], {
      cwd: '/',
      env: {},
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const end = (answer: Namespaces | string): void => {
      clearTimeout(timer);
      child.stdin?.destroy();
      child.stdout?.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      end('bubblewrap did not make one in time');
    }, READY_MS);
    child.once('error', (error) => end(error.message));
    child.once('exit', () => end('bubblewrap could not make one'));
    child.stdout?.once('data', (line: Buffer) => {
      try {
        end(openNamespaces(Number(line.toString('latin1'))));
      } catch (error) {
        end(error instanceof Error ? error.message : String(error));
      }
    });
  });

/** Whether /proc belongs to our pid namespace. */
const hasOwnProc = (): boolean => {
  try {
    return readlinkSync('/proc/self') === String(process.pid);
  } catch {
    return false; // no /proc, or one without this process
  }
};

/** Words for nsenter. It finds the files through this process, so that no program inherits them. */
const entryTo = (
  { user, network }: Namespaces,
  nsenter: ProgramPath,
): Exclude<NetworkEntry, readonly []> => {
  const at = (descriptor: number): string => `/proc/${process.pid}/fd/${descriptor}`;
  return [nsenter, `--user=${at(user)}`, `--net=${at(network)}`, '--preserve-credentials', '--'];
};

/** Whether a program starts in the network: a filter of a container may forbid it. */
const canEnter = async ([nsenter, ...words]: ReturnType<typeof entryTo>): Promise<boolean> => {
  const answer = await askProgram(nsenter, [...words, SYSTEM_SHELL, '-c', ':'], {
    environment: {},
    searchPath: ['/usr/bin', '/bin'],
    folder: '/',
    timeoutMs: READY_MS,
  });
  return answer?.code === 0;
};
