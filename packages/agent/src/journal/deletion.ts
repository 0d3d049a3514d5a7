/**
 * Deletes sessions, finishes deletions that a killed process began, and removes what dead processes
 * have left.
 */

import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SessionInfo } from '../ports/journal.js';
import { cannotWrite, errorCode, JournalError, notFound } from './journal-error.js';
import { readSessions } from './list.js';
import {
  acquireLock,
  answers,
  checkHolder,
  describeSelf,
  type Holder,
  type Lock,
  parseHolder,
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

/** The tasks of a session, and the tasks of these. */
const findTasks = async (folder: string, sessionId: string): Promise<readonly string[]> => {
  const all: SessionInfo[] = [];
  for await (const info of readSessions(folder)) all.push(info);
  const ids = new Set([sessionId]);
  // A set visits the ids that are added meanwhile.
  for (const id of ids)
    for (const { startedBy, sessionId: task } of all)
      if (startedBy?.sessionId === id) ids.add(task);
  ids.delete(sessionId);
  return [...ids];
};

/**
 * Removes the files of a session, its journal last: by it an interrupted deletion finds a task
 * again. An id may be the beginning of another one.
 */
const removeFiles = async (folder: string, sessionId: string): Promise<void> => {
  const sessions = sessionsFolder(folder);
  const journal = journalPath(folder, sessionId);
  const torn = (await readdir(sessions)).filter((name) => {
    const end = name.startsWith(`${sessionId}.jsonl.torn-`) ? name.slice(sessionId.length) : '';
    return /^\.jsonl\.torn-\d+$/.test(end);
  });
  const others = [
    'mark',
    'owner',
    'snapshot',
    'snapshot.new',
    'reserve',
    'commits',
    'commits.new',
  ].map((end) => `${sessionId}.${end}`);
  const paths = [...others, ...torn].map((name) => join(sessions, name));
  for (const path of [
    ...paths,
    `${journal}.new`,
    `${journal}.import`,
    pastedFolder(folder, sessionId),
    journal,
  ])
    await rm(path, { recursive: true, force: true });
};

/** Takes the locks of all sessions, or of none. */
const lockAll = async (folder: string, ids: readonly string[]): Promise<readonly Lock[]> => {
  const locks: Lock[] = [];
  try {
    for (const id of ids) locks.push(await acquireLock(lockPath(folder, id)));
    return locks;
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
 * 1. Nobody may have one of them open: all their locks are taken first.
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
  const ids = [sessionId, ...(await findTasks(folder, sessionId))];
  const locks = await lockAll(folder, ids);
  try {
    // While its lock is held, the session starts no task.
    const tasks = ids.slice(1);
    try {
      await rename(path, deletedPath(folder, sessionId));
      await syncFolder(dirname(path));
    } catch (error) {
      throw errorCode(error) === 'ENOENT' ? notFound(path, sessionId) : cannotWrite(path, error);
    }
    await removeAll(folder, sessionId, tasks).catch((error: unknown) => {
      throw halfDeleted(path, sessionId, error);
    });
    return ids;
  } finally {
    await releaseAll(locks);
  }
};

/**
 * Finishes the deletion that a killed process began. A journal that was put back since then stays,
 * with its tasks.
 */
const finishDeletion = async (folder: string, sessionId: string): Promise<void> => {
  const isBack = (await readdir(sessionsFolder(folder))).includes(`${sessionId}.jsonl`);
  const tasks = isBack ? [] : await findTasks(folder, sessionId);
  const locks = await lockAll(folder, [sessionId, ...tasks]);
  try {
    if (isBack) await rm(deletedPath(folder, sessionId), { recursive: true, force: true });
    else await removeAll(folder, sessionId, tasks);
  } finally {
    await releaseAll(locks);
  }
};

/** Ends of the names of files that are there before the journal itself. */
const EARLY = ['.lock', '.jsonl.new', '.jsonl.import'];
/** What an import leaves that is killed just after it has placed the journal. */
const LATE = ['.jsonl.import'];

const idsWithEnd = (names: readonly string[], ends: readonly string[]): readonly string[] => {
  const ids = names.flatMap((name) =>
    ends.filter((end) => name.endsWith(end)).map((end) => name.slice(0, -end.length)),
  );
  return [...new Set(ids)].filter(isSessionId);
};

/**
 * Ids of sessions with leftovers. Beside a journal a lock file stays for whoever opens the session
 * next: it tells whether the journal must be renewed.
 */
const idsWithLeftovers = (names: readonly string[]): readonly string[] => {
  const known = new Set(names);
  return [
    ...idsWithEnd(names, EARLY).filter((id) => !known.has(`${id}.jsonl`)),
    ...idsWithEnd(names, LATE).filter((id) => known.has(`${id}.jsonl`) && !known.has(`${id}.lock`)),
  ];
};

/** Removes what is left of one session, unless a living process is just creating it. */
const removeSessionLeftovers = async (folder: string, sessionId: string): Promise<void> => {
  const path = journalPath(folder, sessionId);
  const lock = await acquireLock(lockPath(folder, sessionId));
  try {
    await rm(importPath(folder, sessionId), { force: true });
    // created meanwhile
    if ((await readdir(sessionsFolder(folder))).includes(`${sessionId}.jsonl`)) return;
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
 * A process makes its socket just before its lock file. The socket of one on another computer
 * refuses, too, so it is not judged while its lock file may be about to come.
 */
const SOCKET_AGE_MIN_MS = 60 * 60 * 1_000;

/** Removes claims and sockets of dead processes beside the place of a lock file. */
const removeBeside = async (
  lock: string,
  paths: readonly string[],
  self: Holder,
): Promise<void> => {
  const sockets: string[] = [];
  let hasClaim = false;
  for (const path of paths) {
    const status = await lstat(path);
    if (status.isSocket() && self.since - status.mtimeMs > SOCKET_AGE_MIN_MS) sockets.push(path);
    else if (status.isFile() && !(await removeClaim(lock, path, self))) hasClaim = true;
  }
  if (hasClaim) return; // its socket tells others whether its process lives
  for (const path of sockets)
    if ((await answers(path)) === 'refused') await rm(path, { force: true });
};

/**
 * Files beside a lock file, by its name: only where the lock file is gone, since it needs its
 * socket.
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
  const self = await describeSelf();
  for (const [lock, names] of groups) {
    const paths = names.map((name) => join(sessions, name));
    // others are at work there
    await removeBeside(join(sessions, lock), paths, self).catch(() => undefined);
  }
};

/**
 * Finishes deletions, and removes the locks, sockets and drafts of processes that were killed while
 * they created or imported a session, or took its lock. Nobody ever opens such a session, so nobody
 * else would. Never rejects.
 */
export const removeLeftovers = async (folder: string): Promise<void> => {
  try {
    const names = await readdir(sessionsFolder(folder));
    // Its process lives, or the disk refuses: the next creation or import tries again.
    const tryNextTime = (): undefined => undefined;
    for (const deleted of names.map(parseDeletedName))
      if (deleted !== undefined) await finishDeletion(folder, deleted).catch(tryNextTime);
    for (const sessionId of idsWithLeftovers(names))
      await removeSessionLeftovers(folder, sessionId).catch(tryNextTime);
    await removeBesideLocks(folder);
  } catch {
    // Nothing depends on it, and the creation of the session tells what is wrong with the folder.
  }
};
