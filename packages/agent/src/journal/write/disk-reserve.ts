import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { FILE_MODE, reservePath } from '../paths-and-durable-writes.js';

/**
 * Disk space that an open journal keeps for its end: a file of this size, removed when the disk is full. The results of
 * the calls of one reply and the end of the session fit into it.
 */
const RESERVE_BYTES = 256 * 1024;

let zeros: Buffer | null = null;

export type DiskReserve = {
  /** Gives the space back to the disk; false if there is none to give. */
  free(): boolean;
};

const fill = (path: string): boolean => {
  const descriptor = openSync(path, 'w', FILE_MODE);
  try {
    zeros ??= Buffer.alloc(RESERVE_BYTES); // once: zeroing this much takes longer than the write
    return writeSync(descriptor, zeros, 0, zeros.length, 0) === zeros.length;
  } finally {
    closeSync(descriptor);
  }
};

const remove = (path: string): void => rmSync(path, { force: true });

/** Reserves the space; a disk that has too little left is left alone. */
export const openReserve = (journal: string): DiskReserve => {
  const path = reservePath(journal);
  let isThere = false;
  try {
    remove(path); // of an earlier process that was killed, or something else in its place
    isThere = fill(path);
    if (!isThere) remove(path);
  } catch {
    isThere = false;
    try {
      remove(path);
    } catch {
      // Nothing is lost: the session goes on without a reserve.
    }
  }
  return {
    free: () => {
      const was = isThere;
      isThere = false;
      if (was) remove(path);
      return was;
    },
  };
};
