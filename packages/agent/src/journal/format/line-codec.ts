import type { Entry, Header } from '../../ports/journal.js';
import type { AgentTypes, MachineTypes } from '../../ports/machine-types.js';
import { crc32c } from './crc32c.js';

/**
 * Encodes and decodes the lines of a journal: JSON, UTF-8, one line feed after each.
 *
 * 1. The first line is the header. Every other line is an entry: seq, event (with its time `at`), sometimes `check`.
 * 2. Every line ends in `,"crc":"xxxxxxxx"}`: CRC-32C of all bytes before that, seeded with the checksum of the line
 *    before (0 for the header). So a changed, removed, inserted or moved line breaks its own checksum or the next one.
 * 3. A line feed appears only at the end of a line, since JSON escapes it inside strings.
 */
const VERSION = 1;

const OPENING = ',"crc":"';
export const TRAILER_BYTES = OPENING.length + 8 + 2;

/** An entry with its state check, if it has one. */
export type Recorded<M extends MachineTypes = AgentTypes> = {
  readonly entry: Entry<M>;
  readonly check: string | null;
};

/** A line ready to be written, with its line feed, and the checksum that seeds the next line. */
export type EncodedLine = { readonly bytes: Buffer; readonly crc: number };

const hexOf = (crc: number): string => crc.toString(16).padStart(8, '0');

const seal = (json: string, seed: number): EncodedLine => {
  const body = json.slice(0, -1);
  const size = Buffer.byteLength(body);
  const bytes = Buffer.allocUnsafe(size + TRAILER_BYTES + 1);
  bytes.write(body);
  const crc = crc32c(bytes, seed, 0, size);
  bytes.write(`${OPENING}${hexOf(crc)}"}\n`, size, 'latin1');
  return { bytes, crc };
};

export const encodeHeader = <M extends MachineTypes>(header: Header<M>): EncodedLine =>
  seal(JSON.stringify(header), 0);

export const encodeRecord = <M extends MachineTypes>(
  { entry, check }: Recorded<M>,
  seed: number,
): EncodedLine =>
  seal(JSON.stringify(check === null ? entry : { seq: entry.seq, event: entry.event, check }), seed);

const [BRACE, QUOTE] = [0x7d, 0x22];
const DIGITS = Buffer.from('0123456789abcdef');
const OPENING_BYTES = Buffer.from(OPENING);

/** True if the trailer at `at` holds this checksum. Compares bytes without decoding, since it runs for every line. */
const isTrailer = (bytes: Buffer, at: number, crc: number): boolean => {
  for (let index = 0; index < OPENING_BYTES.length; index++)
    if (bytes[at + index] !== OPENING_BYTES[index]) return false;
  const digits = at + OPENING_BYTES.length;
  for (let index = 0; index < 8; index++)
    if (bytes[digits + index] !== DIGITS[(crc >>> (28 - 4 * index)) & 15]) return false;
  return bytes[digits + 8] === QUOTE && bytes[digits + 9] === BRACE;
};

/** The checksum of the line from `start` to `end` if its trailer holds it; null otherwise. */
export const verify = (bytes: Buffer, seed: number, start: number, end: number): number | null => {
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

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

type DecodedHeader<M extends MachineTypes> =
  | { readonly kind: 'header'; readonly header: Header<M>; readonly crc: number }
  | { readonly kind: 'newer'; readonly version: number }
  | { readonly kind: 'bad'; readonly why: string };

/**
 * Decodes the header. The version is checked before the checksum, since a later version may use another one. The
 * caller checks by `kind` that the header belongs to the machine `M`.
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
  const recorded = recordedOf<M>(parse(line.toString()), seq);
  if (recorded === null) return { kind: 'bad', why: `it is not the entry with seq ${seq}` };
  return { kind: 'record', recorded, crc };
};

/** The entry in the value of a line with a correct checksum; null if it is not the entry with this seq. */
const recordedOf = <M extends MachineTypes>(value: unknown, seq: number): Recorded<M> | null => {
  if (!isRecord(value) || value.seq !== seq) return null;
  const check = typeof value.check === 'string' ? value.check : null;
  // Safe: the checksum proves that encodeRecord wrote these bytes.
  return { entry: { seq, event: value.event as M['event'] }, check };
};
