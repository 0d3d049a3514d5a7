/**
 * Reads and writes files and folders safely, although other processes may replace them or a folder
 * above them by a symlink or a pipe at any moment.
 *
 * A held folder is opened once and used by its descriptor, so that a symlink in its place has no
 * effect.
 *
 * From top to bottom: names that are no UTF-8; regular files (opening a pipe may never return);
 * held folders; private files of the state folder; the status of a path; files that a command may
 * replace; and whose a file is, which decides whether it is trusted.
 *
 * Which function for what:
 *
 * - `readRegular`, `readRegularSync`: a file, or the reason why it can't be read.
 * - `readTextOrEmpty`, `readTextOrEmptySync`: a small file that may be missing.
 * - `withRegular`, `openRegular`: several steps with an open file.
 * - `copyRegular`, `copyRegularSync`: a file of any size to an unused path.
 * - `writePrivate`, `writePrivateSync`: a whole file of the state folder.
 * - A section of its own, with such a list, is for files that a command may replace.
 */

import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  type Dirent,
  fchmodSync,
  fchownSync,
  fstatSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import {
  access,
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
import path, { dirname } from 'node:path';

// ---- Names that are no UTF-8 ----
// Such a name stands with one lone surrogate (U+DC80 to U+DCFF) for each byte above ASCII, as in
// Python; `systemPath` gives the bytes back. `entryStatus`, `realPath`, `withRegularSync` and the
// functions for files that a command may replace take such paths; others need UTF-8.

const RAW_BYTE = /(?<![\ud800-\udbff])[\udc80-\udcff]/;

export const readRawName = (name: Buffer): string => {
  const text = name.toString('utf8');
  if (!text.includes('\ufffd') || Buffer.from(text).equals(name)) return text;
  return name
    .toString('latin1')
    .replace(/[\x80-\xff]/g, (byte) => String.fromCharCode(0xdc00 | byte.charCodeAt(0)));
};

/** Whether a path holds a name that is no UTF-8, so that programs can't be told of it. */
export const isRawPath = (place: string): boolean => RAW_BYTE.test(place);

/** The path as the system takes it. */
export const systemPath = (place: string | Buffer): string | Buffer => {
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
    const held = holdFolderSync(folder);
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
  // The first block has the claimed size, and one byte more, which detects the end of the file.
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
 * Works on a regular file that stays the same even if its path is replaced. `reach`: a path by
 * which it can be opened. Throws as `openRegular` rejects.
 */
const withRegularSync = <T>(
  place: string | Buffer,
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
const openAgain = (reach: string | Buffer, options: OpenOptions): number => {
  const file = openSync(reach, openFlags(options));
  try {
    if (!hasDescriptorPaths()) requireFile(fstatSync(file));
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
};

/** Like `readRegular`, synchronously. */
export const readRegularSync = (
  place: string | Buffer,
  bytesMax: number,
  options: OpenOptions = {},
): LoadedBytes | Unopened => {
  try {
    return withRegularSync(place, options, (reach, status) => {
      if (status.size > bytesMax) return tooLarge(status, bytesMax);
      const file = openAgain(reach, options);
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

/** Like `copyRegular`, synchronously. */
export const copyRegularSync = (
  from: string | Buffer,
  to: string | Buffer,
  options: OpenOptions = {},
): void =>
  withRegularSync(from, options, (reach, status) => {
    if (hasDescriptorPaths()) {
      copyFileSync(reach, to, COPY_FLAGS);
      return;
    }
    const file = openAgain(reach, options);
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
  /** A path to the folder that does not depend on its name. */
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

/** Like `HeldFolder`, synchronous. Names may be invalid UTF-8. */
export type HeldFolderSync = Pick<HeldFolder, 'real'> & {
  /** See `HeldFolder`. */
  readonly reach: Buffer;
  /** The path of an entry. The name must not contain a slash. */
  at(name: string | Buffer): Buffer;
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
 * Opens a folder by its real path. Throws if the system refuses, and with the code ELOOP or ENOTDIR
 * if a symlink stands in the path. The caller closes it.
 */
export const holdFolderSync = (real: string | Buffer): HeldFolderSync => {
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
    real: String(real),
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
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
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

// ---- The status of a path ----

/** Whether we may write to a file. Not meaningful for a symlink. */
export const mayWrite = (place: string): Promise<boolean> =>
  access(place, constants.W_OK).then(
    () => true,
    () => false,
  );

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
export const entryStatus = (place: string | Buffer): Stats | null => {
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
export const realPath = (place: string): string | null => {
  try {
    if (!hasDescriptorPaths()) return realpathSync(place);
    const real = realpathSync.native(systemPath(place));
    if (!real.includes('\ufffd')) return real;
    return readRawName(realpathSync.native(systemPath(place), 'buffer'));
  } catch {
    return null;
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

// ---- Files and folders that a command may replace, remove or make unreadable at any moment ----

/*
 * Which function for what:
 *
 * - `readBytes`, `readSmall`: a file, without following a symlink at the end of its path.
 * - `createFile`, `createLink`: at an unused path. `writeBack`: the old content of a file.
 * - `replaceEntry`: a new file in place of an entry. `setAside`: moves an entry to a folder.
 * - `replaceKeepingCopy`: a new file in place of an old one, which is copied to a folder.
 * - `removeBelow`: an entry with everything below it.
 *
 * Those that write work in an open folder (`inFolder`). Without /proc they do nothing, but for
 * `replaceEntry`.
 */

const FILE_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export const isFolder = (place: string): boolean => entryStatus(place)?.isDirectory() === true;

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

/** The content of a regular file; null if it is missing, larger, something else or unreadable. */
export const readBytes = (file: string, bytesMax: number): Buffer | null => {
  const loaded = readRegularSync(file, bytesMax, { follow: 'folders' });
  return loaded.kind === 'file' ? loaded.bytes : null;
};

const listEntries = (folder: string): readonly Dirent[] => {
  const entries = readdirSync(systemPath(folder), { withFileTypes: true });
  if (!entries.some(({ name }) => name.includes('\ufffd'))) return entries;
  return readdirSync(systemPath(folder), { withFileTypes: true, encoding: 'buffer' }).map((entry) =>
    Object.assign(entry, { name: readRawName(entry.name) }),
  );
};

/**
 * Like `entriesIn`, for a folder that a command may have made: with names that are no UTF-8, for
 * `systemPath`. A folder of ours that we may enter but not list becomes one that we may list.
 */
export const listFolder = (folder: string): readonly Dirent[] => {
  try {
    return listEntries(folder);
  } catch (error) {
    if (errorCode(error) !== 'EACCES') return [];
  }
  const mayEnter = ((entryStatus(folder)?.mode ?? 0) & 0o100) !== 0;
  const open = (below: string): readonly Dirent[] => {
    takeRights(below);
    return listEntries(below);
  };
  return mayEnter ? (inFolder(folder, open) ?? []) : [];
};

const TEXT_MAX = 64 * 1024;

/** The text of a small regular file, or its first 64 kB; empty for everything else. */
export const readSmall = (file: string): string => {
  const options = { follow: 'folders' } as const;
  try {
    return withRegularSync(file, options, (reach, status) => {
      const descriptor = openAgain(reach, options);
      try {
        return readUpToSync(descriptor, TEXT_MAX, status.size).toString('utf8');
      } finally {
        closeSync(descriptor);
      }
    });
  } catch {
    return ''; // programs of this user, such as git, can't read it either
  }
};

/**
 * Works in a folder that is opened first, so that it can't be replaced by a symlink: `below` is a
 * path to the open folder. Null if the folder was replaced, or the work failed, and always without
 * /proc.
 */
export const inFolder = <T>(folder: string, work: (below: string) => T): T | null => {
  if (!hasDescriptorPaths()) return null;
  let held: HeldFolderSync | null = null;
  try {
    held = holdFolderSync(folder);
    return work(String(held.reach));
  } catch {
    // the folder or its entry is missing or unreadable, or the disk is full
    return null;
  } finally {
    held?.close();
  }
};

/** Takes back rights to a file or folder of ours: a command can take them away. */
const takeRights = (reach: string | Buffer, needed = 0o700): void => {
  const { mode } = statSync(reach);
  if ((mode & needed) !== needed) chmodSync(reach, (mode & 0o7777) | needed);
};

/** Like `inFolder`, to change the folder of this entry. `entry`: a path through the open folder. */
const changeEntry = <T>(place: string, work: (entry: string, below: string) => T): T | null =>
  inFolder(path.dirname(place), (below) => {
    takeRights(below);
    return work(`${below}/${path.basename(place)}`, below);
  });

/**
 * Moves a file or folder out of the workspace into one of the session, so that no program runs it
 * by accident. Returns the new path; null if the move failed, for example because the file is
 * missing or a folder above was replaced.
 */
export const setAside = (place: string, folder: string): string | null =>
  changeEntry(place, (entry) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const target = path.join(folder, path.basename(place));
    if (isFolder(entry)) inEntry(entry, takeRights); // a folder changes its parent
    move(entry, target);
    return target;
  });

/**
 * Makes a file in an open folder, and puts it in place of the entry with this name. If that fails,
 * only the earlier entry is there. Root gives it to the owner.
 */
export const replaceEntry = (
  below: string,
  name: string,
  { uid, gid, mode }: Owned,
  make: (fresh: string) => void,
): void => {
  // git takes no file with such a name for a ref
  const fresh = `${below}/.pawl-${randomBytes(6).toString('hex')}`;
  try {
    make(fresh);
    const descriptor = openSync(fresh, FILE_ONLY);
    try {
      if (process.geteuid?.() === 0) fchownSync(descriptor, uid, gid);
      fchmodSync(descriptor, mode & 0o777);
    } finally {
      closeSync(descriptor);
    }
    renameSync(fresh, systemPath(`${below}/${name}`));
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
};

/**
 * Like `setAside`, but copies the file and then replaces it by other content with the same mode and
 * owner, so that a crash in between loses nothing.
 */
export const replaceKeepingCopy = (place: string, content: Buffer, folder: string): string | null =>
  changeEntry(place, (entry, below) => {
    const target = copyInto(folder, entry);
    replaceEntry(below, path.basename(place), lstatSync(systemPath(entry)), (fresh) =>
      writeFileSync(fresh, content, { flag: 'wx', mode: 0o600 }),
    );
    return target;
  });

const copyInto = (folder: string, entry: string): string => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const target = path.join(folder, path.basename(entry));
  copyEntry(entry, target);
  return target;
};

/** Renames, or copies to another file system. `from`: an entry of a folder that is held open. */
const move = (from: string, to: string): void => {
  try {
    renameSync(systemPath(from), systemPath(to));
  } catch (error) {
    if (errorCode(error) !== 'EXDEV') throw error;
    copyEntry(from, to);
    removeEntry(from);
  }
};

/** Works in a folder, by a path to the open folder. */
const inEntry = (folder: string, work: (below: string) => void): void => {
  const descriptor = openSync(systemPath(folder), O_PATH | FOLDER_ONLY);
  try {
    work(descriptorPath(descriptor));
  } finally {
    closeSync(descriptor);
  }
};

/** Works on each entry of a folder, by a path through the open folder. */
const forEachEntry = (folder: string, work: (entry: string, name: string) => void): void =>
  inEntry(folder, (below) => {
    takeRights(below);
    for (const { name } of listEntries(below)) work(`${below}/${name}`, name);
  });

/** Leaves out pipes, sockets and devices. */
const copyEntry = (from: string, to: string): void => {
  const place = systemPath(from);
  const target = systemPath(to);
  const status = lstatSync(place);
  if (status.isSymbolicLink()) symlinkSync(readlinkSync(place, 'buffer'), target);
  else if (status.isDirectory()) {
    mkdirSync(target, { mode: (status.mode & 0o777) | 0o700 });
    forEachEntry(from, (entry, name) => copyEntry(entry, path.join(to, name)));
  } else if (status.isFile())
    withRegularSync(place, { follow: 'folders' }, (reach) => {
      takeRights(reach, 0o400);
      copyRegularSync(reach, target);
    });
  else return;
  lutimesSync(target, status.atime, status.mtime);
};

/** Removes the entry at a real path and all below it, up to the first that can not be removed. */
export const removeBelow = (place: string): void => {
  changeEntry(place, removeEntry);
};

/** Removes an entry. Unlike `rmSync`, it stays in this folder if another process replaces it. */
const removeEntry = (entry: string): void => {
  const place = systemPath(entry);
  if (!lstatSync(place).isDirectory()) {
    unlinkSync(place);
    return;
  }
  forEachEntry(entry, removeEntry);
  rmdirSync(place);
};

/**
 * Restores the old content of a file in place, after it has copied the present one to a folder.
 * Returns the copy; null if the file is missing, not a regular one, or a folder above was replaced.
 */
export const writeBack = (place: string, content: Buffer, folder: string): string | null =>
  changeEntry(place, (entry) => {
    const target = copyInto(folder, entry);
    return withRegularSync(entry, { follow: 'folders' }, (reach) => {
      takeRights(reach, 0o200);
      const descriptor = openSync(reach, constants.O_WRONLY | constants.O_TRUNC);
      try {
        writeFileSync(descriptor, content);
        return target;
      } finally {
        closeSync(descriptor);
      }
    });
  });

/** Makes a file at an unused path. False if that failed. */
export const createFile = (place: string, content: Buffer, mode: number): boolean =>
  changeEntry(place, (entry) => {
    writeFileSync(systemPath(entry), content, { flag: 'wx', mode: mode & 0o777 });
    return true;
  }) ?? false;

/** Makes a symlink at an unused path. False if that failed. */
export const createLink = (place: string, target: string): boolean =>
  changeEntry(place, (entry) => {
    symlinkSync(systemPath(target), systemPath(entry));
    return true;
  }) ?? false;

// ---- Whose a file is, and who else may write it: we, the system, or another user ----
// Windows has no numeric owners, so every owner counts as ours there.

type Owned = { readonly uid: number; readonly gid: number; readonly mode: number };

/** Bits of a mode. */
const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;
/**
 * Groups of administrators that own parts of the search path: Debian's /usr/local, Homebrew, Nix.
 */
const ADMINISTRATORS = new Set(['root', 'wheel', 'admin', 'sudo', 'nixbld', 'linuxbrew']);
/** On macOS every user is in `staff`; on Debian only administrators of /usr/local are. */
const STAFF = 'staff';

/** Effective user id; null on Windows. */
const ownUserId = (): number | null => process.geteuid?.() ?? null;

const ownersAt = (place: string): readonly number[] => {
  const status = statSync(place, { throwIfNoEntry: false });
  return status === undefined ? [] : [status.uid];
};

let systemIds: ReadonlySet<number> | null = null;

/**
 * Whether a user id is the system's. Usually that is root. In a user namespace root may appear as
 * another number, so the owners of `/` and `/usr` count too.
 */
const isSystem = (uid: number): boolean => {
  systemIds ??= new Set([0, ...ownersAt('/'), ...ownersAt('/usr')]);
  return systemIds.has(uid);
};

/** Whether something belongs to us or to the system. */
export const isOwnOrSystem = ({ uid }: Pick<Owned, 'uid'>): boolean => {
  const userId = ownUserId();
  return userId === null || uid === userId || isSystem(uid);
};

let groups: ReadonlyMap<number, string> | null = null;

const groupName = (gid: number): string => {
  if (groups === null) {
    let table = '';
    try {
      table = readFileSync('/etc/group', 'utf8');
    } catch {
      // no table: no group is known to be one of administrators
    }
    groups = new Map(
      table.split('\n').map((line) => {
        const [name = '', , number = ''] = line.split(':');
        return [Number(number), name] as const;
      }),
    );
  }
  return groups.get(gid) ?? '';
};

/**
 * Other users who may write. `administrators`: a group of the machine's administrators. `sticky`:
 * others may add entries to the folder, but not replace those of another user. Our group counts as
 * the user alone if it has the user's number.
 */
type Writers = 'none' | 'administrators' | 'sticky' | 'others';

/** Judges by owner and mode. */
export const otherWriters = ({ uid, gid, mode }: Owned): Writers => {
  const userId = ownUserId();
  if (userId === null) return 'none';
  const isForAll = (mode & OTHERS_WRITE) !== 0;
  const isOwnGroup = gid === userId && gid === process.getegid?.();
  // Group 0 is root's, so it is the system.
  const isForGroup = (mode & GROUP_WRITES) !== 0 && gid !== 0 && !isOwnGroup;
  if (!isForAll && !isForGroup) return 'none';
  if ((mode & STICKY) !== 0 && isOwnOrSystem({ uid })) return 'sticky';
  if (isForAll) return 'others';
  const name = groupName(gid);
  const runsMachine = ADMINISTRATORS.has(name) || (name === STAFF && process.platform !== 'darwin');
  return runsMachine ? 'administrators' : 'others';
};
