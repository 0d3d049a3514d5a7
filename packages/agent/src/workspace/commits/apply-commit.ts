import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { readTextOrEmptySync } from '../../platform/files/regular-file.js';
import type { CommitClaim, CommitIntent } from '../git/commit-claim.js';
import type { Repository } from '../git/git.js';
import { type IndexLock, lockIndex } from '../git/lock-index.js';

/**
 * Moves a branch to a commit that exists, together with the user's index.
 *
 * 1. Both change under git's own index lock, or neither. Only index entries of the commit's files change, and only if
 *    the user has not staged them meanwhile.
 * 2. The branch moves only if it still points to the observed commit. A simultaneous commit by somebody else wins.
 */

export type CommitOutcome =
  | { readonly kind: 'committed'; readonly hash: string }
  | { readonly kind: 'lost'; readonly why: string };

/** A file of a commit: its line for `update-index --index-info`, and its object in the index before (null: none). */
export type IndexChange = { readonly name: string; readonly entry: string; readonly staged: string | null };

type CommitOrder = {
  readonly intent: CommitIntent;
  readonly changes: readonly IndexChange[];
  readonly claim: CommitClaim;
  /** For the reflog. */
  readonly why: string;
};

export const joined = (names: readonly string[]): string => names.map((name) => `${name}\0`).join('');

/** Mode and object by name, from `ls-files --stage -z`. */
export const stagedIn = async (repository: Repository, indexFile: string, names: readonly string[]) => {
  const output = await repository.ask(['ls-files', '--stage', '-z', '--', ...names], { indexFile });
  const entries = new Map<string, { readonly mode: string; readonly object: string }>();
  for (const record of output.split('\0')) {
    const [, mode, object, name] = /^(\d+) ([0-9a-f]+) \d\t(.*)$/s.exec(record) ?? [];
    if (mode !== undefined && object !== undefined && name !== undefined) entries.set(name, { mode, object });
  }
  return entries;
};

/** A copy of the user's index with the committed files in it. */
const prepareIndex = async (repository: Repository, changes: readonly IndexChange[]): Promise<string> => {
  const indexFile = path.join(repository.scratch, 'index-of-user');
  try {
    await copyFile(repository.indexFile, indexFile);
  } catch (error) {
    // nothing was ever staged here, and the index begins with these files
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const names = changes.map(({ name }) => name);
  const now = await stagedIn(repository, indexFile, names);
  const untouched = changes.filter(({ name, staged }) => (now.get(name)?.object ?? null) === staged);
  const input = joined(untouched.map(({ entry }) => entry));
  await repository.ask(['update-index', '-z', '--index-info'], { indexFile, input });
  return indexFile;
};

/** The ref that HEAD moves: its branch, or HEAD itself if it is detached. */
export const currentRef = async (repository: Repository): Promise<string> => {
  const end = await repository.run(['symbolic-ref', '--quiet', 'HEAD']);
  return end.code === 0 ? end.output.toString('utf8').trim() : 'HEAD';
};

/** The commit of a ref; null if it does not exist. */
export const commitOf = async (repository: Repository, ref: string): Promise<string | null> => {
  const end = await repository.run(['rev-parse', '--verify', '--quiet', ref]);
  return end.code === 0 ? end.output.toString('utf8').trim() : null;
};

const HEAD_BYTES_MAX = 4_096;

/** The locks that git may take to move a ref. */
export const refLocks = ({ gitFolder, shared }: Repository, ref: string): readonly string[] => {
  const head = path.join(gitFolder, 'HEAD.lock');
  const own = ref === 'HEAD' ? [] : [path.join(shared, `${ref}.lock`)];
  return [head, ...own, path.join(shared, 'reftable/tables.list.lock')];
};

/** Whether git takes this lock for the ref: HEAD is locked only if it is, or points to, the ref. */
const isTaken = ({ gitFolder }: Repository, ref: string, lock: string): boolean => {
  if (ref === 'HEAD' || path.basename(lock) !== 'HEAD.lock') return true;
  return readTextOrEmptySync(path.join(gitFolder, 'HEAD'), HEAD_BYTES_MAX).trim() === `ref: ${ref}`;
};

const heldBy = (what: string, lock: string): string =>
  `another git process holds ${what}: ${lock} exists. If no git is running there, one was killed, and it is safe to delete that file: rm '${lock}'`;

/** A lock in whose way git came. Nothing proves that an empty lock is ours before we have linked it. */
const LOCKED = /Unable to create '([^'\n]+\.lock)': File exists/;

/** Why git has not moved the branch. */
const whyNotMoved = (errors: string): string => {
  const [, lock] = LOCKED.exec(errors) ?? [];
  return lock === undefined ? errors : heldBy('the branch', lock);
};

const moveRef = async (
  repository: Repository,
  { intent: { ref, before, commit }, claim, why }: CommitOrder,
  lock: IndexLock,
): Promise<CommitOutcome> => {
  if ((await currentRef(repository)) !== ref)
    return { kind: 'lost', why: 'HEAD was switched at the same moment' };
  lock.onExit('keep');
  const { moved, errors } = await repository.moveRef(
    { ref, from: before, to: commit, why },
    {
      started: (pid) => claim.noteMover(pid),
      locked: () => {
        for (const file of refLocks(repository, ref)) if (isTaken(repository, ref, file)) claim.note(file);
      },
    },
  );
  // git may have been killed after it moved the ref
  const isMoved = moved || (await commitOf(repository, ref)) === commit;
  lock.onExit(isMoved ? 'replace' : 'release');
  return isMoved ? { kind: 'committed', hash: commit } : { kind: 'lost', why: whyNotMoved(errors) };
};

type IndexOrder = Omit<CommitOrder, 'why'>;

/** Prepares the new index under git's lock and runs `move`; if that succeeds, the index is replaced. */
const underLock = async (
  repository: Repository,
  { claim, intent, changes }: IndexOrder,
  move: (lock: IndexLock) => Promise<CommitOutcome>,
): Promise<CommitOutcome> => {
  claim.make(intent);
  try {
    const lock = lockIndex(repository.indexFile, claim);
    if (lock === null) return { kind: 'lost', why: heldBy('the index', `${repository.indexFile}.lock`) };
    try {
      await lock.fill(await prepareIndex(repository, changes));
      const outcome = await move(lock);
      if (outcome.kind === 'committed') await lock.replace();
      return outcome;
    } finally {
      await lock.release();
    }
  } finally {
    claim.remove();
  }
};

/** Rejects if git or the disk fails; nothing of the user's has changed then. */
export const applyCommit = (repository: Repository, order: CommitOrder): Promise<CommitOutcome> =>
  underLock(repository, order, (lock) => moveRef(repository, order, lock));

/** The same for a branch that has the commit already: only the index changes. */
export const applyIndex = (repository: Repository, order: IndexOrder): Promise<CommitOutcome> =>
  underLock(repository, order, async () => ({ kind: 'committed', hash: order.intent.commit }));
