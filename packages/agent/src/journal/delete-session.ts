/**
 * Deletes sessions, and removes what killed processes left in the folder of sessions.
 *
 * From top to bottom: the deletion of a session with its tasks; the leftovers of a process that was
 * killed while it created, imported or deleted a session; and those beside lock files.
 *
 * Beside a lock file `ID.lock` are the socket of its holder, which other processes probe to see
 * whether the holder lives, and claims: files that announce the replacement of the lock file
 * (lock.ts).
 */

import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, parse } from 'node:path';
import { errorCode } from '../platform/files.js';
import { cannotWrite, JournalError, notFound } from './journal-error.js';
import { readSessions } from './list.js';
import {
  acquireLock,
  checkHolder,
  describeSelf,
  type Holder,
  type Lock,
  parseHolder,
  probeSocket,
  readLockText,
  removeFile,
} from './lock.js';
import {
  deletedPath,
  importPath,
  isSessionId,
  journalPath,
  lockPath,
  ownerPath,
  parseDeletedName,
  pastedFolder,
  sessionsFolder,
  syncFolder,
} from './state-folder.js';

/** The tasks of a session: sessions that its calls have started. A task starts no tasks. */
const findTasks = async (folder: string, sessionId: string): Promise<readonly string[]> => {
  const tasks: string[] = [];
  for await (const info of readSessions(folder))
    if (info.startedBy?.sessionId === sessionId) tasks.push(info.sessionId);
  return tasks;
};

/**
 * Removes the files of a session, its journal last: by it an interrupted deletion finds a task
 * again.
 */
const removeFiles = async (folder: string, sessionId: string): Promise<void> => {
  const sessions = sessionsFolder(folder);
  const journal = journalPath(folder, sessionId);
  // not those of another session whose id begins like this one
  const tornStart = `${basename(journal)}.torn-`;
  const torn = (await readdir(sessions)).filter(
    (name) => name.startsWith(tornStart) && /^\d+$/.test(name.slice(tornStart.length)),
  );
  const names = ['mark', 'owner', 'snapshot', 'snapshot.new', 'reserve'];
  for (const path of [
    ...names.map((end) => join(sessions, `${sessionId}.${end}`)),
    ...torn.map((name) => join(sessions, name)),
    `${journal}.new`,
    importPath(folder, sessionId),
    pastedFolder(folder, sessionId),
    journal,
  ])
    await rm(path, { recursive: true, force: true });
};

/** Takes the locks of a session and of its tasks, or of none. */
const lockWithTasks = async (
  folder: string,
  sessionId: string,
): Promise<{ readonly tasks: readonly string[]; readonly locks: readonly Lock[] }> => {
  const locks = [await acquireLock(lockPath(folder, sessionId))];
  try {
    // While its lock is held, the session starts no task.
    const tasks = await findTasks(folder, sessionId);
    for (const id of tasks) locks.push(await acquireLock(lockPath(folder, id)));
    return { tasks, locks };
  } catch (error) {
    await releaseAll(locks);
    throw error;
  }
};

const releaseAll = async (locks: readonly Lock[]): Promise<void> => {
  // A lock file that stays is found as that of a dead process.
  for (const lock of locks) await lock.release().catch(() => undefined);
};

/** Removes everything but `ID.deleted`, then that. The locks are held. */
const removeAll = async (
  folder: string,
  sessionId: string,
  tasks: readonly string[],
): Promise<void> => {
  for (const id of [sessionId, ...tasks]) await removeFiles(folder, id);
  await syncFolder(sessionsFolder(folder));
  await rm(deletedPath(folder, sessionId), { recursive: true, force: true });
  await syncFolder(sessionsFolder(folder));
};

const halfDeleted = (path: string, sessionId: string, cause: unknown): JournalError => {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new JournalError(
    'cannotWrite',
    path,
    `The session ${sessionId} is deleted, but some of its files are still there: ${why}. ` +
      'Repair that; the next new ' +
      'session then removes them.',
    null,
    { cause },
  );
};

/**
 * Deletes a session with the tasks that it started.
 *
 * 1. All their locks are taken first: none may be open.
 * 2. The journal is renamed to `ID.deleted`. From then on the session and its tasks are in no list.
 * 3. The other files follow, then the tasks, then `ID.deleted`. If the process is killed meanwhile,
 *    that file stays, and the next creation or import of a session finishes the deletion.
 * 4. Blobs stay, because other sessions may use them; forks stay, because they are copies.
 *
 * Resolves with its id and those of its tasks, when that is durable. Rejects with `notFound`,
 * `locked` or `cannotWrite`.
 */
export const deleteSession = async (
  folder: string,
  sessionId: string,
): Promise<readonly string[]> => {
  const path = journalPath(folder, sessionId);
  const { tasks, locks } = await lockWithTasks(folder, sessionId);
  try {
    try {
      await rename(path, deletedPath(folder, sessionId));
      await syncFolder(dirname(path));
    } catch (error) {
      throw errorCode(error) === 'ENOENT' ? notFound(path, sessionId) : cannotWrite(path, error);
    }
    await removeAll(folder, sessionId, tasks).catch((error: unknown) => {
      throw halfDeleted(path, sessionId, error);
    });
    return [sessionId, ...tasks];
  } finally {
    await releaseAll(locks);
  }
};

const hasJournal = async (folder: string, sessionId: string): Promise<boolean> => {
  const { dir, base } = parse(journalPath(folder, sessionId));
  return (await readdir(dir)).includes(base);
};

// ---- Leftovers of killed processes ----

/**
 * Finishes a deletion of a killed process. A journal that the user restored since then stays, with
 * its tasks.
 */
const finishDeletion = async (folder: string, sessionId: string): Promise<void> => {
  const { tasks, locks } = await lockWithTasks(folder, sessionId);
  try {
    const isBack = await hasJournal(folder, sessionId);
    if (isBack) await rm(deletedPath(folder, sessionId), { recursive: true, force: true });
    else await removeAll(folder, sessionId, tasks);
  } finally {
    await releaseAll(locks);
  }
};

/** Ends of the names of files that a creation or import makes before the journal itself. */
const BEFORE_JOURNAL = ['.lock', '.jsonl.new', '.jsonl.import'];
/** Leftovers of an import that was killed just after it placed the journal. */
const AFTER_JOURNAL = ['.jsonl.import'];

const idsWithEnd = (names: readonly string[], ends: readonly string[]): readonly string[] => {
  const ids = names.flatMap((name) =>
    ends.filter((end) => name.endsWith(end)).map((end) => name.slice(0, -end.length)),
  );
  return [...new Set(ids)].filter(isSessionId);
};

/**
 * Ids of sessions with leftovers. A lock file beside a journal stays: at the next opening it shows
 * whether the journal must be renewed.
 */
const idsWithLeftovers = (names: readonly string[]): readonly string[] => {
  const existing = new Set(names);
  return [
    ...idsWithEnd(names, BEFORE_JOURNAL).filter((id) => !existing.has(`${id}.jsonl`)),
    ...idsWithEnd(names, AFTER_JOURNAL).filter(
      (id) => existing.has(`${id}.jsonl`) && !existing.has(`${id}.lock`),
    ),
  ];
};

/** Removes the leftovers of one session, unless a living process is creating it. */
const removeSessionLeftovers = async (folder: string, sessionId: string): Promise<void> => {
  const path = journalPath(folder, sessionId);
  const lock = await acquireLock(lockPath(folder, sessionId));
  try {
    await rm(importPath(folder, sessionId), { force: true });
    // created meanwhile
    if (await hasJournal(folder, sessionId)) return;
    await rm(`${path}.new`, { force: true });
    await rm(ownerPath(folder, sessionId), { force: true });
  } finally {
    await lock.release();
  }
};

// ---- Leftovers beside lock files ----

/**
 * Removes a claim, or its draft, of a dead process; false if the process may live. `place`: the
 * path of the lock file.
 */
const removeClaim = async (place: string, path: string, ownHolder: Holder): Promise<boolean> => {
  const text = await readLockText(path);
  if (text === null) return true;
  const holder = parseHolder(text);
  if (holder === undefined || (await checkHolder(place, holder, ownHolder)) !== 'gone')
    return false;
  await removeFile(path, text);
  return true;
};

/**
 * A process makes its socket just before its lock file. A socket of another computer also refuses
 * connections, so a young socket is not judged by that.
 */
const SOCKET_AGE_MIN_MS = 60 * 60 * 1_000;

/** Removes claims and sockets of dead processes beside `place`, the path of a lock file. */
const removeBeside = async (
  place: string,
  paths: readonly string[],
  ownHolder: Holder,
): Promise<void> => {
  const { since: now } = ownHolder; // described just now
  const sockets: string[] = [];
  let hasClaim = false;
  for (const path of paths) {
    const status = await lstat(path);
    if (status.isSocket() && now - status.mtimeMs > SOCKET_AGE_MIN_MS) sockets.push(path);
    else if (status.isFile() && !(await removeClaim(place, path, ownHolder))) hasClaim = true;
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

const removeBesideLocks = async (folder: string): Promise<void> => {
  const sessions = sessionsFolder(folder);
  const groups = filesBesideLocks(await readdir(sessions));
  if (groups.size === 0) return;
  const ownHolder = await describeSelf();
  for (const [lock, names] of groups) {
    const paths = names.map((name) => join(sessions, name));
    // fails if another process removes them too
    await removeBeside(join(sessions, lock), paths, ownHolder).catch(() => undefined);
  }
};

/**
 * Finishes deletions, and removes the locks, sockets and drafts of processes that were killed while
 * they created or imported a session, or took its lock. Such a session is never opened, so only
 * this function removes them. Never rejects.
 */
export const removeLeftovers = async (folder: string): Promise<void> => {
  try {
    const names = await readdir(sessionsFolder(folder));
    // The process lives, or the disk refuses: the next creation or import tries again.
    const tryNextTime = (): undefined => undefined;
    for (const deleted of names.map(parseDeletedName))
      if (deleted !== undefined) await finishDeletion(folder, deleted).catch(tryNextTime);
    for (const sessionId of idsWithLeftovers(names))
      await removeSessionLeftovers(folder, sessionId).catch(tryNextTime);
    await removeBesideLocks(folder);
  } catch {
    // Nothing depends on it, and the creation of the session reports faults of the folder.
  }
};
