import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs';
import path from 'node:path';

/**
 * Reads the output of a command from its pieces: `out`, `tail.1`, `tail.2`, …
 *
 * 1. A piece is removed when the one after the next is opened, except the first. So a later reader finds the beginning
 *    and the end of the output.
 * 2. The file `removed` says how long each removed piece was: lines of number and bytes.
 */

export type OutputReceiver = {
  bytes(bytes: Buffer): void;
  /** So many bytes are missing here: they were removed before anybody read them. */
  skipped(count: number): void;
};

export type SpoolReader = {
  /** Passes on at most `bytesMax` of new output. Returns whether more may be available at once. */
  read(bytesMax: number, to: OutputReceiver): boolean;
  close(): void;
};

export type SpoolReaderOptions = {
  /** Pieces may be missing, because nobody read them for a while. */
  readonly hasGaps: boolean;
  /** No piece is removed: the files belong to somebody else. */
  readonly keepsPieces?: boolean;
};

const READ_BYTES = 65_536;
/** For all spools: nothing is kept in it. Made with the first output. */
let sharedBlock: Buffer | null = null;

const pieceName = (number: number): string => (number === 0 ? 'out' : `tail.${number}`);

/** Bytes of removed pieces by their number. */
const readRemoved = (folder: string): ReadonlyMap<number, number> => {
  const file = path.join(folder, 'removed');
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, 'latin1').split('\n').slice(0, -1);
  return new Map(
    lines.map((line) => {
      const [number, bytes] = line.trim().split(/\s+/);
      return [Number(number), Number(bytes)];
    }),
  );
};

class Reader implements SpoolReader {
  readonly #folder: string;
  readonly #options: SpoolReaderOptions;
  #number = 0;
  #open: number | null = null;

  constructor(folder: string, options: SpoolReaderOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  read(bytesMax: number, to: OutputReceiver): boolean {
    let left = bytesMax;
    while (left > 0) {
      // The next piece is begun when this one is complete: look for it first.
      const next = this.#findNext();
      const length = this.#readOnce(to);
      left -= length;
      if (length === 0 && (next === null || !this.#openNext(next, to))) return false;
    }
    return true;
  }

  close(): void {
    if (this.#open !== null) closeSync(this.#open);
  }

  #at(number: number): string {
    return path.join(this.#folder, pieceName(number));
  }

  /** The first piece is made when the launcher sets the command up, or never, without room on the disk. */
  #opened(): number | null {
    if (this.#open === null && existsSync(this.#at(0))) this.#open = openSync(this.#at(0), 'r');
    return this.#open;
  }

  #readOnce(to: OutputReceiver): number {
    const from = this.#opened();
    if (from === null) return 0;
    sharedBlock ??= Buffer.alloc(READ_BYTES);
    const length = readSync(from, sharedBlock);
    if (length > 0) to.bytes(Buffer.from(sharedBlock.subarray(0, length)));
    return length;
  }

  /** The next piece that exists, and the bytes between; null if there is none yet. */
  #findNext(): { readonly number: number; readonly missing: number } | null {
    let number = this.#number + 1;
    if (existsSync(this.#at(number))) return { number, missing: 0 };
    if (!this.#options.hasGaps) return null;
    let missing = 0;
    const removed = readRemoved(this.#folder);
    for (let bytes = removed.get(number); bytes !== undefined; bytes = removed.get(number)) {
      if (existsSync(this.#at(number))) break;
      missing += bytes;
      number += 1;
    }
    return missing > 0 && existsSync(this.#at(number)) ? { number, missing } : null;
  }

  #openNext({ number, missing }: { number: number; missing: number }, to: OutputReceiver): boolean {
    this.close();
    this.#open = openSync(this.#at(number), 'r');
    if (missing > 0) to.skipped(missing);
    else if (this.#number > 1 && !this.#options.keepsPieces) this.#remove(this.#number - 1);
    this.#number = number;
    return true;
  }

  /** Rule 2: says so first. */
  #remove(number: number): void {
    const file = this.#at(number);
    if (!existsSync(file)) return;
    appendFileSync(path.join(this.#folder, 'removed'), `${number} ${statSync(file).size}\n`);
    rmSync(file, { force: true });
  }
}

export const createSpoolReader = (folder: string, options: SpoolReaderOptions): SpoolReader =>
  new Reader(folder, options);
