import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import type { FindProgram } from './collect-command-facts.js';

/** Finds the file that a shell would start, also in the workspace, so that it can be shown and judged. */

const isRunnable = (file: string): boolean => {
  try {
    if (!statSync(file).isFile()) return false;
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false; // missing or not executable: a shell would continue its search
  }
};

const liesIn = (folder: string, file: string): boolean => `${file}/`.startsWith(`${folder}/`);

/** The path by which it is found; its real path if a symlink leads into the workspace. */
const shownPath = (file: string, workspace: string): string => {
  const real = realpathSync(file);
  return liesIn(workspace, real) ? real : file;
};

/** Searches the folders of `searchPath`, relative ones below the workspace. Caches its results. */
export const commandFinder = (searchPath: string, workspace: string): FindProgram => {
  const folders = searchPath.split(path.delimiter).map((folder) => path.resolve(workspace, folder));
  const found = new Map<string, string | null>();
  return (name) => {
    const known = found.get(name);
    if (known !== undefined) return known;
    const files = name.includes('/')
      ? [path.resolve(workspace, name)]
      : folders.map((folder) => path.join(folder, name));
    const file = name === '' ? undefined : files.find(isRunnable);
    const program = file === undefined ? null : shownPath(file, workspace);
    found.set(name, program);
    return program;
  };
};
