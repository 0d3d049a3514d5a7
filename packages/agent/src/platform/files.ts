/**
 * Reads and writes files and folders safely, although other processes may replace them or a folder
 * above them by a symlink or a pipe at any moment.
 *
 * A held folder is opened once and used by its descriptor, so that a symlink in its place has no
 * effect.
 *
 * From top to bottom: names that are no UTF-8; regular files (opening a pipe may never return);
 * held folders; private files of the state folder; and what is at a path. Changes of files and
 * folders that a command may replace meanwhile are in replaceable-files.ts, and whose a file is in
 * trusted-folders.ts.
 *
 * Which function for what:
 *
 * - `readRegular`, `readRegularSync`: a file, or the reason why it can't be read.
 * - `readTextOrEmpty`, `readTextOrEmptySync`: a small file that may be missing.
 * - `readBytes`, `readSmall`: a file, without following a symlink at the end of its path.
 * - `withRegular`, `openRegular`: several steps with an open file.
 * - `copyRegular`, `copyRegularSync`: a file of any size to an unused path.
 * - `holdFolder`, `holdFolderSync`, `holdOrMakeFolder`: a folder, to work in it.
 * - `writePrivate`, `writePrivateSync`: a whole file of the state folder.
 * - `entryStatus`, `followStatus`, `realPath`: what is at a path, or where its symlinks lead.
 * - `hashBytes`: the hash by which contents are compared and stored.
 */

import { hash, randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  copyFileSync,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import {
  copyFile,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';

// ---- Names that are no UTF-8 ----

/**
 * A path or name that may be no UTF-8. It then has one lone surrogate (U+DC80 to U+DCFF) for each
 * byte above ASCII, also where some of its parts are UTF-8; `systemPath` gives the bytes back. A
 * path of the type `string` is UTF-8. A Buffer has the bytes themselves.
 */
export type RawPath = string;

const RAW_BYTE = /(?<![\ud800-\udbff])[\udc80-\udcff]/;

/** The name that these bytes are. */
export const readRawName = (name: Buffer): RawPath => {
  const text = name.toString('utf8');
  if (!text.includes('\ufffd') || Buffer.from(text).equals(name)) return text;
  return name
    .toString('latin1')
    .replace(/[\x80-\xff]/g, (byte) => String.fromCharCode(0xdc00 | byte.charCodeAt(0)));
};

/** Whether a path holds a name that is no UTF-8, so that it can't be an argument of a program. */
export const isRawPath = (place: RawPath): boolean => RAW_BYTE.test(place);

/** The path as the system takes it. */
export const systemPath = (place: RawPath | Buffer): string | Buffer => {
  if (typeof place !== 'string' || !RAW_BYTE.test(place)) return place;
  const parts = place.split(/((?<![\ud800-\udbff])[\udc80-\udcff])/);
  return Buffer.concat(
    parts.map((part, at) =>
      at % 2 === 0 ? Buffer.from(part) : Buffer.of(part.charCodeAt(0) & 0xff),
    ),
  );
};

// ---- Regular files ----

/*
 * 1. Pipes, devices and sockets are not opened: opening a pipe may block forever, opening a device
 *    may have any effect. With /proc the entry is first opened with O_PATH, which has no effect,
 *    then checked, then opened through its descriptor, so that it can't be replaced in between.
 *    Without /proc it is checked before and after: only an entry that is replaced in between is
 *    opened, without waiting, and closed unread.
 * 2. Not more than one byte beyond `bytesMax` is read, whatever size a file claims to have.
 */

/** Linux flag that opens an entry without any effect on it. Node does not define it. */
export const O_PATH = 0o10000000;

let descriptorPathsWork: boolean | null = null;

/** Whether a descriptor can be used as a path, `/proc/self/fd/N`. Tested once. */
export const hasDescriptorPaths = (): boolean => {
  descriptorPathsWork ??= tryDescriptorPaths();
  return descriptorPathsWork;
};

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

export const descriptorPath = (descriptor: number): string => `/proc/self/fd/${descriptor}`;

/** Why a file was not opened. */
type Unopened =
  | { readonly kind: 'absent' }
  | { readonly kind: 'folder' }
  | {
      readonly kind: 'unusable';
      readonly why: string;
      /** The code of the system error; empty: none. */
      readonly code: string;
      readonly isTooLarge?: true;
    };

type LoadedBytes = { readonly kind: 'file'; readonly bytes: Buffer; readonly status: Stats };

type OpenOptions = {
  /** Default: for reading. */
  readonly access?: 'read' | 'change';
  /**
   * Which symlinks are followed. `folders`: not one at the end of the path. `none`: the path is
   * real, and a symlink that takes the place of one of its folders meanwhile is refused too.
   * Default: all.
   */
  readonly follow?: 'all' | 'folders' | 'none';
};

/** The code of a system error, such as `ENOENT`; empty if it has none. */
export const errorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

/** The message of a system error, with the caller's path in place of a descriptor's. */
export const systemFault = (error: unknown, place: string): string =>
  error instanceof Error
    ? error.message.replace(/(?<=^|[' ])\/proc\/self\/fd\/\d+[^']*/g, () => place)
    : String(error);

const unopened = (error: unknown, place: string | Buffer): Unopened => {
  const code = errorCode(error);
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' };
  if (code === 'EISDIR') return { kind: 'folder' };
  return { kind: 'unusable', why: systemFault(error, String(place)), code };
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

/** Throws for anything but a regular file. */
const requireFile = (status: Stats): void => {
  if (!status.isFile()) throw new NotRegular(status);
};

/** Flags for O_PATH, which gives access to the status of an entry without opening it. */
const pathOnlyFlags = ({ follow = 'all' }: OpenOptions): number =>
  O_PATH | (follow === 'all' ? 0 : constants.O_NOFOLLOW);

/**
 * Flags that never wait for a pipe, and never take a terminal. The path of a descriptor is a
 * symlink, so it is followed.
 */
const openFlags = ({ access = 'read', follow = 'all' }: OpenOptions): number =>
  (access === 'read' ? constants.O_RDONLY : constants.O_RDWR) |
  (follow === 'all' || hasDescriptorPaths() ? 0 : constants.O_NOFOLLOW) |
  constants.O_NONBLOCK |
  constants.O_NOCTTY;

type OpenedFile = { readonly file: FileHandle; readonly status: Stats };

/** Opens a file, and checks again that it is a regular one. */
const openChecked = async (place: string | Buffer, flags: number): Promise<OpenedFile> => {
  const file = await open(place, flags);
  try {
    const status = await file.stat();
    requireFile(status);
    return { file, status };
  } catch (error) {
    await file.close();
    throw error;
  }
};

/**
 * Opens a regular file. Rejects if the system refuses, or if it is anything else (code EISDIR or
 * ENOTREG). The caller closes it.
 */
export const openRegular = async (
  place: string | Buffer,
  options: OpenOptions = {},
): Promise<OpenedFile> => {
  if (options.follow === 'none') {
    const [folder, name] = splitPlace(place);
    const held = holdFolderSync(folder); // takes a Buffer, unlike `holdFolder`
    try {
      return await openRegular(held.at(name), { ...options, follow: 'folders' });
    } finally {
      held.close();
    }
  }
  const flags = openFlags(options);
  if (!hasDescriptorPaths()) {
    requireFile(await (options.follow === 'folders' ? lstat(place) : stat(place)));
    return openChecked(place, flags);
  }
  const held = await open(place, pathOnlyFlags(options));
  try {
    requireFile(await held.stat());
    return await openChecked(descriptorPath(held.fd), flags);
  } finally {
    await held.close();
  }
};

const COPY_FLAGS = constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL;

/** Copies a regular file of any size to an unused path. Rejects if that fails. */
export const copyRegular = async (
  from: string | Buffer,
  to: string | Buffer,
  options: OpenOptions = {},
): Promise<void> => {
  const { file, status } = await openRegular(from, options);
  try {
    if (hasDescriptorPaths()) await copyFile(descriptorPath(file.fd), to, COPY_FLAGS);
    else await writeFile(to, file.createReadStream(), { flag: 'wx', mode: status.mode & 0o777 });
  } finally {
    await file.close();
  }
};

/** Opens a regular file as `openRegular` does, and closes it after the work. */
export const withRegular = async <T>(
  place: string,
  work: (file: FileHandle, status: Stats) => Promise<T>,
): Promise<T> => {
  const { file, status } = await openRegular(place);
  try {
    return await work(file, status);
  } finally {
    await file.close();
  }
};

/** sha256 in hex. */
export const hashBytes = (bytes: Uint8Array | string): string => hash('sha256', bytes, 'hex');

const tooLarge = (status: Stats, bytesMax: number): Unopened => ({
  kind: 'unusable',
  why:
    `it has ${status.size > bytesMax ? status.size : 'more'} bytes, at most ${bytesMax} are ` +
    'read',
  code: '',
  isTooLarge: true,
});

const BLOCK_BYTES = 64 * 1024;

/** The first bytes, at most `bytesMax`. Works for files that grow or claim to be empty. */
export const readUpTo = async (
  file: FileHandle,
  status: Stats,
  bytesMax: number,
): Promise<Buffer> => {
  const blocks: Buffer[] = [];
  let bytes = 0;
  // The first block has the claimed size, and one byte more, so that growth shows in one read.
  let blockBytes = status.size + 1;
  while (bytes < bytesMax) {
    const block = Buffer.allocUnsafe(Math.min(bytesMax - bytes, blockBytes));
    const { bytesRead } = await file.read(block, 0, block.length, bytes);
    if (bytesRead === 0) break;
    blocks.push(block.subarray(0, bytesRead));
    bytes += bytesRead;
    blockBytes = Math.max(status.size + 1 - bytes, BLOCK_BYTES);
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
    const block = Buffer.allocUnsafe(
      Math.min(bytesMax - bytes, Math.max(size + 1 - bytes, BLOCK_BYTES)),
    );
    const read = readSync(descriptor, block, 0, block.length, bytes);
    if (read === 0) break;
    blocks.push(block.subarray(0, read));
    bytes += read;
    // Saves one call, unlike `readUpTo`; not for files of /proc, which claim to be empty.
    if (read < block.length && size > 0) break;
  }
  return Buffer.concat(blocks);
};

/**
 * Works on a regular file. With /proc it stays the same even if its path is replaced; without, the
 * path must be UTF-8. `reach`: a path by which it can be opened. Throws as `openRegular` rejects.
 */
export const withRegularSync = <T>(
  place: RawPath | Buffer,
  options: OpenOptions,
  work: (reach: string | Buffer, status: Stats) => T,
): T => {
  if (options.follow === 'none') {
    const [folder, name] = splitPlace(place);
    const held = holdFolderSync(folder);
    try {
      return withRegularSync(held.at(name), { ...options, follow: 'folders' }, work);
    } finally {
      held.close();
    }
  }
  if (!hasDescriptorPaths()) {
    const status = options.follow === 'folders' ? lstatSync(place) : statSync(place);
    requireFile(status);
    return work(place, status);
  }
  const held = openSync(systemPath(place), pathOnlyFlags(options));
  try {
    const status = fstatSync(held);
    requireFile(status);
    return work(descriptorPath(held), status);
  } finally {
    closeSync(held);
  }
};

/** Opens a file for reading, within `withRegularSync`. */
const openForReading = (reach: string | Buffer, options: OpenOptions): number => {
  const file = openSync(reach, openFlags(options));
  try {
    if (!hasDescriptorPaths()) requireFile(fstatSync(file));
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
};

/** Like `readRegular`, synchronously. The path may be no UTF-8 (see `withRegularSync`). */
export const readRegularSync = (
  place: RawPath | Buffer,
  bytesMax: number,
  options: OpenOptions = {},
): LoadedBytes | Unopened => {
  try {
    return withRegularSync(place, options, (reach, status) => {
      if (status.size > bytesMax) return tooLarge(status, bytesMax);
      const file = openForReading(reach, options);
      try {
        const bytes = readUpToSync(file, bytesMax + 1, status.size);
        if (bytes.length > bytesMax) return tooLarge(status, bytesMax);
        return { kind: 'file', bytes, status };
      } finally {
        closeSync(file);
      }
    });
  } catch (error) {
    return unopened(error, place);
  }
};

/** Like `copyRegular`, synchronously. `from` may be no UTF-8 (see `withRegularSync`). */
export const copyRegularSync = (
  from: RawPath | Buffer,
  to: string | Buffer,
  options: OpenOptions = {},
): void =>
  withRegularSync(from, options, (reach, status) => {
    if (hasDescriptorPaths()) {
      copyFileSync(reach, to, COPY_FLAGS);
      return;
    }
    const file = openForReading(reach, options);
    try {
      const target = openSync(to, 'wx', status.mode & 0o777);
      try {
        const block = Buffer.allocUnsafe(BLOCK_BYTES);
        for (let read = 1; read > 0; ) {
          read = readSync(file, block);
          writeFileSync(target, block.subarray(0, read));
        }
      } finally {
        closeSync(target);
      }
    } finally {
      closeSync(file);
    }
  });

/** Like `readTextOrEmpty`, synchronously. */
export const readTextOrEmptySync = (place: string, bytesMax: number): string => {
  const loaded = readRegularSync(place, bytesMax);
  return loaded.kind === 'file' ? loaded.bytes.toString('utf8') : '';
};

/** The content of a regular file; null if it is missing, larger, something else or unreadable. */
export const readBytes = (file: RawPath, bytesMax: number): Buffer | null => {
  const loaded = readRegularSync(file, bytesMax, { follow: 'folders' });
  return loaded.kind === 'file' ? loaded.bytes : null;
};

const SMALL_MAX = 64 * 1024;

/** The text of a small regular file, or its first 64 kB; empty for everything else. */
export const readSmall = (file: RawPath): string => {
  const options = { follow: 'folders' } as const;
  try {
    return withRegularSync(file, options, (reach, status) => {
      const descriptor = openForReading(reach, options);
      try {
        return readUpToSync(descriptor, SMALL_MAX, status.size).toString('utf8');
      } finally {
        closeSync(descriptor);
      }
    });
  } catch {
    return ''; // git's files are no symlinks; others this user's programs can't read either
  }
};

// ---- Held folders ----

/**
 * An open folder. Work in it goes through its descriptor, which is safe against symlink races.
 *
 * 1. The opened folder is verified by the path that the kernel reports for its descriptor. A
 *    symlink that another process inserts, before or after, has no effect.
 * 2. Its entries are accessed through `/proc/self/fd/N`, so they stay in this folder wherever its
 *    path leads later.
 * 3. Without such paths (macOS), entries are accessed through the ordinary path, which is checked
 *    when the folder is opened, and by `isInPlace`. There a process that replaces folders at the
 *    right moment can still redirect an access.
 */
export type HeldFolder = {
  /** Its real path when it was opened. */
  readonly real: string;
  /** A path to the folder; where descriptors have paths, one that does not depend on its name. */
  readonly reach: string;
  /** The path of an entry. The name must not contain a slash. */
  at(name: string): string;
  /** Whether its path still leads to it. */
  isInPlace(): Promise<boolean>;
  close(): Promise<void>;
};

/** `elsewhere`: the path leads through a symlink, or the folder was moved. */
type HeldFolderResult =
  | { readonly kind: 'held'; readonly folder: HeldFolder }
  | { readonly kind: 'absent' }
  | { readonly kind: 'notFolder' }
  | { readonly kind: 'elsewhere' };

/** A folder without a descriptor, for systems without paths to one. */
const plainFolder = (real: string): HeldFolder => ({
  real,
  reach: real,
  at: (name) => path.join(real, name),
  isInPlace: async () => (await realpath(real).catch(() => '')) === real,
  close: async () => undefined,
});

const descriptorFolder = (handle: FileHandle, real: string): HeldFolder => {
  const reach = descriptorPath(handle.fd);
  return {
    real,
    reach,
    at: (name) => `${reach}/${name}`,
    // The path of a removed folder differs, too.
    isInPlace: async () => (await readlink(reach).catch(() => '')) === real,
    close: () => handle.close(),
  };
};

const isLink = (place: string): Promise<boolean> =>
  lstat(place).then(
    (status) => status.isSymbolicLink(),
    () => false,
  );

/** `place`: a path by which the folder can be reached now. */
const hold = async (place: string, real: string): Promise<HeldFolderResult> => {
  try {
    if (!hasDescriptorPaths()) {
      const folder = plainFolder(real);
      if (!(await stat(real)).isDirectory()) return { kind: 'notFolder' };
      return (await folder.isInPlace()) ? { kind: 'held', folder } : { kind: 'elsewhere' };
    }
    const handle = await open(place, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    const folder = descriptorFolder(handle, real);
    if (await folder.isInPlace()) return { kind: 'held', folder };
    await folder.close();
    return { kind: 'elsewhere' };
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT') return { kind: 'absent' };
    if (code === 'ENOTDIR') return { kind: (await isLink(place)) ? 'elsewhere' : 'notFolder' };
    if (code === 'ELOOP') return { kind: 'elsewhere' };
    throw error;
  }
};

/** Opens a folder by its real path. Rejects if the system refuses. The caller closes it. */
export const holdFolder = (real: string): Promise<HeldFolderResult> => hold(real, real);

/** Like `HeldFolder`, synchronous. */
export type HeldFolderSync = {
  /** See `HeldFolder`. */
  readonly reach: Buffer;
  /** The path of an entry. The name must not contain a slash. */
  at(name: RawPath | Buffer): Buffer;
  close(): void;
};

/** The path of a folder leads elsewhere. Has the code of a refused symlink. */
class MovedPath extends Error {
  override readonly name = 'MovedPath';
  readonly code = 'ELOOP';

  constructor() {
    super('its path leads elsewhere now');
  }
}

/**
 * Opens a folder by its real path. Unlike `holdFolder` it throws: if the system refuses, and with
 * the code ELOOP or ENOTDIR if a symlink stands in the path. The caller closes it.
 */
export const holdFolderSync = (real: RawPath | Buffer): HeldFolderSync => {
  const place = Buffer.from(systemPath(real));
  const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const descriptor = openSync(place, hasDescriptorPaths() ? flags | O_PATH : flags);
  const reach = hasDescriptorPaths() ? Buffer.from(descriptorPath(descriptor)) : place;
  try {
    const opened = hasDescriptorPaths()
      ? readlinkSync(reach, 'buffer')
      : realpathSync(place, 'buffer'); // `native` would also change case and normal form
    if (!opened.equals(place)) throw new MovedPath();
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
  return {
    reach,
    at: (name) => Buffer.concat([reach, Buffer.from('/'), Buffer.from(systemPath(name))]),
    close: () => closeSync(descriptor),
  };
};

const SLASH = 47;

const splitPlace = (
  place: string | Buffer,
): readonly [folder: string | Buffer, name: string | Buffer] => {
  if (typeof place === 'string') return [path.dirname(place), path.basename(place)];
  const at = place.lastIndexOf(SLASH);
  return [at === -1 ? '.' : place.subarray(0, Math.max(at, 1)), place.subarray(at + 1)];
};

/** Makes a folder in an open one, and holds it. */
const makeIn = async (parent: HeldFolder, real: string): Promise<HeldFolderResult> => {
  const place = parent.at(path.basename(real));
  const isNew = await mkdir(place).then(
    () => true,
    (error: unknown) => {
      // another process was faster: its folder is checked like any other
      if (errorCode(error) === 'EEXIST') return false;
      throw error;
    },
  );
  const held = await hold(place, real);
  // Our new folder was moved away meanwhile. If it can't be removed, another process uses it.
  if (held.kind !== 'held' && isNew) await rmdir(place).catch(() => undefined);
  return held;
};

/** Like `holdFolder`, but makes missing folders. */
export const holdOrMakeFolder = async (real: string): Promise<HeldFolderResult> => {
  const folder = await holdFolder(real);
  if (folder.kind !== 'absent' || path.dirname(real) === real) return folder;
  const above = await holdOrMakeFolder(path.dirname(real));
  if (above.kind !== 'held') return above;
  try {
    return await makeIn(above.folder, real);
  } finally {
    await above.folder.close();
  }
};

// ---- Private files of the state folder ----

/**
 * Replaces a file of the state folder that only the user may read. Readers see the old text or the
 * new one.
 */
export const writePrivate = async (file: string, text: string): Promise<void> => {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      await handle.datasync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
};

/**
 * Like `writePrivate`, synchronously, in an existing folder, for files with one writing process. A
 * crash of Pawl leaves the old text or the new one; a crash of the machine may leave neither.
 */
export const writePrivateSync = (file: string, text: string): void => {
  const temporary = `${file}.new`;
  try {
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
};

// ---- What is at a path ----

/** Whether we have this right, such as `constants.X_OK`, at what a path leads to. */
export const mayAccess = (place: string, right: number): boolean => {
  try {
    accessSync(place, right);
    return true;
  } catch {
    return false;
  }
};

/** The status of the entry at a path, without following a symlink; null: none, or unreachable. */
export const entryStatus = (place: RawPath | Buffer): Stats | null => {
  try {
    return lstatSync(systemPath(place), { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
};

/** The status of what a path leads to; null: nothing, or it is unreachable for us. */
export const followStatus = (place: string): Stats | null => {
  try {
    return statSync(place, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
};

/**
 * The path behind all symlinks; null if it leads nowhere, in a circle, or is unreachable for us.
 */
export const realPath = (place: RawPath): RawPath | null => {
  try {
    if (!hasDescriptorPaths()) return realpathSync(place);
    const real = realpathSync.native(systemPath(place));
    if (!real.includes('\ufffd')) return real;
    return readRawName(realpathSync.native(systemPath(place), 'buffer'));
  } catch {
    return null;
  }
};

/** Whether a folder is there; a symlink to one is none. */
export const isFolder = (place: RawPath): boolean => entryStatus(place)?.isDirectory() === true;

/** Empty if there is no such folder, or it is closed to us. */
export const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return []; // what we can't list, commands can't list either
  }
};

/** Empty if there is no such folder, or it is closed to us. */
export const entriesIn = (folder: string): readonly Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // what we can't list, commands can't list either
  }
};

/**
 * Whether a path is `outer` or lies below it. Pass absolute real paths, since only their text is
 * compared.
 */
export const isWithin = (inner: string, outer: string): boolean => {
  const relative = path.relative(outer, inner);
  return (
    relative === '' ||
    (relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
  );
};
