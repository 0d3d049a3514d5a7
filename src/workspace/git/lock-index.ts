import { rmSync } from 'node:fs';
import { chmod, copyFile, open, rename, rm, stat } from 'node:fs/promises';
import { atExit } from '../at-exit.js';

/**
 * Git's own lock of an index, a file beside it. While it is held, no other git process can commit, switch, add or reset
 * in this working tree.
 *
 * The lock is always released, even at exit. Only a killed program leaves it behind, as git does.
 */
export type IndexLock = {
  /** Writes the new index to the lock file. After that a full disk can't prevent the replacement. */
  fill(file: string): Promise<void>;
  /** Replaces the index by the new one, and releases the lock. */
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

/** Takes the lock; null if another process holds it. Rejects if the lock file can't be made. */
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
