/**
 * HEAD, branches and the index of the repository around a workspace: how they are, and how they go
 * back. Each is called a ref here, also the index.
 *
 * 1. They are read from git's files. Git is asked only about an index that has changed.
 * 2. A branch goes back only if it still is where it is expected. Git moves it, under its own lock.
 * 3. No commit is lost by it: each commit that a ref leaves gets an entry in the reflog of
 *    refs/pawl/lost.
 * 4. What is done already is left as it is, so that a killed restore can be performed again.
 */

import { constants, existsSync, readdirSync } from 'node:fs';
import { copyFile, link, lstat, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { FileLeft } from '../../machine/event.js';
import { errorCode, hashBytes, readRegular, readSmall } from '../../platform/files.js';
import { ProgramFailure } from '../../platform/run-program.js';
import { oneLine } from '../../platform/text.js';
import type { MovedRef } from '../../ports/checkpoints.js';
import {
  type GitPlace,
  hasCommit,
  isAncestor,
  type LocatedRepository,
  locateRepository,
  type Repository,
  workWith,
} from '../git.js';
import { shortHash } from '../head-changes.js';
import { findUnfinished, RefFiles, takeStamp } from '../repository-snapshot.js';
import { FILE_BYTES_MAX } from './file-entries.js';
import type { RefChange, RefState } from './manifest.js';
import type { CheckpointStore } from './store.js';

/** By `HEAD`, `refs/heads/…` and `index`; `refs/stash` is only looked at. */
export type GitState = ReadonlyMap<string, RefState>;

const ABSENT: RefState = { kind: 'absent' };
const LOST = 'refs/pawl/lost';
const STASH = 'refs/stash';
const NOT_FOLLOWED = { follow: 'folders' } as const;
/** Limits of git's lists. */
const LISTING = { bytesMax: 256 * 1024 * 1024, deadlineMs: 60_000 };

/** Why a ref stays where it is. */
const OTHERS_MOVED = 'somebody else moved it since';
const MOVED_BETWEEN = 'somebody else moved it in between';
const IN_PROGRESS =
  'a merge, rebase, cherry-pick, revert or bisect is in progress: end it first, for example with ' +
  'git merge --abort';
const ELSEWHERE = 'is checked out in another working tree';
const UNBORN = 'HEAD would be on a branch that does not exist';
const NO_COMMIT = 'its commit is no longer in the repository';
const INDEX_LOCKED =
  'another git command holds the index (index.lock): try again when it has ended';
const INDEX_GONE = 'what it held is not in the store of checkpoints, or not in the repository';
const UNREADABLE = 'the refs of this repository can’t be read from its files';

/** Indexes are the same if they list the same (`listed`: a hash of that; empty: not asked yet). */
export const isSameRef = (one: RefState, other: RefState): boolean =>
  one.kind === 'index' && other.kind === 'index'
    ? one.sha256 === other.sha256 || (one.listed !== '' && one.listed === other.listed)
    : JSON.stringify(one) === JSON.stringify(other);

/** The name of a branch without its folder. */
const branchName = (ref: string): string => ref.replace(/^refs\/heads\//, '');

/** The name of a ref, for people. */
const showRef = (ref: string): string => {
  if (ref === 'index') return 'the index';
  return ref === 'HEAD' ? 'HEAD' : `branch ${oneLine(branchName(ref))}`;
};

/** The branch on which HEAD is, and the commit that a ref has. */
const readValue = (state: RefState | undefined) => {
  const value = state?.kind === 'ref' ? state.value : null;
  const branch = value?.startsWith('ref: ') ? value.slice('ref: '.length) : null;
  return { branch, commit: branch === null ? value : null };
};

/** Where a ref is. */
const describeState = (state: RefState): string => {
  const { branch, commit } = readValue(state);
  if (branch !== null) return showRef(branch);
  return commit === null ? state.kind : shortHash(commit);
};

/** Where HEAD is. Null: it is detached, or nothing is committed. */
const findHead = (state: GitState) => {
  const { branch, commit } = readValue(state.get('HEAD'));
  return { branch, commit: branch === null ? commit : readValue(state.get(branch)).commit };
};

/** Whether HEAD is on a branch that does not exist, while the repository has others. */
const isUnborn = (state: GitState): boolean => {
  const { branch, commit } = findHead(state);
  if (branch === null || commit !== null) return false;
  return [...state].some(([name, { kind }]) => name.startsWith('refs/heads/') && kind === 'ref');
};

/** Whether this change leaves HEAD on such a branch. `waiting`: all that are to be performed. */
const losesHead = (
  now: GitState,
  { path: name }: RefChange,
  waiting: readonly RefChange[],
): boolean => {
  const then = new Map([...now, ...waiting.map(({ path: ref, after }) => [ref, after] as const)]);
  return (name === 'HEAD' || name === findHead(then).branch) && isUnborn(then) && !isUnborn(now);
};

/** Where a ref goes, for people. */
export const describeRef = ({ path: ref, after }: RefChange): MovedRef => {
  const name = showRef(ref);
  if (ref === 'index') return { name, text: `${name} is as it was` };
  const text = after.kind === 'absent' ? 'is removed' : `is at ${describeState(after)}`;
  return { name, text: `${name} ${text}` };
};

/** `isMixed`: see `Manifest.mixed`. */
type RefsSince = { readonly changes: readonly RefChange[]; readonly isMixed: boolean };

type Work<T> = (repository: Repository, located: LocatedRepository) => Promise<T>;

/** Reads, compares and takes back the refs of one session's workspace. */
export class GitStates {
  readonly #place: GitPlace;
  readonly #store: CheckpointStore;
  readonly #files = new RefFiles();
  /** The index at the last look. `state` is null if it is not kept. */
  #index: { readonly stamp: string; readonly state: RefState | null } | null = null;

  constructor(place: GitPlace, store: CheckpointStore) {
    this.#place = place;
    this.#store = store;
  }

  /** The present state. Null: no repository, or its refs can't be read from files. */
  async read(): Promise<GitState | null> {
    try {
      const located = await locateRepository(this.#place);
      return located === null ? null : await this.#readLocated(located);
    } catch (error) {
      if (error instanceof ProgramFailure) return null; // files are taken back all the same
      throw error;
    }
  }

  async #readLocated(located: LocatedRepository): Promise<GitState | null> {
    const refs = new Map<string, string>();
    const head = this.#files.read(located, refs)?.head;
    if (head === undefined) return null;
    const state = new Map<string, RefState>();
    for (const [name, value] of refs)
      if (name.startsWith('refs/heads/') || name === STASH) state.set(name, { kind: 'ref', value });
    const value = head.branch === null ? head.hash : `ref: refs/heads/${head.branch}`;
    if (value !== null) state.set('HEAD', { kind: 'ref', value });
    const index = await this.#readIndex(located);
    if (index !== null) state.set('index', index);
    return state;
  }

  /** Stores the index. Null: it is split over several files, missing or too large. */
  async #readIndex({ location }: LocatedRepository): Promise<RefState | null> {
    const { indexFile, gitFolder } = location;
    const stamp = takeStamp(indexFile);
    if (stamp === this.#index?.stamp) return this.#index.state;
    const isShared = readdirSync(gitFolder).some((name) => name.startsWith('sharedindex.'));
    // one that is missing, too large or closed to us is nothing to go back to
    const loaded = isShared ? null : await readRegular(indexFile, FILE_BYTES_MAX, NOT_FOLLOWED);
    let state: RefState | null = null;
    if (loaded?.kind === 'file') {
      // what it lists is asked of git only once two indexes have to be compared (`#listed`)
      const sha256 = await this.#store.put(loaded.bytes);
      state = { kind: 'index', sha256, listed: '' };
    }
    this.#index = { stamp, state };
    return state;
  }

  /** The content of the index at the last look, which no manifest may name yet. */
  kept(): readonly string[] {
    const state = this.#index?.state;
    return state?.kind === 'index' ? [state.sha256] : [];
  }

  /** How the state has changed since then; null: it was not known. */
  async since(before: GitState | null): Promise<RefsSince> {
    const now = before === null ? null : await this.read();
    if (before === null || now === null) return { changes: [], isMixed: false };
    const isMixed = await this.#isMixed(before, now);
    return { changes: await this.#changesBetween(before, now), isMixed };
  }

  /** What differs. An index of which only times differ is the same. */
  async #changesBetween(before: GitState, after: GitState): Promise<readonly RefChange[]> {
    const changes: RefChange[] = [];
    for (const name of new Set([...before.keys(), ...after.keys()])) {
      const change = {
        path: name,
        before: before.get(name) ?? ABSENT,
        after: after.get(name) ?? ABSENT,
      };
      if (isSameRef(change.before, change.after) || name === STASH) continue;
      if (name !== 'index') changes.push(change);
      // if one of them is not kept, there is nothing to go back to
      else if (change.before.kind === 'index' && change.after.kind === 'index') {
        const listed = await this.#withListings(change);
        if (listed !== null && !isSameRef(listed.before, listed.after)) changes.push(listed);
      }
    }
    return changes;
  }

  async #isMixed(before: GitState, after: GitState): Promise<boolean> {
    if (!isSameRef(before.get(STASH) ?? ABSENT, after.get(STASH) ?? ABSENT)) return true;
    const [from, to] = [findHead(before), findHead(after)];
    if (from.branch !== to.branch) return true;
    const { commit } = to;
    if (from.commit === commit || from.commit === null) return false;
    const { commit: old } = from;
    return commit === null || (await this.#use((one) => isAncestor(one, old, commit))) !== true;
  }

  /** Both sides with the hash of what they list. */
  async #withListings(change: RefChange): Promise<RefChange | null> {
    return this.#use(async (repository) => ({
      ...change,
      before: await this.#listed(repository, change.before),
      after: await this.#listed(repository, change.after),
    }));
  }

  /** The index with the hash of what it lists. */
  async #listed(repository: Repository, state: RefState): Promise<RefState> {
    if (state.kind !== 'index' || state.listed !== '') return state;
    const bytes = await this.#store.get(state.sha256);
    if (bytes === null) return state;
    const file = path.join(repository.scratch, `index-${state.sha256.slice(0, 16)}`);
    await writeFile(file, bytes);
    return { ...state, listed: await hashListing(repository, file) };
  }

  /** Works with the repository; null if there is none, or git fails. */
  async #use<T>(work: Work<T>): Promise<T | null> {
    try {
      return await this.#work(work);
    } catch (error) {
      if (error instanceof ProgramFailure) return null;
      throw error;
    }
  }

  async #work<T>(work: Work<T>): Promise<T | null> {
    const located = await locateRepository(this.#place);
    if (located === null) return null;
    return workWith(this.#place, located, (repository) => work(repository, located));
  }

  // ---- Going back ----

  /**
   * Plans which refs go back. `targets`: how each was (`before`), how it is expected to be now
   * (`after`), and whether somebody else moved it in between (`left`).
   */
  async plan(
    targets: readonly (RefChange & { readonly left: string | null })[],
  ): Promise<{ readonly changes: readonly RefChange[]; readonly left: readonly FileLeft[] }> {
    if (targets.length === 0) return { changes: [], left: [] };
    let why = UNREADABLE;
    const planned = await this.#work(async (repository, located) => {
      const now = await this.#readLocated(located);
      if (now === null) return null;
      const changes: RefChange[] = [];
      const left: FileLeft[] = [];
      for (const { path: name, before, after, left: broken } of targets) {
        const present = await this.#listed(repository, now.get(name) ?? ABSENT);
        if (isSameRef(present, before)) continue;
        const reason =
          broken !== null
            ? MOVED_BETWEEN
            : isSameRef(present, after)
              ? await this.#refusal(repository, name, before)
              : OTHERS_MOVED;
        if (reason === null) changes.push({ path: name, before: present, after: before });
        else left.push({ path: showRef(name), why: reason });
      }
      let waiting = sortMoves(changes);
      for (const change of waiting)
        if (losesHead(now, change, waiting)) {
          waiting = waiting.filter((one) => one !== change);
          left.push({ path: showRef(change.path), why: UNBORN });
        }
      return { changes: waiting, left };
    }).catch((error: unknown) => {
      why = refusedBy(error);
      return null;
    });
    return planned ?? { changes: [], left: [{ path: 'HEAD', why }] };
  }

  /** Why this ref can't go there; null: it can. */
  async #refusal(repository: Repository, name: string, target: RefState): Promise<string | null> {
    const { gitFolder } = repository;
    if (findUnfinished(gitFolder) !== null) return IN_PROGRESS;
    const taken = otherBranches(repository);
    if (taken.has(name)) return `it ${ELSEWHERE}`;
    if (target.kind === 'index')
      return (await this.#store.get(target.sha256)) === null ? INDEX_GONE : null;
    const { branch, commit } = readValue(target);
    if (branch !== null && taken.has(branch)) return `${showRef(branch)} ${ELSEWHERE}`;
    return commit !== null && !(await hasCommit(repository, commit)) ? NO_COMMIT : null;
  }

  /** Performs the changes of a plan. What is done already stays. Never rejects. */
  async perform(
    changes: readonly RefChange[],
    planId: string,
  ): Promise<{ readonly done: readonly RefChange[]; readonly left: readonly FileLeft[] }> {
    if (changes.length === 0) return { done: [], left: [] };
    const done: RefChange[] = [];
    const left: FileLeft[] = [];
    const waiting = new Set(sortMoves(changes));
    const settle = (change: RefChange, why: string | null): void => {
      waiting.delete(change);
      if (why === null) done.push(change);
      else left.push({ path: showRef(change.path), why });
    };
    let fault = UNREADABLE;
    await this.#work(async (repository, located) => {
      for (const change of waiting)
        settle(
          change,
          await this.#move(repository, located, change, waiting, planId).catch(refusedBy),
        );
    }).catch((error: unknown) => {
      fault = refusedBy(error);
    });
    for (const change of waiting) settle(change, fault);
    return { done, left };
  }

  /** Moves a ref. Returns why it could not; null: it is done. */
  async #move(
    repository: Repository,
    located: LocatedRepository,
    change: RefChange,
    waiting: Iterable<RefChange>,
    planId: string,
  ): Promise<string | null> {
    const { path: name, before, after } = change;
    if (after.kind === 'index') return this.#moveIndex(repository, change, planId);
    const state: GitState = (await this.#readLocated(located)) ?? new Map();
    const now = state.get(name) ?? ABSENT;
    if (isSameRef(now, after)) return null;
    if (!isSameRef(now, before)) return OTHERS_MOVED;
    const refused = await this.#refusal(repository, name, after);
    if (refused !== null) return refused;
    if (losesHead(state, change, [...waiting])) return UNBORN;
    const { commit: leftCommit } = readValue(before);
    if (leftCommit !== null) {
      const why = `${branchName(name)} before a rewind`;
      const noted = await repository.moveRef({ ref: LOST, from: 'any', to: leftCommit, why });
      if (noted.code !== 0) return refusedBy(noted.errors);
    }
    const { branch, commit: to } = readValue(after);
    if (branch !== null) {
      await repository.changeHead(branch, 'pawl rewind');
      return null;
    }
    // HEAD was on a branch: which commit that has does not matter
    const from = name === 'HEAD' && leftCommit === null ? 'any' : leftCommit;
    const { code, errors } = await repository.moveRef({ ref: name, from, to, why: 'pawl rewind' });
    return code === 0 ? null : refusedBy(errors);
  }

  /** As git does it: the new index is written as the lock file, which then takes its place. */
  async #moveIndex(
    repository: Repository,
    { before, after }: RefChange,
    planId: string,
  ): Promise<string | null> {
    if (after.kind !== 'index') return null;
    const bytes = await this.#store.get(after.sha256);
    if (bytes === null) return INDEX_GONE;
    const { indexFile } = repository;
    const [lock, draft] = [`${indexFile}.lock`, `${indexFile}.pawl-${planId.slice(0, 12)}`];
    let isOurs = false;
    try {
      // a killed restore may have left its lock: it is the same file as its draft
      if (await isSameFile(draft, lock)) await rm(lock, { force: true });
      await rm(draft, { force: true });
      await writeFile(draft, bytes, { flag: 'wx', mode: 0o644, flush: true });
      await link(draft, lock);
      isOurs = true;
      // a copy, so that the hash and git's list are of the same bytes
      const copy = path.join(repository.scratch, 'index-now');
      await copyFile(indexFile, copy, constants.COPYFILE_FICLONE);
      const sha256 = hashBytes(await readFile(copy));
      const now: RefState = { kind: 'index', sha256, listed: await hashListing(repository, copy) };
      if (isSameRef(now, after)) return null;
      if (!isSameRef(now, before)) return OTHERS_MOVED;
      if (!(await isWholeIndex(repository, draft))) return INDEX_GONE;
      await rename(lock, indexFile);
      isOurs = false;
      return null;
    } catch (error) {
      if (errorCode(error) === 'EEXIST') return INDEX_LOCKED;
      if (errorCode(error) === '') throw error;
      return `it can’t be changed (${errorCode(error)})`;
    } finally {
      if (isOurs) await rm(lock, { force: true });
      await rm(draft, { force: true });
    }
  }
}

/** `failure`: the words of git, or an error. */
const refusedBy = (failure: unknown): string => {
  const [line = ''] = (failure instanceof Error ? failure.message : String(failure)).split('\n');
  return `git could not move it: ${line.replace(/^(fatal|error): /, '')}`;
};

/** Branches are made before HEAD goes to them, and removed once it has left them. */
const sortMoves = (changes: readonly RefChange[]): readonly RefChange[] => {
  const rank = ({ path: name, after }: RefChange): number => {
    if (name === 'index') return 3;
    if (name === 'HEAD') return 1;
    return after.kind === 'absent' ? 2 : 0;
  };
  return [...changes].sort((one, other) => rank(one) - rank(other));
};

/** Files that name the branch of a working tree, also during a rebase. */
const BRANCH_FILES = ['HEAD', 'rebase-merge/head-name', 'rebase-apply/head-name'];

/** Branches that are checked out in other working trees. */
const otherBranches = ({ gitFolder, shared, config }: Repository): ReadonlySet<string> => {
  const folders = config.get('core.bare') === 'true' ? [] : [shared];
  const worktrees = path.join(shared, 'worktrees');
  if (existsSync(worktrees))
    for (const name of readdirSync(worktrees)) folders.push(path.join(worktrees, name));
  const texts = folders
    .filter((folder) => folder !== gitFolder)
    .flatMap((folder) => BRANCH_FILES.map((name) => readSmall(path.join(folder, name))));
  return new Set(texts.flatMap((text) => /^(?:ref:\s*)?(refs\S+)/.exec(text)?.[1] ?? []));
};

/** The hash of what an index lists: names, modes, objects and flags, but no times. */
const hashListing = async (repository: Repository, indexFile: string): Promise<string> => {
  const { code, output } = await repository.run(['ls-files', '-s', '-v', '-z'], {
    ...LISTING,
    indexFile,
  });
  return code === 0 ? hashBytes(output) : '';
};

/** Whether all its objects are in the repository: git may have pruned them. */
const isWholeIndex = async (repository: Repository, indexFile: string): Promise<boolean> => {
  const staged = await repository.run(['ls-files', '-s', '-z'], { ...LISTING, indexFile });
  if (staged.code !== 0) return false;
  // 160000: a submodule, whose commit is in its own repository
  const blobs = staged.output
    .toString('latin1')
    .split('\0')
    .flatMap((line) => /^(?!160000)\d{6} ([0-9a-f]+) /.exec(line)?.[1] ?? []);
  const input = blobs.map((blob) => `${blob}\n`).join('');
  const checked = await repository.run(['cat-file', '--batch-check'], { ...LISTING, input });
  return checked.code === 0 && !/ missing$/m.test(checked.output.toString('latin1'));
};

const isSameFile = async (one: string, other: string): Promise<boolean> => {
  try {
    const [first, second] = await Promise.all([lstat(one), lstat(other)]);
    return first.ino === second.ino && first.dev === second.dev;
  } catch {
    return false; // one of them is not there
  }
};
