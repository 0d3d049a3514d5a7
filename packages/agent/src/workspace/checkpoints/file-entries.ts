/**
 * How files, links and folders of the workspace are, by their stamps. A stamp is a text of a file's
 * times, size, inode and mode. A name is a path in the workspace with each byte as one character,
 * since it may be no UTF-8; `toName` of manifest.ts makes it, and `showName` gives its text.
 *
 * A file counts as unchanged while its stamp stays. One that changed a moment before a look has no
 * stamp, so that the next look reads it again: two writes may have one time. No symlink in the
 * place of a folder is followed.
 */

import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  entryStatus,
  errorCode,
  hashBytes,
  holdFolderSync,
  readRegularSync,
} from '../../platform/files.js';
import { ABSENT, type FileState } from './manifest.js';

/** How a file, link or folder is. */
export type FileEntry = {
  readonly kind: 'file' | 'link' | 'folder';
  readonly mode: number;
  readonly bytes: number;
  /** Empty: it changed a moment ago, so it has to be read again. */
  readonly stamp: string;
  readonly changedAtMs: number;
  readonly inode: string;
  /** Of a link. */
  readonly target?: string;
};

/** After so many looks, or so many names, other work gets a turn. */
export const SLICE = 400;
const SLICE_OF_NAMES = 5_000;

/** The items in slices, with a turn for other work after each. */
export async function* inSlices<T>(
  items: Iterable<T>,
  size = SLICE_OF_NAMES,
): AsyncGenerator<readonly T[]> {
  let slice: T[] = [];
  for (const item of items) {
    if (slice.push(item) < size) continue;
    yield slice;
    slice = [];
    await nextTurn();
  }
  yield slice;
}

/**
 * Two changes within a tick of the kernel may have the same time. A file system with whole seconds
 * (FAT) may hide the second change: to wait for it as git.ts does would read each file again.
 */
export const TICK_MS = 20;

/** How a file, link or folder is. Null: there is none, or something of another kind. */
export const lookAt = (workspace: string, name: string): FileEntry | null =>
  isBehindLink(workspace, name) ? null : lookInFolder(workspace, name);

/** Like `lookAt`, for a name whose folders are known to be folders. */
const lookInFolder = (workspace: string, name: string): FileEntry | null => {
  const place = quickPlace(workspace, name);
  const status = entryStatus(place);
  if (status === null) return null; // missing, or it can't be reached: see `whyUnknown`
  const common = {
    mode: status.mode & 0o7777,
    bytes: status.size,
    stamp: status.ctimeMs > Date.now() - TICK_MS ? '' : makeStamp(status),
    changedAtMs: Math.floor(status.ctimeMs),
    inode: `${status.ino}`,
  };
  if (status.isFile()) return { kind: 'file', ...common };
  if (status.isDirectory()) return { kind: 'folder', ...common };
  if (!status.isSymbolicLink()) return null;
  try {
    return { kind: 'link', ...common, target: readTarget(workspace, name) };
  } catch {
    return null; // removed meanwhile
  }
};

/**
 * Differs once a file has changed, if it had not changed for `TICK_MS` when the stamp was taken.
 * Times are exact to a quarter of a microsecond: exact numbers cost as much again as the look.
 */
export const makeStamp = ({ mtimeMs, ctimeMs, ino, size, mode }: Stats): string =>
  `${mtimeMs} ${ctimeMs} ${ino} ${size} ${mode}`;

const readTarget = (workspace: string, name: string): string => {
  const [folder, base] = splitName(name);
  const held = holdFolder(workspace, folder);
  try {
    return readlinkSync(held.at(base), 'buffer').toString('latin1');
  } finally {
    held.close();
  }
};

const toBytes = (name: string): Buffer => Buffer.from(name, 'latin1');

/** The path of a name. A buffer, since names may be no UTF-8. */
export const placeOf = (workspace: string, name: string): Buffer =>
  Buffer.concat([Buffer.from(workspace), Buffer.from('/'), toBytes(name)]);

export const splitName = (name: string): readonly [folder: string, base: string] => {
  const at = name.lastIndexOf('/');
  return at < 0 ? ['', name] : [name.slice(0, at), name.slice(at + 1)];
};

/** An open folder. `at`: the path of an entry, which leads into this folder even if it is moved. */
export type HeldWorkspaceFolder = { at(base: string): Buffer; close(): void };

/** Opens a folder of the workspace as `holdFolderSync` does. */
export const holdFolder = (workspace: string, folder: string): HeldWorkspaceFolder => {
  const held = holdFolderSync(folder === '' ? workspace : placeOf(workspace, folder));
  return { at: (base) => held.at(toBytes(base)), close: held.close };
};

/** Like `placeOf`, without a buffer if possible: making one takes as long as the look. */
const quickPlace = (workspace: string, name: string): string | Buffer =>
  /^[\0-\x7f]*$/.test(name) ? `${workspace}/${name}` : placeOf(workspace, name);

/** Whether a link stands where one of its folders was: what it leads to is another file. */
const isBehindLink = (workspace: string, name: string): boolean => {
  try {
    return foldersAround([name]).some((folder) =>
      lstatSync(quickPlace(workspace, folder), { throwIfNoEntry: false })?.isSymbolicLink(),
    );
  } catch {
    return false; // a file stands there, or a folder is closed: a look at the name tells
  }
};

/** Why nobody can know whether it is there: a folder around it is closed to us. Null: known. */
export const whyUnknown = (workspace: string, name: string): string | null => {
  if (isBehindLink(workspace, name)) return null;
  try {
    lstatSync(placeOf(workspace, name), { throwIfNoEntry: false });
    return null;
  } catch (error) {
    const code = errorCode(error);
    return code === 'ENOTDIR' ? null : `it can’t be reached (${code || error})`;
  }
};

/** The folders around the names, the outer before the inner. */
export const foldersAround = (names: readonly string[]): readonly string[] => {
  const folders = new Set<string>();
  for (const name of names)
    for (let at = name.lastIndexOf('/'); at > 0; at = name.lastIndexOf('/', at - 1)) {
      const folder = name.slice(0, at);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  return [...folders].sort();
};

/** The names and the folders that they are in, which a call may make or remove. */
export const withFolders = (names: readonly string[]): readonly string[] => [
  ...foldersAround(names),
  ...names,
];

/** Looks at all names and the folders around them, a slice at a time, so that nothing else waits. */
export const lookAtAll = async (
  workspace: string,
  names: readonly string[],
  folders: Iterable<string> = foldersAround(names),
): Promise<Map<string, FileEntry>> => {
  const entries = new Map<string, FileEntry>();
  // first the folders, of which only folders count, then the names, of which all else counts
  for (const list of [folders, names]) {
    const isOfFolders = list !== names;
    for await (const slice of inSlices(list, SLICE))
      for (const name of slice) {
        const isInFolder = !name.includes('/') || entries.has(splitName(name)[0]);
        const entry = isInFolder ? lookInFolder(workspace, name) : null;
        if (entry !== null && (entry.kind === 'folder') === isOfFolders) entries.set(name, entry);
      }
  }
  return entries;
};

// ---- What is in a folder ----

const readFolder = (place: Buffer) =>
  readdirSync(place, { withFileTypes: true, encoding: 'latin1' });

/** Nothing if it was removed or exchanged, or is closed to us, so to commands as well. */
export const readHeldFolder = (
  workspace: string,
  folder: string,
): ReturnType<typeof readFolder> => {
  try {
    const held = holdFolder(workspace, folder);
    try {
      return readFolder(held.at('.'));
    } finally {
      held.close();
    }
  } catch {
    return [];
  }
};

/** Nothing for a folder that is gone, closed, or no folder: its stamp tells when that changes. */
export const readFolderIfThere = (place: Buffer): ReturnType<typeof readFolder> => {
  try {
    return readFolder(place);
  } catch {
    return [];
  }
};

// ---- The content of a path ----

export const FILE_BYTES_MAX = 20 * 1024 * 1024;
export const TOO_LARGE = 'it has more than 20 MB';
const EXCHANGED = 'a folder around it was exchanged while it was read';

/** A file with its bytes, or the state of anything else. */
type LoadedState =
  | { readonly kind: 'bytes'; readonly bytes: Buffer; readonly mode: number }
  | Exclude<FileState, { readonly kind: 'file' }>;

/** How a path is now. The bytes of a file go to `keep`, if it is small enough. */
export const readState = async (
  workspace: string,
  name: string,
  keep: (bytes: Buffer) => Promise<string> | string = hashBytes,
): Promise<FileState> => {
  const loaded = load(workspace, name);
  if (loaded.kind !== 'bytes') return loaded;
  const { bytes, mode } = loaded;
  try {
    return { kind: 'file', sha256: await keep(bytes), bytes: bytes.length, mode };
  } catch (error) {
    return notRead(errorCode(error) || String(error));
  }
};

const notRead = (why: string) =>
  ({ kind: 'notKept', why: `it can’t be read or kept (${why})` }) as const;

/** Its folder is opened first: whoever exchanges it for a symlink leads to no other file. */
const load = (workspace: string, name: string): LoadedState => {
  const [folder, base] = splitName(name);
  try {
    const held = holdFolder(workspace, folder);
    try {
      return loadIn(held.at(base));
    } finally {
      held.close();
    }
  } catch (error) {
    const code = errorCode(error);
    if (code === '') throw error; // not from the file system
    if (code === 'ENOENT') return ABSENT;
    if (code !== 'ENOTDIR' && code !== 'ELOOP')
      return { kind: 'notKept', why: `it can’t be reached (${code})` };
    // a file or symlink stands where a folder was, or did until now
    return lookAt(workspace, name) === null ? ABSENT : { kind: 'notKept', why: EXCHANGED };
  }
};

/** `place`: an entry of an open folder. */
export const loadIn = (place: Buffer): LoadedState => {
  const loaded = readRegularSync(place, FILE_BYTES_MAX, { follow: 'folders' });
  if (loaded.kind === 'file')
    return { kind: 'bytes', bytes: loaded.bytes, mode: loaded.status.mode & 0o7777 };
  if (loaded.kind === 'absent') return ABSENT;
  if (loaded.kind === 'unusable' && loaded.isTooLarge) return { kind: 'notKept', why: TOO_LARGE };
  const status = lstatSync(place, { throwIfNoEntry: false });
  if (status?.isDirectory()) return { kind: 'folder', mode: status.mode & 0o7777 };
  if (status?.isSymbolicLink())
    return { kind: 'link', target: readlinkSync(place, 'buffer').toString('latin1') };
  // pipes, sockets and devices are left alone
  if (!status?.isFile()) return ABSENT;
  return notRead(loaded.kind === 'unusable' ? loaded.code : 'EBUSY');
};
