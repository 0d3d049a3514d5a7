import { readdir, rm } from 'node:fs/promises';
import {
  deletedIdOf,
  isSessionId,
  journalPath,
  lockPath,
  ownerPath,
  sessionsFolder,
} from '../paths-and-durable-writes.js';
import { acquireLock } from '../write/lock.js';
import { finishDeletion } from './delete-session.js';

/** Ends of the names of files that are there before the journal itself. */
const EARLY = ['.lock', '.jsonl.new'];

/** Ids of sessions that have no journal yet. */
const idsWithoutJournal = (names: readonly string[]): readonly string[] => {
  const known = new Set(names);
  const ids = names.flatMap((name) =>
    EARLY.filter((end) => name.endsWith(end)).map((end) => name.slice(0, -end.length)),
  );
  return [...new Set(ids)].filter((id) => isSessionId(id) && !known.has(`${id}.jsonl`));
};

/** Removes what is left of one session, unless a living process is just creating it. */
const removeOne = async (folder: string, sessionId: string): Promise<void> => {
  const path = journalPath(folder, sessionId);
  const lock = await acquireLock(lockPath(folder, sessionId));
  try {
    await rm(`${path}.new`, { force: true });
    await rm(ownerPath(folder, sessionId), { force: true });
  } finally {
    await lock.release();
  }
};

/**
 * Finishes deletions, and removes the locks and drafts of processes that were killed while they created a session. Nobody
 * ever opens such a session, so nobody else would. Never rejects.
 */
export const removeLeftovers = async (folder: string): Promise<void> => {
  try {
    const names = await readdir(sessionsFolder(folder));
    const later = (): undefined => undefined; // its process lives, or the disk refuses
    for (const deleted of names.map(deletedIdOf))
      if (deleted !== undefined) await finishDeletion(folder, deleted).catch(later);
    for (const sessionId of idsWithoutJournal(names)) await removeOne(folder, sessionId).catch(later);
  } catch {
    // Nothing depends on it, and the creation of the session tells what is wrong with the folder.
  }
};
