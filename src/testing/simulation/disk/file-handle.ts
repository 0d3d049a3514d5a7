type Call = (name: string, args: readonly unknown[]) => Promise<unknown>;

type Range = { readonly start?: number; readonly end?: number };

const BLOCK_BYTES = 64 * 1024;

/** The bytes of a range, both ends included, as a stream gives them. */
async function* readBlocks(
  call: Call,
  { start = 0, end = Number.POSITIVE_INFINITY }: Range,
): AsyncGenerator<Buffer> {
  for (let position = start; position <= end; ) {
    const block = Buffer.alloc(Math.min(BLOCK_BYTES, end - position + 1));
    const bytesRead = Number(await call('read', [block, 0, block.length, position]));
    if (bytesRead === 0) return;
    yield block.subarray(0, bytesRead);
    position += bytesRead;
  }
}

/** A file handle as `fs/promises` gives it, over a descriptor of a simulated disk. */
export const fileHandle = (fd: number, call: Call): object => ({
  fd,
  stat: () => call('fstat', []),
  sync: () => call('fsync', []),
  datasync: () => call('fdatasync', []),
  truncate: (size?: number) => call('ftruncate', [size]),
  close: () => call('close', []),
  chmod: () => call('fchmod', []),
  utimes: () => call('futimes', []),
  readFile: (options?: unknown) => call('readFile', [options]),
  writeFile: (written: unknown) => call('writeFile', [written]),
  appendFile: (written: unknown) => call('appendFile', [written]),
  createReadStream: (range: Range) => readBlocks(call, range),
  read: async (buffer: Uint8Array, ...place: readonly unknown[]) => ({
    bytesRead: await call('read', [buffer, ...place]),
    buffer,
  }),
  write: async (written: unknown, ...place: readonly unknown[]) => ({
    bytesWritten: await call('write', [written, ...place]),
    buffer: written,
  }),
});
