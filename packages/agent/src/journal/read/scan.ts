import { crc32 } from 'node:zlib';
import type { Header } from '../../ports/journal.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import type { Mark } from '../format/acknowledged-mark.js';
import { decodeRecords } from '../format/decode-batch.js';
import { decodeHeader, decodeRecord, type Recorded } from '../format/line-codec.js';
import { type ByteSource, type Lines, piecesOf, readLines, splitFirst } from '../format/read-lines.js';
import { damaged, type JournalError, newerVersion, otherMachine } from '../journal-error.js';
import { kindOf } from '../journaled-machine.js';
import { faultInHeader } from './check-shapes.js';

/** Read block size, and lines decoded per batch. A batch stays in memory until it is folded. */
const BLOCK_BYTES = 1 << 20;
const LINES_AT_ONCE = 256;

/**
 * How a journal ends. `whole`: as it was written. `unended`: the last entry is complete, only its line feed is missing.
 * `torn`: the last write was interrupted, so it was never confirmed as durable; `bytes` from the bad line to the end.
 * `damaged`: a line that was complete has changed; nothing after it can be trusted.
 *
 * `zeros`: the bad line holds zeros, at the end of the file or before other lines. A power loss leaves them in the place of
 * lost sectors, and no line ever holds one. They are damage unless `compare` finds that nothing acknowledged lies under them.
 */
export type ScanEnding =
  | { readonly kind: 'whole' }
  | { readonly kind: 'unended' }
  | { readonly kind: 'torn'; readonly bytes: number }
  | {
      readonly kind: 'damaged';
      readonly error: JournalError;
      readonly zeros: 'none' | 'atEnd' | 'beforeLines';
    };

const ZEROS = 'it was overwritten with zeros';

/** A good entry, the checksum of its line, the end of that line, and the CRC-32 of all bytes up to there. */
export type ScanPoint<M extends MachineTypes> = {
  readonly header: Header<M>;
  readonly seq: number;
  readonly crc: number;
  readonly size: number;
  readonly sum: number;
};

type ScanStart<M extends MachineTypes> = Omit<ScanPoint<M>, 'size'>;

/**
 * Reads a journal once and verifies every line. `M` is the machine of the journal; `MachineTypes` stands for any.
 *
 * 1. `records` yields verified entries only: checksums, order and seq are right, from the header on.
 * 2. It stops at the first bad line, and `ending` says why. A bad line counts as torn only if it is the last one, has
 *    no line feed and is not a complete line with bytes added; or if it holds zeros, and was never acknowledged. A line that
 *    was complete is never cut off.
 */
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** What editors and transfers in text mode do to a file. */
const explainHeader = (line: Buffer, why: string): string => {
  if (line.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK))
    return `${why}: another program has put a byte order mark before it. Remove the first three bytes of the file`;
  if (line.at(-1) === CARRIAGE_RETURN)
    return `${why}: another program has changed its line ends to CR LF. Change them back to LF`;
  return why;
};

export class JournalScan<M extends MachineTypes> {
  readonly header: Header<M>;
  /** seq, checksum, line number and end offset of the last good line. */
  seq: number;
  crc: number;
  line: number;
  size: number;
  /** CRC-32 of all bytes up to `size`, for snapshots. */
  sum: number;
  ending: ScanEnding;
  readonly #path: string;
  readonly #end: number;
  readonly #first: Lines;
  readonly #rest: AsyncGenerator<Lines, undefined>;

  private constructor(
    { path, end }: { readonly path: string; readonly end: number },
    { header, crc, seq, sum }: ScanStart<M>,
    first: Lines,
    rest: AsyncGenerator<Lines, undefined>,
    size = first.start - (first.ended === 'yes' ? 0 : 1),
  ) {
    this.#path = path;
    this.#end = end;
    this.header = header;
    this.crc = crc;
    this.seq = seq;
    this.sum = sum;
    this.line = seq + 1;
    this.#first = first;
    this.#rest = rest;
    this.size = size;
    this.ending = { kind: first.ended === 'yes' ? 'whole' : 'unended' };
  }

  /** Starts a scan of any machine's journal: reads the header. Throws `damaged` at line 1, or `newerVersion`. */
  static begin(
    handle: ByteSource,
    path: string,
    end: number,
    blockBytes = BLOCK_BYTES,
  ): Promise<JournalScan<MachineTypes>> {
    return JournalScan.#begin<MachineTypes>(handle, path, end, blockBytes);
  }

  /** Starts a scan of one machine's journal; also throws `otherMachine`. */
  static async beginOf<M extends MachineTypes>(
    kind: M['kind'],
    handle: ByteSource,
    path: string,
    end: number,
  ): Promise<JournalScan<M>> {
    const scan = await JournalScan.#begin<M>(handle, path, end, BLOCK_BYTES);
    const found = kindOf(scan.header);
    if (found !== kind) throw otherMachine(path, scan.header.sessionId, found);
    return scan;
  }

  /** Starts a scan after an entry that is known to be good, as all before it are. */
  static after<M extends MachineTypes>(
    handle: ByteSource,
    path: string,
    end: number,
    { size, ...start }: ScanPoint<M>,
  ): JournalScan<M> {
    const none: Lines = { bytes: Buffer.alloc(0), start: 0, ends: [], ended: 'yes' };
    const rest = readLines(handle, end, BLOCK_BYTES, size);
    return new JournalScan({ path, end }, start, none, rest, size);
  }

  static async #begin<M extends MachineTypes>(
    handle: ByteSource,
    path: string,
    end: number,
    blockBytes: number,
  ): Promise<JournalScan<M>> {
    const blocks = readLines(handle, end, blockBytes);
    const block = await blocks.next();
    if (block.done === true) throw damaged(path, { line: 1, seq: 0 }, 'it is empty');
    const { first, rest } = splitFirst(block.value);
    const decoded = decodeHeader<M>(first);
    switch (decoded.kind) {
      case 'newer':
        throw newerVersion(path, decoded.version);
      case 'bad':
        throw damaged(path, { line: 1, seq: 0 }, explainHeader(first, decoded.why));
      case 'header': {
        const { header, crc } = decoded;
        const fault = faultInHeader(header);
        if (fault !== null) throw damaged(path, { line: 1, seq: 0 }, fault);
        const sum = crc32(block.value.bytes.subarray(0, rest.start));
        return new JournalScan({ path, end }, { header, crc, seq: 0, sum }, rest, blocks);
      }
      default:
        return decoded satisfies never;
    }
  }

  /** The entries in order, in batches. */
  async *records(): AsyncGenerator<readonly Recorded<M>[], undefined> {
    yield* this.#decodeAll(this.#first);
    for await (const lines of this.#rest) yield* this.#decodeAll(lines);
  }

  /**
   * Compares the end with the mark of the journal, after all records were read. After a power loss the mark can be old: then
   * lines behind zeros may have been acknowledged, unless the mark says that the last good line was the last one.
   */
  compare(mark: Mark | null): void {
    const { ending } = this;
    if (mark === null || (ending.kind === 'damaged' && ending.zeros === 'none')) return;
    const why = this.#differsFrom(mark);
    if (why !== null) this.ending = this.#damaged(why);
    else if (ending.kind === 'damaged' && (ending.zeros === 'atEnd' || mark.seq === this.seq))
      this.ending = { kind: 'torn', bytes: this.#end - this.size };
  }

  #differsFrom({ seq, crc }: Mark): string | null {
    if (this.seq === seq && this.crc !== crc)
      return `the mark beside it says that another entry ${seq} was written last`;
    if (this.seq >= seq) return null;
    const missing = seq - this.seq === 1 ? `entry ${seq}` : `entries ${this.seq + 1} to ${seq}`;
    return this.ending.kind === 'whole' || this.ending.kind === 'unended'
      ? `the file was cut: ${missing} stood here when last written`
      : `${missing} stood here when last written, and the file was cut or overwritten since`;
  }

  #damaged(why: string, zeros: 'none' | 'atEnd' | 'beforeLines' = 'none'): ScanEnding {
    const place = { line: this.line + 1, seq: this.seq };
    return { kind: 'damaged', error: damaged(this.#path, place, why), zeros };
  }

  *#decodeAll(lines: Lines): Generator<readonly Recorded<M>[], undefined> {
    for (const piece of piecesOf(lines, LINES_AT_ONCE)) {
      if (this.ending.kind === 'whole') yield this.#decode(piece);
    }
  }

  #decode(lines: Lines): readonly Recorded<M>[] {
    const { records, crc, bad } = decodeRecords<M>(lines, this.crc, this.seq + 1);
    const end = lines.ends[records.length - 1];
    this.crc = crc;
    this.seq += records.length;
    this.line += records.length;
    if (end !== undefined)
      this.#pass(lines.bytes.subarray(lines.start, lines.ended === 'yes' ? end + 1 : end));
    if (bad !== null) this.ending = this.#judge(lines, records.length, bad);
    else if (lines.ended === 'no') this.ending = { kind: 'unended' };
    return records;
  }

  #pass(good: Buffer): void {
    this.size += good.length;
    this.sum = crc32(good, this.sum);
  }

  /** How the journal ends, given that the line at `index` is bad. */
  #judge({ bytes, start, ends, ended }: Lines, index: number, why: string): ScanEnding {
    const line = bytes.subarray((ends[index - 1] ?? start - 1) + 1, ends[index]);
    if (line.includes(0)) return this.#damaged(ZEROS, ended === 'yes' ? 'beforeLines' : 'atEnd');
    if (ended === 'yes') return this.#damaged(why);
    const shorter = decodeRecord(line.subarray(0, -1), this.crc, this.seq + 1);
    if (shorter.kind === 'bad') return { kind: 'torn', bytes: this.#end - this.size };
    return this.#damaged('the line feed at its end was overwritten');
  }
}
