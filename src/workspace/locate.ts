import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';

/** Where programs and repositories are, without starting anything. */

export const isWithin = (inner: string, outer: string): boolean => {
  const relative = path.relative(outer, inner);
  return (
    relative === '' ||
    (relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
  );
};

/** The nearest folder at or above `folder` that looks like the top of a repository; null if there is none. */
export const markedFolder = (folder: string): string | null => {
  for (let place = folder; ; place = path.dirname(place)) {
    if (existsSync(path.join(place, '.git'))) return place;
    if (path.dirname(place) === place) return null;
  }
};

const realOf = (folder: string): string | null => {
  try {
    return realpathSync(folder);
  } catch {
    return null; // a folder of the search path that is not there
  }
};

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false; // not there, or not ours to run
  }
};

/**
 * The folders of the search path that a repository can't fill: absolute ones outside of it. A repository that holds
 * the user's whole home (or all there is) is taken as far as the workspace only.
 */
export const safeSearchPath = (searchPath: string, home: string, workspace: string): readonly string[] => {
  const top = markedFolder(workspace) ?? workspace;
  const untrusted = home !== '' && isWithin(home, top) ? workspace : top;
  return searchPath.split(path.delimiter).filter((folder) => {
    const real = path.isAbsolute(folder) ? realOf(folder) : null;
    return real !== null && !isWithin(real, untrusted);
  });
};

/** Absolute path of a program, or null. */
export const findProgram = (folders: readonly string[], name: string): string | null =>
  folders.map((folder) => path.join(folder, name)).find(isProgram) ?? null;

/** Absolute path of git, or null. */
export const findGit = (folders: readonly string[]): string | null => findProgram(folders, 'git');
