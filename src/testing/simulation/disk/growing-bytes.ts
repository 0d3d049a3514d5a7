/** The content of a file: bytes that can be written anywhere, and cut. A hole reads as zeros. */
export class GrowingBytes {
  #bytes: Buffer;
  length = 0;

  constructor(content: Uint8Array = new Uint8Array()) {
    this.#bytes = Buffer.from(content);
    this.length = content.length;
  }

  write(bytes: Uint8Array, at: number): void {
    const end = at + bytes.length;
    if (end > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(end, this.#bytes.length * 2, 4_096));
      this.#bytes.copy(larger, 0, 0, this.length);
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, at);
    this.length = Math.max(this.length, end);
  }

  truncate(size: number): void {
    if (size > this.length) this.write(new Uint8Array(size - this.length), this.length);
    this.#bytes.fill(0, size, this.length);
    this.length = size;
  }

  /** A view, valid until the next change. */
  view(from = 0, to = this.length): Buffer {
    return this.#bytes.subarray(Math.min(from, this.length), Math.min(to, this.length));
  }
}
