import { constants } from 'node:fs';
import {
  access,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readlink,
  realpath,
  rmdir,
  stat,
} from 'node:fs/promises';
import path from 'node:path';
import { descriptorPath, hasDescriptorPaths, O_PATH } from './regular-file.js';

/**
 * Opens a folder once and works in it through its descriptor, safe against symlink races.
 *
 * 1. The opened folder is verified by asking the kernel for the descriptor's path. A symlink that another process
 *    inserts, before or after, has no effect.
 * 2. Its entries are accessed through `/proc/self/fd/N`, so they stay in this folder wherever its path leads later.
 * 3. Without such paths (macOS), entries are accessed through the ordinary path, which is checked before and after.
 *    There a process that exchanges folders at the right moment can still win.
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

/** `elsewhere`: the path leads through a symlink now, or the folder was moved. */
export type HeldFolderResult =
  | { readonly kind: 'held'; readonly folder: HeldFolder }
  | { readonly kind: 'absent' }
  | { readonly kind: 'notFolder' }
  | { readonly kind: 'elsewhere' };

const codeOf = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;

const plainFolder = async (real: string): Promise<HeldFolder> => ({
  real,
  reach: real,
  at: (name) => path.join(real, name),
  isInPlace: async () => (await realpath(real).catch(() => '')) === real,
  close: async () => undefined,
});

const heldBy = (handle: FileHandle, real: string): HeldFolder => {
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
      const folder = await plainFolder(real);
      if (!(await stat(real)).isDirectory()) return { kind: 'notFolder' };
      return (await folder.isInPlace()) ? { kind: 'held', folder } : { kind: 'elsewhere' };
    }
    const handle = await open(place, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    const folder = heldBy(handle, real);
    if (await folder.isInPlace()) return { kind: 'held', folder };
    await folder.close();
    return { kind: 'elsewhere' };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return { kind: 'absent' };
    if (code === 'ENOTDIR') return { kind: (await isLink(place)) ? 'elsewhere' : 'notFolder' };
    if (code === 'ELOOP') return { kind: 'elsewhere' };
    throw error;
  }
};

/** Opens a folder by its real path. Rejects if the system refuses. The caller closes it. */
export const holdFolder = (real: string): Promise<HeldFolderResult> => hold(real, real);

const makeIn = async (parent: HeldFolder, real: string): Promise<HeldFolderResult> => {
  const place = parent.at(path.basename(real));
  const made = await mkdir(place).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === 'EEXIST') return false; // somebody else was faster: their folder is checked like any other
      throw error;
    },
  );
  const held = await hold(place, real);
  // Don't leave a folder behind that was moved away meanwhile.
  if (held.kind !== 'held' && made) await rmdir(place).catch(() => undefined); // somebody else uses it now
  return held;
};

/** Like `holdFolder`, but makes missing folders. */
export const holdOrMakeFolder = async (real: string): Promise<HeldFolderResult> => {
  const found = await holdFolder(real);
  if (found.kind !== 'absent' || path.dirname(real) === real) return found;
  const above = await holdOrMakeFolder(path.dirname(real));
  if (above.kind !== 'held') return above;
  try {
    return await makeIn(above.folder, real);
  } finally {
    await above.folder.close();
  }
};

/** Whether we may write to a file. Not meaningful for a symlink. */
export const mayWrite = (place: string): Promise<boolean> =>
  access(place, constants.W_OK).then(
    () => true,
    () => false,
  );
