/**
 * The state folder: which files it holds, how they become durable, and the texts that are named by
 * their hash.
 */

import { hash, randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withRegular } from '../platform/files.js';
import type { Blobs } from '../ports/journal.js';
import { blobDamaged, cannotRead, cannotWrite, errorCode } from './journal-error.js';

/*
 * Paths under the state folder:
 *
 * sessions/ID.jsonl          a journal
 * sessions/ID.jsonl.torn-N   incomplete lines that were cut off its end
 * sessions/ID.jsonl.import   the journal while it is imported; its lock is held
 * sessions/ID.lock           the process that has it open; ID.lock.* its socket, and claims
 * sessions/ID.mark           the last entry that was acknowledged
 * sessions/ID.snapshot       states that were folded before; ID.snapshot.new: the first one
 * sessions/ID.commits        with auto-commit: whose the workspace's uncommitted files are
 * sessions/ID.owner          proves that the session was created here: session-owner.ts
 * sessions/ID.reserve        space for the end of an open session, should the disk be full
 * sessions/ID.deleted        the journal of a session that is being deleted: deletion.ts
 * sessions/ID/               pictures that the user pasted into the session, as files
 * rescued/ID.jsonl           copy of a journal that was removed or changed while it was open
 * owner.key                  secret of this state folder
 * blobs/ab/abcdef...         texts named by their sha256, shared by all sessions
 */

/** Files are created with this mode, folders with the next one. */
export const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const SUFFIX = '.jsonl';
const DELETED = '.deleted';

export const sessionsFolder = (folder: string): string => join(folder, 'sessions');
export const journalPath = (folder: string, sessionId: string): string =>
  join(sessionsFolder(folder), `${sessionId}${SUFFIX}`);
export const deletedPath = (folder: string, sessionId: string): string =>
  join(sessionsFolder(folder), `${sessionId}${DELETED}`);
export const lockPath = (folder: string, sessionId: string): string =>
  join(sessionsFolder(folder), `${sessionId}.lock`);
export const ownerPath = (folder: string, sessionId: string): string =>
  join(sessionsFolder(folder), `${sessionId}.owner`);
/** A session that is being imported. */
export const importPath = (folder: string, sessionId: string): string =>
  join(sessionsFolder(folder), `${sessionId}${SUFFIX}.import`);
export const pastedFolder = (folder: string, sessionId: string): string =>
  join(sessionsFolder(folder), sessionId);
export const commitsPath = (folder: string, sessionId: string): string =>
  join(sessionsFolder(folder), `${sessionId}.commits`);
/** The space that an open journal keeps for its end. */
export const reservePath = (journal: string): string => journal.replace(/\.jsonl$/, '.reserve');

export const rescueFolder = (folder: string): string => join(folder, 'rescued');
export const blobPath = (folder: string, sha256: string): string =>
  join(folder, 'blobs', sha256.slice(0, 2), sha256);

/** Ids become file names, so they have no separators and no leading dot. */
export const isSessionId = (text: string): boolean =>
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(text);

const idBefore =
  (end: string) =>
  (fileName: string): string | undefined => {
    const sessionId = fileName.endsWith(end) ? fileName.slice(0, -end.length) : '';
    return isSessionId(sessionId) ? sessionId : undefined;
  };

/** The session id in a journal's file name; undefined for other files. */
export const parseJournalName = idBefore(SUFFIX);
/**
 * The session id in the name of the journal of a session that is being deleted; undefined for other
 * files.
 */
export const parseDeletedName = idBefore(DELETED);

/** Makes the names in a folder durable. */
export const syncFolder = async (folder: string): Promise<void> => {
  // Windows can't open a folder; there NTFS journals file names itself.
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/** Creates one folder and its missing parents; false if it exists. */
const makeMissing = async (folder: string): Promise<boolean> => {
  try {
    await mkdir(folder, { mode: FOLDER_MODE });
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    if (errorCode(error) !== 'ENOENT' || dirname(folder) === folder) throw error;
    await makeFolder(dirname(folder));
    return makeMissing(folder);
  }
};

/** Folders whose names this process has made durable. */
const durable = new Set<string>();

const syncIfAllowed = async (folder: string): Promise<void> => {
  try {
    await syncFolder(folder);
  } catch (error) {
    // A folder that we may not read is not one that Pawl has made.
    if (errorCode(error) !== 'EACCES' && errorCode(error) !== 'EPERM') throw error;
  }
};

/**
 * Creates a folder and its missing parents, durably. (mkdir's own `recursive` fails with a
 * misleading ENOENT on a read-only file system.)
 *
 * A folder that exists may come from a process that was killed before the names of the folder and
 * of its parent were durable. So both are synced once in each process.
 */
export const makeFolder = async (folder: string): Promise<void> => {
  const isNew = await makeMissing(folder);
  if (!isNew && durable.has(folder)) return;
  const parent = dirname(folder);
  if (isNew) await syncFolder(parent);
  else await syncIfAllowed(parent);
  await syncIfAllowed(dirname(parent));
  durable.add(folder);
};

/**
 * Writes a file atomically, also across a power loss: written as `draft`, synced, renamed. Replaces
 * an existing file at `path`.
 */
export const writeWhole = async (
  path: string,
  draft: string,
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
): Promise<void> => {
  try {
    const handle = await open(draft, 'w', FILE_MODE);
    try {
      for await (const piece of pieces) await handle.appendFile(piece);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
};

export const hashBytes = (bytes: Buffer): string => hash('sha256', bytes, 'hex');

const fileSize = async (path: string): Promise<number | undefined> => {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
};

const put = async (folder: string, text: string): Promise<string> => {
  const bytes = Buffer.from(text);
  const sha256 = hashBytes(bytes);
  const path = blobPath(folder, sha256);
  try {
    if ((await fileSize(path)) === bytes.length) {
      // Another writer may have made the file, or have been killed, before the folders were synced.
      await makeFolder(dirname(path));
      await syncFolder(dirname(path));
      return sha256;
    }
    await makeFolder(dirname(path));
    await writeWhole(path, `${path}.${randomUUID()}`, [bytes]);
    return sha256;
  } catch (error) {
    throw cannotWrite(path, error);
  }
};

/** The file's content; undefined if it does not exist. */
const readWhole = async (path: string): Promise<Buffer | undefined> => {
  try {
    return await withRegular(path, (file) => file.readFile());
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw cannotRead(path, error);
  }
};

const get = async (folder: string, sha256: string): Promise<string | undefined> => {
  if (!/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  const path = blobPath(folder, sha256);
  const bytes = await readWhole(path);
  if (bytes === undefined) return undefined;
  if (hashBytes(bytes) === sha256) return bytes.toString();
  throw blobDamaged(path);
};

/**
 * Texts as files named by their sha256. `get` rejects with `damaged` if the content no longer fits
 * the name.
 */
export const fileBlobs = (folder: string): Blobs => ({
  put: (text) => put(folder, text),
  get: (sha256) => get(folder, sha256),
});
