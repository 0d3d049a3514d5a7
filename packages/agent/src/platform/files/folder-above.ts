import path from 'node:path';
import { statusOf } from './entry-status.js';

/**
 * The folder in which the search for a repository goes on; null if it ends at `folder`.
 *
 * It ends where git ends it: at the root, at another file system (unless GIT_DISCOVERY_ACROSS_FILESYSTEM says
 * otherwise), and below a folder that GIT_CEILING_DIRECTORIES names. `folder` is a real path.
 */
export const folderAbove = (folder: string): string | null => {
  const parent = path.dirname(folder);
  if (parent === folder || ceilings().includes(parent)) return null;
  return isAcross(process.env.GIT_DISCOVERY_ACROSS_FILESYSTEM) || isOneFileSystem(folder, parent)
    ? parent
    : null;
};

const ceilings = (): readonly string[] =>
  (process.env.GIT_CEILING_DIRECTORIES ?? '')
    .split(path.delimiter)
    .filter((place) => path.isAbsolute(place))
    .map((place) => path.resolve(place));

const isAcross = (value: string | undefined): boolean => /^(true|yes|on|1)$/i.test(value ?? '');

const isOneFileSystem = (folder: string, parent: string): boolean => {
  const [own, above] = [statusOf(folder), statusOf(parent)];
  // a folder that does not exist yet will be made on the file system of its parent
  return own === null || above === null || own.dev === above.dev;
};
