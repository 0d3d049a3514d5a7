/**
 * Finds the files of programs that run beside ours, in the sources and in the published package.
 */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Candidate folders: two in the sources, and two in the package (below the bundle, or beside its
 * chunks).
 */
const FOLDERS = ['./sandboxed/', './quickjs/', './environments/', '../environments/'];

/**
 * The path of a separate program of ask's environments. `names`: its source and, if it is bundled,
 * its bundle. Throws if there is none, which means a damaged installation.
 */
export const programFile = (...names: readonly string[]): string => {
  const files = FOLDERS.flatMap((folder) =>
    names.map((name) => fileURLToPath(new URL(folder + name, import.meta.url))),
  );
  const existing = files.find((file) => existsSync(file));
  if (existing === undefined) {
    throw new Error(`${names.join(' or ')} is missing from this copy of pawl: install it anew`);
  }
  return existing;
};
