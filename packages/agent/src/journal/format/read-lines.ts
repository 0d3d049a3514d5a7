import { constants } from 'node:buffer';

export const NEWLINE = 0x0a;

/** A longer line can't become a text, so no line is longer. Long texts are blobs, so lines are far shorter. */
const LINE_BYTES_MAX = constants.MAX_STRING_LENGTH;

/** Where lines are read from: an open file, or bytes in memory. */
export type ByteSource = {
  read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
};

export const sourceOf = (bytes: Buffer): ByteSource => ({
  read: async (buffer, offset, length, position) => ({
    bytesRead: bytes.copy(buffer, offset, position, position + length),
  }),
});

/** Consecutive lines in `bytes`, from `start` on. */
export type Lines = {
  readonly bytes: Buffer;
  readonly start: number;
  /** End of each line: the offset of its line feed, or the end of the file. */
  readonly ends: readonly number[];
  /** `no` for a last line without a line feed; such a line comes alone. */
  readonly ended: 'yes' | 'no';
};

/** Splits off the first line. */
export const splitFirst = (lines: Lines): { readonly first: Buffer; readonly rest: Lines } => {
  const [end = lines.start, ...ends] = lines.ends;
  return { first: lines.bytes.subarray(lines.start, end), rest: { ...lines, start: end + 1, ends } };
};

/** Splits lines into pieces of at most `count` lines; without lines it yields one empty piece. */
export function* piecesOf(lines: Lines, count: number): Generator<Lines, undefined> {
  let [start, index] = [lines.start, 0];
  do {
    const ends = lines.ends.slice(index, index + count);
    yield { ...lines, start, ends };
    start = (ends.at(-1) ?? start) + 1;
    index += count;
  } while (index < lines.ends.length);
}

type LineEnd = Lines['ended'];

/** Looks for a line feed from `position` on, and holds one block at a time. */
const findLineEnd = async (
  handle: ByteSource,
  position: number,
  end: number,
  blockBytes: number,
): Promise<LineEnd> => {
  const block = Buffer.allocUnsafe(blockBytes);
  for (let at = position; at < end; ) {
    const { bytesRead } = await handle.read(block, 0, Math.min(blockBytes, end - at), at);
    if (bytesRead === 0) break;
    if (block.subarray(0, bytesRead).includes(NEWLINE)) return 'yes';
    at += bytesRead;
  }
  return 'no';
};

/** What is enough of the beginning of a line to see that it is bad; null if it can still be a good one. */
const badBeginning = (begun: Buffer, checked: number, lineBytesMax: number): Buffer | null => {
  const zero = begun.indexOf(0, checked);
  if (zero >= 0) return begun.subarray(0, zero + 1);
  return begun.length > lineBytesMax ? begun.subarray(0, 0) : null;
};

/**
 * Splits a file into lines, block by block, from byte `start` up to byte `end`. Memory is bounded by about one block and one line.
 *
 * 1. A line longer than a block is read in growing pieces, so that its beginning is not copied for every block.
 * 2. Of a long line that can't be good, since it holds a zero or is longer than any line, only the beginning is yielded (or
 *    nothing). It is the last one: whoever reads lines stops at a bad one.
 */
export async function* readLines(
  handle: ByteSource,
  end: number,
  blockBytes: number,
  start = 0,
  lineBytesMax = LINE_BYTES_MAX,
): AsyncGenerator<Lines, undefined> {
  let begun: Buffer = Buffer.alloc(0);
  for (let position = start; position < end; ) {
    const wanted = Math.min(Math.max(blockBytes, begun.length), end - position);
    const bytes = Buffer.allocUnsafe(begun.length + wanted);
    begun.copy(bytes);
    const { bytesRead } = await handle.read(bytes, begun.length, wanted, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    const filled = begun.length + bytesRead;
    const ends: number[] = [];
    for (
      let stop = bytes.indexOf(NEWLINE, begun.length);
      stop >= 0 && stop < filled;
      stop = bytes.indexOf(NEWLINE, stop + 1)
    )
      ends.push(stop);
    const checked = ends.length > 0 ? 0 : begun.length;
    begun = bytes.subarray((ends.at(-1) ?? -1) + 1, filled);
    if (ends.length > 0) yield { bytes, start: 0, ends, ended: 'yes' };
    const bad = badBeginning(begun, checked, lineBytesMax);
    if (bad === null) continue;
    const ended = await findLineEnd(handle, position, end, blockBytes);
    yield { bytes: bad, start: 0, ends: [bad.length], ended };
    return;
  }
  if (begun.length > 0) yield { bytes: begun, start: 0, ends: [begun.length], ended: 'no' };
}
