/**
 * The state of a repository at one moment: HEAD, branches and stash, read from git's files without
 * starting a process where that is possible, and the files with uncommitted changes, asked of git.
 *
 * From top to bottom: the types, the refs, a look with the changed files (a snapshot), refs asked
 * of git, and refs read from files. Refs are names for commits: branches, the stash, HEAD.
 *
 * Submodules, nested repositories, and files whose names are not UTF-8 are ignored.
 */

import { lstatSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { readRegularSync, readSmall } from '../platform/files.js';
import { ProgramFailure, settleAll } from '../platform/run-program.js';
import { repositoryFolders } from '../platform/trusted-folders.js';
import { FileCache } from './file-cache.js';
import {
  findCommit,
  type GitPlace,
  type KnownRepository,
  type LocatedRepository,
  locateRepository,
  type Repository,
  workWith,
} from './git.js';

export type Head = {
  /** Null: nothing is committed yet. */
  readonly hash: string | null;
  /** Null: HEAD is detached. */
  readonly branch: string | null;
};

/** Where the refs of a repository point. */
export type Refs = {
  readonly top: string;
  readonly gitFolder: string;
  readonly head: Head;
  /** Hashes of local and remote branches and the stash. */
  readonly tips: readonly string[];
  readonly remoteTips: readonly string[];
  readonly stash: string | null;
};

/** Size, times and identity of a file, or `absent`. Every change of the content changes it. */
export type Stamp = string;

/**
 * A file that differs from HEAD, or is not in it. Paths are relative to the top of the repository.
 */
export type ChangedFile = {
  readonly kind: 'tracked' | 'untracked' | 'unmerged';
  /** Object and mode in the index; null if the file is not in it. */
  readonly staged: string | null;
  readonly stagedMode: string | null;
  /** What HEAD has; null if it is not in it. */
  readonly committed: { readonly mode: string; readonly object: string } | null;
  readonly stamp: Stamp;
};

export type WorktreeSnapshot = Refs & {
  readonly changed: ReadonlyMap<string, ChangedFile>;
  /** Changed files whose names are no UTF-8, as they are shown. */
  readonly unnameable: ReadonlySet<string>;
};

export const isSameHead = (one: Head, other: Head): boolean =>
  one.branch === other.branch && one.hash === other.hash;

/**
 * Reads the refs of the repository around the workspace; null if there is none. Rejects like
 * `useRepository`.
 */
export const readRefs = async (place: GitPlace, files: RefFiles): Promise<Refs | null> => {
  const located = await locateRepository(place);
  if (located === null) return null;
  return files.read(located) ?? workWith(place, located, askRefs);
};

/** Like `readRefs`, but synchronous; `unknown` if git has to be asked. */
export const readRefsNow = (
  workspace: string,
  known: KnownRepository,
  files: RefFiles,
): Refs | null | 'unknown' => {
  const folder = repositoryFolders(workspace).top;
  if (folder === null) return null;
  const located = known.cached(folder);
  return (located === null ? null : files.read(located)) ?? 'unknown';
};

// ---- Uncommitted changes ----

const FILES_MAX = 20_000;
const STATUS = ['status', '--porcelain=v2', '-z', '--branch', '--no-ahead-behind', '--no-renames'];

/**
 * Takes a snapshot. `refs`: null if git has to be asked. Rejects with a ProgramFailure, also if too
 * many files have changed.
 */
export const takeSnapshot = async (
  repository: Repository,
  refs: Refs | null = null,
): Promise<WorktreeSnapshot> => {
  const { top, gitFolder } = repository;
  // like Promise.all, but waits for both even if one rejects
  const [status, { tips, remoteTips, stash }] = await settleAll([
    repository.ask([...STATUS, '--untracked-files=all', '--ignore-submodules=all']),
    refs === null ? askTips(repository) : Promise.resolve(refs),
  ]);
  const { head, files, unnameable } = parseStatus(status);
  if (files.length > FILES_MAX) {
    throw new ProgramFailure(
      'tooMuch',
      `more than ${FILES_MAX} files are changed or untracked. Commit them, or ignore them ` +
        '(.gitignore)',
    );
  }
  const changed = new Map<string, ChangedFile>();
  for (const { name, ...file } of files) {
    // a file that is only in HEAD and in the working tree is listed twice
    const committed = changed.get(name)?.committed ?? file.committed;
    changed.set(name, { ...file, committed, stamp: takeStamp(path.join(top, name)) });
  }
  return { top, gitFolder, head, tips, remoteTips, stash, changed, unnameable };
};

const ABSENT: Stamp = 'absent';

/** The stamp of a file as it is now. */
export const takeStamp = (file: string): Stamp => {
  try {
    const { mode, size, ino, mtimeNs, ctimeNs } = lstatSync(file, { bigint: true });
    return [mode, size, ino, mtimeNs, ctimeNs].join(' ');
  } catch {
    return ABSENT; // not there, or not to be seen: a file that nobody can commit either
  }
};

/** Files of the git folder while something of the user's is unfinished. */
const STATE_FILES = [
  ['MERGE_HEAD', 'a merge'],
  ['rebase-merge', 'a rebase'],
  ['rebase-apply', 'a rebase'],
  ['CHERRY_PICK_HEAD', 'a cherry-pick'],
  ['REVERT_HEAD', 'a revert'],
  ['sequencer', 'a cherry-pick or revert'],
  ['BISECT_LOG', 'a bisect'],
] as const;

/** What the user has not finished in a repository; null: nothing. */
export const findUnfinished = (gitFolder: string): string | null =>
  STATE_FILES.find(([name]) => takeStamp(path.join(gitFolder, name)) !== ABSENT)?.[1] ?? null;

type StatusEntry = Omit<ChangedFile, 'stamp'> & { readonly name: string };

/** A line about HEAD. */
const HEADER = /^# branch\.(oid|head) (.*)$/s;

const parseStatus = (output: string) => {
  const head: { -readonly [Key in keyof Head]: Head[Key] } = { hash: null, branch: null };
  const files: StatusEntry[] = [];
  const unnameable = new Set<string>();
  for (const record of output.split('\0')) {
    const [, field, value = ''] = HEADER.exec(record) ?? [];
    if (field === 'oid') head.hash = value === '(initial)' ? null : value;
    else if (field === 'head') head.branch = value === '(detached)' ? null : value;
    const entry = parseEntry(record);
    if (entry === null || entry.name.endsWith('/')) continue;
    if (entry.name.includes(NOT_UTF8)) unnameable.add(entry.name);
    else files.push(entry);
  }
  return { head, files, unnameable };
};

/** Stands in a decoded name for bytes that are not UTF-8. */
const NOT_UTF8 = '\ufffd';
/** Git's hash for no object. */
const NO_OBJECT = /^0+$/;
const NOT_STAGED = { staged: null, stagedMode: null };

/**
 * Parses one record of `status --porcelain=v2 -z --no-renames`; null for other ones and for
 * submodules.
 */
const parseEntry = (record: string): StatusEntry | null => {
  const fields = record.split(' ');
  const rest = (count: number): string => fields.slice(count).join(' ');
  switch (fields[0]) {
    // `1 XY sub modeHEAD modeIndex modeTree hashHEAD hashIndex PATH`
    case '1': {
      const [, , , mode = '', stagedMode = '', , object = '', staged = ''] = fields;
      if (fields[2]?.startsWith('S') || fields.slice(3, 6).includes('160000')) return null;
      return {
        name: rest(8),
        kind: 'tracked',
        ...(NO_OBJECT.test(staged) ? NOT_STAGED : { staged, stagedMode }),
        committed: NO_OBJECT.test(object) ? null : { mode, object },
      };
    }
    case 'u':
      return { name: rest(10), kind: 'unmerged', ...NOT_STAGED, committed: null };
    case '?':
      return { name: rest(1), kind: 'untracked', ...NOT_STAGED, committed: null };
    default:
      return null;
  }
};

// ---- Refs, asked of git ----

const STASH = 'refs/stash';
const FORMAT = '--format=%(objectname) %(refname)';
const REFS = ['for-each-ref', FORMAT, 'refs/heads', 'refs/remotes', STASH];
const BRANCH = /^refs\/heads\/(.*)\n$/s;

/** Asks git for the refs if they can't be read from files. Rejects with a ProgramFailure. */
export const askRefs = async (repository: Repository): Promise<Refs> => {
  const [tips, branch, commit] = await settleAll([
    askTips(repository),
    repository.run(['symbolic-ref', '--quiet', 'HEAD']),
    findCommit(repository, 'HEAD'),
  ]);
  const { top, gitFolder } = repository;
  const head = { hash: commit, branch: BRANCH.exec(branch.output.toString('utf8'))?.[1] ?? null };
  return { top, gitFolder, head, ...tips };
};

type Tips = Pick<Refs, 'tips' | 'remoteTips' | 'stash'>;

const askTips = async (repository: Repository): Promise<Tips> => {
  const lines = (await repository.ask(REFS)).split('\n').filter((line) => line !== '');
  const entries = lines.map((line) => line.split(/ (.*)/s));
  return collectTips(new Map(entries.map(([hash = '', name = '']) => [name, hash])));
};

const TIPS_MAX = 20_000;

/** `refs`: hashes by full names. */
const collectTips = (refs: ReadonlyMap<string, string>): Tips => {
  const remote = [...refs].flatMap(([name, hash]) =>
    name.startsWith('refs/remotes/') ? [hash] : [],
  );
  return {
    tips: [...new Set([...refs.values()].slice(0, TIPS_MAX))],
    remoteTips: [...new Set(remote.slice(0, TIPS_MAX))],
    stash: refs.get(STASH) ?? null,
  };
};

// ---- Refs, read from files ----

/** With more loose refs git is asked, until it packs them. */
const LOOSE_MAX = 1_000;
const PACKED_BYTES_MAX = 64 * 1024 * 1024;
const PACKED = /^([0-9a-f]{64}|[0-9a-f]{40}) (refs\/(?:heads\/.*|remotes\/.*|stash))$/gm;
const HASH = /^([0-9a-f]{64}|[0-9a-f]{40})\s*$/;
const ON_BRANCH = /^ref:\s*refs\/heads\/(.*[^\s])\s*$/;
/** Branch name in HEAD with reftable storage. */
const NO_BRANCH = '.invalid';

/**
 * Reads the refs of repositories. Unchanged files are not read again. `now`: the file system's
 * time, in ms since 1970.
 *
 * Loose refs are read before packed ones, since git packs a ref before it removes the loose file.
 */
export class RefFiles {
  /** Texts of files that hold one ref each. */
  readonly #loose: FileCache<string>;
  /** Hashes by name, from the file `packed-refs`, in which git collects refs. */
  readonly #packed: FileCache<ReadonlyMap<string, string> | null>;

  constructor(now: () => number = Date.now) {
    this.#loose = new FileCache(now);
    this.#packed = new FileCache(now);
  }

  /**
   * Reads the refs. Null if they are in another storage or an unusual form: git has to be asked.
   * Adds all refs to `named`, by their full names.
   */
  read({ location, config }: LocatedRepository, named?: Map<string, string>): Refs | null {
    const { top, gitFolder, shared } = location;
    if ((config.get('extensions.refstorage') ?? 'files') !== 'files') return null;
    const names: string[] = [];
    if (!['refs/heads', 'refs/remotes'].every((folder) => addLooseRefs(shared, folder, names)))
      return null;
    names.push(STASH);
    // readSmall gives an empty text for an absent file
    const headText = this.#loose.read(path.join(gitFolder, 'HEAD'), readSmall);
    const texts = names.map((name) => this.#loose.read(path.join(shared, name), readSmall));
    const packed = this.#packed.read(path.join(shared, 'packed-refs'), readPackedRefs);
    if (packed === null) return null;
    const refs = new Map(packed);
    // refs whose files hold no hash: if HEAD is on one, git has to be asked
    const broken = new Set<string>();
    for (const [index, name] of names.entries()) {
      const hash = HASH.exec(texts[index] ?? '')?.[1];
      // others may be broken: a symbolic ref leads to another ref, which is in this list itself
      if (hash !== undefined) refs.set(name, hash);
      else if (name !== STASH || texts[index] !== '') broken.add(name);
    }
    const head = parseHead(headText, refs, broken);
    if (named !== undefined) for (const [name, hash] of refs) named.set(name, hash);
    return head === null ? null : { top, gitFolder, head, ...collectTips(refs) };
  }
}

/**
 * Adds the names of the loose refs in a folder. False if there are too many, or entries of another
 * kind.
 */
const addLooseRefs = (shared: string, folder: string, names: string[]): boolean => {
  try {
    for (const entry of readdirSync(path.join(shared, folder), { withFileTypes: true })) {
      const name = `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!addLooseRefs(shared, name, names)) return false;
      } else if (!entry.isFile()) return false;
      else if (!name.endsWith('.lock')) names.push(name);
      if (names.length > LOOSE_MAX) return false;
    }
    return true;
  } catch (error) {
    // git has removed an empty folder of refs
    return error instanceof Error && 'code' in error && error.code === 'ENOENT';
  }
};

/**
 * Hashes of local and remote branches and the stash, by full name; null if the file can't be read.
 */
const readPackedRefs = (file: string): ReadonlyMap<string, string> | null => {
  const loaded = readRegularSync(file, PACKED_BYTES_MAX);
  if (loaded.kind === 'absent') return new Map();
  if (loaded.kind !== 'file') return null;
  const lines = loaded.bytes.toString('utf8').matchAll(PACKED);
  return new Map([...lines].map(([, hash = '', name = '']) => [name, hash]));
};

const parseHead = (
  text: string,
  refs: ReadonlyMap<string, string>,
  broken: ReadonlySet<string>,
): Head | null => {
  const detached = HASH.exec(text)?.[1];
  if (detached !== undefined) return { hash: detached, branch: null };
  const branch = ON_BRANCH.exec(text)?.[1];
  if (branch === undefined || branch === NO_BRANCH || broken.has(`refs/heads/${branch}`))
    return null;
  return { hash: refs.get(`refs/heads/${branch}`) ?? null, branch };
};
