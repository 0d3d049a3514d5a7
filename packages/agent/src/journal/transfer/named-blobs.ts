import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { codeOf } from '../journal-error.js';
import { blobPath } from '../paths-and-durable-writes.js';

/** A blob that a journal names, as it is on disk. */
export type NamedBlob = {
  readonly sha256: string;
  readonly path: string;
  readonly bytes: Buffer;
  /** `changed`: the content does not fit the name. */
  readonly kind: 'good' | 'changed';
};

const HASH = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;

/** Hashes in the text of a journal. Not all of them name blobs: state checks and file contents have hashes, too. */
const hashesIn = (journal: Buffer): ReadonlySet<string> =>
  new Set(journal.toString('latin1').match(HASH) ?? []);

export const sha256Of = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const readBlob = async (folder: string, sha256: string): Promise<NamedBlob | null> => {
  const path = blobPath(folder, sha256);
  try {
    const bytes = await readFile(path);
    return { sha256, path, bytes, kind: sha256Of(bytes) === sha256 ? 'good' : 'changed' };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
};

/** The blobs that exist among those that a journal may name. */
export async function* namedBlobs(folder: string, journal: Buffer): AsyncGenerator<NamedBlob, undefined> {
  for (const sha256 of [...hashesIn(journal)].sort()) {
    const blob = await readBlob(folder, sha256);
    if (blob !== null) yield blob;
  }
}
