import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import { type FileHandle, lstat, open, stat } from 'node:fs/promises';

/**
 * Opens regular files, and nothing else.
 *
 * 1. A pipe, device or socket is never opened: opening a pipe may block for ever, opening a device may have any effect.
 *    On Linux the entry is first opened with O_PATH, which has no effect, then checked, then opened through its
 *    descriptor, so that it can't be exchanged in between. Elsewhere it is checked before and after.
 * 2. At most `bytesMax` bytes are read, whatever size a file claims to have.
 */

/** Linux flag that opens an entry without any effect on it. Node does not define it. */
export const O_PATH = 0o10000000;

let works: boolean | null = null;

const tryDescriptorPaths = (): boolean => {
  if (process.platform !== 'linux') return false;
  try {
    const descriptor = openSync('/', O_PATH | constants.O_DIRECTORY);
    try {
      const reach = descriptorPath(descriptor);
      return readlinkSync(reach) === '/' && statSync(`${reach}/proc`).isDirectory();
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return false; // no /proc here: paths are used instead
  }
};

/** Whether a descriptor can be used as a path, `/proc/self/fd/N`. Tested once. */
export const hasDescriptorPaths = (): boolean => {
  works ??= tryDescriptorPaths();
  return works;
};

export const descriptorPath = (descriptor: number): string => `/proc/self/fd/${descriptor}`;

export type Unopened =
  | { readonly kind: 'absent' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'unusable'; readonly why: string; readonly isTooLarge?: true };

export type LoadedBytes = { readonly kind: 'file'; readonly bytes: Buffer; readonly status: Stats };

export type OpenOptions = {
  /** Default: for reading. */
  readonly access?: 'read' | 'change';
  /** Whether a symlink at the end of the path is followed. Default: yes. */
  readonly follow?: boolean;
};

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;

/** The message of a system error, with the path that the caller knows. */
export const systemFault = (error: unknown, place: string): string =>
  error instanceof Error
    ? error.message.replace(/(^|[' ])\/proc\/self\/fd\/\d+[^']*/g, `$1${place}`)
    : String(error);

const unopened = (error: unknown, place: string): Unopened => {
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' };
  if (code === 'EISDIR') return { kind: 'folder' };
  return { kind: 'unusable', why: systemFault(error, place) };
};

/** The entry is not a regular file. Has a `code`, as system errors do. */
class NotRegular extends Error {
  override readonly name = 'NotRegular';
  readonly code: 'EISDIR' | 'ENOTREG';

  constructor(status: Stats) {
    super(status.isSymbolicLink() ? 'it is a symlink' : 'it is not a regular file');
    this.code = status.isDirectory() ? 'EISDIR' : 'ENOTREG';
  }
}

const mustBeFile = (status: Stats): void => {
  if (!status.isFile()) throw new NotRegular(status);
};

const lookFlags = ({ follow = true }: OpenOptions): number => O_PATH | (follow ? 0 : constants.O_NOFOLLOW);

const openFlags = ({ access = 'read' }: OpenOptions): number =>
  (access === 'read' ? constants.O_RDONLY : constants.O_RDWR) | constants.O_NONBLOCK | constants.O_NOCTTY;

type OpenedFile = { readonly file: FileHandle; readonly status: Stats };

const openJudged = async (place: string, flags: number): Promise<OpenedFile> => {
  const file = await open(place, flags);
  try {
    const status = await file.stat();
    mustBeFile(status);
    return { file, status };
  } catch (error) {
    await file.close();
    throw error;
  }
};

/**
 * Opens a regular file. Rejects if the system refuses, or if it is anything else (code EISDIR or ENOTREG). The caller
 * closes it.
 */
export const openRegular = async (place: string, options: OpenOptions = {}): Promise<OpenedFile> => {
  const flags = openFlags(options);
  if (!hasDescriptorPaths()) {
    mustBeFile(await (options.follow === false ? lstat(place) : stat(place)));
    return openJudged(place, flags | (options.follow === false ? constants.O_NOFOLLOW : 0));
  }
  const held = await open(place, lookFlags(options));
  try {
    mustBeFile(await held.stat());
    return await openJudged(descriptorPath(held.fd), flags);
  } finally {
    await held.close();
  }
};

const tooLarge = (status: Stats, bytesMax: number): Unopened => ({
  kind: 'unusable',
  why: `it has ${status.size > bytesMax ? status.size : 'more'} bytes, at most ${bytesMax} are read`,
  isTooLarge: true,
});

const BLOCK_BYTES = 64 * 1024;

/** The first bytes, at most `bytesMax`. Works for files that grow or claim to be empty. */
export const readUpTo = async (file: FileHandle, status: Stats, bytesMax: number): Promise<Buffer> => {
  const blocks: Buffer[] = [];
  let bytes = 0;
  // Asking for one byte more detects the end of the file.
  let room = Math.min(bytesMax, status.size + 1);
  while (bytes < bytesMax) {
    const block = Buffer.allocUnsafe(Math.min(bytesMax - bytes, Math.max(room, 1)));
    const { bytesRead } = await file.read(block, 0, block.length, bytes);
    if (bytesRead === 0) break;
    blocks.push(block.subarray(0, bytesRead));
    bytes += bytesRead;
    room = bytesRead < block.length ? BLOCK_BYTES : Math.max(room - bytesRead, BLOCK_BYTES);
  }
  return blocks.length === 1 ? (blocks[0] ?? Buffer.alloc(0)) : Buffer.concat(blocks);
};

/** The bytes of a regular file of at most `bytesMax` bytes. Never rejects. */
export const readRegular = async (
  place: string,
  bytesMax: number,
  options: OpenOptions = {},
): Promise<LoadedBytes | Unopened> => {
  try {
    const { file, status } = await openRegular(place, options);
    try {
      if (status.size > bytesMax) return tooLarge(status, bytesMax);
      const bytes = await readUpTo(file, status, bytesMax + 1);
      return bytes.length > bytesMax ? tooLarge(status, bytesMax) : { kind: 'file', bytes, status };
    } finally {
      await file.close();
    }
  } catch (error) {
    return unopened(error, place);
  }
};

/** The text of a small file. Empty if it is missing, too large or unreadable. */
export const readTextOrEmpty = async (place: string, bytesMax: number): Promise<string> => {
  const loaded = await readRegular(place, bytesMax);
  return loaded.kind === 'file' ? loaded.bytes.toString('utf8') : '';
};

const readUpToSync = (descriptor: number, bytesMax: number, size: number): Buffer => {
  const blocks: Buffer[] = [];
  for (let bytes = 0; bytes < bytesMax; ) {
    const block = Buffer.allocUnsafe(Math.min(bytesMax - bytes, Math.max(size + 1 - bytes, BLOCK_BYTES)));
    const read = readSync(descriptor, block, 0, block.length, bytes);
    if (read === 0) break;
    blocks.push(block.subarray(0, read));
    bytes += read;
  }
  return Buffer.concat(blocks);
};

/** Like `readRegular`, for callers that can't wait. */
export const readRegularSync = (place: string, bytesMax: number): LoadedBytes | Unopened => {
  const descriptors: number[] = [];
  const hold = (descriptor: number): number => {
    descriptors.push(descriptor);
    return descriptor;
  };
  try {
    const held = hasDescriptorPaths() ? hold(openSync(place, O_PATH)) : null;
    mustBeFile(held === null ? statSync(place) : fstatSync(held));
    const file = hold(openSync(held === null ? place : descriptorPath(held), openFlags({})));
    const status = fstatSync(file);
    mustBeFile(status);
    if (status.size > bytesMax) return tooLarge(status, bytesMax);
    const bytes = readUpToSync(file, bytesMax + 1, status.size);
    return bytes.length > bytesMax ? tooLarge(status, bytesMax) : { kind: 'file', bytes, status };
  } catch (error) {
    return unopened(error, place);
  } finally {
    for (const descriptor of descriptors) closeSync(descriptor);
  }
};

/** Like `readTextOrEmpty`, for callers that can't wait. */
export const readTextOrEmptySync = (place: string, bytesMax: number): string => {
  const loaded = readRegularSync(place, bytesMax);
  return loaded.kind === 'file' ? loaded.bytes.toString('utf8') : '';
};
