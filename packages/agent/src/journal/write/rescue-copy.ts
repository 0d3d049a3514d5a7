import type { FileHandle } from 'node:fs/promises';
import { mkdtemp, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../journal-error.js';
import { FILE_MODE, makeFolder, rescueFolder, syncFolder } from '../paths-and-durable-writes.js';
import { JournalScan } from '../read/scan.js';

/** A copy of a journal whose own file was changed by somebody else. */
export type Rescued = { readonly path: string; readonly entries: number };

const NAMES_MAX = 1_000;

/** Creates a file with a name of its own. */
const createIn = async (folder: string, name: string): Promise<{ handle: FileHandle; path: string }> => {
  for (let number = 1; ; number++) {
    const path = join(folder, number === 1 ? name : `${name.replace(/\.jsonl$/, '')}.${number}.jsonl`);
    try {
      return { handle: await open(path, 'wx', FILE_MODE), path };
    } catch (error) {
      if (codeOf(error) !== 'EEXIST' || number > NAMES_MAX) throw error;
    }
  }
};

const BLOCK_BYTES = 1 << 20;

const copyTo = async (from: FileHandle, size: number, to: FileHandle): Promise<void> => {
  const block = Buffer.allocUnsafe(BLOCK_BYTES);
  for (let position = 0; position < size; ) {
    const { bytesRead } = await from.read(block, 0, Math.min(block.length, size - position), position);
    if (bytesRead === 0) return;
    await to.appendFile(block.subarray(0, bytesRead));
    position += bytesRead;
  }
};

/** The good lines that the open file still has, at most `size` bytes. */
const scanGood = async (journal: FileHandle, path: string, size: number) => {
  const end = Math.min(size, (await journal.stat()).size);
  const scan = await JournalScan.begin(journal, path, end);
  for await (const _ of scan.records());
  return scan;
};

const linesIn = (bytes: Buffer): number => bytes.toString('latin1').split('\n').length - 1;

const writeCopy = async (
  journal: FileHandle,
  { size, seq }: { readonly size: number; readonly seq: number },
  unwritten: Buffer,
  place: { readonly folder: string; readonly name: string },
): Promise<Rescued> => {
  const { handle, path } = await createIn(place.folder, place.name);
  try {
    await copyTo(journal, size, handle);
    await handle.appendFile(unwritten);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncFolder(place.folder);
  return { path, entries: seq + linesIn(unwritten) };
};

/**
 * Copies the good lines of an open journal to a new file, with the lines that could not be written. A file that was
 * removed still has its content while it is open. The copy is made beside the sessions, or in the folder for temporary
 * files; null if neither works, or nothing good is left.
 */
export const rescue = async (
  journal: FileHandle,
  path: string,
  size: number,
  unwritten: Buffer,
): Promise<Rescued | null> => {
  try {
    const good = await scanGood(journal, path, size);
    const rest = good.size === size ? unwritten : Buffer.alloc(0);
    const name = basename(path);
    const beside = async (): Promise<Rescued> => {
      const folder = rescueFolder(dirname(dirname(path)));
      await makeFolder(folder);
      return writeCopy(journal, good, rest, { folder, name });
    };
    return await beside().catch(async () =>
      writeCopy(journal, good, rest, { folder: await mkdtemp(join(tmpdir(), 'pawl-rescued-')), name }),
    );
  } catch {
    // The error that stopped the session is the one to report; it then says that there is no copy.
    return null;
  }
};
