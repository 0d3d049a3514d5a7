import { hash } from 'node:crypto';
import { type FileHandle, lstat, open, rename, unlink } from 'node:fs/promises';
import path from 'node:path';
import { type HeldFolder, holdOrMakeFolder, mayWrite } from '../../platform/files/open-folder.js';
import { systemFault } from '../../platform/files/regular-file.js';
import { hashLoaded, loadIn } from './file-text.js';

/**
 * Replaces a whole file.
 *
 * 1. A reader sees the old bytes or the new bytes, never a mixture. After a failure the old bytes remain.
 * 2. Mode and owner stay. A hard link to the old file keeps the old bytes.
 * 3. The folder is held open during the change, so a symlink that appears in its path redirects neither the new bytes
 *    nor the temporary file. Just before the change, the file must have the expected hash and the folder must still be
 *    in place.
 */

export type WriteOutcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'changedMeanwhile' }
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'failed'; readonly why: string };

type Kept = { readonly mode: number; readonly uid: number; readonly gid: number };

const keptOf = async (place: string): Promise<Kept | null> => {
  const status = await lstat(place).catch(() => null); // null: a new file
  return status?.isFile() ? { mode: status.mode & 0o7777, uid: status.uid, gid: status.gid } : null;
};

const keepOwner = async (file: FileHandle, kept: Kept): Promise<void> => {
  const made = await file.stat();
  if (made.uid !== kept.uid || made.gid !== kept.gid) {
    // Only root may set another owner. For other users the file becomes theirs, as in most editors.
    await file.chown(kept.uid, kept.gid).catch(() => undefined);
  }
  await file.chmod(kept.mode);
};

const fill = async (temporary: string, bytes: Uint8Array, kept: Kept | null): Promise<void> => {
  await unlink(temporary).catch(() => undefined); // usually there is none
  const file = await open(temporary, 'wx', kept === null ? 0o666 : 0o600);
  try {
    await file.writeFile(bytes);
    if (kept !== null) await keepOwner(file, kept);
    await file.datasync();
  } finally {
    await file.close();
  }
};

type Exchange = {
  readonly folder: HeldFolder;
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Hash that the file must still have, or ABSENT. */
  readonly expected: string;
};

/** Moves the new file into place, if nothing has changed (rule 3). */
const exchange = async (temporary: string, { folder, name, expected }: Exchange): Promise<WriteOutcome> => {
  const same = hashLoaded(await loadIn(folder, name)) === expected;
  const inPlace = await folder.isInPlace();
  if (same && inPlace) {
    await rename(temporary, folder.at(name));
    return { kind: 'written' };
  }
  await unlink(temporary).catch(() => undefined); // if the folder is gone, there is nothing to remove
  return { kind: inPlace ? 'changedMeanwhile' : 'elsewhere' };
};

/**
 * The name of the temporary file. It follows from the content, so that a call that runs again after a crash finds the
 * file that it left.
 */
const temporaryName = (name: string, bytes: Uint8Array): string =>
  `.${name.slice(0, 200)}.${hash('sha256', bytes).slice(0, 12)}.tmp`;

const replaceIn = async (work: Exchange): Promise<WriteOutcome> => {
  const { folder, name, bytes } = work;
  const temporary = folder.at(temporaryName(name, bytes));
  try {
    const kept = await keptOf(folder.at(name));
    if (kept !== null && !(await mayWrite(folder.at(name))))
      return { kind: 'failed', why: 'it is write-protected' };
    await fill(temporary, bytes, kept);
    return await exchange(temporary, work);
  } catch (error) {
    await unlink(temporary).catch(() => undefined); // it may not exist yet; the failure itself is reported
    throw error;
  }
};

/** Writes `bytes` to the real path if the file still has the hash `expected` (ABSENT: no file). */
export const replaceFile = async (
  real: string,
  bytes: Uint8Array,
  expected: string,
): Promise<WriteOutcome> => {
  const above = path.dirname(real);
  try {
    const held = await holdOrMakeFolder(above);
    if (held.kind === 'elsewhere') return { kind: 'elsewhere' };
    if (held.kind !== 'held') return { kind: 'failed', why: `${above} is not a folder` };
    try {
      return await replaceIn({ folder: held.folder, name: path.basename(real), bytes, expected });
    } finally {
      await held.folder.close();
    }
  } catch (error) {
    return { kind: 'failed', why: systemFault(error, real) };
  }
};
