import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Beside this file in the sources; in the package below the bundle, or beside the folder of its pieces. */
const FOLDERS = ['./', './environments/', '../environments/'];

/**
 * The path of a program of this room that runs on its own. `names`: its source and, where that is bundled, the bundle.
 * Throws where there is none: a copy that is damaged.
 */
export const programFile = (...names: readonly string[]): string => {
  const files = FOLDERS.flatMap((folder) =>
    names.map((name) => fileURLToPath(new URL(folder + name, import.meta.url))),
  );
  const found = files.find((file) => existsSync(file));
  if (found === undefined) {
    throw new Error(`${names.join(' or ')} is missing from this copy of pawl: install it anew`);
  }
  return found;
};
