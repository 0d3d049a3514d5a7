/**
 * What is in the workspace: files that git knows or could add, by their stamps.
 *
 * 1. Git lists the names; it leaves out what it ignores. Without a repository the folders are
 *    walked. Nested repositories and submodules are left alone, and so is `.git`.
 * 2. A file counts as unchanged while its size, times, inode and mode stay. One that changed a
 *    moment before the scan is read again by the next one: two writes may have one time.
 */

import { type BigIntStats, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorCode } from '../../journal/journal-error.js';
import type { ProcessEnvironment } from '../../platform/environment.js';
import { readTextOrEmptySync } from '../../platform/files.js';
import { ProgramFailure } from '../../platform/run-program.js';
import { type GitPlace, type Repository, useRepository } from '../git.js';
import { KnownRepository } from '../repository-location.js';
import { showName, toName } from './manifest.js';

/** `git`: the blob of the index that a clean file equals. null: not kept, `why` says why. */
export type KnownContent =
  | { readonly kind: 'stored'; readonly sha256: string }
  | { readonly kind: 'git'; readonly blob: string }
  | { readonly kind: 'notKept'; readonly why: string };

export type FileEntry = {
  readonly kind: 'file' | 'link' | 'folder';
  readonly mode: number;
  readonly bytes: number;
  /** Empty: it has to be read again. */
  readonly stamp: string;
  readonly changedAtMs: number;
  readonly inode: string;
  /** Of a link. */
  readonly target?: string;
};

export type Listing = {
  readonly names: readonly string[];
  /** Blobs of the index, by name, of files that are as there; null: no repository. */
  readonly clean: ReadonlyMap<string, string> | null;
  /** Why some files are not in `names`; null: all are. */
  readonly limit: string | null;
};

const FILES_MAX_WITHOUT_GIT = 20_000;
const SLICE = 400;
/** Times of files are as coarse as a tick of the kernel. */
const TICK_MS = 20;

const bytesOf = (name: string): Buffer => Buffer.from(name, 'latin1');

export const placeOf = (workspace: string, name: string): Buffer =>
  Buffer.concat([Buffer.from(workspace), Buffer.from('/'), bytesOf(name)]);

/** Null if nothing that is kept lies there. */
export const lookAt = (workspace: string, name: string): FileEntry | null => {
  const place = placeOf(workspace, name);
  let status: BigIntStats | undefined;
  try {
    status = lstatSync(place, { bigint: true, throwIfNoEntry: false });
  } catch {
    return null; // a file stands where a folder was, or it can't be reached: see `whyUnknown`
  }
  if (status === undefined) return null;
  const { mtimeNs, ctimeNs, ino, size, mode } = status;
  const changedAtMs = Number(ctimeNs / 1_000_000n);
  const isYoung = changedAtMs > Date.now() - TICK_MS;
  const common = {
    mode: Number(mode) & 0o7777,
    bytes: Number(size),
    stamp: isYoung ? '' : `${mtimeNs} ${ctimeNs} ${ino} ${size} ${mode}`,
    changedAtMs,
    inode: `${ino}`,
  };
  if (status.isFile()) return { kind: 'file', ...common };
  if (status.isDirectory()) return { kind: 'folder', ...common };
  if (!status.isSymbolicLink()) return null;
  try {
    const target = readlinkSync(place, 'buffer').toString('latin1');
    return { kind: 'link', ...common, target };
  } catch {
    return null; // removed meanwhile
  }
};

/** Why nobody can know whether it is there: a folder around it is closed. Null: it is known. */
export const whyUnknown = (workspace: string, name: string): string | null => {
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

/** Looks at all names and their folders, a slice at a time, so that nobody waits. */
export const lookAtAll = async (
  workspace: string,
  names: readonly string[],
): Promise<Map<string, FileEntry>> => {
  const entries = new Map<string, FileEntry>();
  let left = SLICE;
  for (const list of [foldersAround(names), names])
    for (const name of list) {
      if (left-- === 0) {
        left = SLICE;
        await nextTurn();
      }
      const entry = lookAt(workspace, name);
      if (entry !== null && (entry.kind === 'folder') === (list !== names))
        entries.set(name, entry);
    }
  return entries;
};

// ---- The names ----

const walk = (workspace: string): Listing => {
  const names: string[] = [];
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const prefix = folder === '' ? '' : `${folder}/`;
    let found: ReturnType<typeof readFolder>;
    try {
      found = readFolder(placeOf(workspace, folder));
    } catch {
      continue; // removed meanwhile, or closed to us: then no command of ours changes it either
    }
    if (folder !== '' && found.some(({ name }) => name.toString() === '.git')) continue;
    for (const one of found) {
      const name = `${prefix}${one.name.toString('latin1')}`;
      if (name === '.git') continue;
      if (one.isDirectory()) folders.push(name);
      else if (one.isFile() || one.isSymbolicLink()) names.push(name);
      if (names.length > FILES_MAX_WITHOUT_GIT) return { names: [], clean: null, limit: TOO_MANY };
    }
  }
  return { names, clean: null, limit: null };
};

const readFolder = (place: Buffer) =>
  readdirSync(place, { withFileTypes: true, encoding: 'buffer' });

const TOO_MANY =
  `This folder has no git repository and more than ${FILES_MAX_WITHOUT_GIT} files, so what ` +
  'commands change in it can’t be taken back. Changes by the tools for files can.';

const LISTING_BYTES_MAX = 256 * 1024 * 1024;
const LISTING_MS = 60_000;
const OPTIONS = { bytesMax: LISTING_BYTES_MAX, deadlineMs: LISTING_MS };

const split = (output: Buffer): readonly string[] =>
  output
    .toString('latin1')
    .split('\0')
    .filter((text) => text !== '');

/** What git prints. A list that it could not make is none: the folders are walked then. */
const read = async (repository: Repository, words: readonly string[]): Promise<Buffer> => {
  const { code, output, errors } = await repository.run(words, OPTIONS);
  if (code !== 0) throw new ProgramFailure('refused', `git ${words[0]} failed: ${errors}`);
  return output;
};

/** Lists the workspace for one session. */
export class WorkspaceLister {
  readonly #place: GitPlace;

  constructor(workspace: string, environment: ProcessEnvironment, signal: AbortSignal) {
    this.#place = { workspace, environment, signal, known: new KnownRepository(environment) };
  }

  async list(wantsClean: boolean): Promise<Listing> {
    try {
      const listed = await useRepository(this.#place, (repository) =>
        this.#listByGit(repository, wantsClean),
      );
      return listed ?? walk(this.#place.workspace);
    } catch (error) {
      if (error instanceof ProgramFailure) return walk(this.#place.workspace);
      throw error;
    }
  }

  /** The bytes of blobs of the repository; those that are missing are left out. */
  async readBlobs(blobs: readonly string[]): Promise<ReadonlyMap<string, Buffer>> {
    const found = new Map<string, Buffer>();
    if (blobs.length === 0) return found;
    try {
      await useRepository(this.#place, async (repository) => {
        const input = [...new Set(blobs)].map((blob) => `${blob}\n`).join('');
        const { output } = await repository.run(['cat-file', '--batch'], { ...OPTIONS, input });
        for (let at = 0; at < output.length; ) {
          const end = output.indexOf('\n', at);
          const [blob = '', kind, size] = output.toString('latin1', at, end).split(' ');
          at = end + 1;
          if (kind !== 'blob') continue; // it is missing
          found.set(blob, output.subarray(at, at + Number(size)));
          at += Number(size) + 1;
        }
      });
    } catch (error) {
      if (!(error instanceof ProgramFailure)) throw error; // their changes can't be taken back
    }
    return found;
  }

  async #listByGit(repository: Repository, wantsClean: boolean): Promise<Listing> {
    const prefix = toName(path.relative(repository.top, this.#place.workspace));
    const inside = (name: string): string | null => {
      if (prefix === '') return name;
      return name.startsWith(`${prefix}/`) ? name.slice(prefix.length + 1) : null;
    };
    const scope = [
      '--',
      prefix === '' ? '.' : path.relative(repository.top, this.#place.workspace),
    ];
    const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...scope];
    const names = new Set<string>();
    for (const listed of split(await read(repository, list))) {
      const name = inside(listed);
      if (name !== null && !name.endsWith('/')) names.add(name);
    }
    const clean = wantsClean ? await this.#listClean(repository, names, scope, inside) : null;
    return { names: [...names], clean, limit: null };
  }

  /** Files whose bytes are those of their blob in the index. */
  async #listClean(
    repository: Repository,
    names: ReadonlySet<string>,
    scope: readonly string[],
    inside: (name: string) => string | null,
  ): Promise<ReadonlyMap<string, string>> {
    const conversion = findConversion(repository, this.#place.workspace, names);
    if (conversion === 'any') return new Map();
    const clean = new Map<string, string>();
    const staged = await read(repository, ['ls-files', '-z', '-s', '-v', ...scope]);
    for (const line of split(staged)) {
      const parts = /^(\S) (\d{6}) ([0-9a-f]+) 0\t([\s\S]+)$/.exec(line);
      const [, tag = '', mode = '', blob = '', listed = ''] = parts ?? [];
      const name = inside(listed);
      // about changes of the others git is silent
      if (name !== null && tag === 'H' && mode.startsWith('100')) clean.set(name, blob);
    }
    const words = ['status', '--porcelain=v1', '-z', '--no-renames', '--untracked-files=no'];
    for (const line of split(await read(repository, [...words, ...scope]))) {
      const name = inside(line.slice(3));
      if (name !== null && line[1] !== ' ') clean.delete(name);
    }
    if (conversion === 'lineEnds') await this.#dropConverted(repository, clean);
    return clean;
  }

  /** A conversion of line ends always changes the size. */
  async #dropConverted(repository: Repository, clean: Map<string, string>): Promise<void> {
    const input = [...clean.values()].map((blob) => `${blob}\n`).join('');
    const words = ['cat-file', '--batch-check'];
    const { output } = await repository.run(words, { ...OPTIONS, input });
    const sizes = new Map<string, number>();
    for (const line of output.toString('latin1').split('\n')) {
      const [blob = '', , size] = line.split(' ');
      sizes.set(blob, Number(size));
    }
    for (const [name, blob] of clean)
      if (lookAt(this.#place.workspace, name)?.bytes !== sizes.get(blob)) clean.delete(name);
  }
}

/** How git may store files in another form than the working tree has them. */
const findConversion = (
  { top, shared, config }: Repository,
  workspace: string,
  names: Iterable<string>,
): 'none' | 'lineEnds' | 'any' => {
  const files: string[] = [];
  for (const name of names)
    if (/(^|\/)\.gitattributes$/.test(name)) files.push(path.join(workspace, showName(name)));
  for (let folder = workspace; folder !== top && folder !== '/'; ) {
    folder = path.dirname(folder);
    files.push(path.join(folder, '.gitattributes'));
  }
  const own = path.join(shared, 'info', 'attributes');
  const text = [...files, own].map((file) => readTextOrEmptySync(file, ATTRIBUTES_BYTES_MAX));
  if (text.some((one) => /\b(filter|ident|working-tree-encoding)\b/.test(one))) return 'any';
  const isConverting = config.has('core.autocrlf') || config.has('core.eol');
  return isConverting || text.some((one) => /\b(text|eol|crlf)\b/.test(one)) ? 'lineEnds' : 'none';
};

const ATTRIBUTES_BYTES_MAX = 1024 * 1024;
