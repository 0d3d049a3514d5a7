import { rmSync } from 'node:fs';
import { chmod, copyFile, open, rename, rm, stat } from 'node:fs/promises';
import { atExit } from './at-exit.js';

/**
 * git's own lock of an index: the file beside it. While it is held no other git commits, switches, adds or resets in
 * this working tree.
 *
 * The lock is let go of on every way out, also when this program exits; only a killed program leaves it, as git does.
 */
export type IndexLock = {
  /** Makes a new index ready: from now on only its name is missing, and no full disk is in the way. */
  fill(file: string): Promise<void>;
  /** Puts the new index in the place of the old one, and lets go. */
  replace(): Promise<void>;
  release(): Promise<void>;
};

const USUAL_MODE = 0o644;

const modeOf = async (file: string): Promise<number> => {
  try {
    return (await stat(file)).mode & 0o777;
  } catch {
    return USUAL_MODE; // there is no index yet
  }
};

/** null: another process holds it. Rejects where it can't be made at all. */
export const lockIndex = async (indexFile: string): Promise<IndexLock | null> => {
  const lock = `${indexFile}.lock`;
  try {
    await (await open(lock, 'wx')).close();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return null;
    throw error;
  }
  const removeNow = (): void => rmSync(lock, { force: true });
  const callOff = atExit(removeNow);
  return {
    async fill(file) {
      await copyFile(file, lock);
      await chmod(lock, await modeOf(indexFile));
    },
    async replace() {
      await rename(lock, indexFile);
      callOff();
    },
    async release() {
      await rm(lock, { force: true });
      callOff();
    },
  };
};
