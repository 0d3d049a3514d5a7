import { hash, randomUUID } from 'node:crypto';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { link, rename, rm, writeFile } from 'node:fs/promises';
import { readRegular } from '../../platform/files/regular-file.js';
import { codeOf } from '../journal-error.js';
import { FILE_MODE } from '../paths-and-durable-writes.js';
import { HOLDER_BYTES_MAX } from './lock-owner.js';

/**
 * A file that one process at a time owns, on any file system.
 *
 * 1. It is created with its whole content at once, and only where there is none.
 * 2. Whoever replaces or removes it first creates a claim: a file named by the content that is to go. Only one process
 *    can create it. Then it looks whether that content is still there, and only then renames the claim over the file.
 * 3. The claim of a dead process is a file like this one: it is replaced in the same way.
 */

/** The text of the file; null if there is none. A pipe or another odd file reads as an empty text. */
export const readLockText = async (path: string): Promise<string | null> => {
  const loaded = await readRegular(path, HOLDER_BYTES_MAX);
  if (loaded.kind === 'absent') return null;
  return loaded.kind === 'file' ? loaded.bytes.toString('utf8') : '';
};

/** True if the file holds exactly this text. Opens the file anew, so that a network file system asks its server. */
export const holdsText = (path: string, text: string | Buffer): boolean => {
  const expected = typeof text === 'string' ? Buffer.from(text) : text;
  const found = Buffer.allocUnsafe(expected.length + 1);
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return false;
    throw error;
  }
  try {
    const bytes = readSync(descriptor, found, 0, found.length, 0);
    return expected.equals(found.subarray(0, bytes));
  } finally {
    closeSync(descriptor);
  }
};

/** File systems without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK']);

/** Creates the file with its whole text at once; false if it exists. */
export const createFile = async (path: string, text: string): Promise<boolean> => {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { flag: 'wx', mode: FILE_MODE });
    await link(draft, path).catch(async (error: unknown) => {
      if (!NO_LINKS.has(codeOf(error))) throw error;
      await writeFile(path, text, { flag: 'wx', mode: FILE_MODE });
    });
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
};

/** Path of the claim to the file while it holds `text`. */
export const claimOf = (path: string, text: string): string =>
  `${path}.${hash('sha256', text, 'hex').slice(0, 12)}`;

/** Decides by the text of a claim whether its process is dead; throws if it may live. */
export type Judge = (text: string) => Promise<void>;

/** Makes our claim to the file while it holds `seen`; null if the file has changed meanwhile. */
const claim = async (path: string, seen: string, own: string, judge: Judge): Promise<string | null> => {
  const place = claimOf(path, seen);
  while (!(await createFile(place, own))) {
    const rival = await readLockText(place);
    if (rival === null) continue;
    await judge(rival);
    if (await replaceFile(place, rival, own, judge)) break;
  }
  if ((await readLockText(path)) === seen) return place;
  await rm(place, { force: true });
  return null;
};

/** Replaces the file that holds `seen` by one that holds `own`; false if somebody else has changed it. */
export const replaceFile = async (
  path: string,
  seen: string,
  own: string,
  judge: Judge,
): Promise<boolean> => {
  const place = await claim(path, seen, own, judge);
  if (place === null) return false;
  await rename(place, path);
  return holdsText(path, own);
};

/** Removes the file if it still holds `own`. Leaves it alone while somebody else replaces it. */
export const removeFile = async (path: string, own: string): Promise<void> => {
  const place = claimOf(path, own);
  const isOurs = await createFile(place, own).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return false; // the folder was removed, and the file with it
    throw error;
  });
  if (!isOurs) return;
  try {
    if (holdsText(path, own)) await rm(path, { force: true });
  } finally {
    await rm(place, { force: true });
  }
};
