import {
  closeSync,
  constants,
  cpSync,
  type Dirent,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { entryStatus } from '../../platform/files.js';

/** Files and folders that a command may exchange, remove or close to us at any moment. */

const FILE_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export const isFolder = (place: string): boolean => entryStatus(place)?.isDirectory() === true;

/** Null if there is no such folder, or it is closed to us. */
export const readNames = (folder: string): readonly string[] | null => {
  try {
    return readdirSync(folder);
  } catch {
    return null; // so it is to commands as well
  }
};

/** Empty if there is no such folder, or it is closed to us. */
export const namesIn = (folder: string): readonly string[] => readNames(folder) ?? [];

/** Empty if there is no such folder, or it is closed to us. */
export const entriesIn = (folder: string): readonly Dirent[] => {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // so it is to commands as well
  }
};

/**
 * Reads an open file. Null if there is none, or if it is a symlink or closed to us. Never waits for
 * a FIFO.
 */
const readFile = <T>(file: string, read: (descriptor: number) => T): T | null => {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(file, FILE_ONLY);
    return read(descriptor);
  } catch {
    return null; // it says nothing to git either
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
};

/** The content of a file, without following symlinks; null if there is none. */
export const readBytes = (file: string): Buffer | null =>
  readFile(file, (open) => readFileSync(open));

const TEXT_MAX = 64 * 1024;

/** The text of a small regular file, or its first 64 kB; empty for everything else. */
export const readSmall = (file: string): string =>
  readFile(file, (open) => {
    if (!fstatSync(open).isFile()) return null;
    const bytes = Buffer.alloc(TEXT_MAX);
    return bytes.subarray(0, readSync(open, bytes, 0, TEXT_MAX, 0)).toString('utf8');
  }) ?? '';

/**
 * Works in a folder that is opened first, so that nobody can exchange it for a symlink: `below` is
 * a path to the open folder. Null if the folder was exchanged, or the work failed.
 */
export const inFolder = <T>(folder: string, work: (below: string) => T): T | null => {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(folder, FOLDER_ONLY);
    const below = `/proc/self/fd/${descriptor}`;
    return readlinkSync(below) === folder ? work(below) : null;
  } catch {
    // the folder or what was looked for in it is gone or closed to us, or the disk is full
    return null;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
};

/**
 * Moves a file out of the workspace into a folder of the session, so that nothing runs it by
 * accident. Returns the new path; null if the move failed because the file is gone or a folder on
 * the way was exchanged: the next look finds it again.
 */
export const setAside = (place: string, folder: string): string | null =>
  inFolder(path.dirname(place), (below) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const target = path.join(folder, path.basename(place));
    move(`${below}/${path.basename(place)}`, target);
    return target;
  });

const move = (from: string, to: string): void => {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EXDEV')) throw error;
    cpSync(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    rmSync(from, { recursive: true, force: true });
  }
};

/** Restores the old content of a file in place. Throws if it is gone or a symlink. */
export const writeBack = (place: string, content: Buffer): void => {
  const descriptor = openSync(place, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    ftruncateSync(descriptor);
    writeSync(descriptor, content);
  } finally {
    closeSync(descriptor);
  }
};
