import { readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SessionInfo } from '../../ports/journal.js';
import { cannotWrite, codeOf, JournalError, notFound } from '../journal-error.js';
import {
  deletedPath,
  journalPath,
  lockPath,
  pastedFolder,
  sessionsFolder,
  syncFolder,
} from '../paths-and-durable-writes.js';
import { readSessions } from '../read/list-sessions.js';
import { acquireLock, type Lock } from '../write/lock.js';

/**
 * Deletes a session with the tasks that it started.
 *
 * 1. Nobody may have one of them open: all their locks are taken first.
 * 2. The journal is renamed to `ID.deleted`. From then on the session and its tasks are in no list.
 * 3. The other files follow, then the tasks, then `ID.deleted`. If the process is killed meanwhile, that file stays, and
 *    the next creation or import of a session finishes the deletion.
 * 4. Blobs stay, because other sessions may use them; forks stay, because they are copies.
 */

/** The tasks of a session, and the tasks of these. */
const tasksOf = async (folder: string, sessionId: string): Promise<readonly string[]> => {
  const all: SessionInfo[] = [];
  for await (const info of readSessions(folder)) all.push(info);
  const ids = new Set([sessionId]);
  // A set visits the ids that are added meanwhile.
  for (const id of ids)
    for (const { startedBy, sessionId: task } of all) if (startedBy?.sessionId === id) ids.add(task);
  ids.delete(sessionId);
  return [...ids];
};

/**
 * Removes the files of a session, its journal last: by it an interrupted deletion finds a task again. An id may be the
 * beginning of another one.
 */
const removeFiles = async (folder: string, sessionId: string): Promise<void> => {
  const sessions = sessionsFolder(folder);
  const journal = journalPath(folder, sessionId);
  const torn = (await readdir(sessions)).filter((name) => {
    const end = name.startsWith(`${sessionId}.jsonl.torn-`) ? name.slice(sessionId.length) : '';
    return /^\.jsonl\.torn-\d+$/.test(end);
  });
  const others = ['mark', 'owner', 'snapshot', 'snapshot.new', 'reserve', 'commits', 'commits.new'].map(
    (end) => `${sessionId}.${end}`,
  );
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
const removeAll = async (folder: string, sessionId: string, tasks: readonly string[]): Promise<void> => {
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
    `The session ${sessionId} is deleted, but some of its files are still there: ${why}. Repair that; the next new ` +
      'session then removes them.',
    null,
    { cause },
  );
};

/**
 * Deletes the session; resolves with its id and those of its tasks, when that is durable. Rejects with `notFound`,
 * `locked` or `cannotWrite`.
 */
export const deleteSession = async (folder: string, sessionId: string): Promise<readonly string[]> => {
  const path = journalPath(folder, sessionId);
  const ids = [sessionId, ...(await tasksOf(folder, sessionId))];
  const locks = await lockAll(folder, ids);
  try {
    // While its lock is held, the session starts no task.
    const tasks = ids.slice(1);
    try {
      await rename(path, deletedPath(folder, sessionId));
      await syncFolder(dirname(path));
    } catch (error) {
      throw codeOf(error) === 'ENOENT' ? notFound(path, sessionId) : cannotWrite(path, error);
    }
    await removeAll(folder, sessionId, tasks).catch((error: unknown) => {
      throw halfDeleted(path, sessionId, error);
    });
    return ids;
  } finally {
    await releaseAll(locks);
  }
};

/** Finishes the deletion that a killed process began. A journal that was put back since then stays, with its tasks. */
export const finishDeletion = async (folder: string, sessionId: string): Promise<void> => {
  const isBack = (await readdir(sessionsFolder(folder))).includes(`${sessionId}.jsonl`);
  const tasks = isBack ? [] : await tasksOf(folder, sessionId);
  const locks = await lockAll(folder, [sessionId, ...tasks]);
  try {
    if (isBack) await rm(deletedPath(folder, sessionId), { recursive: true, force: true });
    else await removeAll(folder, sessionId, tasks);
  } finally {
    await releaseAll(locks);
  }
};
