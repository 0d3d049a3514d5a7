import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { readUpTo, withRegular } from '../platform/files.js';
import { crc32c } from './codec.js';
import { cannotRead, errorCode } from './journal-error.js';
import { FILE_MODE } from './state-folder.js';

/**
 * The mark of a journal: the last entry that was acknowledged. It stands in a small file beside the
 * journal, and is written after each sync, without a sync of its own. A journal that ends before
 * its mark was cut or overwritten. A journal may go on behind its mark: after a power loss the mark
 * can be old.
 *
 * A power loss can also spoil the mark that is being written. So the file has two places that are
 * written in turn, and each mark has a checksum of its own: the other place still holds the mark
 * before.
 */
export type Mark = { readonly seq: number; readonly crc: number };

/** Every mark has this length, so that a shorter number leaves nothing of a longer one behind. */
const MARK_BYTES = 64;
const PLACES = 2;

/** Where the mark stands that is the `count`th to be written, from 0. */
const markOffset = (count: number): number => (count % PLACES) * MARK_BYTES;

const markSum = ({ seq, crc }: Mark): number => crc32c(Buffer.from(`${seq} ${crc}`));

export const encodeMark = ({ seq, crc }: Mark): Buffer =>
  Buffer.from(
    `${`{"seq":${seq},"crc":${crc},"sum":${markSum({ seq, crc })}}`.padEnd(MARK_BYTES - 1)}\n`,
    'latin1',
  );

const numberIn = (value: object, name: string): number | null => {
  const field: unknown = Reflect.get(value, name);
  return typeof field === 'number' && Number.isSafeInteger(field) && field >= 0 ? field : null;
};

const decodeMark = (text: string): Mark | null => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return null;
    const [seq, crc] = [numberIn(value, 'seq'), numberIn(value, 'crc')];
    if (seq === null || crc === null) return null;
    return numberIn(value, 'sum') === markSum({ seq, crc }) ? { seq, crc } : null;
  } catch {
    return null; // a power loss cut it
  }
};

export const markPath = (path: string): string => path.replace(/\.jsonl$/, '.mark');

const newer = (one: Mark | null, other: Mark | null): Mark | null =>
  one === null || (other !== null && other.seq > one.seq) ? other : one;

/** The newest mark in the bytes of a mark file; null if there is none. */
export const decodeMarks = (bytes: Buffer): Mark | null => {
  const [first, second] = [bytes.subarray(0, MARK_BYTES), bytes.subarray(MARK_BYTES)];
  return newer(decodeMark(first.toString('latin1')), decodeMark(second.toString('latin1')));
};

const hasNoMark = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'EISDIR', 'ENOTREG'].includes(errorCode(error) ?? '');

/**
 * The mark beside the journal `path`; null if there is none, or it was spoiled. Rejects with
 * `cannotRead` if the system refuses, for example because too many files are open: without its
 * mark, a journal that was cut looks whole, and one whose end a power loss filled with zeros looks
 * damaged.
 */
export const readMark = async (path: string): Promise<Mark | null> => {
  const place = markPath(path);
  try {
    return await withRegular(place, async (file, status) =>
      decodeMarks(await readUpTo(file, status, PLACES * MARK_BYTES)),
    );
  } catch (error) {
    if (hasNoMark(error)) return null;
    throw cannotRead(place, error);
  }
};

/**
 * The mark file of an open journal. Its failures stop nothing: an old mark claims less than is
 * there.
 */
type MarkFile = {
  write(mark: Mark): void;
  close(): void;
};

const openMarkFile = (path: string): number | null => {
  try {
    rmSync(path, { force: true }); // an earlier holder may still write to the old file
    return openSync(path, 'wx', FILE_MODE);
  } catch {
    return null; // without a mark, a cut at a line end is not noticed
  }
};

/**
 * Makes the first mark durable; whoever opens the journal syncs the folder. So there is a mark
 * after every power loss, and zeros are known as what was never written.
 */
const syncFirst = (descriptor: number): void => {
  try {
    fsyncSync(descriptor);
  } catch {
    // without it, zeros at the end of the journal count as damage
  }
};

export const openMark = (path: string, mark: Mark): MarkFile => {
  const descriptor = openMarkFile(markPath(path));
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
