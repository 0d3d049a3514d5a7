/**
 * The bytes of a journal. Writer, reader and transfer use it; it opens no file.
 *
 * From top to bottom: one line to and from text; many lines at once, at half the cost; lines out
 * of blocks of a file; and the checksum (CRC-32C) that chains each line to the one before.
 */

import { constants } from 'node:buffer';
import type { AgentTypes, Entry, Header, MachineTypes } from '../ports/journal.js';

/**
 * Encodes and decodes the lines of a journal: JSON, UTF-8, one line feed after each.
 *
 * 1. The first line is the header. Every other line is an entry: seq, event (with its time `at`),
 *    sometimes `check`.
 * 2. Every line ends in `,"crc":"xxxxxxxx"}`: CRC-32C of all bytes before that, seeded with the
 *    checksum of the line before (0 for the header). So a changed, removed, inserted or moved line
 *    breaks its own checksum or the next one.
 * 3. A line feed appears only at the end of a line, since JSON escapes it inside strings.
 */
const VERSION = 1;

const OPENING = ',"crc":"';
const TRAILER_BYTES = OPENING.length + 8 + 2;

/** An entry with its state check (a hash of the state after it), if it has one. */
export type Recorded<M extends MachineTypes = AgentTypes> = {
  readonly entry: Entry<M>;
  readonly check: string | null;
};

/**
 * The end of a good line of a journal: its number, and `size` bytes of file. `crc`: CRC-32C of
 * the line and those before (the chain). `sum`: zlib's CRC-32 of the same bytes.
 */
export type JournalEnd = {
  readonly seq: number;
  readonly crc: number;
  readonly size: number;
  readonly sum: number;
};

/** A line ready to be written, with its line feed, and the checksum that seeds the next line. */
type EncodedLine = { readonly bytes: Buffer; readonly crc: number };

/** A checksum as lines of a journal hold it. */
export const formatCrc = (crc: number): string => crc.toString(16).padStart(8, '0');

const seal = (json: string, seed: number): EncodedLine => {
  const body = json.slice(0, -1);
  const size = Buffer.byteLength(body);
  const bytes = Buffer.allocUnsafe(size + TRAILER_BYTES + 1);
  bytes.write(body);
  const crc = crc32c(bytes, seed, 0, size);
  bytes.write(`${OPENING}${formatCrc(crc)}"}\n`, size, 'latin1');
  return { bytes, crc };
};

export const encodeHeader = <M extends MachineTypes>(header: Header<M>): EncodedLine =>
  seal(JSON.stringify(header), 0);

export const encodeRecord = <M extends MachineTypes>(
  { entry, check }: Recorded<M>,
  seed: number,
): EncodedLine =>
  seal(
    JSON.stringify(check === null ? entry : { seq: entry.seq, event: entry.event, check }),
    seed,
  );

const CLOSING_BRACE = 0x7d;
const QUOTE = 0x22;
const DIGITS = Buffer.from('0123456789abcdef');
const OPENING_BYTES = Buffer.from(OPENING);

/**
 * True if the trailer at `at` holds this checksum. Compares bytes without decoding, since it runs
 * for every line.
 */
const isTrailer = (bytes: Buffer, at: number, crc: number): boolean => {
  if (!hasBytesAt(OPENING_BYTES, bytes, at)) return false;
  const digits = at + OPENING_BYTES.length;
  for (let index = 0; index < 8; index++)
    if (bytes[digits + index] !== DIGITS[(crc >>> (28 - 4 * index)) & 15]) return false;
  return bytes[digits + 8] === QUOTE && bytes[digits + 9] === CLOSING_BRACE;
};

/** The checksum of the line from `start` to `end` if its trailer holds it; null otherwise. */
const verify = (bytes: Buffer, seed: number, start: number, end: number): number | null => {
  const trailer = end - TRAILER_BYTES;
  if (trailer <= start) return null;
  const crc = crc32c(bytes, seed, start, trailer);
  return isTrailer(bytes, trailer, crc) ? crc : null;
};

/** The parsed value; undefined if the text is not JSON. */
export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // The caller reports undefined as damage; JSON itself has no undefined.
    return undefined;
  }
};

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

type DecodedHeader<M extends MachineTypes> =
  | { readonly kind: 'header'; readonly header: Header<M>; readonly crc: number }
  | { readonly kind: 'newer'; readonly version: number }
  | { readonly kind: 'bad'; readonly why: string };

/**
 * Decodes the header. The version is checked before the checksum, since a later version may use
 * another one. The caller checks by `kind` that the header belongs to the machine `M`.
 */
export const decodeHeader = <M extends MachineTypes>(line: Buffer): DecodedHeader<M> => {
  const value = parse(line.toString());
  if (!isRecord(value)) return { kind: 'bad', why: 'the header is not a JSON object' };
  if (typeof value.version === 'number' && value.version > VERSION) {
    return { kind: 'newer', version: value.version };
  }
  const crc = verify(line, 0, 0, line.length);
  if (crc === null) return { kind: 'bad', why: 'the checksum of the header does not fit' };
  const { crc: _sum, ...header } = value;
  // Safe: the checksum proves that encodeHeader wrote these bytes.
  return { kind: 'header', header: header as unknown as Header<M>, crc };
};

type DecodedRecord<M extends MachineTypes> =
  | { readonly kind: 'record'; readonly recorded: Recorded<M>; readonly crc: number }
  | { readonly kind: 'bad'; readonly why: string };

export const decodeRecord = <M extends MachineTypes>(
  line: Buffer,
  seed: number,
  seq: number,
): DecodedRecord<M> => {
  const crc = verify(line, seed, 0, line.length);
  if (crc === null) {
    return {
      kind: 'bad',
      why: 'its checksum does not fit: it was changed, or lines were cut out, put in or moved',
    };
  }
  const recorded = readRecorded<M>(parse(line.toString()), seq);
  if (recorded === null) return { kind: 'bad', why: `it is not the entry with seq ${seq}` };
  return { kind: 'record', recorded, crc };
};

/**
 * The entry in the value of a line with a correct checksum; null if it is not the entry with this
 * seq.
 */
const readRecorded = <M extends MachineTypes>(value: unknown, seq: number): Recorded<M> | null => {
  if (!isRecord(value) || value.seq !== seq) return null;
  const check = typeof value.check === 'string' ? value.check : null;
  // Safe: the checksum proves that encodeRecord wrote these bytes.
  return { entry: { seq, event: value.event as M['event'] }, check };
};

/**
 * Decodes many lines at once, at half the cost of one by one.
 *
 * 1. The fields around each event are compared as bytes and blanked; the remaining events are
 *    parsed as one array.
 * 2. The checks are those of `decodeRecord`: checksum and seq of every line.
 * 3. A batch that is not exactly as `encodeRecord` writes it is decoded line by line, which also
 *    finds the bad line.
 */

/**
 * The good entries from the first line on, the checksum of the last one, and why the next line is
 * bad, if it is.
 */
type DecodedLines<M extends MachineTypes> = {
  readonly records: readonly Recorded<M>[];
  readonly crc: number;
  readonly bad: string | null;
};

/**
 * Decodes lines. The first one holds the entry `seq`; `seed` is the checksum of the line before.
 */
export const decodeRecords = <M extends MachineTypes>(
  lines: Lines,
  seed: number,
  seq: number,
): DecodedLines<M> => decodeAtOnce(lines, seed, seq) ?? decodeOneByOne(lines, seed, seq);

const SPACE = 0x20;
const COMMA = 0x2c;
const ZERO = 0x30;
const SEQ = Buffer.from('{"seq":');
const EVENT = Buffer.from(',"event":');
const CHECK = Buffer.from(',"check":"');
/** Length of a SHA-256 in hexadecimal. */
const CHECK_LENGTH = 64;

const hasBytesAt = (word: Buffer, bytes: Buffer, at: number): boolean => {
  for (let index = 0; index < word.length; index++)
    if (bytes[at + index] !== word[index]) return false;
  return true;
};

/** Offset of the event in the line of entry `seq`; -1 if the line begins in another way. */
const findEvent = (bytes: Buffer, start: number, seq: number): number => {
  if (!hasBytesAt(SEQ, bytes, start)) return -1;
  let at = start + SEQ.length;
  let number = 0;
  for (let digit = digitAt(bytes, at); digit >= 0 && digit <= 9; digit = digitAt(bytes, at)) {
    number = number * 10 + digit;
    at += 1;
  }
  return number === seq && hasBytesAt(EVENT, bytes, at) ? at + EVENT.length : -1;
};
const digitAt = (bytes: Buffer, at: number): number => (bytes[at] ?? 0) - ZERO;

/**
 * The state check before the trailer; null if there is none, undefined if there is anything else.
 */
const recordedCheck = (bytes: Buffer, trailer: number): string | null | undefined => {
  if (bytes[trailer - 1] === CLOSING_BRACE) return null;
  const start = trailer - 1 - CHECK_LENGTH;
  return hasBytesAt(CHECK, bytes, start - CHECK.length)
    ? bytes.toString('latin1', start, trailer - 1)
    : undefined;
};

/** Overwrites bytes with blanks. A loop, since `fill` costs more for so few bytes. */
const blankOut = (bytes: Buffer, start: number, end: number): void => {
  for (let index = start; index < end; index++) bytes[index] = SPACE;
};

const checkBytes = (check: string | null): number =>
  check === null ? 0 : CHECK.length + CHECK_LENGTH + 1;

/** Decodes the batch; null if any line is bad or differs from the format of `encodeRecord`. */
const decodeAtOnce = <M extends MachineTypes>(
  { bytes, start, ends }: Lines,
  seed: number,
  seq: number,
): DecodedLines<M> | null => {
  const json = Buffer.from(bytes.subarray(start, (ends.at(-1) ?? start) + 1));
  const checks: (string | null)[] = [];
  let crc = seed;
  let begin = start;
  for (const end of ends) {
    const sum = verify(bytes, crc, begin, end);
    const event = findEvent(bytes, begin, seq + checks.length);
    const check = recordedCheck(bytes, end - TRAILER_BYTES);
    if (sum === null || event < 0 || check === undefined) return null;
    // what stands before the event, and what stands after it: check, trailer and line feed
    blankOut(json, begin - start, event - start);
    blankOut(json, end - TRAILER_BYTES - checkBytes(check) - start, end - start);
    json[end - start] = COMMA;
    checks.push(check);
    crc = sum;
    begin = end + 1;
  }
  const events = parse(`[${json.toString('utf8', 0, begin - 1 - start)}]`);
  if (!Array.isArray(events) || events.length !== ends.length) return null;
  // Safe: the checksums prove that encodeRecord wrote these bytes.
  const toRecorded = (event: M['event'], index: number): Recorded<M> => ({
    entry: { seq: seq + index, event },
    check: checks[index] ?? null,
  });
  return { records: events.map(toRecorded), crc, bad: null };
};

const decodeOneByOne = <M extends MachineTypes>(
  { bytes, start, ends }: Lines,
  seed: number,
  seq: number,
): DecodedLines<M> => {
  const records: Recorded<M>[] = [];
  let crc = seed;
  let begin = start;
  for (const end of ends) {
    const decoded = decodeRecord<M>(bytes.subarray(begin, end), crc, seq + records.length);
    if (decoded.kind === 'bad') return { records, crc, bad: decoded.why };
    records.push(decoded.recorded);
    crc = decoded.crc;
    begin = end + 1;
  }
  return { records, crc, bad: null };
};

export const NEWLINE = 0x0a;

/**
 * A longer line can't become a text, so no line is longer. Long texts are blobs, so lines are far
 * shorter.
 */
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

export const bufferSource = (bytes: Buffer): ByteSource => ({
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
  return {
    first: lines.bytes.subarray(lines.start, end),
    rest: { ...lines, start: end + 1, ends },
  };
};

/** Splits lines into pieces of at most `count` lines; without lines it yields one empty piece. */
export function* chunkLines(lines: Lines, count: number): Generator<Lines, undefined> {
  let start = lines.start;
  let index = 0;
  do {
    const ends = lines.ends.slice(index, index + count);
    yield { ...lines, start, ends };
    start = (ends.at(-1) ?? start) + 1;
    index += count;
  } while (index < lines.ends.length);
}

type LineEnd = Lines['ended'];

/**
 * Reads a source block by block, from byte `start` up to byte `end`. A block is valid until the
 * next one is read.
 */
export async function* readBlocks(
  source: ByteSource,
  start: number,
  end: number,
  blockBytes = 1 << 20,
): AsyncGenerator<Buffer, undefined> {
  const block = Buffer.allocUnsafe(Math.max(0, Math.min(blockBytes, end - start)));
  for (let at = start; at < end; ) {
    const { bytesRead } = await source.read(block, 0, Math.min(block.length, end - at), at);
    if (bytesRead === 0) return;
    yield block.subarray(0, bytesRead);
    at += bytesRead;
  }
}

/** Looks for a line feed from `position` on, and holds one block at a time. */
const findLineEnd = async (
  source: ByteSource,
  position: number,
  end: number,
  blockBytes: number,
): Promise<LineEnd> => {
  for await (const block of readBlocks(source, position, end, blockBytes))
    if (block.includes(NEWLINE)) return 'yes';
  return 'no';
};

/**
 * The beginning of an unfinished line that shows it to be bad: up to its first zero; nothing if
 * it is too long. Null: it may still be good. `checked`: bytes that were searched before.
 */
const badBeginning = (partial: Buffer, checked: number, lineBytesMax: number): Buffer | null => {
  const zero = partial.indexOf(0, checked);
  if (zero >= 0) return partial.subarray(0, zero + 1);
  return partial.length > lineBytesMax ? partial.subarray(0, 0) : null;
};

/**
 * Splits a file into lines, block by block, from byte `start` up to byte `end`. Memory is bounded
 * by about one block and one line.
 *
 * 1. A line longer than a block is read in growing pieces, so that its beginning is not copied for
 *    every block.
 * 2. A long line that holds a zero or is too long can't be good. Only its beginning is yielded, as
 *    the last one: readers stop at a bad line.
 */
export async function* readLines(
  handle: ByteSource,
  end: number,
  blockBytes: number,
  start = 0,
  lineBytesMax = LINE_BYTES_MAX,
): AsyncGenerator<Lines, undefined> {
  let partial: Buffer = Buffer.alloc(0);
  for (let position = start; position < end; ) {
    const length = Math.min(Math.max(blockBytes, partial.length), end - position);
    const bytes = Buffer.allocUnsafe(partial.length + length);
    partial.copy(bytes);
    const { bytesRead } = await handle.read(bytes, partial.length, length, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    const filled = partial.length + bytesRead;
    const ends: number[] = [];
    for (
      let stop = bytes.indexOf(NEWLINE, partial.length);
      stop >= 0 && stop < filled;
      stop = bytes.indexOf(NEWLINE, stop + 1)
    )
      ends.push(stop);
    const checked = ends.length > 0 ? 0 : partial.length;
    partial = bytes.subarray((ends.at(-1) ?? -1) + 1, filled);
    if (ends.length > 0) yield { bytes, start: 0, ends, ended: 'yes' };
    const bad = badBeginning(partial, checked, lineBytesMax);
    if (bad === null) continue;
    const ended = await findLineEnd(handle, position, end, blockBytes);
    yield { bytes: bad, start: 0, ends: [bad.length], ended };
    return;
  }
  if (partial.length > 0) yield { bytes: partial, start: 0, ends: [partial.length], ended: 'no' };
}

/**
 * CRC-32C (Castagnoli, as in iSCSI, RFC 3720), computed eight bytes at a time with eight tables.
 */

const POLYNOMIAL = 0x82f63b78;
const BYTES_AT_ONCE = 8;

const buildTables = (): Int32Array => {
  const tables = new Int32Array(256 * BYTES_AT_ONCE);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let index = 256; index < tables.length; index++) {
    const before = tables[index - 256] ?? 0;
    tables[index] = (before >>> 8) ^ (tables[before & 0xff] ?? 0);
  }
  return tables;
};

const TABLES = buildTables();

/** Looks up a byte that has `after` more bytes behind it in its group of eight. */
// byte < 256, after < 8
const lookUp = (after: number, byte: number): number => TABLES[after * 256 + byte] as number;

/** The byte at `index`; the caller keeps `index` in range. */
// in range, so not undefined
const byteAt = (bytes: Uint8Array, index: number): number => bytes[index] as number;

const wordAt = (bytes: Uint8Array, index: number): number =>
  byteAt(bytes, index) |
  (byteAt(bytes, index + 1) << 8) |
  (byteAt(bytes, index + 2) << 16) |
  (byteAt(bytes, index + 3) << 24);

/**
 * Checksum of `bytes` from `start` to `end`. `seed` is the checksum of the bytes before them:
 * crc32c(b, crc32c(a)) is the checksum of a followed by b.
 */
export const crc32c = (bytes: Uint8Array, seed = 0, start = 0, end = bytes.length): number => {
  let crc = ~seed;
  let index = start;
  for (; index + BYTES_AT_ONCE <= end; index += BYTES_AT_ONCE) {
    const low = crc ^ wordAt(bytes, index);
    const high = wordAt(bytes, index + 4);
    crc =
      lookUp(7, low & 0xff) ^
      lookUp(6, (low >>> 8) & 0xff) ^
      lookUp(5, (low >>> 16) & 0xff) ^
      lookUp(4, low >>> 24) ^
      lookUp(3, high & 0xff) ^
      lookUp(2, (high >>> 8) & 0xff) ^
      lookUp(1, (high >>> 16) & 0xff) ^
      lookUp(0, high >>> 24);
  }
  for (; index < end; index++) crc = (crc >>> 8) ^ lookUp(0, (crc ^ byteAt(bytes, index)) & 0xff);
  return ~crc >>> 0;
};
