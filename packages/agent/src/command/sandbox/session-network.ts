import { closeSync, fstatSync, openSync, readlinkSync, statSync } from 'node:fs';
import type { ProgramPath } from '../../platform/find-program.js';
import { readProcessStat } from '../../platform/process-identity.js';
import { askProgram, SYSTEM_SHELL, startProgram } from '../../platform/start-program.js';
import type { LaunchedProcess } from '../launched-command.js';
import { type Mount, mountWords } from './host.js';

/**
 * The network that the fenced commands of a session share: a loopback of their own, and nothing
 * else. So a server in the background is reached by later commands.
 *
 * It is a pair of open files, of a network namespace and of the user namespace that owns it. No
 * process holds it, so no command can end it and nothing is left to clean up: it is gone when this
 * process and the session's last command have ended. Launchers enter it with nsenter and make their
 * fences inside, so that mounts, processes and rights are those of a fence with its own network.
 */
export type SessionNetwork = {
  readonly entry: NetworkEntry;
  close(): void;
};

/** Words that start a program in a network, before the program. Empty: in that of this machine. */
export type NetworkEntry = readonly [nsenter: ProgramPath, ...words: string[]] | readonly [];

/** `why`: half a sentence. */
export type SessionNetworkAnswer =
  | { readonly kind: 'works'; readonly network: SessionNetwork }
  | { readonly kind: 'missing'; readonly why: string };

type Programs = { readonly bwrap: ProgramPath; readonly nsenter: ProgramPath };

type Namespaces = { readonly user: number; readonly network: number };

const closeNamespaces = ({ user, network }: Namespaces): void => {
  closeSync(user);
  closeSync(network);
};

/**
 * Throws if the process is gone or belongs to another user, and if it has the network of this
 * machine: then /proc is that of other processes than ours.
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

/**
 * The network of a command that an earlier process of the session has started in it and that still
 * runs. Null if it has ended.
 */
const openRunning = ({ pid, startedAt }: LaunchedProcess): Namespaces | null => {
  try {
    const namespaces = openNamespaces(pid);
    // Asked only now: so the open files are those of exactly this process.
    if (Number(readProcessStat(pid).started) === startedAt) return namespaces;
    closeNamespaces(namespaces);
  } catch {
    // it has ended meanwhile
  }
  return null;
};

const READY_MS = 10_000;
/** Says its process number, and waits until its input is closed. */
const HOLDER = 'echo $$; read -r _';

/**
 * A new network. A shell holds it until its files are open. Without a device folder and a process
 * namespace, since bubblewrap would put these below a further user namespace.
 */
const openNew = (bwrap: ProgramPath, mounts: readonly Mount[]): Promise<Namespaces | string> =>
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

/** Whether process numbers in /proc are ours, and not those of another namespace of processes. */
const hasOwnProc = (): boolean => {
  try {
    return readlinkSync('/proc/self') === String(process.pid);
  } catch {
    return false; // no /proc, or one in which we are not
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

/** Whether a program starts in it: a filter of a container may forbid it. */
const canEnter = async ([nsenter, ...words]: ReturnType<typeof entryTo>): Promise<boolean> => {
  const answer = await askProgram(nsenter, [...words, SYSTEM_SHELL, '-c', ':'], {
    environment: {},
    searchPath: ['/usr/bin', '/bin'],
    folder: '/',
    timeoutMs: READY_MS,
  });
  return answer?.code === 0;
};

/**
 * The network of the session: that of its commands which an earlier process has started and that
 * still run (`running`, the newest first), or a new one. Never rejects.
 */
export const openSessionNetwork = async (
  { bwrap, nsenter }: Programs,
  mounts: readonly Mount[],
  running: readonly LaunchedProcess[],
): Promise<SessionNetworkAnswer> => {
  if (!hasOwnProc()) return { kind: 'missing', why: '/proc is that of other processes' };
  let opened: Namespaces | string | null = null;
  for (const process of running) opened ??= openRunning(process);
  opened ??= await openNew(bwrap, mounts);
  if (typeof opened === 'string') return { kind: 'missing', why: opened };
  const namespaces = opened;
  const entry = entryTo(namespaces, nsenter);
  if (await canEnter(entry))
    return { kind: 'works', network: { entry, close: () => closeNamespaces(namespaces) } };
  closeNamespaces(namespaces);
  return { kind: 'missing', why: 'nsenter may not enter a network here' };
};
