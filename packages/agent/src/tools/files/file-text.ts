import { createHash } from 'node:crypto';
import path from 'node:path';
import { type HeldFolder, holdFolder } from '../../platform/files/open-folder.js';
import { readRegular, systemFault } from '../../platform/files/regular-file.js';

/** Reads files as bytes with a hash, and decodes bytes as text. */

const FILE_BYTES_MAX = 64 * 1024 * 1024;
const SNIFFED_BYTES = 8_192;

export const hashOf = (bytes: Uint8Array | string): string =>
  createHash('sha256').update(bytes).digest('hex');

/** Stands for a missing file where a hash of a file is expected: sha256 of `absent`. */
export const ABSENT = hashOf('absent');

export type LoadedFile =
  | { readonly kind: 'file'; readonly bytes: Buffer; readonly sha256: string; readonly mode: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'unreadable'; readonly why: string; readonly isTooLarge?: true };

/** Environments, memory and open files of processes, including our own environment with its keys. */
const OF_PROCESS = /^\/proc\/\d+\//;

/** Loads a file in a held folder. Does not follow a symlink. */
export const loadIn = async (folder: HeldFolder, name: string): Promise<LoadedFile> => {
  if (OF_PROCESS.test(path.join(folder.real, name)))
    return { kind: 'unreadable', why: 'it belongs to a process' };
  const loaded = await readRegular(folder.at(name), FILE_BYTES_MAX, { follow: false });
  if (loaded.kind === 'unusable') return { ...loaded, kind: 'unreadable' };
  if (loaded.kind !== 'file') return loaded;
  const { bytes, status } = loaded;
  return { kind: 'file', bytes, sha256: hashOf(bytes), mode: status.mode & 0o7777 };
};

/** Loads a whole regular file by its real path. Refuses pipes, devices and symlinks. */
export const loadFile = async (real: string): Promise<LoadedFile> => {
  try {
    const held = await holdFolder(path.dirname(real));
    if (held.kind === 'elsewhere') return { kind: 'unreadable', why: 'its path leads elsewhere now' };
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

/** The hash of the file's bytes, or ABSENT; null if something is there that can't be read as a file. */
export const hashLoaded = (loaded: LoadedFile): string | null => {
  if (loaded.kind === 'file') return loaded.sha256;
  return loaded.kind === 'absent' ? ABSENT : null;
};

export type Encoding = 'utf8' | 'utf8-bom' | 'utf16le' | 'utf16be' | 'unknown';

export type DecodedFile =
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

export const encodeText = (text: string, encoding: 'utf8' | 'utf8-bom'): Buffer =>
  Buffer.from(encoding === 'utf8-bom' ? `\ufeff${text}` : text);
