import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/** Files as bytes with a hash, and bytes as text. */

const FILE_BYTES_MAX = 64 * 1024 * 1024;
const SNIFFED_BYTES = 8_192;

export const hashOf = (bytes: Uint8Array | string): string =>
  createHash('sha256').update(bytes).digest('hex');

/** Stands for a file that does not exist, wherever the hash of a file's bytes is asked for: sha256 of `absent`. */
export const ABSENT = hashOf('absent');

export type LoadedFile =
  | { readonly kind: 'file'; readonly bytes: Buffer; readonly sha256: string; readonly mode: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'unreadable'; readonly why: string };

/** Reads a whole regular file. Never hangs on a pipe or a device: these are unreadable, as is a symlink. */
export const loadFile = async (real: string): Promise<LoadedFile> => {
  try {
    const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      const status = await file.stat();
      if (status.isDirectory()) return { kind: 'folder' };
      if (!status.isFile()) return { kind: 'unreadable', why: 'it is not a regular file' };
      if (status.size > FILE_BYTES_MAX) {
        return { kind: 'unreadable', why: `it has ${status.size} bytes, at most ${FILE_BYTES_MAX} are read` };
      }
      const bytes = await file.readFile();
      return { kind: 'file', bytes, sha256: hashOf(bytes), mode: status.mode & 0o7777 };
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' };
    if (code === 'EISDIR') return { kind: 'folder' };
    return { kind: 'unreadable', why: error instanceof Error ? error.message : String(error) };
  }
};

/** The hash of the file's bytes, or ABSENT; null of what is there and can't be read as a file. */
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
    // Not UTF-8: the encoding is said to be unknown, and the reader gets replacement characters.
    return { kind: 'text', text: bytes.toString('utf8'), encoding: 'unknown' };
  }
};

/** UTF-16 is known by its byte order mark; anything else with a NUL byte near its beginning is binary. */
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
