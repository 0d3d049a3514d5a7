import { hash, randomUUID } from 'node:crypto';
import { readFile, readlink } from 'node:fs/promises';
import { hostname, uptime } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { readTextOrEmpty } from '../../platform/files/regular-file.js';
import { codeOf } from '../journal-error.js';
import { answers } from './lock-socket.js';

/** The process that holds a lock, as its lock file says. Empty strings: unknown on this platform. */
export type Holder = {
  readonly pid: number;
  readonly host: string;
  /** Identity of the installed system, to tell two computers with the same host name apart. */
  readonly system: string;
  /** Boot id of the running kernel. Containers have that of their host. */
  readonly bootId: string;
  /** Start time of the process in kernel ticks, to tell it from a later process with the same pid. */
  readonly started: string;
  /** Always empty. Earlier versions take the lock of a holder in their own network namespace. */
  readonly network: string;
  /** The pid namespace, within which the pid is valid. */
  readonly pids: string;
  readonly since: number;
  /** Name of a socket beside the lock file. The kernel refuses connections to it once its holder is dead. */
  readonly socket: string;
};

/** A value read from /proc or /etc; an empty string if it is missing. */
const orEmpty = async (reading: Promise<string>): Promise<string> => {
  try {
    return (await reading).trim();
  } catch {
    // No such file or process: "unknown" is a valid value here, and every use of it errs on the safe side.
    return '';
  }
};

/** Field 22 of /proc/PID/stat, counted from after the process name, which can contain blanks and parentheses. */
const startOf = async (pid: number): Promise<string> => {
  const stat = await orEmpty(readFile(`/proc/${pid}/stat`, 'utf8'));
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
};

/** A machine id is not to be published, so only a hash of it is written down. */
const systemId = async (): Promise<string> => {
  const id = await orEmpty(readFile('/etc/machine-id', 'utf8'));
  return id === '' ? '' : hash('sha256', `pawl ${id}`, 'hex').slice(0, 16);
};

/** Describes this process. `socket` is the name of its socket, or empty. */
export const describeSelf = async (
  platform: string = process.platform,
  socket: string = '',
): Promise<Holder> => {
  const plain = { pid: process.pid, host: hostname(), since: Date.now(), network: '', socket };
  if (platform !== 'linux') return { ...plain, system: '', bootId: '', started: '', pids: '' };
  const [system, bootId, started, pids] = await Promise.all([
    systemId(),
    orEmpty(readFile('/proc/sys/kernel/random/boot_id', 'utf8')),
    startOf(process.pid),
    orEmpty(readlink('/proc/self/ns/pid')),
  ]);
  return { ...plain, system, bootId, started, pids };
};

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH'; // EPERM: it runs as another user
  }
};

/**
 * What is known of a holder. `gone`: this system proves that it is dead. `restarted`: the computer was started again since.
 * `unknown`: it may be alive.
 */
type HolderCheck = 'gone' | 'restarted' | 'unknown';

/** For a holder under the same kernel: its socket proves whether it lives, in any container; else its pid does. */
const isGoneHere = async (path: string, holder: Holder, self: Holder): Promise<boolean> => {
  const socket = socketOf(path, holder);
  const answer = socket === null ? 'unknown' : await answers(socket);
  if (answer !== 'unknown') return answer === 'refused';
  if (holder.pids === '' || holder.pids !== self.pids) return false;
  // This process has closed the socket, but a full disk kept the file.
  if (socket !== null && holder.pid === self.pid && holder.started === self.started) return true;
  return !isRunning(holder.pid) || (await startOf(holder.pid)) !== holder.started;
};

/** For platforms without boot ids and sockets. */
const checkPlain = (holder: Holder, self: Holder): HolderCheck => {
  if (holder.host !== self.host) return 'unknown';
  if (holder.since < Date.now() - uptime() * 1_000) return 'restarted';
  return holder.pid === self.pid || !isRunning(holder.pid) ? 'gone' : 'unknown';
};

/** Checks the holder of the lock file `path`. `self` is this process, which does not hold the lock. */
export const checkHolder = async (path: string, holder: Holder, self: Holder): Promise<HolderCheck> => {
  if (holder.bootId === '' && self.bootId === '') return checkPlain(holder, self);
  if (holder.bootId === self.bootId) return (await isGoneHere(path, holder, self)) ? 'gone' : 'unknown';
  const isSameComputer = self.system !== '' && holder.system === self.system && holder.host === self.host;
  return isSameComputer ? 'restarted' : 'unknown';
};

/** The socket of a holder; null if it has none, or the name leads elsewhere. */
export const socketOf = (path: string, { socket }: Holder): string | null =>
  socket.startsWith(`${basename(path)}.`) && basename(socket) === socket ? join(dirname(path), socket) : null;

const textIn = (value: object, name: string): string => {
  const found: unknown = Reflect.get(value, name);
  return typeof found === 'string' ? found : '';
};

const numberIn = (value: object, name: string): number => {
  const found: unknown = Reflect.get(value, name);
  return typeof found === 'number' ? found : 0;
};

/** The holder that the text of a lock file names; undefined if it names none. */
export const parseHolder = (text: string): Holder | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || numberIn(value, 'pid') < 1) return undefined;
    return {
      pid: numberIn(value, 'pid'),
      host: textIn(value, 'host'),
      system: textIn(value, 'system'),
      bootId: textIn(value, 'bootId'),
      started: textIn(value, 'started'),
      network: '',
      pids: textIn(value, 'pids'),
      since: numberIn(value, 'since'),
      socket: textIn(value, 'socket'),
    };
  } catch {
    // A power loss cut the file short, so the holder is unknown, and dead.
    return undefined;
  }
};

export const HOLDER_BYTES_MAX = 16 * 1024;

/** The holder that a lock file names; undefined if the file is missing or unreadable. */
export const readHolder = async (path: string): Promise<Holder | undefined> =>
  parseHolder(await readTextOrEmpty(path, HOLDER_BYTES_MAX));

/** A name that no other socket beside the lock file has. */
export const newSocketName = (path: string): string => `${basename(path)}.${randomUUID().slice(0, 8)}`;
