import { randomUUID } from 'node:crypto';
import { link, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { hostname, uptime } from 'node:os';
import { readTextOrEmpty } from '../../files/regular-file.js';
import { codeOf } from '../journal-error.js';
import { FILE_MODE } from '../journal-paths.js';

/** The process that holds a lock, as its lock file says. Empty strings: unknown on this platform. */
export type Holder = {
  readonly pid: number;
  readonly host: string;
  /** Boot id of the running kernel. */
  readonly bootId: string;
  /** Start time of the process in kernel ticks, to tell it from a later process with the same pid. */
  readonly started: string;
  /** The network and pid namespaces, within which the abstract socket and the pid are valid. */
  readonly network: string;
  readonly pids: string;
  readonly since: number;
};

/** A value read from /proc; an empty string if it is missing. */
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

/** Describes this process. Without abstract sockets, a lock file holds only pid, host and time. */
export const describeSelf = async (platform: string = process.platform): Promise<Holder> => {
  const plain = { pid: process.pid, host: hostname(), since: Date.now() };
  if (platform !== 'linux') return { ...plain, bootId: '', started: '', network: '', pids: '' };
  return {
    ...plain,
    bootId: await orEmpty(readFile('/proc/sys/kernel/random/boot_id', 'utf8')),
    started: await startOf(process.pid),
    network: await orEmpty(readlink('/proc/self/ns/net')),
    pids: await orEmpty(readlink('/proc/self/ns/pid')),
  };
};

export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH'; // EPERM: it runs as another user
  }
};

/**
 * True if the holder is certainly dead. The caller (`self`) already holds the socket, if the platform has one, and
 * knows that this process does not hold the file.
 */
export const isGone = async (holder: Holder, self: Holder): Promise<boolean> => {
  if (holder.bootId !== '' || self.bootId !== '') {
    if (holder.bootId !== self.bootId) return holder.host === self.host;
    if (holder.network !== '' && holder.network === self.network) return true; // if it lived, it would hold the socket
    if (holder.pids !== self.pids) return false;
    return !isRunning(holder.pid) || (await startOf(holder.pid)) !== holder.started;
  }
  if (holder.host !== self.host) return false;
  if (holder.since < Date.now() - uptime() * 1_000) return true; // the computer was restarted since
  return holder.pid === self.pid || !isRunning(holder.pid);
};

const parseHolder = (text: string): Holder | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    // Safe enough: only this module writes it; a wrong field makes the holder count as alive, or is only displayed.
    return typeof value === 'object' && value !== null && 'pid' in value ? (value as Holder) : undefined;
  } catch {
    // A crash cut the file short, so the holder is unknown.
    return undefined;
  }
};

const HOLDER_BYTES_MAX = 16 * 1024;

/** The holder that a lock file names; undefined if the file is missing or unreadable. */
export const readHolder = async (path: string): Promise<Holder | undefined> =>
  parseHolder(await readTextOrEmpty(path, HOLDER_BYTES_MAX));

/** Creates the file with its content atomically, so that nobody reads half of it. */
const linkNew = async (path: string, text: string): Promise<void> => {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { flag: 'wx', mode: FILE_MODE });
    await link(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
};

/** Writes a new lock file; false if one exists. */
export const writeHolder = async (path: string, holder: Holder): Promise<boolean> => {
  const text = `${JSON.stringify(holder)}\n`;
  try {
    await linkNew(path, text).catch(async (error: unknown) => {
      // File systems without hard links.
      if (codeOf(error) !== 'EPERM' && codeOf(error) !== 'ENOTSUP' && codeOf(error) !== 'ENOSYS') throw error;
      await writeFile(path, text, { flag: 'wx', mode: FILE_MODE });
    });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
};

export const removeHolder = (path: string): Promise<void> => rm(path, { force: true });

const isSame = (left: Holder | undefined, right: Holder | undefined): boolean =>
  left?.pid === right?.pid && left?.started === right?.started && left?.since === right?.since;

/**
 * Removes the lock file of a dead holder and returns undefined. If another process has meanwhile replaced it with its
 * own, that file is restored and its holder returned.
 */
export const removeDead = async (path: string, dead: Holder | undefined): Promise<Holder | undefined> => {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  const found = await readHolder(aside);
  if (isSame(found, dead)) {
    await rm(aside, { force: true });
    return undefined;
  }
  await rename(aside, path);
  return found;
};
