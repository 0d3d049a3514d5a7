import { hash, randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { openRegular } from '../platform/files/regular-file.js';
import type { Blobs } from '../ports/journal.js';
import { blobDamaged, cannotRead, cannotWrite, codeOf } from './journal-error.js';
import { blobPath, makeFolder, syncFolder, writeWhole } from './paths-and-durable-writes.js';

const sha256Of = (bytes: Buffer): string => hash('sha256', bytes, 'hex');

const sizeOf = async (path: string): Promise<number | undefined> => {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
};

const put = async (folder: string, text: string): Promise<string> => {
  const bytes = Buffer.from(text);
  const sha256 = sha256Of(bytes);
  const path = blobPath(folder, sha256);
  try {
    if ((await sizeOf(path)) === bytes.length) {
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
    const { file } = await openRegular(path);
    return await file.readFile().finally(() => file.close());
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw cannotRead(path, error);
  }
};

const get = async (folder: string, sha256: string): Promise<string | undefined> => {
  if (!/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  const path = blobPath(folder, sha256);
  const bytes = await readWhole(path);
  if (bytes === undefined) return undefined;
  if (sha256Of(bytes) === sha256) return bytes.toString();
  throw blobDamaged(path);
};

/** Texts as files named by their sha256. `get` rejects with `damaged` if the content no longer fits the name. */
export const fileBlobs = (folder: string): Blobs => ({
  put: (text) => put(folder, text),
  get: (sha256) => get(folder, sha256),
});
