import { readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { NEWLINE } from '../format/read-lines.js';

/**
 * The beginning of a journal, read in blocks. As one buffer it would count as so much garbage that V8 collects all of
 * its memory while a session is opened, which takes a fifth of the time.
 */

const BLOCK_BYTES = 1024 * 1024;

/** Checksum of the first `size` bytes; null if the file is shorter. */
export const sumOf = async (handle: FileHandle, size: number): Promise<number | null> => {
  const block = Buffer.allocUnsafe(Math.min(size, BLOCK_BYTES));
  let sum = 0;
  for (let at = 0; at < size; ) {
    const { bytesRead } = await handle.read(block, 0, Math.min(block.length, size - at), at);
    if (bytesRead === 0) return null;
    sum = crc32(block.subarray(0, bytesRead), sum);
    at += bytesRead;
  }
  return sum;
};

/** Reads at once: `sumOf` has read the file before, so that the system holds it in memory. */
export class JournalBytes {
  readonly #descriptor: number;
  readonly #size: number;
  #block: Buffer;
  #start = 0;
  #end = 0;

  constructor({ fd }: FileHandle, size: number) {
    this.#descriptor = fd;
    this.#size = size;
    this.#block = Buffer.allocUnsafe(Math.min(size, BLOCK_BYTES));
  }

  /** Throws if the file is shorter. */
  toString(encoding: BufferEncoding, start: number, end: number): string {
    if (start < this.#start || end > this.#end) this.#read(start, end);
    return this.#block.toString(encoding, start - this.#start, end - this.#start);
  }

  firstLine(): Buffer {
    for (let length = BLOCK_BYTES; ; length *= 2) {
      const bytes = this.#read(0, Math.min(length, this.#size));
      const newline = bytes.indexOf(NEWLINE);
      if (newline >= 0 || length >= this.#size) return bytes.subarray(0, newline);
    }
  }

  /** The line that ends at byte `end`. */
  lineBefore(end: number): Buffer {
    for (let length = BLOCK_BYTES; ; length *= 2) {
      const bytes = this.#read(Math.max(0, end - length), end);
      const newline = bytes.lastIndexOf(NEWLINE, -2);
      if (newline >= 0 || length >= end) return bytes.subarray(newline + 1);
    }
  }

  /** Valid until the next call. */
  #read(start: number, end: number): Buffer {
    if (end > this.#size) throw new RangeError(`byte ${end} of ${this.#size}`);
    if (end - start > this.#block.length) this.#block = Buffer.allocUnsafe(end - start);
    [this.#start, this.#end] = [start, start];
    while (this.#end < end) {
      const free = Math.min(this.#block.length - (this.#end - start), this.#size - this.#end);
      const read = readSync(this.#descriptor, this.#block, this.#end - start, free, this.#end);
      if (read === 0) throw new Error('the journal is shorter than its snapshot says');
      this.#end += read;
    }
    return this.#block.subarray(0, end - start);
  }
}
