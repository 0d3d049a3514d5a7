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

const BLOCK_BYTES = 1 << 20;
const ZEROS = Buffer.alloc(BLOCK_BYTES);

/** Copies the end of a file block by block. Blocks of zeros become holes: a power loss can leave gigabytes of them. */
const copyTail = async (
  journal: FileHandle,
  size: number,
  bytes: number,
  copy: FileHandle,
): Promise<void> => {
  const block = Buffer.allocUnsafe(Math.min(bytes, BLOCK_BYTES));
  let at = 0;
  while (at < bytes) {
    const { bytesRead } = await journal.read(block, 0, Math.min(block.length, bytes - at), size + at);
    if (bytesRead === 0) break;
    const piece = block.subarray(0, bytesRead);
    if (!piece.equals(ZEROS.subarray(0, bytesRead))) await writeAll(copy, piece, at);
    at += bytesRead;
  }
  await copy.truncate(at);
};

/** One call may write less than it was asked to. */
const writeAll = async (file: FileHandle, bytes: Buffer, position: number): Promise<void> => {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
};

/** Truncates a journal to `size` bytes, after it has saved the rest durably in another file. */
export const cutTail = async (
  journal: FileHandle,
  path: string,
  size: number,
  bytes: number,
): Promise<{ readonly bytes: number; readonly keptAs: string }> => {
  const { handle, keptAs } = await openNew(path);
  try {
    await copyTail(journal, size, bytes, handle);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncFolder(dirname(path));
  await journal.truncate(size);
  await journal.sync();
  return { bytes, keptAs };
};
