import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from '../journal-error.js';
import { FILE_MODE, syncFolder } from '../paths-and-durable-writes.js';

const openNew = async (path: string): Promise<{ readonly handle: FileHandle; readonly keptAs: string }> => {
  for (let number = 1; ; number++) {
    const keptAs = `${path}.torn-${number}`;
    try {
      return { handle: await open(keptAs, 'wx', FILE_MODE), keptAs };
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }
};

/** Truncates a journal to `size` bytes, after it has saved the rest durably in another file. */
export const cutTail = async (
  journal: FileHandle,
  path: string,
  size: number,
  bytes: number,
): Promise<{ readonly bytes: number; readonly keptAs: string }> => {
  const tail = Buffer.alloc(bytes);
  const { bytesRead } = await journal.read(tail, 0, bytes, size);
  const { handle, keptAs } = await openNew(path);
  try {
    await handle.appendFile(tail.subarray(0, bytesRead));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncFolder(dirname(path));
  await journal.truncate(size);
  await journal.sync();
  return { bytes, keptAs };
};
