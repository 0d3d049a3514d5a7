/**
 * Changes files and folders that a command may replace, remove or make unreadable at any moment.
 *
 * - `listFolder`: the entries of a folder, also if a command closed it; `inFolder`: other work.
 * - `setAside`: moves an entry to a folder. `replaceEntry`: a new file in place of an entry.
 * - `replaceKeepingCopy`: a new file in place of an old one, which is copied to a folder.
 * - `removeBelow`: an entry with everything below it.
 * - `writeBack`: the old content of a file. `createFile`, `createLink`: at an unused path.
 *
 * In this order. All work in an open folder (`inFolder`). Without /proc they do nothing, but for
 * `replaceEntry` and `listFolder`. For reading there is `readBytes` of files.ts.
 */

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  type Dirent,
  fchmodSync,
  fchownSync,
  ftruncateSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import {
  copyRegularSync,
  descriptorPath,
  entryStatus,
  errorCode,
  type HeldFolderSync,
  hasDescriptorPaths,
  holdFolderSync,
  isFolder,
  O_PATH,
  type RawPath,
  readRawName,
  systemPath,
  withRegularSync,
} from './files.js';

const FILE_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

const listEntries = (folder: RawPath): readonly Dirent[] => {
  const entries = readdirSync(systemPath(folder), { withFileTypes: true });
  if (!entries.some(({ name }) => name.includes('\ufffd'))) return entries;
  return readdirSync(systemPath(folder), { withFileTypes: true, encoding: 'buffer' }).map((entry) =>
    Object.assign(entry, { name: readRawName(entry.name) }),
  );
};

/**
 * Like `entriesIn` of files.ts, with names that may be no UTF-8 (`RawPath`). A folder of ours that
 * we may enter but not list becomes one that we may list.
 */
export const listFolder = (folder: RawPath): readonly Dirent[] => {
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

/**
 * Works in a folder that is opened first, so that it can't be replaced by a symlink: `below` is a
 * path to the open folder. Null if the folder was replaced, or the work failed, and always without
 * /proc.
 */
export const inFolder = <T>(folder: RawPath, work: (below: string) => T): T | null => {
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
const changeEntry = <T>(place: RawPath, work: (entry: RawPath, below: string) => T): T | null =>
  inFolder(path.dirname(place), (below) => {
    takeRights(below);
    return work(`${below}/${path.basename(place)}`, below);
  });

/**
 * Moves a file or folder out of the workspace into one of the session, so that no program runs it
 * by accident. Returns the new path; null if the move failed, for example because the file is
 * missing or a folder above was replaced. To another file system pipes, sockets and devices are not
 * moved, but removed.
 */
export const setAside = (place: RawPath, folder: string): RawPath | null =>
  changeEntry(place, (entry) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const target = path.join(folder, path.basename(place));
    if (isFolder(entry)) inEntry(entry, takeRights); // its `..` changes, which needs rights
    move(entry, target);
    return target;
  });

/**
 * Makes a file in an open folder, and puts it in place of the entry with this name. If that fails,
 * only the earlier entry is there. Root gives it to `uid` and `gid`.
 */
export const replaceEntry = (
  below: string,
  name: RawPath,
  { uid, gid, mode }: Pick<Stats, 'uid' | 'gid' | 'mode'>,
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
export const replaceKeepingCopy = (
  place: RawPath,
  content: Buffer,
  folder: string,
): RawPath | null =>
  changeEntry(place, (entry, below) => {
    const target = copyInto(folder, entry);
    replaceEntry(below, path.basename(place), lstatSync(systemPath(entry)), (fresh) =>
      writeFileSync(fresh, content, { flag: 'wx', mode: 0o600 }),
    );
    return target;
  });

const copyInto = (folder: string, entry: RawPath): RawPath => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const target = path.join(folder, path.basename(entry));
  copyEntry(entry, target);
  return target;
};

/** Renames, or copies to another file system. `from`: an entry of a folder that is held open. */
const move = (from: RawPath, to: RawPath): void => {
  try {
    renameSync(systemPath(from), systemPath(to));
  } catch (error) {
    if (errorCode(error) !== 'EXDEV') throw error;
    copyEntry(from, to);
    removeEntry(from);
  }
};

/** Like `inFolder` for an entry of an open folder, which may be no symlink; throws. */
const inEntry = (folder: RawPath, work: (below: string) => void): void => {
  const descriptor = openSync(systemPath(folder), O_PATH | FOLDER_ONLY);
  try {
    work(descriptorPath(descriptor));
  } finally {
    closeSync(descriptor);
  }
};

/** Works on each entry of a folder, by a path through the open folder. */
const forEachEntry = (folder: RawPath, work: (entry: RawPath, name: RawPath) => void): void =>
  inEntry(folder, (below) => {
    takeRights(below);
    for (const { name } of listEntries(below)) work(`${below}/${name}`, name);
  });

/** Copies an entry with all below it, but without pipes, sockets and devices. */
const copyEntry = (from: RawPath, to: RawPath): void => {
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
export const removeBelow = (place: RawPath): void => {
  changeEntry(place, removeEntry);
};

/** Removes an entry. Unlike `rmSync`, it stays in this folder if another process replaces it. */
const removeEntry = (entry: RawPath): void => {
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
 * Returns the copy; null if the file is missing, not a regular one, or a folder above was replaced,
 * and on a full disk, which may leave a part of the old content.
 */
export const writeBack = (place: RawPath, content: Buffer, folder: string): RawPath | null =>
  changeEntry(place, (entry) => {
    const target = copyInto(folder, entry);
    return withRegularSync(entry, { follow: 'folders' }, (reach) => {
      takeRights(reach, 0o200);
      const descriptor = openSync(reach, constants.O_WRONLY);
      try {
        writeFileSync(descriptor, content);
        ftruncateSync(descriptor, content.length); // last: a full disk empties no file
        return target;
      } finally {
        closeSync(descriptor);
      }
    });
  });

/** Makes a file at an unused path. False if that failed; a part of it may be there then. */
export const createFile = (place: RawPath, content: Buffer, mode: number): boolean =>
  changeEntry(place, (entry) => {
    const descriptor = openSync(systemPath(entry), 'wx', 0o600);
    try {
      writeFileSync(descriptor, content);
      fchmodSync(descriptor, mode & 0o777); // not cut by the umask
    } finally {
      closeSync(descriptor);
    }
    return true;
  }) ?? false;

/** Makes a symlink at an unused path. False if that failed. */
export const createLink = (place: RawPath, target: RawPath): boolean =>
  changeEntry(place, (entry) => {
    symlinkSync(systemPath(target), systemPath(entry));
    return true;
  }) ?? false;
