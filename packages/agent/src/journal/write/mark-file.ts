import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { encodeMark, type Mark, markOffset, markPath } from '../format/acknowledged-mark.js';
import { FILE_MODE } from '../paths-and-durable-writes.js';

/** The mark file of an open journal. Its failures stop nothing: an old mark claims less than is there. */
export type MarkFile = {
  write(mark: Mark): void;
  close(): void;
};

const openNew = (path: string): number | null => {
  try {
    rmSync(path, { force: true }); // an earlier holder may still write to the old file
    return openSync(path, 'wx', FILE_MODE);
  } catch {
    return null; // without a mark, a cut at a line end is not noticed
  }
};

/**
 * Makes the first mark durable; whoever opens the journal syncs the folder. So there is a mark after every power loss, and
 * zeros are known as what was never written.
 */
const syncFirst = (descriptor: number): void => {
  try {
    fsyncSync(descriptor);
  } catch {
    // without it, zeros at the end of the journal count as damage
  }
};

export const openMark = (path: string, mark: Mark): MarkFile => {
  const descriptor = openNew(markPath(path));
  let count = 0;
  const write = (next: Mark): void => {
    if (descriptor === null) return;
    try {
      writeSync(descriptor, encodeMark(next), 0, null, markOffset(count));
      count += 1;
    } catch {
      // the last mark stays
    }
  };
  write(mark);
  if (descriptor !== null) syncFirst(descriptor);
  return {
    write,
    close: () => {
      if (descriptor !== null) closeSync(descriptor);
    },
  };
};
