import { readRegularSync } from '../../platform/files/regular-file.js';

/** Reads refs from git's packed-refs file. */

const BYTES_MAX = 64 * 1024 * 1024;
const LINE = /^([0-9a-f]{64}|[0-9a-f]{40}) (refs\/(?:heads\/.*|remotes\/.*|stash))$/gm;

/** Hashes of local and remote branches and the stash, by full name; null if the file can't be read. */
export const readPackedRefs = (file: string): ReadonlyMap<string, string> | null => {
  const loaded = readRegularSync(file, BYTES_MAX);
  if (loaded.kind === 'absent') return new Map();
  if (loaded.kind !== 'file') return null;
  const refs = new Map<string, string>();
  for (const [, hash = '', name = ''] of loaded.bytes.toString('utf8').matchAll(LINE)) refs.set(name, hash);
  return refs;
};
