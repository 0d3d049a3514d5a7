/**
 * The state folder: which files it holds, and how they become durable.
 *
 * From top to bottom: the paths; folders and files that survive a power loss; blobs, texts that are
 * named by their hash; the mark of a journal, which says how far it is acknowledged; and the code
 * that tells sessions of this folder from foreign ones, which came from elsewhere.
 */

import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { link, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode, hashBytes, readUpTo, withRegular } from '../platform/files.js';
import type { Blobs, Header, MachineTypes } from '../ports/journal.js';
import { crc32c, encodeHeader } from './codec.js';
import { blobDamaged, cannotRead, cannotWrite } from './journal-error.js';

/*
 * Paths under the state folder:
 *
 * sessions/ID.jsonl          a journal
 * sessions/ID.jsonl.torn-N   incomplete lines that were cut off its end
 * sessions/ID.jsonl.import   the journal while it is imported; its lock is held
 * sessions/ID.lock           the process that has it open; ID.lock.* its socket, and files that
 *                            announce the replacement of the lock (lock.ts)
 * sessions/ID.mark           the last entry that was acknowledged
 * sessions/ID.snapshot       states that were folded before; ID.snapshot.new: the next one
 * sessions/ID.owner          proves that the session was created here
 * sessions/ID.reserve        space for the end of an open session, should the disk be full
 * sessions/ID.deleted        the journal of a session that is being deleted
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
/** The space that an open journal keeps for its end. */
export const reservePath = (journal: string): string => journal.replace(/\.jsonl$/, '.reserve');

export const rescueFolder = (folder: string): string => join(folder, 'rescued');
export const blobPath = (folder: string, sha256: string): string =>
  join(folder, 'blobs', sha256.slice(0, 2), sha256);

/**
 * Endings of other files that belong to a session: with one of them an id would name the file of
 * another session, here or in a store of checkpoints.
 */
const FILE_ENDINGS =
  /\.(jsonl|torn-\d+|import|lock|mark|snapshot|commits|owner|reserve|deleted|new|draft|scan|calls)$/i;
/** Names of devices on Windows, with any ending. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** Ids become file names: no separators, no leading dot, no name with a meaning. */
export const isSessionId = (text: string): boolean =>
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(text) && !FILE_ENDINGS.test(text) && !DEVICE.test(text);

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

/** Makes names durable. A folder that we may not read is not one that Pawl has made. */
export const syncIfAllowed = async (folder: string): Promise<void> => {
  try {
    await syncFolder(folder);
  } catch (error) {
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
 * an existing file at `path`. Only a writer with a lock may name the draft.
 */
export const writeWhole = async (
  path: string,
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
  draft = `${path}.${randomUUID()}`,
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
    await makeFolder(dirname(path));
    // Another writer may have made the file, or have been killed, before the folder was synced.
    if ((await fileSize(path)) === bytes.length) await syncFolder(dirname(path));
    else await writeWhole(path, [bytes]);
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

// ---- The mark of a journal ----

/**
 * The mark of a journal: the last entry that was acknowledged. It stands in a small file beside the
 * journal, and is written after each sync, without a sync of its own. A journal that ends before
 * its mark was cut or overwritten. A journal may go on behind its mark: after a power loss the mark
 * can be old.
 *
 * A power loss can also spoil the mark that is being written. So the file has two slots that are
 * written in turn, and each mark has a checksum of its own: the other slot still holds the mark
 * before.
 */
export type Mark = { readonly seq: number; readonly crc: number };

/** Every mark has this length, so that a shorter number leaves nothing of a longer one behind. */
const MARK_BYTES = 64;
const SLOTS = 2;

/** Where the mark stands that is the `count`th to be written, from 0. */
const markOffset = (count: number): number => (count % SLOTS) * MARK_BYTES;

const markSum = ({ seq, crc }: Mark): number => crc32c(Buffer.from(`${seq} ${crc}`));

export const encodeMark = ({ seq, crc }: Mark): Buffer =>
  Buffer.from(
    `${`{"seq":${seq},"crc":${crc},"sum":${markSum({ seq, crc })}}`.padEnd(MARK_BYTES - 1)}\n`,
    'latin1',
  );

const numberIn = (value: object, name: string): number | null => {
  const field: unknown = Reflect.get(value, name);
  return typeof field === 'number' && Number.isSafeInteger(field) && field >= 0 ? field : null;
};

const decodeMark = (text: string): Mark | null => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return null;
    const seq = numberIn(value, 'seq');
    const crc = numberIn(value, 'crc');
    if (seq === null || crc === null) return null;
    return numberIn(value, 'sum') === markSum({ seq, crc }) ? { seq, crc } : null;
  } catch {
    return null; // a power loss cut it
  }
};

export const markPath = (path: string): string => path.replace(/\.jsonl$/, '.mark');

const newer = (one: Mark | null, other: Mark | null): Mark | null =>
  one === null || (other !== null && other.seq > one.seq) ? other : one;

/** The newest mark in the bytes of a mark file; null if there is none. */
export const decodeMarks = (bytes: Buffer): Mark | null => {
  const first = bytes.subarray(0, MARK_BYTES);
  const second = bytes.subarray(MARK_BYTES);
  return newer(decodeMark(first.toString('latin1')), decodeMark(second.toString('latin1')));
};

const hasNoMark = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'EISDIR', 'ENOTREG'].includes(errorCode(error) ?? '');

/**
 * The mark beside the journal `path`; null if there is none, or it was spoiled. Rejects with
 * `cannotRead` if the system refuses, for example because too many files are open: without its
 * mark, a journal that was cut looks whole, and one whose end a power loss filled with zeros looks
 * damaged.
 */
export const readMark = async (path: string): Promise<Mark | null> => {
  const markFile = markPath(path);
  try {
    return await withRegular(markFile, async (file, status) =>
      decodeMarks(await readUpTo(file, status, SLOTS * MARK_BYTES)),
    );
  } catch (error) {
    if (hasNoMark(error)) return null;
    throw cannotRead(markFile, error);
  }
};

/**
 * The mark file of an open journal. Its failures stop nothing: an old mark claims less than is
 * there.
 */
type MarkFile = {
  write(mark: Mark): void;
  close(): void;
};

const openMarkFile = (path: string): number | null => {
  try {
    rmSync(path, { force: true }); // an earlier holder may still write to the old file
    return openSync(path, 'wx', FILE_MODE);
  } catch {
    return null; // without a mark, a cut at a line end is not noticed
  }
};

export const openMark = (path: string, mark: Mark): MarkFile => {
  const descriptor = openMarkFile(markPath(path));
  let count = 0;
  const write = (next: Mark): void => {
    if (descriptor === null) return;
    try {
      writeSync(descriptor, encodeMark(next), 0, null, markOffset(count));
      count += 1;
    } catch {
      // the last mark stays
    }
  };
  write(mark);
  try {
    // The opening syncs the folder. So zeros after a power loss are known as never written.
    if (descriptor !== null) fsyncSync(descriptor);
  } catch {
    // without it, zeros at the end of the journal count as damage
  }
  return {
    write,
    close: () => {
      try {
        if (descriptor !== null) closeSync(descriptor);
      } catch {
        // the last mark may be missing
      }
    },
  };
};

// ---- Sessions of this folder and those from elsewhere ----

/**
 * Tells the sessions that were created in a state folder from those that came from elsewhere.
 *
 * 1. The folder has a secret, `owner.key`. Beside each journal that is created here stands
 *    `ID.owner`, a code of the secret and the journal's header. Exports contain neither, and an
 *    import writes none: a journal without the right code is foreign.
 * 2. The secret names its own inode. In a copy of the folder it has another one: then all sessions
 *    of the copy are foreign, and the next session that is created there makes a new secret.
 * 3. A foreign session becomes one of this folder by the user's first prompt. The code then covers
 *    the last entry before, and the file names it: entries up to it stay foreign for ever.
 */
const SECRET_BYTES = 32;
const FILE_BYTES_MAX = 1024;

/** Errors of `link`: the secret is there already, or the file system has no hard links. */
const LINK_REFUSALS = new Set([
  'EEXIST',
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
  'EXDEV',
]);

const secretPath = (folder: string): string => join(folder, 'owner.key');

/** The text of a secret: the secret in hexadecimal, and the inode of its file. */
const SECRET = /^([0-9a-f]{64}) (\d+)\n$/;

/** The text of a small file; null if there is none. Rejects if it can't be read. */
const readOwnFile = async (
  path: string,
): Promise<{ readonly text: string; readonly inode: string } | null> => {
  try {
    return await withRegular(path, async (file, { size, ino }) => ({
      text: size > FILE_BYTES_MAX ? '' : await file.readFile('utf8'),
      inode: String(ino),
    }));
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTREG' || code === 'EISDIR' || code === 'ELOOP')
      return null;
    throw error;
  }
};

/** The secret of the folder; null if there is none, or only that of another folder. */
const readSecret = async (folder: string): Promise<Buffer | null> => {
  const read = await readOwnFile(secretPath(folder));
  const [, secret, inode] = SECRET.exec(read?.text ?? '') ?? [];
  return secret === undefined || read?.inode !== inode ? null : Buffer.from(secret, 'hex');
};

/**
 * Gives the draft its name. Resolves with the secret of another process that was faster, or null.
 */
const placeSecret = async (folder: string, draft: string): Promise<Buffer | null> => {
  const path = secretPath(folder);
  try {
    await link(draft, path);
    return null;
  } catch (error) {
    if (!LINK_REFUSALS.has(errorCode(error))) throw error;
    const other = await readSecret(folder);
    if (other === null) await rename(draft, path);
    return other;
  }
};

const makeSecret = async (folder: string): Promise<Buffer> => {
  await makeFolder(folder);
  const draft = `${secretPath(folder)}.${randomUUID()}`;
  const secret = randomBytes(SECRET_BYTES);
  try {
    const handle = await open(draft, 'wx', FILE_MODE);
    try {
      const { ino } = await handle.stat();
      await handle.appendFile(`${secret.toString('hex')} ${ino}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const other = await placeSecret(folder, draft);
    await syncFolder(folder);
    return other ?? secret;
  } finally {
    await rm(draft, { force: true });
  }
};

/** The text of `ID.owner`: the code, and the last foreign entry if there is one. */
const ownerText = <M extends MachineTypes>(
  secret: Buffer,
  header: Header<M>,
  foreignUntil: number,
): string => {
  const until = foreignUntil === 0 ? '' : ` ${foreignUntil}`;
  const code = createHmac('sha256', secret).update(encodeHeader(header).bytes).update(until);
  return `${code.digest('hex')}${until}\n`;
};

/**
 * The last entry of the session that came from elsewhere: 0 if it was created in this state folder,
 * Infinity if all of it is foreign. Rejects if that can't be read.
 */
export const readForeignUntil = async <M extends MachineTypes>(
  folder: string,
  header: Header<M>,
): Promise<number> => {
  const written = await readOwnFile(ownerPath(folder, header.sessionId));
  const secret = written === null ? null : await readSecret(folder);
  const [, until] = /^[0-9a-f]{64}(?: ([1-9]\d{0,14}))?\n$/.exec(written?.text ?? '') ?? [null];
  if (written === null || secret === null || until === null) return Number.POSITIVE_INFINITY;
  const foreignUntil = Number(until ?? 0);
  const right = Buffer.from(ownerText(secret, header, foreignUntil));
  const stored = Buffer.from(written.text);
  const isRight = stored.length === right.length && timingSafeEqual(stored, right);
  return isRight ? foreignUntil : Number.POSITIVE_INFINITY;
};

/** Whether all of a session came from elsewhere. `foreignUntil`: see `readForeignUntil`. */
export const isAllForeign = (foreignUntil: number): boolean =>
  foreignUntil === Number.POSITIVE_INFINITY;

/**
 * Whether the session of this journal was created in the state folder where the journal is, or
 * adopted by a prompt. Rejects if that can't be read.
 */
export const isOwnJournal = async <M extends MachineTypes>(
  path: string,
  header: Header<M>,
): Promise<boolean> => !isAllForeign(await readForeignUntil(dirname(dirname(path)), header));

/**
 * Whether the session has a code, right or wrong: only sessions that were created in some state
 * folder have one.
 */
export const hasCode = async (folder: string, sessionId: string): Promise<boolean> =>
  stat(ownerPath(folder, sessionId)).then(
    () => true,
    (error: unknown) => errorCode(error) !== 'ENOENT',
  );

/**
 * Makes the session one of this folder; its entries up to `foreignUntil` stay foreign. The name of
 * the file is durable once the folder is synced.
 */
export const makeOwn = async <M extends MachineTypes>(
  folder: string,
  header: Header<M>,
  foreignUntil = 0,
): Promise<void> => {
  const secret = (await readSecret(folder)) ?? (await makeSecret(folder));
  const handle = await open(ownerPath(folder, header.sessionId), 'w', FILE_MODE);
  try {
    await handle.appendFile(ownerText(secret, header, foreignUntil));
    await handle.sync();
  } finally {
    await handle.close();
  }
};
