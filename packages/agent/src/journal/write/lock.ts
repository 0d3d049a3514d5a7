import { randomUUID } from 'node:crypto';
import { realpath, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readTextOrEmptySync } from '../../platform/files/regular-file.js';
import { cannotWrite, JournalError } from '../journal-error.js';
import { createFile, holdsText, readLockText, removeFile, replaceFile } from './lock-file.js';
import {
  checkHolder,
  describeSelf,
  HOLDER_BYTES_MAX,
  type Holder,
  newSocketName,
  parseHolder,
  readHolder,
  socketOf,
} from './lock-owner.js';
import { listenAt } from './lock-socket.js';

/**
 * Ensures one writer per journal, also across containers and computers that share the folder.
 *
 * 1. Within a process: a set of the held paths.
 * 2. Everywhere: a lock file that names the holder. Only one process can create or replace it (lock-file.ts).
 * 3. The lock of a dead holder is free if its death is proved (lock-owner.ts). Otherwise the user may take it over: then
 *    the old holder finds another lock file before it has another line acknowledged, and stops.
 */
export type Lock = {
  /** The error if the lock is no longer held: `takenOver` by another process, or `foreignChange` if it was removed. */
  loss(): JournalError | null;
  /** `unknown`: the last holder may be alive, and may write once more to the file that it has open. */
  readonly predecessor: 'gone' | 'unknown';
  release(): Promise<void>;
};

export type LockOptions = {
  /** Sockets and namespaces are used if this platform has them. */
  readonly platform?: string;
  /** Take the lock from a holder that may still be alive. */
  readonly takeOver?: boolean;
};

const held = new Set<string>();

const nameOf = ({ pid, host }: Holder): string => `process ${pid} on ${host}`;

/** Where a holder runs, as far as it is not here. */
const whereIs = (holder: Holder, self: Holder): string => {
  if (holder.bootId !== self.bootId) return ', another computer or an earlier start of this one';
  return holder.pids === self.pids ? '' : ', in another container';
};

const locked = (path: string, holder: Holder | undefined, where = ''): JournalError => {
  const who = holder === undefined ? 'another process' : `${nameOf(holder)}${where}`;
  const since =
    holder === undefined || holder.since === 0 ? '' : ` since ${new Date(holder.since).toISOString()}`;
  const sessionId = basename(path, '.lock');
  return new JournalError(
    'locked',
    path,
    `The session ${sessionId} is open in ${who}${since}. End it there. If you can't, take it over with --take-over: ` +
      'a process that still has it open then stops before it writes again.',
  );
};

const lossOf = (path: string): JournalError => {
  const holder = parseHolder(readTextOrEmptySync(path, HOLDER_BYTES_MAX));
  const what =
    holder === undefined
      ? `The lock ${path} was removed or changed while its session was running`
      : `The session ${basename(path, '.lock')} was taken over by ${nameOf(holder)}`;
  return new JournalError(
    holder === undefined ? 'foreignChange' : 'takenOver',
    path,
    `${what}, so it was stopped here. All that was acknowledged is in the journal: ` +
      (holder === undefined ? 'open the session again to go on.' : 'go on where it is open now.'),
  );
};

/** The lock file of this process. `renews`: the journal is still to be renewed, see `mustRenew`. */
type OwnText = (renews: boolean) => string;

type Taken = Pick<Lock, 'predecessor'> & { readonly own: string };

/**
 * True if the dead holder had taken the lock from one that may be alive. It may have died before it gave the journal a new
 * file, so whoever comes next does that.
 */
const mustRenew = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && Reflect.get(value, 'renews') === true;
  } catch {
    return true; // unreadable after a power loss
  }
};

/** Writes the lock file; replaces that of a dead holder, or of any holder with `takeOver`. */
const takeFile = async (path: string, self: Holder, textOf: OwnText, takeOver: boolean): Promise<Taken> => {
  const refuseLiving = async (text: string): Promise<void> => {
    const rival = parseHolder(text);
    if (rival === undefined || (await checkHolder(path, rival, self)) !== 'unknown') return;
    throw locked(path, rival, whereIs(rival, self));
  };
  for (;;) {
    const plain = textOf(false);
    if (await createFile(path, plain)) return { predecessor: 'gone', own: plain };
    const text = await readLockText(path);
    if (text === null) continue;
    const holder = parseHolder(text);
    const check = holder === undefined ? 'restarted' : await checkHolder(path, holder, self);
    if (check === 'unknown' && !takeOver) throw locked(path, holder, holder && whereIs(holder, self));
    const predecessor = check !== 'gone' || mustRenew(text) ? 'unknown' : 'gone';
    const own = textOf(predecessor === 'unknown');
    if (!(await replaceFile(path, text, own, refuseLiving))) continue;
    const socket = holder === undefined ? null : socketOf(path, holder);
    if (check === 'gone' && socket !== null) await rm(socket, { force: true });
    return { predecessor, own };
  }
};

const acquireReal = async (path: string, platform: string, takeOver: boolean): Promise<Lock> => {
  const name = newSocketName(path);
  const socket = platform === 'linux' ? await listenAt(join(dirname(path), name)) : null;
  const self = await describeSelf(platform, socket === null ? '' : name);
  // no two locks have the same text, not even those of one process
  const identity = { ...self, lockId: randomUUID() };
  const textOf: OwnText = (renews) => `${JSON.stringify(renews ? { ...identity, renews } : identity)}\n`;
  try {
    const { predecessor, own } = await takeFile(path, self, textOf, takeOver);
    const ownBytes = Buffer.from(own); // once: each write of the journal looks at the lock twice
    let releasing: Promise<void> | undefined;
    const release = async (): Promise<void> => {
      // Remove the file first: a lock file whose socket is gone counts as that of a dead process.
      try {
        await removeFile(path, own);
      } catch {
        // A full disk takes no claim. The lock file stays, as that of a dead process once the socket is closed.
      } finally {
        await socket?.close();
        held.delete(path);
      }
    };
    return {
      predecessor,
      loss: () => (holdsText(path, ownBytes) ? null : lossOf(path)),
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

/** Takes the lock `file`; rejects with `locked` or `cannotWrite`. Its folder must exist. */
export const acquireLock = async (
  file: string,
  { platform = process.platform, takeOver = false }: LockOptions = {},
): Promise<Lock> => {
  let path = file;
  try {
    path = join(await realpath(dirname(file)), basename(file));
    if (held.has(path)) throw locked(path, await readHolder(path));
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
