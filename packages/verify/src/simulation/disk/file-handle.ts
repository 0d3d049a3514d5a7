/** Calls a function on an open file, by its name and its further arguments. */
type Call = (fd: number, name: string, ...args: readonly unknown[]) => Promise<unknown>;

type Range = { readonly start?: number; readonly end?: number };

const BLOCK_BYTES = 64 * 1024;

/** The bytes of a range, both ends included, as a stream gives them. */
async function* readBlocks(
  fd: number,
  call: Call,
  { start = 0, end = Number.POSITIVE_INFINITY }: Range,
): AsyncGenerator<Buffer> {
  for (let position = start; position <= end; ) {
    const block = Buffer.alloc(Math.min(BLOCK_BYTES, end - position + 1));
    const bytesRead = Number(await call(fd, 'read', block, 0, block.length, position));
    if (bytesRead === 0) return;
    yield block.subarray(0, bytesRead);
    position += bytesRead;
  }
}

/** A file handle as `fs/promises` gives it, over a descriptor of a simulated disk. */
export class SimulatedHandle {
  readonly fd: number;
  readonly #call: Call;

  constructor(fd: number, call: Call) {
    this.fd = fd;
    this.#call = call;
  }

  stat(): Promise<unknown> {
    return this.#call(this.fd, 'fstat');
  }

  sync(): Promise<unknown> {
    return this.#call(this.fd, 'fsync');
  }

  datasync(): Promise<unknown> {
    return this.#call(this.fd, 'fdatasync');
  }

  truncate(size?: number): Promise<unknown> {
    return this.#call(this.fd, 'ftruncate', size);
  }

  close(): Promise<unknown> {
    return this.#call(this.fd, 'close');
  }

  chmod(): Promise<unknown> {
    return this.#call(this.fd, 'fchmod');
  }

  utimes(): Promise<unknown> {
    return this.#call(this.fd, 'futimes');
  }

  readFile(options?: unknown): Promise<unknown> {
    return this.#call(this.fd, 'readFile', options);
  }

  writeFile(written: unknown): Promise<unknown> {
    return this.#call(this.fd, 'writeFile', written);
  }

  appendFile(written: unknown): Promise<unknown> {
    return this.#call(this.fd, 'appendFile', written);
  }

  createReadStream(range: Range): AsyncGenerator<Buffer> {
    return readBlocks(this.fd, this.#call, range);
  }

  read(buffer: Uint8Array, ...place: readonly unknown[]): Promise<unknown> {
    return this.#call(this.fd, 'read', buffer, ...place).then((bytesRead) => ({ bytesRead, buffer }));
  }

  write(written: unknown, ...place: readonly unknown[]): Promise<unknown> {
    return this.#call(this.fd, 'write', written, ...place).then((bytesWritten) => ({
      bytesWritten,
      buffer: written,
    }));
  }
}
