/**
 * The lock that keeps a second process from writing a journal.
 *
 * From top to bottom: `acquireLock`, which takes the lock or says who has it; the file that only
 * one process at a time owns; the holder, whom a lock file names, and whether it still lives; the
 * socket that proves it; and what dead processes left. A process number alone proves nothing:
 * numbers are used again, and a container counts anew. So the holder listens on a socket file
 * beside the lock file (Linux only). A claim is a file that announces the replacement or removal of
 * a lock file.
 */

import { hash, randomUUID } from 'node:crypto';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { link, lstat, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { attempt } from '../platform/attempt.js';
import {
  descriptorPath,
  errorCode,
  hasDescriptorPaths,
  O_PATH,
  readRegular,
  readTextOrEmpty,
  readTextOrEmptySync,
} from '../platform/files.js';
import {
  ALL_PROCESSES,
  identifyProcess,
  isGoneHere,
  processExists,
  sinceBoot,
} from '../platform/processes.js';
import { localTime } from '../platform/text.js';
import { cannotRead, cannotWrite, JournalError } from './journal-error.js';
import { FILE_MODE, isSessionId } from './state-folder.js';

/**
 * Ensures one writer per journal, also across containers and computers that share the folder.
 *
 * 1. Within a process: a set of the held paths.
 * 2. Everywhere: a lock file that names the holder. Only one process can create or replace it.
 * 3. The lock of a dead holder is free if its death is proved. Otherwise the user may take it over:
 *    then the old holder finds another lock file before it has another line acknowledged, and
 *    stops.
 */
export type Lock = {
  /**
   * The error if the lock is no longer held: `takenOver` by another process, or `foreignChange` if
   * it was removed.
   */
  loss(): JournalError | null;
  /**
   * `gone`: the death of the last holder is proved. `unknown`: it is not, even if the holder counts
   * as dead (`restarted`, below); it may write once more to the file that it has open.
   */
  readonly predecessor: 'gone' | 'unknown';
  release(): Promise<void>;
};

type LockOptions = {
  /** Sockets are used if this platform has them. */
  readonly platform?: string;
  /** Take the lock from a holder that may still be alive. */
  readonly takeOver?: boolean;
};

/** The lock files that this process holds. */
const held = new Set<string>();

/** Takes the lock `file`; rejects with `locked` or `cannotWrite`. Its folder must exist. */
export const acquireLock = async (
  file: string,
  { platform = process.platform, takeOver = false }: LockOptions = {},
): Promise<Lock> => {
  let path = file;
  try {
    path = join(await realpath(dirname(file)), basename(file));
    if (held.has(path)) throw lockedHere(path);
    held.add(path);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  try {
    return await acquireReal(path, platform, takeOver);
  } catch (error) {
    held.delete(path);
    throw cannotWrite(path, error);
  }
};

/** Whether it failed because somebody else holds a lock. */
export const isHeldElsewhere = (fault: unknown): boolean =>
  fault instanceof JournalError && fault.kind === 'locked';

const RETRY_MS = 25;

/** Does what takes a lock once its holder lets go; rejects with `locked` after `waitMs`. */
export const whenFree = async <T>(work: () => Promise<T>, waitMs: number): Promise<T> => {
  const endsAt = performance.now() + waitMs;
  for (;;) {
    const done = await attempt(work);
    if (done.kind === 'done') return done.value;
    if (!isHeldElsewhere(done.fault) || performance.now() > endsAt) throw done.fault;
    await pause(RETRY_MS);
  }
};

/** Takes the lock at a path without symbolic links, which no other call here is taking. */
const acquireReal = async (path: string, platform: string, takeOver: boolean): Promise<Lock> => {
  const name = newSocketName(path);
  const socket = platform === 'linux' ? await listenAt(join(dirname(path), name)) : null;
  const self = await describeSelf(socket === null ? '' : name);
  // no two locks have the same text, not even those of one process
  const identity = { ...self, lockId: randomUUID() };
  const formatText: OwnText = (renews) =>
    `${JSON.stringify(renews ? { ...identity, renews } : identity)}\n`;
  try {
    const { predecessor, ownText } = await takeFile(path, self, formatText, takeOver);
    // Encoded once, since each write of the journal looks at the lock twice.
    const ownBytes = Buffer.from(ownText);
    let releasing: Promise<void> | undefined;
    const release = async (): Promise<void> => {
      // Remove the file first: a lock file whose socket is gone counts as that of a dead process.
      try {
        await removeFile(path, ownText);
      } catch {
        // A full disk takes no claim. The lock file stays, as that of a dead process once the
        // socket is closed.
      } finally {
        await socket?.close();
        held.delete(path);
      }
    };
    return {
      predecessor,
      loss: () => (holdsText(path, ownBytes) ? null : explainLoss(path)),
      release: () => {
        releasing ??= release();
        return releasing;
      },
    };
  } catch (error) {
    await socket?.close();
    throw error;
  }
};

const describeHolder = ({ pid, host }: Holder): string => `process ${pid} on ${host}`;

/** Where a holder runs, as far as it is not here. */
const whereIs = (holder: Holder, self: Holder): string => {
  if (holder.bootId !== self.bootId) return ', another computer or an earlier start of this one';
  return holder.pids === self.pids ? '' : ', in another container';
};

const locked = (path: string, holder: Holder | undefined, where = ''): JournalError => {
  const who = holder === undefined ? 'another process' : `${describeHolder(holder)}${where}`;
  const since =
    holder === undefined || holder.since === 0 ? '' : ` since ${localTime(holder.since)}`;
  const sessionId = basename(path, '.lock');
  return new JournalError(
    'locked',
    path,
    `The session ${sessionId} is open in ${who}${since}. End it there, or leave it: pawl starts ` +
      'a new one, pawl --resume ID goes on with another. If it can not be ended, take it over with ' +
      '--take-over (in a program: takeOver): a process that still has it open then stops before ' +
      'it writes again.',
  );
};

const lockedHere = (path: string): JournalError =>
  new JournalError(
    'locked',
    path,
    `The session ${basename(path, '.lock')} is open in this process (${process.pid}) already. ` +
      'Close it there before you open it again.',
  );

const explainLoss = (path: string): JournalError => {
  const holder = parseHolder(readTextOrEmptySync(path, HOLDER_BYTES_MAX));
  const what =
    holder === undefined
      ? `The lock ${path} was removed or changed while its session was running`
      : `The session ${basename(path, '.lock')} was taken over by ${describeHolder(holder)}`;
  return new JournalError(
    holder === undefined ? 'foreignChange' : 'takenOver',
    path,
    `${what}, so it was stopped here. All that was acknowledged is in the journal: ` +
      (holder === undefined ? 'open the session again to go on.' : 'go on where it is open now.'),
  );
};

/**
 * Formats the text of this process's lock file. With `renews` an earlier holder may have the
 * journal's file open: the holder of the lock, this process or the next one, must copy it to a new
 * file (`renewFile` of file-store.ts).
 */
type OwnText = (renews: boolean) => string;

type Taken = Pick<Lock, 'predecessor'> & { readonly ownText: string };

/** Writes the lock file; replaces that of a dead holder, or of any holder with `takeOver`. */
const takeFile = async (
  path: string,
  self: Holder,
  formatText: OwnText,
  takeOver: boolean,
): Promise<Taken> => {
  // Throws if the process that a claim names may be alive.
  const refuseLiving = async (text: string): Promise<void> => {
    const rival = parseHolder(text);
    if (rival === undefined || (await checkHolder(path, rival, self)) !== 'unknown') return;
    throw locked(path, rival, whereIs(rival, self));
  };
  for (;;) {
    const plain = formatText(false);
    if (await createFile(path, plain)) return { predecessor: 'gone', ownText: plain };
    const text = await readLockText(path);
    if (text === null) continue; // it was removed meanwhile
    const holder = parseHolder(text);
    // A lock file is created whole: one that names no holder was cut by a power loss, so the
    // computer was started again since (or another program has made it). Where there are no hard
    // links, its maker may be about to write it: it then finds our file, and stops before it
    // writes to the journal.
    const check = holder === undefined ? 'restarted' : await checkHolder(path, holder, self);
    if (check === 'unknown' && !takeOver)
      throw locked(path, holder, holder && whereIs(holder, self));
    const isProvedGone = check === 'gone' && holder?.renews !== true;
    const predecessor = isProvedGone ? 'gone' : 'unknown';
    const ownText = formatText(predecessor === 'unknown');
    if (!(await replaceFile(path, text, ownText, refuseLiving))) continue; // another was faster
    const socket = holder === undefined ? null : socketPath(path, holder);
    // a dead process leaves its socket file behind
    if (check === 'gone' && socket !== null) await rm(socket, { force: true });
    return { predecessor, ownText };
  }
};

/*
 * A file that one process at a time owns, on any file system.
 *
 * 1. It is created with its whole content at once, and only where there is none.
 * 2. A process that replaces or removes it first creates a claim: a file named by the content that
 *    is to go. Only one process can create it. Then it looks whether that content is still there,
 *    and only then renames the claim over the file.
 * 3. The claim of a dead process is a file like this one: it is replaced in the same way.
 */

/**
 * The text of the file; null if there is none. A symlink, a pipe or another odd file reads as an
 * empty text. Rejects if the system refuses: a living process may hold the file.
 */
export const readLockText = async (path: string): Promise<string | null> => {
  const loaded = await readRegular(path, HOLDER_BYTES_MAX, { follow: 'folders' });
  if (loaded.kind === 'absent') return null;
  if (loaded.kind === 'file') return loaded.bytes.toString('utf8');
  if (loaded.kind === 'folder' || loaded.isTooLarge || loaded.code === 'ENOTREG') return '';
  throw cannotRead(path, Object.assign(new Error(loaded.why), { code: loaded.code }));
};

/**
 * True if the file holds exactly this text. Opens the file anew, so that a network file system asks
 * its server.
 */
const holdsText = (path: string, text: string | Buffer): boolean => {
  const expected = typeof text === 'string' ? Buffer.from(text) : text;
  const buffer = Buffer.allocUnsafe(expected.length + 1);
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return false;
    throw error;
  }
  try {
    const bytes = readSync(descriptor, buffer, 0, buffer.length, 0);
    return expected.equals(buffer.subarray(0, bytes));
  } finally {
    closeSync(descriptor);
  }
};

/** File systems without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK']);

/** Creates the file with its whole text at once; false if it exists. */
export const createFile = async (path: string, text: string): Promise<boolean> => {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { flag: 'wx', mode: FILE_MODE });
    await link(draft, path).catch(async (error: unknown) => {
      if (!NO_LINKS.has(errorCode(error))) throw error;
      await writeFile(path, text, { flag: 'wx', mode: FILE_MODE });
    });
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
};

/** Path of the claim to the file while it holds `text`. */
export const claimPath = (path: string, text: string): string =>
  `${path}.${hash('sha256', text, 'hex').slice(0, 12)}`;

/** Decides by the text of a claim whether its process is dead; throws if it may live. */
type Judge = (text: string) => Promise<void>;

/** Makes our claim to the file while it holds `seen`; null if the file has changed meanwhile. */
const claim = async (
  path: string,
  seen: string,
  ownText: string,
  judge: Judge,
): Promise<string | null> => {
  const claimFile = claimPath(path, seen);
  while (!(await createFile(claimFile, ownText))) {
    const rival = await readLockText(claimFile);
    if (rival === null) continue;
    await judge(rival);
    if (await replaceFile(claimFile, rival, ownText, judge)) break;
  }
  if ((await readLockText(path)) === seen) return claimFile;
  await rm(claimFile, { force: true });
  return null;
};

/**
 * Replaces the file that holds `seen` by one that holds `ownText`; false if another process has
 * changed it.
 */
export const replaceFile = async (
  path: string,
  seen: string,
  ownText: string,
  judge: Judge,
): Promise<boolean> => {
  const claimFile = await claim(path, seen, ownText, judge);
  if (claimFile === null) return false;
  await rename(claimFile, path);
  return holdsText(path, ownText);
};

/**
 * Removes the file if it still holds `ownText`. Leaves it while another process replaces it.
 */
const removeFile = async (path: string, ownText: string): Promise<void> => {
  const claimFile = claimPath(path, ownText);
  const isOurs = await createFile(claimFile, ownText).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return false; // the folder was removed, and the file with it
    throw error;
  });
  if (!isOurs) return;
  try {
    if (holdsText(path, ownText)) await rm(path, { force: true });
  } finally {
    await rm(claimFile, { force: true });
  }
};

/**
 * The process that holds a lock, as its lock file says. Empty strings: unknown on this platform.
 */
export type Holder = {
  readonly pid: number;
  readonly host: string;
  /** Identity of the installed system, to tell two computers with the same host name apart. */
  readonly system: string;
  /** Boot id of the running kernel. Containers have that of their host. */
  readonly bootId: string;
  /**
   * Start time of the process in kernel ticks, to tell it from a later process with the same pid.
   */
  readonly started: string;
  /** The pid namespace, within which the pid is valid. */
  readonly pids: string;
  readonly since: number;
  /**
   * Name of a socket beside the lock file. The kernel refuses connections to it once no process has
   * it open.
   */
  readonly socket: string;
  /** See OwnText. */
  readonly renews?: true;
};

/** A machine id is not to be published, so only a hash of it is written down. */
const systemId = async (): Promise<string> => {
  const id = (await readFile('/etc/machine-id', 'utf8').catch(() => '')).trim(); // not every system
  return id === '' ? '' : hash('sha256', `pawl ${id}`, 'hex').slice(0, 16);
};

/** Describes this process. `socket` is the name of its socket, or empty. */
export const describeSelf = async (socket: string = ''): Promise<Holder> => ({
  ...{ host: hostname(), since: Date.now(), socket },
  system: await systemId(),
  ...identifyProcess(),
});

/**
 * What is known of a holder. `gone`: this system proves that it is dead. `restarted`: the computer
 * was started again since, so it counts as dead; no proof, since a computer with a copied disk has
 * the same names. `unknown`: it may be alive.
 */
type HolderCheck = 'gone' | 'restarted' | 'unknown';

/** Whether a holder wrote itself down where there are no machine ids and no sockets. */
const isPlain = ({ bootId, pids }: Holder): boolean => bootId === '' || pids === ALL_PROCESSES;

/**
 * For a holder under the same kernel: its socket proves whether it lives, in any container; else
 * its pid does. A child that is just being started still has its parent's sockets: for that moment
 * they answer for a parent that was killed.
 */
const isHolderGone = async (path: string, holder: Holder, self: Holder): Promise<boolean> => {
  const socket = socketPath(path, holder);
  const answer = socket === null ? 'unknown' : await probeSocket(socket);
  if (answer === 'refused') return true;
  if (holder.pids === '' || holder.pids !== self.pids) return false;
  if (answer === 'alive') return !processExists(holder.pid);
  // This process has closed the socket, but a full disk kept the file.
  const hasNoSockets = isPlain(holder);
  if (
    (socket !== null || hasNoSockets) &&
    holder.pid === self.pid &&
    holder.started === self.started
  )
    return true;
  return isGoneHere(holder);
};

/** For plain holders. */
const checkPlain = (holder: Holder, self: Holder): HolderCheck => {
  if (holder.host !== self.host) return 'unknown';
  if (holder.since < Date.now() - sinceBoot()) return 'restarted';
  // Another boot: of this computer, or of one with the same name.
  if (holder.bootId !== '' && self.bootId !== '') return 'unknown';
  return holder.pid === self.pid || !processExists(holder.pid) ? 'gone' : 'unknown';
};

/**
 * Checks the holder of the lock file `path`. `self` is this process, which does not hold the lock.
 */
export const checkHolder = async (
  path: string,
  holder: Holder,
  self: Holder,
): Promise<HolderCheck> => {
  if (holder.bootId === self.bootId && holder.bootId !== '')
    return (await isHolderGone(path, holder, self)) ? 'gone' : 'unknown';
  if (isPlain(holder) && isPlain(self)) return checkPlain(holder, self);
  const isSameComputer =
    self.system !== '' && holder.system === self.system && holder.host === self.host;
  return isSameComputer ? 'restarted' : 'unknown';
};

/** The socket of a holder; null if it has none, or the name leads elsewhere. */
const socketPath = (path: string, { socket }: Holder): string | null =>
  socket.startsWith(`${basename(path)}.`) && basename(socket) === socket
    ? join(dirname(path), socket)
    : null;

const textIn = (value: object, name: string): string => {
  const field: unknown = Reflect.get(value, name);
  return typeof field === 'string' ? field : '';
};

const numberIn = (value: object, name: string): number => {
  const field: unknown = Reflect.get(value, name);
  return typeof field === 'number' ? field : 0;
};

/** The holder that the text of a lock file names; undefined if it names none. */
const parseHolder = (text: string): Holder | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || numberIn(value, 'pid') < 1) return undefined;
    return {
      pid: numberIn(value, 'pid'),
      host: textIn(value, 'host'),
      system: textIn(value, 'system'),
      bootId: textIn(value, 'bootId'),
      started: textIn(value, 'started'),
      pids: textIn(value, 'pids'),
      since: numberIn(value, 'since'),
      socket: textIn(value, 'socket'),
      ...(Reflect.get(value, 'renews') === true ? { renews: true } : {}),
    };
  } catch {
    // A power loss cut the file short. Callers treat such a holder as dead.
    return undefined;
  }
};

const HOLDER_BYTES_MAX = 16 * 1024;

/** The holder that a lock file names; undefined if the file is missing or unreadable. */
export const readHolder = async (path: string): Promise<Holder | undefined> =>
  parseHolder(await readTextOrEmpty(path, HOLDER_BYTES_MAX));

/** Whether a process may have the session of this lock file open. */
export const isLocked = async (path: string): Promise<boolean> => {
  const text = await attempt(() => readLockText(path));
  if (text.kind === 'fault') return true; // nobody knows who holds it
  const holder = parseHolder(text.value ?? '');
  if (holder === undefined) return false;
  return (await checkHolder(path, holder, await describeSelf())) === 'unknown';
};

/** Like `isLocked`, also where this process holds the lock. */
export const isLockedAnywhere = async (path: string): Promise<boolean> =>
  [...held].some((file) => basename(file) === basename(path)) || (await isLocked(path));

/** A name that no other socket beside the lock file has. */
const newSocketName = (path: string): string => `${basename(path)}.${randomUUID().slice(0, 8)}`;

/**
 * A socket file that proves that its process lives.
 *
 * The kernel accepts connections while the process has the socket open, whatever else the process
 * does, and refuses them after its death; a child that it was just starting may keep the socket
 * open for a moment longer. Containers that share the folder see the same, since the socket is
 * found by its file.
 */
type LockSocket = { close(): Promise<void> };

/** A socket address holds 107 bytes; a longer path goes through a descriptor of its folder. */
const ADDRESS_BYTES_MAX = 100;

type Address = { readonly path: string; release(): void };

const nothing = (): void => undefined;

/** An address of the socket that is short enough. The descriptor is needed until it is released. */
export const socketAddress = (path: string): Address => {
  if (Buffer.byteLength(path) <= ADDRESS_BYTES_MAX || !hasDescriptorPaths())
    return { path, release: nothing };
  const folder = openSync(dirname(path), O_PATH | constants.O_DIRECTORY);
  return { path: join(descriptorPath(folder), basename(path)), release: () => closeSync(folder) };
};

/** Creates the socket; null on file systems that have none. */
const listenAt = (path: string): Promise<LockSocket | null> =>
  new Promise((resolve) => {
    const address = socketAddress(path);
    const server = createServer((socket) => socket.destroy());
    // Not needed on most systems: without a socket, the pid tells whether the holder lives.
    const refuse = (): void => {
      address.release();
      resolve(null);
    };
    server.once('error', refuse);
    // exclusive: workers of a node:cluster must not share the socket.
    server.listen({ path: address.path, exclusive: true }, () => {
      server.off('error', refuse);
      server.on('error', nothing); // a refused connection also proves that this process lives
      server.unref();
      resolve({
        close: () =>
          new Promise((closed) => {
            server.close(() => {
              address.release();
              closed();
            });
          }),
      });
    });
  });

/**
 * Tries to connect. `refused`: the process that made the socket is dead. `unknown`: there is no
 * such socket, or it can't be reached.
 */
export const probeSocket = (path: string): Promise<'alive' | 'refused' | 'unknown'> =>
  new Promise((resolve) => {
    const address = socketAddress(path);
    const socket = createConnection({ path: address.path });
    const end = (answer: 'alive' | 'refused' | 'unknown'): void => {
      socket.destroy();
      address.release();
      resolve(answer);
    };
    socket.once('connect', () => end('alive'));
    socket.once('error', (error) => {
      const code = errorCode(error);
      if (code === 'EAGAIN')
        end('alive'); // its queue is full
      else end(code === 'ECONNREFUSED' ? 'refused' : 'unknown');
    });
  });

/** Removes a claim, or its draft, of a dead process; false if the process may live. */
const removeClaim = async (lockFile: string, path: string, ownHolder: Holder): Promise<boolean> => {
  const text = await readLockText(path);
  if (text === null) return true;
  const holder = parseHolder(text);
  if (holder === undefined || (await checkHolder(lockFile, holder, ownHolder)) !== 'gone')
    return false;
  await removeFile(path, text);
  return true;
};

/**
 * A process makes its socket just before its lock file. A socket of another computer also refuses
 * connections, so a young socket is not judged by that.
 */
const SOCKET_AGE_MIN_MS = 60 * 60 * 1_000;

/** Removes claims and sockets of dead processes beside a lock file. */
const removeBeside = async (
  lockFile: string,
  paths: readonly string[],
  ownHolder: Holder,
): Promise<void> => {
  const { since: now } = ownHolder; // described just now
  const sockets: string[] = [];
  let hasClaim = false;
  for (const path of paths) {
    const status = await lstat(path);
    if (status.isSocket() && now - status.mtimeMs > SOCKET_AGE_MIN_MS) sockets.push(path);
    else if (status.isFile() && !(await removeClaim(lockFile, path, ownHolder))) hasClaim = true;
  }
  if (hasClaim) return; // its maker may live, and one of the sockets may be that maker's
  for (const path of sockets)
    if ((await probeSocket(path)) === 'refused') await rm(path, { force: true });
};

/**
 * Files beside missing lock files, by the name of the lock file. Those beside an existing one stay:
 * without its socket its holder would count as dead.
 */
const filesBesideLocks = (names: readonly string[]): ReadonlyMap<string, readonly string[]> => {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const [, lock, sessionId] = /^((.+)\.lock)\.[0-9a-f][0-9a-f.-]*$/.exec(name) ?? [];
    if (lock === undefined || sessionId === undefined || !isSessionId(sessionId)) continue;
    groups.set(lock, [...(groups.get(lock) ?? []), name]);
  }
  for (const name of names) groups.delete(name);
  return groups;
};

/** Removes claims and sockets of dead processes beside missing lock files of this folder. */
export const removeBesideLocks = async (sessions: string): Promise<void> => {
  const groups = filesBesideLocks(await readdir(sessions));
  if (groups.size === 0) return;
  const ownHolder = await describeSelf();
  for (const [lock, names] of groups) {
    const paths = names.map((name) => join(sessions, name));
    // fails if another process removes them too
    await removeBeside(join(sessions, lock), paths, ownHolder).catch(() => undefined);
  }
};
