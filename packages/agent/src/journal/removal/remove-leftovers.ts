import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  deletedIdOf,
  importPath,
  isSessionId,
  journalPath,
  lockPath,
  ownerPath,
  sessionsFolder,
} from '../paths-and-durable-writes.js';
import { acquireLock } from '../write/lock.js';
import { readLockText, removeFile } from '../write/lock-file.js';
import { checkHolder, describeSelf, type Holder, parseHolder } from '../write/lock-owner.js';
import { answers } from '../write/lock-socket.js';
import { finishDeletion } from './delete-session.js';

/** Ends of the names of files that are there before the journal itself. */
const EARLY = ['.lock', '.jsonl.new', '.jsonl.import'];
/** What an import leaves that is killed just after it has placed the journal. */
const LATE = ['.jsonl.import'];

const idsBefore = (names: readonly string[], ends: readonly string[]): readonly string[] => {
  const ids = names.flatMap((name) =>
    ends.filter((end) => name.endsWith(end)).map((end) => name.slice(0, -end.length)),
  );
  return [...new Set(ids)].filter(isSessionId);
};

/**
 * Ids of sessions with leftovers. Beside a journal a lock file stays for whoever opens the session next: it tells whether
 * the journal must be renewed.
 */
const idsWithLeftovers = (names: readonly string[]): readonly string[] => {
  const known = new Set(names);
  return [
    ...idsBefore(names, EARLY).filter((id) => !known.has(`${id}.jsonl`)),
    ...idsBefore(names, LATE).filter((id) => known.has(`${id}.jsonl`) && !known.has(`${id}.lock`)),
  ];
};

/** Removes what is left of one session, unless a living process is just creating it. */
const removeOne = async (folder: string, sessionId: string): Promise<void> => {
  const path = journalPath(folder, sessionId);
  const lock = await acquireLock(lockPath(folder, sessionId));
  try {
    await rm(importPath(folder, sessionId), { force: true });
    if ((await readdir(sessionsFolder(folder))).includes(`${sessionId}.jsonl`)) return; // created meanwhile
    await rm(`${path}.new`, { force: true });
    await rm(ownerPath(folder, sessionId), { force: true });
  } finally {
    await lock.release();
  }
};

/** Removes a claim or a draft of a dead process; false if its process may live. */
const removeClaim = async (lock: string, path: string, self: Holder): Promise<boolean> => {
  const text = await readLockText(path);
  if (text === null) return true;
  const holder = parseHolder(text);
  if (holder === undefined || (await checkHolder(lock, holder, self)) !== 'gone') return false;
  await removeFile(path, text);
  return true;
};

/**
 * A process makes its socket just before its lock file. The socket of one on another computer refuses, too, so it is not
 * judged while its lock file may be about to come.
 */
const SOCKET_AGE_MIN_MS = 60 * 60 * 1_000;

/** Removes claims and sockets of dead processes beside the place of a lock file. */
const removeBeside = async (lock: string, paths: readonly string[], self: Holder): Promise<void> => {
  const sockets: string[] = [];
  let hasClaim = false;
  for (const path of paths) {
    const status = await lstat(path);
    if (status.isSocket() && self.since - status.mtimeMs > SOCKET_AGE_MIN_MS) sockets.push(path);
    else if (status.isFile() && !(await removeClaim(lock, path, self))) hasClaim = true;
  }
  if (hasClaim) return; // its socket tells others whether its process lives
  for (const path of sockets) if ((await answers(path)) === 'refused') await rm(path, { force: true });
};

/** Files beside a lock file, by its name: only where the lock file is gone, since it needs its socket. */
const filesBesideLocks = (names: readonly string[]): ReadonlyMap<string, readonly string[]> => {
  const found = new Map<string, string[]>();
  for (const name of names) {
    const [, lock, sessionId] = /^((.+)\.lock)\.[0-9a-f][0-9a-f.-]*$/.exec(name) ?? [];
    if (lock === undefined || sessionId === undefined || !isSessionId(sessionId)) continue;
    found.set(lock, [...(found.get(lock) ?? []), name]);
  }
  for (const name of names) found.delete(name);
  return found;
};

const removeBesideLocks = async (folder: string): Promise<void> => {
  const sessions = sessionsFolder(folder);
  const groups = filesBesideLocks(await readdir(sessions));
  if (groups.size === 0) return;
  const self = await describeSelf();
  for (const [lock, names] of groups) {
    const paths = names.map((name) => join(sessions, name));
    await removeBeside(join(sessions, lock), paths, self).catch(() => undefined); // others are at work there
  }
};

/**
 * Finishes deletions, and removes the locks, sockets and drafts of processes that were killed while they created or imported
 * a session, or took its lock. Nobody ever opens such a session, so nobody else would. Never rejects.
 */
export const removeLeftovers = async (folder: string): Promise<void> => {
  try {
    const names = await readdir(sessionsFolder(folder));
    const later = (): undefined => undefined; // its process lives, or the disk refuses
    for (const deleted of names.map(deletedIdOf))
      if (deleted !== undefined) await finishDeletion(folder, deleted).catch(later);
    for (const sessionId of idsWithLeftovers(names)) await removeOne(folder, sessionId).catch(later);
    await removeBesideLocks(folder);
  } catch {
    // Nothing depends on it, and the creation of the session tells what is wrong with the folder.
  }
};
