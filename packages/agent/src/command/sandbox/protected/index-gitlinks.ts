import { readFileSync } from 'node:fs';
import path from 'node:path';
import { statusOf } from '../../../platform/files/entry-status.js';
import { readSmall } from './git-folders.js';

/**
 * Reads from git's index which folders it takes for repositories of their own (gitlinks), and which files are tracked.
 *
 * Git starts itself in each gitlink's folder at `status`, `diff`, `add` and `commit`, and obeys the configuration there.
 * The index is parsed only again after it has changed.
 */

export type IndexContents = {
  /** Paths of gitlinks, relative to the top of the worktree. */
  readonly gitlinks: readonly string[];
  /** Whether a path, relative to the top of the worktree, is tracked. */
  isTracked(place: string): boolean;
};

/** In bytes. Gitlinks of a larger index are found by the walk through all folders instead. */
const INDEX_MAX = 64 * 1024 * 1024;
const GITLINKS_MAX = 10_000;
const GITLINK_TYPE = 0xe;
const EMPTY: IndexContents = { gitlinks: [], isTracked: () => false };
/** Bytes of an entry before its object name, and after it. */
const STATUS_BYTES = 40;
const FLAG_EXTENDED = 0x4000;
const FLAG_LENGTH = 0x0fff;

type Entry = { readonly name: Buffer; readonly isGitlink: boolean; readonly next: number };

/** A number of one to several bytes, as version 4 writes it. */
const readOffset = (bytes: Buffer, start: number): { readonly value: number; readonly next: number } => {
  let at = start;
  let byte = bytes.readUInt8(at++);
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = bytes.readUInt8(at++);
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return { value, next: at };
};

const readEntry = (bytes: Buffer, start: number, form: IndexForm, before: Buffer): Entry => {
  const isGitlink = bytes.readUInt32BE(start + 24) >>> 12 === GITLINK_TYPE;
  const flagsAt = start + STATUS_BYTES + form.hashBytes;
  const flags = bytes.readUInt16BE(flagsAt);
  let nameAt = flagsAt + ((flags & FLAG_EXTENDED) === 0 ? 2 : 4);
  let prefix = Buffer.alloc(0);
  if (form.version === 4) {
    const { value, next } = readOffset(bytes, nameAt);
    prefix = Buffer.from(before.subarray(0, before.length - value));
    nameAt = next;
  }
  const length = flags & FLAG_LENGTH;
  const end = form.version < 4 && length < FLAG_LENGTH ? nameAt + length : bytes.indexOf(0, nameAt, 'latin1');
  if (end < nameAt || end > bytes.length) throw new RangeError('an entry without an end');
  const name = Buffer.concat([prefix, bytes.subarray(nameAt, end)]);
  const next = form.version === 4 ? end + 1 : start + Math.ceil((end - start + 1) / 8) * 8;
  return { name, isGitlink, next };
};

type IndexForm = { readonly version: number; readonly hashBytes: number };

const parseIndex = (bytes: Buffer, hashBytes: number): IndexContents => {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 4) !== 'DIRC') return EMPTY;
  const form = { version: bytes.readUInt32BE(4), hashBytes };
  if (form.version < 2 || form.version > 4) return EMPTY;
  const gitlinks: string[] = [];
  const tracked = new Set<string>();
  let [at, name] = [12, Buffer.alloc(0)];
  try {
    for (let count = bytes.readUInt32BE(8); count > 0; count--) {
      const entry = readEntry(bytes, at, form, name);
      const text = entry.name.toString('utf8');
      tracked.add(text);
      if (entry.isGitlink && gitlinks.length < GITLINKS_MAX) gitlinks.push(text);
      [at, name] = [entry.next, Buffer.from(entry.name)];
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // A cut index: git does not read it either.
  }
  return { gitlinks, isTracked: (place) => tracked.has(place) };
};

const usesSha256 = (gitFolder: string): boolean =>
  /^\s*objectformat\s*=\s*sha256\s*$/im.test(readSmall(path.join(gitFolder, 'config')));

const readIndex = (file: string, gitFolder: string): IndexContents => {
  try {
    return parseIndex(readFileSync(file), usesSha256(gitFolder) ? 32 : 20);
  } catch {
    return EMPTY; // it is gone, or closed to us
  }
};

export type IndexReader = { read(gitFolder: string): IndexContents };

export const createIndexReader = (): IndexReader => {
  const cache = new Map<string, { readonly key: string; readonly contents: IndexContents }>();
  return {
    read(gitFolder) {
      const file = path.join(gitFolder, 'index');
      const status = statusOf(file);
      if (status === null || !status.isFile() || status.size > INDEX_MAX) return EMPTY;
      const key = `${status.ino}:${status.ctimeMs}:${status.size}`;
      const cached = cache.get(file);
      if (cached?.key === key) return cached.contents;
      const contents = readIndex(file, gitFolder);
      cache.set(file, { key, contents });
      return contents;
    },
  };
};
