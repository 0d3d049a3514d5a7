/** The state of a repository at one moment: HEAD, branches and stash, and the files with uncommitted changes. */

import { readdirSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { readSmall } from '../command/sandbox/untrusted-files.js';
import { readRegularSync } from '../platform/files.js';
import { ProgramFailure, settleAll } from '../platform/run-program.js';
import type { Repository } from './git.js';
import { fingerprintOf, isSettled, type LocatedRepository } from './repository-location.js';

/**
 * Takes a snapshot of a repository: its refs, and its files with uncommitted changes.
 *
 * 1. Only names and stamps are collected. A different stamp means that a file changed between two snapshots.
 * 2. Submodules, nested repositories, and files whose names are not UTF-8 are ignored.
 */

/** Size, times and identity of a file, or `absent`. Every change of the content changes it. */
export type Stamp = string;

/** A file that differs from HEAD, or is not in it. Paths are relative to the top of the repository. */
export type ChangedFile = {
  readonly kind: 'tracked' | 'untracked' | 'unmerged';
  /** The working tree differs from the index, or the file is not in the index. */
  readonly inTree: boolean;
  /** Object in the index; null if the file is not in it. */
  readonly staged: string | null;
  readonly stamp: Stamp;
};

/** Files that differ from what is committed. */
export type ChangedFiles = ReadonlyMap<string, ChangedFile>;

export type WorktreeSnapshot = Refs & { readonly changed: ChangedFiles };

const FILES_MAX = 20_000;

const ABSENT: Stamp = 'absent';

/** The stamp of a file as it is now. */
export const stampOf = async (file: string): Promise<Stamp> => {
  try {
    const { mode, size, ino, mtimeNs, ctimeNs } = await lstat(file, { bigint: true });
    return [mode, size, ino, mtimeNs, ctimeNs].join(' ');
  } catch {
    return ABSENT; // not there, or not to be seen: a file that nobody can commit either
  }
};

type Line = { readonly path: string; readonly file: Omit<ChangedFile, 'stamp'> };

const NOT_UTF8 = '\ufffd';
const NO_OBJECT = /^0+$/;

/** Parses one record of `status --porcelain=v2 -z --no-renames`; null for ignored entries. */
const lineOf = (record: string): Line | null => {
  const fields = record.split(' ');
  const rest = (count: number): string => fields.slice(count).join(' ');
  const named = (name: string, file: Line['file']): Line | null =>
    name.endsWith('/') || name.includes(NOT_UTF8) ? null : { path: name, file };
  switch (fields[0]) {
    case '1': {
      const staged = fields[7] ?? '';
      if (fields[2]?.startsWith('S') || fields.slice(3, 6).includes('160000')) return null;
      return named(rest(8), {
        kind: 'tracked',
        inTree: fields[1]?.[1] !== '.',
        staged: NO_OBJECT.test(staged) ? null : staged,
      });
    }
    case 'u':
      return named(rest(10), { kind: 'unmerged', inTree: true, staged: null });
    case '?':
      return named(rest(1), { kind: 'untracked', inTree: true, staged: null });
    default:
      return null;
  }
};

const HEADER = /^# branch\.(oid|head) (.*)$/s;

type Status = { readonly head: Head; readonly lines: readonly Line[] };

const parseStatus = (output: string): Status => {
  let head: Head = { hash: null, branch: null };
  const lines: Line[] = [];
  for (const record of output.split('\0')) {
    const header = HEADER.exec(record);
    const value = header?.[2] ?? '';
    if (header?.[1] === 'oid') head = { ...head, hash: value === '(initial)' ? null : value };
    else if (header?.[1] === 'head') head = { ...head, branch: value === '(detached)' ? null : value };
    const line = lineOf(record);
    if (line !== null) lines.push(line);
  }
  return { head, lines };
};

const STATUS = ['status', '--porcelain=v2', '-z', '--branch', '--no-ahead-behind', '--no-renames'];
const REFS = [
  'for-each-ref',
  '--format=%(objectname) %(refname)',
  'refs/heads',
  'refs/remotes',
  'refs/stash',
];
const BRANCH = /^refs\/heads\/(.*)\n$/s;

const askTips = async (repository: Repository): Promise<ReturnType<typeof tipsOf>> => {
  const lines = (await repository.ask(REFS)).split('\n').filter((line) => line !== '');
  return tipsOf(
    new Map(
      lines.map((line) => {
        const end = line.indexOf(' ');
        return [line.slice(end + 1), line.slice(0, end)];
      }),
    ),
  );
};

/** Asks git for the refs if they can't be read from files. Rejects with a ProgramFailure. */
export const askRefs = async (repository: Repository): Promise<Refs> => {
  const [tips, branch, commit] = await settleAll([
    askTips(repository),
    repository.run(['symbolic-ref', '--quiet', 'HEAD']),
    repository.run(['rev-parse', '--verify', '--quiet', 'HEAD']),
  ]);
  const { top, gitFolder } = repository;
  const head = {
    hash: commit.code === 0 ? commit.output.toString('utf8').trim() : null,
    branch: BRANCH.exec(branch.output.toString('utf8'))?.[1] ?? null,
  };
  return { top, gitFolder, head, ...tips };
};

/**
 * Takes a snapshot. `refs`: null if git has to be asked. Rejects with a ProgramFailure, also if too many files have
 * changed.
 */
export const takeSnapshot = async (
  repository: Repository,
  refs: Refs | null = null,
): Promise<WorktreeSnapshot> => {
  const [status, tips] = await settleAll([
    repository.ask([...STATUS, '--untracked-files=all', '--ignore-submodules=all']),
    refs === null ? askTips(repository) : Promise.resolve(refs),
  ]);
  const { head, lines } = parseStatus(status);
  if (lines.length > FILES_MAX) {
    throw new ProgramFailure(
      'tooMuch',
      `more than ${FILES_MAX} files are changed or untracked. Commit them, or ignore them (.gitignore)`,
    );
  }
  const stamped = await Promise.all(
    lines.map(async ({ path: name, file }) => {
      const stamp = await stampOf(path.join(repository.top, name));
      return [name, { ...file, stamp }] as const;
    }),
  );
  const { tips: all, remoteTips, stash } = tips;
  const { top, gitFolder } = repository;
  return { top, gitFolder, head, tips: all, remoteTips, stash, changed: new Map(stamped) };
};

/** Files whose content is known to have changed, as relative paths. */
export const changedBetween = async (
  before: WorktreeSnapshot,
  after: WorktreeSnapshot,
): Promise<readonly string[]> => {
  const moved = before.head.hash !== after.head.hash;
  const names: string[] = [];
  for (const [name, file] of after.changed) {
    const earlier = before.changed.get(name);
    // an undone commit leaves files that differ from HEAD although their content did not change
    const touched = earlier === undefined ? file.inTree || !moved : earlier.stamp !== file.stamp;
    if (touched) names.push(name);
  }
  for (const [name, earlier] of before.changed) {
    if (after.changed.has(name)) continue;
    if ((await stampOf(path.join(after.top, name))) !== earlier.stamp) names.push(name);
  }
  return names;
};

/**
 * Reads HEAD, the branches and the stash of a repository from git's files, without starting a process.
 *
 * 1. Refs in another storage or an unusual form are not read. The result is then null, and git is asked.
 * 2. Loose refs are read before packed ones, since git packs a ref before it removes the loose file.
 * 3. Unchanged files are not read again.
 */

export type Head = {
  /** Null: nothing is committed yet. */
  readonly hash: string | null;
  /** Null: HEAD is detached. */
  readonly branch: string | null;
};

export type Refs = {
  readonly top: string;
  readonly gitFolder: string;
  readonly head: Head;
  /** Hashes of local and remote branches and the stash. */
  readonly tips: readonly string[];
  readonly remoteTips: readonly string[];
  readonly stash: string | null;
};

const TIPS_MAX = 20_000;
/** With more loose refs git is asked, until it packs them. */
const LOOSE_MAX = 1_000;

const HASH = /^([0-9a-f]{64}|[0-9a-f]{40})\s*$/;
const ON_BRANCH = /^ref:\s*refs\/heads\/(.*[^\s])\s*$/;
/** Branch name in HEAD with reftable storage. */
const NO_BRANCH = '.invalid';
const LOOKED_AT = ['heads', 'remotes'];

const hashIn = (text: string): string | null => HASH.exec(text)?.[1] ?? null;

/** A loose ref: full name, such as `refs/heads/main`, and file. */
type Loose = { readonly name: string; readonly file: string };

/** The files below a folder of refs; null if there are too many or entries of another kind. */
const looseIn = (folder: string, name: string, found: Loose[]): Loose[] | null => {
  let entries: ReturnType<typeof entriesOf>;
  try {
    entries = entriesOf(folder);
  } catch (error) {
    // git has removed an empty folder of refs
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? found : null;
  }
  for (const entry of entries) {
    const own = { name: `${name}/${entry.name}`, file: path.join(folder, entry.name) };
    if (entry.isDirectory()) {
      if (looseIn(own.file, own.name, found) === null) return null;
    } else if (!entry.isFile()) return null;
    else if (!entry.name.endsWith('.lock')) found.push(own);
    if (found.length > LOOSE_MAX) return null;
  }
  return found;
};

const entriesOf = (folder: string) => readdirSync(folder, { withFileTypes: true });

/** Reads files, and reads them again only after a change. */
class CachedFiles<T> {
  readonly #read: (file: string) => T;
  readonly #now: () => number;
  #known: ReadonlyMap<string, { readonly fingerprint: string; readonly value: T }> = new Map();

  constructor(read: (file: string) => T, now: () => number) {
    this.#read = read;
    this.#now = now;
  }

  /** The values of these files. Forgets all other files. */
  of(files: readonly string[]): readonly T[] {
    const known = new Map<string, { readonly fingerprint: string; readonly value: T }>();
    const values = files.map((file) => {
      const fingerprint = fingerprintOf(file);
      const last = this.#known.get(file);
      const at = this.#now();
      const value = last?.fingerprint === fingerprint.text ? last.value : this.#read(file);
      const isKnown = last?.fingerprint === fingerprint.text || isSettled(fingerprint, at);
      if (isKnown) known.set(file, { fingerprint: fingerprint.text, value });
      return value;
    });
    this.#known = known;
    return values;
  }
}

/** Reads the refs of repositories. `now`: the file system's time, in ms since 1970. */
export class RefFiles {
  readonly #loose: CachedFiles<string>;
  readonly #packed: CachedFiles<ReadonlyMap<string, string> | null>;

  constructor(now: () => number = Date.now) {
    this.#loose = new CachedFiles(readSmall, now);
    this.#packed = new CachedFiles(readPackedRefs, now);
  }

  /** Reads the refs. Null: git has to be asked. */
  read({ location, config }: LocatedRepository): Refs | null {
    const { top, gitFolder, shared } = location;
    if ((config.get('extensions.refstorage') ?? 'files') !== 'files') return null;
    const loose: Loose[] = [];
    for (const kind of LOOKED_AT) {
      if (looseIn(path.join(shared, 'refs', kind), `refs/${kind}`, loose) === null) return null;
    }
    const stash = { name: 'refs/stash', file: path.join(shared, 'refs/stash') };
    const head = path.join(gitFolder, 'HEAD');
    const [headText = '', ...texts] = this.#loose.of([head, stash.file, ...loose.map(({ file }) => file)]);
    const [packed] = this.#packed.of([path.join(shared, 'packed-refs')]);
    if (packed === null || packed === undefined) return null;
    const refs = new Map(packed);
    const broken = new Set<string>();
    for (const [index, { name }] of [stash, ...loose].entries()) {
      const text = texts[index] ?? '';
      const hash = hashIn(text);
      // a symbolic ref leads to another ref in this list
      if (hash !== null) refs.set(name, hash);
      else if (name !== stash.name || text !== '') broken.add(name);
    }
    const own = headOf(headText, refs, broken);
    return own === null ? null : { top, gitFolder, head: own, ...tipsOf(refs) };
  }
}

const headOf = (
  text: string,
  refs: ReadonlyMap<string, string>,
  broken: ReadonlySet<string>,
): Head | null => {
  const detached = hashIn(text);
  if (detached !== null) return { hash: detached, branch: null };
  const branch = ON_BRANCH.exec(text)?.[1];
  if (branch === undefined || branch === NO_BRANCH || broken.has(`refs/heads/${branch}`)) return null;
  return { hash: refs.get(`refs/heads/${branch}`) ?? null, branch };
};

/** `refs`: hashes by full names. */
const tipsOf = (refs: ReadonlyMap<string, string>): Pick<Refs, 'tips' | 'remoteTips' | 'stash'> => {
  const hashes = [...refs.values()];
  const remote = [...refs].flatMap(([name, hash]) => (name.startsWith('refs/remotes/') ? [hash] : []));
  return {
    tips: [...new Set(hashes.slice(0, TIPS_MAX))],
    remoteTips: [...new Set(remote.slice(0, TIPS_MAX))],
    stash: refs.get('refs/stash') ?? null,
  };
};

/** Reads refs from git's packed-refs file. */

const BYTES_MAX = 64 * 1024 * 1024;
const LINE = /^([0-9a-f]{64}|[0-9a-f]{40}) (refs\/(?:heads\/.*|remotes\/.*|stash))$/gm;

/** Hashes of local and remote branches and the stash, by full name; null if the file can't be read. */
const readPackedRefs = (file: string): ReadonlyMap<string, string> | null => {
  const loaded = readRegularSync(file, BYTES_MAX);
  if (loaded.kind === 'absent') return new Map();
  if (loaded.kind !== 'file') return null;
  const refs = new Map<string, string>();
  for (const [, hash = '', name = ''] of loaded.bytes.toString('utf8').matchAll(LINE)) refs.set(name, hash);
  return refs;
};
