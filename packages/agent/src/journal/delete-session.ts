/**
 * Deletes a session with its tasks, and finishes the deletion of a process that was killed.
 */

import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, parse } from 'node:path';
import { errorCode } from '../platform/files.js';
import { cannotWrite, JournalError, notFound } from './journal-error.js';
import { readSessions } from './list.js';
import { acquireLock, type Lock } from './lock.js';
import {
  deletedPath,
  importPath,
  journalPath,
  lockPath,
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

export const hasJournal = async (folder: string, sessionId: string): Promise<boolean> => {
  const { dir, base } = parse(journalPath(folder, sessionId));
  return (await readdir(dir)).includes(base);
};

/**
 * Finishes a deletion of a killed process. A journal that the user restored since then stays, with
 * its tasks.
 */
export const finishDeletion = async (folder: string, sessionId: string): Promise<void> => {
  const { tasks, locks } = await lockWithTasks(folder, sessionId);
  try {
    const isBack = await hasJournal(folder, sessionId);
    if (isBack) await rm(deletedPath(folder, sessionId), { recursive: true, force: true });
    else await removeAll(folder, sessionId, tasks);
  } finally {
    await releaseAll(locks);
  }
};
