import { randomBytes } from 'node:crypto';
import {
  access,
  constants,
  type FileHandle,
  mkdir,
  open,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import path from 'node:path';
import { hashLoaded, loadFile } from './file-text.js';

/**
 * Replacing a file as a whole.
 *
 * 1. A reader sees the old bytes or the new ones, never a mixture; after a failure, the old ones.
 * 2. Mode and owner stay. A hard link to the old file keeps the old bytes.
 * 3. The file still has the hash that was expected, and its folder is still the real one, looked at just before the
 *    change.
 */

export type WriteOutcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'changedMeanwhile' }
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'failed'; readonly why: string };

type Kept = { readonly mode: number; readonly uid: number; readonly gid: number };

const keptOf = async (real: string): Promise<Kept | null> => {
  const status = await stat(real).catch(() => null); // null: a new file, which has nothing to keep
  return status === null ? null : { mode: status.mode & 0o7777, uid: status.uid, gid: status.gid };
};

const keepOwner = async (file: FileHandle, kept: Kept): Promise<void> => {
  const made = await file.stat();
  if (made.uid !== kept.uid || made.gid !== kept.gid) {
    // Only root may give a file away; for others it becomes theirs, as with any editor that writes this way.
    await file.chown(kept.uid, kept.gid).catch(() => undefined);
  }
  await file.chmod(kept.mode);
};

const fill = async (temporary: string, bytes: Uint8Array, kept: Kept | null): Promise<void> => {
  const file = await open(temporary, 'wx', kept === null ? 0o666 : 0o600);
  try {
    await file.writeFile(bytes);
    if (kept !== null) await keepOwner(file, kept);
    await file.datasync();
  } finally {
    await file.close();
  }
};

const leadsElsewhere = async (folder: string): Promise<boolean> => (await realpath(folder)) !== folder;

/** Rule 3: puts the new file in place of the old one, if all is as it was. */
const exchange = async (temporary: string, real: string, expected: string): Promise<WriteOutcome> => {
  const same = hashLoaded(await loadFile(real)) === expected;
  const elsewhere = await leadsElsewhere(path.dirname(real));
  if (same && !elsewhere) {
    await rename(temporary, real);
    return { kind: 'written' };
  }
  await unlink(temporary).catch(() => undefined); // where the folder itself has moved away there is nothing to remove
  return { kind: elsewhere ? 'elsewhere' : 'changedMeanwhile' };
};

/** Writes `bytes` to the real path, which must still hold what has the hash `expected` (ABSENT: nothing). */
export const replaceFile = async (
  real: string,
  bytes: Uint8Array,
  expected: string,
): Promise<WriteOutcome> => {
  const folder = path.dirname(real);
  const temporary = path.join(
    folder,
    `.${path.basename(real).slice(0, 200)}.${randomBytes(6).toString('hex')}.tmp`,
  );
  try {
    await mkdir(folder, { recursive: true });
    if (await leadsElsewhere(folder)) return { kind: 'elsewhere' };
    const kept = await keptOf(real);
    if (kept !== null) await access(real, constants.W_OK);
    await fill(temporary, bytes, kept);
    return await exchange(temporary, real, expected);
  } catch (error) {
    await unlink(temporary).catch(() => undefined); // it may not exist yet; the failure itself is reported
    return { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
  }
};
