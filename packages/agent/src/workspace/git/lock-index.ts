import { renameSync } from 'node:fs';
import { chmod, copyFile, rename, rm, stat } from 'node:fs/promises';
import { atExit } from '../../platform/programs/at-exit.js';
import type { CommitClaim } from './commit-claim.js';

/**
 * Git's own lock of an index, a file beside it. While it is held, no other git process can commit, switch, add or reset
 * in this working tree.
 *
 * The lock is always released, even at exit. Only a killed program leaves it behind, and the claim then proves whose it
 * is.
 */
export type IndexLock = {
  /** Writes the new index to the lock file. After that a full disk can't prevent the replacement. */
  fill(file: string): Promise<void>;
  /**
   * What an exit of this program does with the lock from now on: `release` it, `replace` the index, or `keep` it for
   * the next session, since it is not known whether the branch has moved.
   */
  onExit(does: 'release' | 'replace' | 'keep'): void;
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
export const lockIndex = (indexFile: string, claim: CommitClaim): IndexLock | null => {
  const lock = `${indexFile}.lock`;
  if (!claim.take(lock)) return null;
  let duty: 'release' | 'replace' | 'keep' = 'release';
  const leave = (): void => {
    if (duty === 'keep') return;
    if (duty === 'replace') renameSync(lock, indexFile);
    else claim.release(lock);
    claim.remove();
  };
  const callOff = atExit(leave);
  return {
    async fill(file) {
      await copyFile(file, lock);
      await chmod(lock, await modeOf(indexFile));
    },
    onExit(does) {
      duty = does;
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
