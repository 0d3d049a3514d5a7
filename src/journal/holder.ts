import { randomUUID } from 'node:crypto';
import { link, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { hostname, uptime } from 'node:os';
import { codeOf } from './error.js';
import { FILE_MODE } from './layout.js';

/** Who holds a lock, as its file says. Empty strings: the platform does not tell. */
export type Holder = {
  readonly pid: number;
  readonly host: string;
  /** Of the running kernel. */
  readonly bootId: string;
  /** When the process started, in the kernel's own ticks: tells it from a later one with the same pid. */
  readonly started: string;
  /** The network and pid namespaces: where the abstract socket, and the pid, mean something. */
  readonly network: string;
  readonly pids: string;
  readonly since: number;
};

/** A fact of /proc: an empty string where it is missing. */
const orEmpty = async (reading: Promise<string>): Promise<string> => {
  try {
    return (await reading).trim();
  } catch {
    // No such file, or no such process: "unknown" is a value here, and every use of it is on the safe side.
    return '';
  }
};

/** Field 22 of /proc/PID/stat, counted behind the name, which may hold blanks and parentheses. */
const startOf = async (pid: number): Promise<string> => {
  const stat = await orEmpty(readFile(`/proc/${pid}/stat`, 'utf8'));
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
};

/** This process. Where there are no abstract sockets, a lock file names pid, host and time only. */
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
    return codeOf(error) !== 'ESRCH'; // EPERM: it runs under another user
  }
};

/**
 * Whether the holder is dead for certain; `self` holds the socket, if the platform has one, and knows that no lock in
 * this process has the file.
 */
export const isGone = async (holder: Holder, self: Holder): Promise<boolean> => {
  if (holder.bootId !== '' || self.bootId !== '') {
    if (holder.bootId !== self.bootId) return holder.host === self.host;
    if (holder.network !== '' && holder.network === self.network) return true; // it would hold the socket
    if (holder.pids !== self.pids) return false;
    return !isRunning(holder.pid) || (await startOf(holder.pid)) !== holder.started;
  }
  if (holder.host !== self.host) return false;
  if (holder.since < Date.now() - uptime() * 1_000) return true; // the computer was started since
  return holder.pid === self.pid || !isRunning(holder.pid);
};

const parseHolder = (text: string): Holder | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    // Safe enough: only this file writes it, and a wrong field makes the holder "not gone" or is just shown.
    return typeof value === 'object' && value !== null && 'pid' in value ? (value as Holder) : undefined;
  } catch {
    // A file cut short by a crash names nobody; the caller treats it so.
    return undefined;
  }
};

/** The holder named in a lock file; undefined if there is no file, or none that can be understood. */
export const readHolder = async (path: string): Promise<Holder | undefined> =>
  parseHolder(await orEmpty(readFile(path, 'utf8')));

/** Makes the file with its content in one step, so that nobody reads half of it. */
const linkNew = async (path: string, text: string): Promise<void> => {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { flag: 'wx', mode: FILE_MODE });
    await link(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
};

/** Writes a new lock file; false if there is one already. */
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
 * Removes the lock file of a dead holder; undefined when done. Another process may have done the same and written its
 * own meanwhile: then that one is put back, and returned.
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
