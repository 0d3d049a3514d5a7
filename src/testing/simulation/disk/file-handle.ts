type Call = (name: string, args: readonly unknown[]) => Promise<unknown>;

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
  writeFile: (data: unknown) => call('writeFile', [data]),
  appendFile: (data: unknown) => call('appendFile', [data]),
  read: async (buffer: Uint8Array, ...place: readonly unknown[]) => ({
    bytesRead: await call('read', [buffer, ...place]),
    buffer,
  }),
  write: async (data: unknown, ...place: readonly unknown[]) => ({
    bytesWritten: await call('write', [data, ...place]),
    buffer: data,
  }),
});
