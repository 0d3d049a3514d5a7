/**
 * Files as tools see them: from a name to a real path, from a path to bytes and text, and back to
 * the disk.
 *
 * From top to bottom: paths, blobs (output that was cut and stored) and titles; reading and
 * decoding; and writing, which replaces a file at once, so that no reader sees half of it.
 */

import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath, rename, unlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import {
  errorCode,
  type HeldFolder,
  hashBytes,
  holdFolder,
  holdOrMakeFolder,
  mayAccess,
  readRegular,
  systemFault,
} from '../platform/files.js';
import type { CallFacts } from '../policy/judged-call.js';
import type { InvalidInput, ToolContext, ToolOutcome } from '../ports/tool.js';
import { showPath } from './define-tool.js';

// ---- Paths ----

// 1. A real path contains no symlink, even if the file does not exist. Policy and tools therefore
//    see the same file.
// 2. Nothing is opened and nothing is changed.
// 3. The paths of a call are decided when it is judged. Another call may since have put a symlink
//    in the way, so a tool takes its path from `findAllowed` just before it uses it.

const LINKS_MAX = 40;

/** Resolves symlinks up to the first missing part. */
const follow = async (absolute: string, links: number): Promise<string> => {
  if (links > LINKS_MAX) throw new Error('it leads through too many symlinks');
  try {
    return await realpath(absolute);
  } catch (error) {
    const code = errorCode(error);
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
  }
  const parent = path.dirname(absolute);
  if (parent === absolute) return absolute;
  const place = path.join(await follow(parent, links), path.basename(absolute));
  const status = await lstat(place).catch(() => null); // null: nothing exists there
  if (!status?.isSymbolicLink()) return place;
  return follow(path.resolve(path.dirname(place), await readlink(place)), links + 1);
};

/** Absolute, but symlinks are not resolved. `~` is the home folder, as in a shell. */
const makeAbsolute = (name: string, workspace: string): string => {
  if (name === '~' || name.startsWith('~/')) return path.join(homedir(), name.slice(1));
  return path.resolve(workspace, name);
};

/** The real path of a name that the model gave. Rejects if the path can't be followed. */
const findRealPath = (name: string, workspace: string): Promise<string> =>
  follow(makeAbsolute(name, workspace), 0);

/** The real path of what looks like it, where nothing is; null if that can't be followed. */
const findAlikePath = async (real: string): Promise<string | null> => {
  if ((await lstat(real).catch(() => null)) !== null) return real; // there: the usual case
  const { findAlike } = await import('./similar-names.js');
  const other = await findAlike(real);
  return other === real ? real : follow(other, 0).catch(() => null);
};

type Allowed =
  | {
      readonly kind: 'allowed';
      readonly real: string;
      readonly shown: string;
      /** Says that another name was given, which looks like this one; mostly empty. */
      readonly note: string;
    }
  | { readonly kind: 'elsewhere'; readonly why: string };

/**
 * The real path, if it is still one that the policy decided about. Another call may since have put
 * a symlink in the way.
 */
export const findAllowed = async (
  name: string,
  { workspace, paths }: Pick<ToolContext, 'workspace' | 'paths'>,
): Promise<Allowed> => {
  // null: it can't be followed any more
  const real = await findRealPath(name, workspace).catch(() => null);
  const shown = (place: string): string => showPath(place, workspace);
  if (real !== null && paths.includes(real))
    return { kind: 'allowed', real, shown: shown(real), note: '' };
  const other = real === null ? null : await findAlikePath(real);
  if (real !== null && other !== null && paths.includes(other)) {
    const { quoteName } = await import('./similar-names.js');
    const note = `[there is no "${shown(real)}"; this is ${quoteName(shown(other))}]`;
    return { kind: 'allowed', real: other, shown: shown(other), note };
  }
  return {
    kind: 'elsewhere',
    why: `${name}: the path leads elsewhere than when it was allowed; look again and ask anew.`,
  };
};

type FileFacts = { readonly kind: 'ok'; readonly facts: CallFacts };

/**
 * Facts for the policy about a call with one path. `shape` is the key of an answer that is kept for
 * equal calls. `alike`: where nothing has this name, a name that looks like it counts.
 */
export const judgePath = async (
  name: string,
  workspace: string,
  { field = 'path', match = 'alike' }: { field?: string; match?: 'alike' | 'exact' } = {},
): Promise<FileFacts | InvalidInput> => {
  if (name.includes('\0')) return { kind: 'invalid', field, why: 'holds a NUL character' };
  try {
    const exact = await findRealPath(name, workspace);
    const real = match === 'exact' ? exact : ((await findAlikePath(exact)) ?? exact);
    return { kind: 'ok', facts: { argv: [], paths: [real], hosts: [], shape: real } };
  } catch (error) {
    const why = errorCode(error) || (error instanceof Error ? error.message : String(error));
    return { kind: 'invalid', field, why: `${name} can't be followed to a real path: ${why}` };
  }
};

/** The hash in `blob:HASH`, as results name output that was cut; null for a path. */
export const blobHash = (name: string): string | null =>
  /^blob:([0-9a-f]{64})$/.exec(name)?.[1] ?? null;

/** A blob of the session is no file, and can be read without a question. */
export const judgeBlob = (name: string): FileFacts => ({
  kind: 'ok',
  facts: { argv: [], paths: [], hosts: [], shape: name },
});

export const noBlob = (name: string): ToolOutcome => ({
  status: 'failed',
  text: `There is no ${name} in this session.`,
});

/** The title of a call that searches below a folder. */
export const titleWithin = (sought: string, [folder = '.']: readonly string[]): string =>
  folder === '.' ? sought : `${sought} in ${folder}`;

// ---- Bytes with a hash, and text ----

const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** A NUL byte among so many first ones tells a binary file. */
const SNIFFED_BYTES = 8_192;

/** Stands for a missing file where a hash of a file is expected: sha256 of `absent`. */
export const ABSENT = '5ad38304b535c2987dbd24657c1a11b884984ff600d9f389deb0d4e634fee792';

export type LoadedFile =
  | {
      readonly kind: 'file';
      readonly bytes: Buffer;
      readonly sha256: string;
      readonly mode: number;
    }
  | { readonly kind: 'absent' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'unreadable'; readonly why: string; readonly isTooLarge?: true };

/** Environments, memory and open files of processes, including our environment with its keys. */
const PROCESS_FILES = /^\/proc\/\d+\//;

/** Loads a file in a held folder. Does not follow a symlink. */
const loadIn = async (folder: HeldFolder, name: string): Promise<LoadedFile> => {
  if (PROCESS_FILES.test(path.join(folder.real, name)))
    return { kind: 'unreadable', why: 'it belongs to a process' };
  const loaded = await readRegular(folder.at(name), FILE_BYTES_MAX, { follow: 'folders' });
  if (loaded.kind === 'unusable') return { ...loaded, kind: 'unreadable' };
  if (loaded.kind !== 'file') return loaded;
  const { bytes, status } = loaded;
  return { kind: 'file', bytes, sha256: hashBytes(bytes), mode: status.mode & 0o7777 };
};

/** Loads a whole regular file by its real path. Refuses pipes, devices and symlinks. */
export const loadFile = async (real: string): Promise<LoadedFile> => {
  try {
    const held = await holdFolder(path.dirname(real));
    if (held.kind === 'elsewhere')
      return { kind: 'unreadable', why: 'its path leads elsewhere now' };
    if (held.kind !== 'held') return { kind: 'absent' };
    try {
      return await loadIn(held.folder, path.basename(real));
    } finally {
      await held.folder.close();
    }
  } catch (error) {
    return { kind: 'unreadable', why: systemFault(error, real) };
  }
};

/**
 * The hash of the file's bytes, or ABSENT; null if something is there that can't be read as a file.
 */
export const hashLoaded = (loaded: LoadedFile): string | null => {
  if (loaded.kind === 'file') return loaded.sha256;
  return loaded.kind === 'absent' ? ABSENT : null;
};

export type Encoding = 'utf8' | 'utf8-bom' | 'utf16le' | 'utf16be' | 'unknown';

type DecodedFile =
  | { readonly kind: 'text'; readonly text: string; readonly encoding: Encoding }
  | { readonly kind: 'binary' };

const decodeUtf8 = (bytes: Buffer): DecodedFile => {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      hasMark ? bytes.subarray(3) : bytes,
    );
    return { kind: 'text', text, encoding: hasMark ? 'utf8-bom' : 'utf8' };
  } catch {
    // Not UTF-8: the reader sees replacement characters, and the encoding is reported as unknown.
    return { kind: 'text', text: bytes.toString('utf8'), encoding: 'unknown' };
  }
};

/** A byte order mark identifies UTF-16. Any other file with a NUL byte near its start is binary. */
export const decodeFile = (bytes: Buffer): DecodedFile => {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) {
    return { kind: 'text', text: new TextDecoder('utf-16le').decode(bytes), encoding: 'utf16le' };
  }
  if (bytes[0] === 0xfe && bytes[1] === 0xff) {
    const swapped = Buffer.from(bytes.subarray(0, bytes.length & ~1)).swap16();
    return { kind: 'text', text: new TextDecoder('utf-16le').decode(swapped), encoding: 'utf16be' };
  }
  if (bytes.subarray(0, SNIFFED_BYTES).includes(0)) return { kind: 'binary' };
  return decodeUtf8(bytes);
};

/** The text of a file in UTF-8; of another file undefined, since no edit is made in it. */
export const editableText = (decoded: DecodedFile): string | undefined =>
  decoded.kind === 'text' && (decoded.encoding === 'utf8' || decoded.encoding === 'utf8-bom')
    ? decoded.text
    : undefined;

/** The text of a file that can be written back byte for byte, or why there is none. */
type ExactText =
  | { readonly kind: 'text'; readonly text: string; readonly encoding: 'utf8' | 'utf8-bom' }
  | { readonly kind: 'refused'; readonly why: string };

/**
 * The text of a file for a change. A file in another encoding is refused, since its bytes would
 * become others, also where nothing was to change. `shown`: its path for people.
 */
export const exactText = (bytes: Buffer, shown: string): ExactText => {
  const decoded = decodeFile(bytes);
  if (decoded.kind === 'binary')
    return {
      kind: 'refused',
      why:
        `${shown} is a binary file and can't be edited or replaced as text. Remove it with a shell command first, if it is to go. ` +
        'Nothing was changed.',
    };
  const { text, encoding } = decoded;
  if (encoding === 'utf8' || encoding === 'utf8-bom') return { kind: 'text', text, encoding };
  const [what, from] =
    encoding === 'unknown'
      ? [`is not valid UTF-8 (${describeForeignByte(bytes)})`, 'ENCODING']
      : ['is UTF-16', encoding === 'utf16le' ? 'UTF-16LE' : 'UTF-16BE'];
  return {
    kind: 'refused',
    why:
      `${shown} ${what} and can't be edited or written without damage. Change it with a shell ` +
      `command that keeps its bytes, or convert it first: iconv -f ${from} -t UTF-8. Nothing was ` +
      'changed.',
  };
};

/** The first byte that is not UTF-8, and its line: `byte 0xE9 in line 3`. */
const describeForeignByte = (bytes: Buffer): string => {
  let at = 0;
  // a replacement character stands for a foreign byte, or for itself
  for (const valid of bytes.toString('utf8').split('\ufffd')) {
    at += Buffer.byteLength(valid);
    if (bytes.toString('latin1', at, at + 3) !== '\xef\xbf\xbd') break;
    at += 3;
  }
  const line = bytes.subarray(0, at).filter((byte) => byte === 0x0a).length + 1;
  return `byte 0x${(bytes[at] ?? 0).toString(16).toUpperCase().padStart(2, '0')} in line ${line}`;
};

export const encodeText = (text: string, encoding: 'utf8' | 'utf8-bom'): Buffer =>
  Buffer.from(encoding === 'utf8-bom' ? `\ufeff${text}` : text);

// ---- Writing ----

type WriteOutcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'changedMeanwhile' }
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'failed'; readonly why: string };

/**
 * Writes `bytes` to the real path if the file still has the hash `expected` (ABSENT: no file).
 *
 * 1. A reader sees the old bytes or the new bytes, never a mixture. After a failure the old bytes
 *    remain.
 * 2. Mode and owner stay where the system lets them. A hard link to the old file keeps the old
 *    bytes.
 * 3. The folder is held open during the change, so a symlink that appears in its path redirects
 *    neither the new bytes nor the temporary file. Just before the change, the file must have the
 *    expected hash and the folder must still be in place.
 */
export const replaceFile = async (
  real: string,
  bytes: Uint8Array,
  expected: string,
): Promise<WriteOutcome> => {
  const above = path.dirname(real);
  try {
    const held = await holdOrMakeFolder(above);
    if (held.kind === 'elsewhere') return { kind: 'elsewhere' };
    if (held.kind !== 'held') return { kind: 'failed', why: `${above} is not a folder` };
    try {
      return await replaceIn({ folder: held.folder, name: path.basename(real), bytes, expected });
    } finally {
      await held.folder.close();
    }
  } catch (error) {
    return { kind: 'failed', why: systemFault(error, real) };
  }
};

/** A file to be replaced by new bytes. */
type Replacement = {
  readonly folder: HeldFolder;
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Hash that the file must still have, or ABSENT. */
  readonly expected: string;
};

/** Replaces a file in a held folder. */
const replaceIn = async (replacement: Replacement): Promise<WriteOutcome> => {
  const { folder, name, bytes } = replacement;
  const permissions = await readPermissions(folder.at(name));
  if (permissions !== null && !mayAccess(folder.at(name), constants.W_OK))
    return { kind: 'failed', why: 'it is write-protected' };
  const usual = folder.at(temporaryName(name, bytes));
  // until it has the permissions of the old file, no other user may read it
  const temporary = await createTemporary(usual, permissions === null ? 0o666 : 0o600);
  try {
    await fill(temporary.file, bytes, permissions);
    const outcome = await exchange(temporary.place, replacement);
    if (outcome.kind === 'written' && temporary.place !== usual) await removeIfThere(usual);
    return outcome;
  } catch (error) {
    await removeIfThere(temporary.place); // the failure itself is reported
    throw error;
  }
};

const removeIfThere = (place: string): Promise<void> => unlink(place).catch(() => undefined);

type TemporaryFile = { readonly place: string; readonly file: FileHandle };

/**
 * Makes the temporary file. One with the usual name is left by a killed call, or another process
 * writes the same bytes at this moment: then this one gets a name of its own.
 */
const createTemporary = async (usual: string, mode: number): Promise<TemporaryFile> => {
  try {
    return { place: usual, file: await open(usual, 'wx', mode) };
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  const place = `${usual}.${randomBytes(6).toString('hex')}.tmp`;
  return { place, file: await open(place, 'wx', mode) };
};

type Permissions = { readonly mode: number; readonly uid: number; readonly gid: number };

const readPermissions = async (place: string): Promise<Permissions | null> => {
  const status = await lstat(place).catch(() => null); // null: a new file
  return status?.isFile() ? { mode: status.mode & 0o7777, uid: status.uid, gid: status.gid } : null;
};

const keepOwner = async (file: FileHandle, permissions: Permissions): Promise<void> => {
  const { uid, gid, mode } = permissions;
  let created = await file.stat();
  if (created.uid !== uid || created.gid !== gid) {
    // Only root may set another owner, and members of a group the group. For other users the file
    // becomes theirs, as in most editors.
    await file.chown(uid, gid).catch(() => file.chown(-1, gid).catch(() => undefined));
    created = await file.stat();
  }
  // another group does not get the rights of this one
  await file.chmod(created.gid === gid ? mode : mode & ~0o2070);
};

/** Writes the temporary file. */
const fill = async (
  file: FileHandle,
  bytes: Uint8Array,
  permissions: Permissions | null,
): Promise<void> => {
  try {
    await file.writeFile(bytes);
    if (permissions !== null) await keepOwner(file, permissions);
    await file.datasync();
  } finally {
    await file.close();
  }
};

/**
 * Moves the new file into place, if the file has the expected hash and the folder is still where it
 * was.
 */
const exchange = async (
  temporary: string,
  { folder, name, expected }: Replacement,
): Promise<WriteOutcome> => {
  const same = hashLoaded(await loadIn(folder, name)) === expected;
  const inPlace = await folder.isInPlace();
  if (same && inPlace) {
    try {
      await rename(temporary, folder.at(name));
      return { kind: 'written' };
    } catch (error) {
      // another process has just written the same bytes, and removed our file
      if (errorCode(error) !== 'ENOENT') throw error;
    }
  }
  // if the folder is gone, there is nothing to remove
  await removeIfThere(temporary);
  return { kind: inPlace ? 'changedMeanwhile' : 'elsewhere' };
};

/**
 * The usual name of the temporary file. It follows from the content, so that a call that runs again
 * after a crash removes the file that it left. File systems limit the bytes of a name, not its
 * characters.
 */
const temporaryName = (name: string, bytes: Uint8Array): string =>
  `.${Buffer.from(name).toString('utf8', 0, 200)}.${hashBytes(bytes).slice(0, 12)}.tmp`;
