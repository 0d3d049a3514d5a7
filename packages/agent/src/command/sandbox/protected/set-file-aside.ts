import {
  closeSync,
  constants,
  cpSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';

/**
 * Moves a file out of the workspace into a folder of the session, so that nothing runs it by accident.
 *
 * Its folder is opened first and its real path is checked, so that a command that exchanges folders for symlinks
 * meanwhile can't get anything else moved.
 */

const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

const moveBelow = (from: string, to: string): void => {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EXDEV')) throw error;
    cpSync(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    rmSync(from, { recursive: true, force: true });
  }
};

/** The new path; null if the move failed because the file is gone or a folder on the way was exchanged. */
export const setAside = (place: string, folder: string): string | null => {
  const parent = path.dirname(place);
  let descriptor: number | null = null;
  try {
    descriptor = openSync(parent, FOLDER_ONLY);
    if (readlinkSync(`/proc/self/fd/${descriptor}`) !== parent) return null;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const target = path.join(folder, path.basename(place));
    moveBelow(`/proc/self/fd/${descriptor}/${path.basename(place)}`, target);
    return target;
  } catch {
    return null; // it is gone, or may not be moved: the next look finds it again
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
};

/** Restores the old content of a file in place. Throws if it is gone or a symlink. */
export const writeBack = (place: string, content: Buffer): void => {
  const descriptor = openSync(place, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    ftruncateSync(descriptor);
    writeSync(descriptor, content);
  } finally {
    closeSync(descriptor);
  }
};
