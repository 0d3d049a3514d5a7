/** Zeros of any content, shared: space that is only reserved is never copied. */
const ZEROS = Buffer.alloc(256 * 1024);
/** Shorter ones are copied like other bytes. */
const ZEROS_MIN = 4_096;
const EMPTY = Buffer.alloc(0);

/** Zeroed memory that contents take their room from: one large block costs less than many small ones. */
const SLAB_BYTES = 256 * 1024;
/** Larger contents get a block of their own. */
const PIECE_MAX = 16 * 1024;
let slab = EMPTY;
let taken = 0;

const zeroed = (bytes: number): Buffer => {
  if (bytes > PIECE_MAX) return Buffer.alloc(bytes);
  if (taken + bytes > slab.length) {
    slab = Buffer.alloc(SLAB_BYTES);
    taken = 0;
  }
  taken += bytes;
  return slab.subarray(taken - bytes, taken);
};

/** A copy of the bytes; of many zeros, the shared ones. */
export const keepBytes = (bytes: Uint8Array): Buffer => {
  const { length } = bytes;
  const areZeros =
    length >= ZEROS_MIN && length <= ZEROS.length && ZEROS.compare(bytes, 0, length, 0, length) === 0;
  return areZeros ? ZEROS.subarray(0, length) : Buffer.from(bytes);
};

/** The content of a file: bytes that can be written anywhere, and cut. A hole reads as zeros. */
export class GrowingBytes {
  #bytes: Buffer;
  /** Bytes that are stored; those after them, up to `length`, are zeros. */
  #stored = 0;
  length = 0;

  constructor(content: Uint8Array = EMPTY) {
    this.#bytes = content.length === 0 ? EMPTY : Buffer.from(content);
    this.#stored = content.length;
    this.length = content.length;
  }

  /** The same content, which later changes of either one do not reach. */
  copy(): GrowingBytes {
    const same = new GrowingBytes(this.#bytes.subarray(0, this.#stored));
    same.length = this.length;
    return same;
  }

  write(bytes: Uint8Array, at: number): void {
    const end = at + bytes.length;
    const isHole = bytes.buffer === ZEROS.buffer && at >= this.#stored;
    if (!isHole) {
      this.#store(end);
      this.#bytes.set(bytes, at);
    }
    this.length = Math.max(this.length, end);
  }

  truncate(size: number): void {
    if (size < this.#stored) this.#bytes.fill(0, size, this.#stored);
    this.#stored = Math.min(this.#stored, size);
    this.length = size;
  }

  /** Copies the bytes from `from` to `to` into a buffer at `offset`; returns how many there are. */
  copyTo(into: Uint8Array, offset: number, from: number, to: number): number {
    const end = Math.min(to, this.length);
    this.#store(end);
    return from >= end ? 0 : this.#bytes.copy(into, offset, from, end);
  }

  /** A view, valid until the next change. */
  view(from = 0, to = this.length): Buffer {
    const end = Math.min(to, this.length);
    this.#store(end);
    return this.#bytes.subarray(Math.min(from, this.length), end);
  }

  #store(end: number): void {
    if (end > this.#bytes.length) {
      const larger = zeroed(Math.max(end, this.#bytes.length * 2, 1_024));
      this.#bytes.copy(larger, 0, 0, this.#stored);
      this.#bytes = larger;
    }
    this.#stored = Math.max(this.#stored, end);
  }
}
