import type { FileHandle } from 'node:fs/promises';
import type { Header } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import { decodeHeader, decodeRecord, type Recorded } from './codec.js';
import { damaged, type JournalError, newerVersion, otherMachine } from './error.js';
import { type RawLine, readLines } from './lines.js';
import { kindOf } from './machine.js';

const BLOCK_BYTES = 1 << 20;

/**
 * How a journal ends. `whole`: as it was written. `unended`: the last entry is whole, only its line feed is missing.
 * `torn`: the last line was cut while it was written, so nobody was told that it is durable. `damaged`: something
 * that was whole once is not any more; nothing behind it can be trusted.
 */
export type Ending =
  | { readonly kind: 'whole' }
  | { readonly kind: 'unended' }
  | { readonly kind: 'torn'; readonly bytes: number }
  | { readonly kind: 'damaged'; readonly error: JournalError };

/**
 * One pass over a journal, verifying every line. `M` is the machine that it is of; `MachineTypes` is any.
 *
 * 1. What `records` yields is good: checksums, order and seq fit, from the header on.
 * 2. It stops at the first line that is not, and `ending` says why. A bad line counts as torn only if it is the last,
 *    has no line feed and is no whole line with something added: a line that was ever whole is never cut off.
 */
export class Scan<M extends MachineTypes> {
  readonly header: Header<M>;
  /** seq, sum, line number and end (bytes from the start) of the last good line. */
  seq = 0;
  crc: number;
  line = 1;
  size: number;
  ending: Ending;
  readonly #path: string;
  readonly #first: readonly RawLine[];
  readonly #rest: AsyncGenerator<readonly RawLine[], undefined>;

  private constructor(
    path: string,
    head: { readonly header: Header<M>; readonly crc: number },
    first: readonly RawLine[],
    rest: AsyncGenerator<readonly RawLine[], undefined>,
  ) {
    this.#path = path;
    this.header = head.header;
    this.crc = head.crc;
    this.#first = first.slice(1);
    this.#rest = rest;
    this.size = (first[0]?.bytes.length ?? 0) + (first[0]?.ended === 'yes' ? 1 : 0);
    this.ending = { kind: first[0]?.ended === 'yes' ? 'whole' : 'unended' };
  }

  /** Of a journal of whatever machine: reads the header. Throws `damaged` at line 1, or `newerVersion`. */
  static begin(
    handle: FileHandle,
    path: string,
    end: number,
    blockBytes = BLOCK_BYTES,
  ): Promise<Scan<MachineTypes>> {
    return Scan.#begin<MachineTypes>(handle, path, end, blockBytes);
  }

  /** Of a journal of one machine: throws `otherMachine`, too. */
  static async beginOf<M extends MachineTypes>(
    kind: M['kind'],
    handle: FileHandle,
    path: string,
    end: number,
  ): Promise<Scan<M>> {
    const scan = await Scan.#begin<M>(handle, path, end, BLOCK_BYTES);
    const found = kindOf(scan.header);
    if (found !== kind) throw otherMachine(path, scan.header.sessionId, found);
    return scan;
  }

  static async #begin<M extends MachineTypes>(
    handle: FileHandle,
    path: string,
    end: number,
    blockBytes: number,
  ): Promise<Scan<M>> {
    const blocks = readLines(handle, end, blockBytes);
    let first: readonly RawLine[] = [];
    while (first.length === 0) {
      const next = await blocks.next();
      if (next.done === true) throw damaged(path, { line: 1, seq: 0 }, 'it is empty');
      first = next.value;
    }
    const decoded = decodeHeader<M>(first[0]?.bytes ?? Buffer.alloc(0));
    switch (decoded.kind) {
      case 'newer':
        throw newerVersion(path, decoded.version);
      case 'bad':
        throw damaged(path, { line: 1, seq: 0 }, decoded.why);
      case 'header':
        return new Scan(path, decoded, first, blocks);
      default:
        return decoded satisfies never;
    }
  }

  /** The entries in order, a block at a time. */
  async *records(): AsyncGenerator<readonly Recorded<M>[], undefined> {
    yield this.#decode(this.#first);
    for await (const lines of this.#rest) {
      if (this.ending.kind !== 'whole') break;
      yield this.#decode(lines);
    }
  }

  #decode(lines: readonly RawLine[]): readonly Recorded<M>[] {
    const good: Recorded<M>[] = [];
    for (const line of lines) {
      const decoded = decodeRecord<M>(line.bytes, this.crc, this.seq + 1);
      if (decoded.kind === 'bad') {
        this.ending = this.#judge(line, decoded.why);
        break;
      }
      good.push(decoded.recorded);
      this.seq += 1;
      this.line += 1;
      this.crc = decoded.crc;
      this.size += line.bytes.length + (line.ended === 'yes' ? 1 : 0);
      if (line.ended === 'no') this.ending = { kind: 'unended' };
    }
    return good;
  }

  #judge(line: RawLine, why: string): Ending {
    const place = { line: this.line + 1, seq: this.seq };
    if (line.ended === 'yes') return { kind: 'damaged', error: damaged(this.#path, place, why) };
    const shorter = decodeRecord(line.bytes.subarray(0, -1), this.crc, this.seq + 1);
    if (shorter.kind === 'bad') return { kind: 'torn', bytes: line.bytes.length };
    return { kind: 'damaged', error: damaged(this.#path, place, 'the line feed at its end was overwritten') };
  }
}
