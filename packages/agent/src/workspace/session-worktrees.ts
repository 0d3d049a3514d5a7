/**
 * Linked worktrees of a repository (more working trees of it, in folders of their own): for
 * sessions that work on a separate commit.
 *
 * 1. Nothing that the repository names is executed: files are checked out through a folder of links
 *    with our own configuration (git.ts), so no filter, hook or fsmonitor runs. Submodules and
 *    files of Git LFS stay as git stores them.
 * 2. A worktree is removed only if nothing in it would be lost: no changed and no new file, no
 *    submodule or other file at which git does not look, and no commit that was its HEAD and that
 *    no branch or tag has, here or as it was last seen in another repository. Ignored files count
 *    for nothing.
 */

import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { attempt } from '../platform/attempt.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { entryStatus, namesIn } from '../platform/files.js';
import { ProgramFailure } from '../platform/run-program.js';
import { findCommit, isAncestor, type Repository, useRepository } from './git.js';
import { listSilent } from './uncommitted-files.js';

export type WorktreePlace = {
  /** Real path of the repository's working tree. */
  readonly repository: string;
  /** Path of the worktree. */
  readonly path: string;
  readonly environment: ProcessEnvironment;
  readonly signal: AbortSignal;
};

/** What would be lost with a worktree. */
type WorktreeContents = {
  /** Paths relative to the worktree. */
  readonly changed: readonly string[];
  /** Files that git does not compare, and submodules, also removed ones. */
  readonly silent: readonly string[];
  /** Whether it has commits by rule 2, beside the one that the session began with. */
  readonly hasOwnCommits: boolean;
};

const CHECKOUT_DEADLINE_MS = 300_000;
const COMMIT_LENGTH_MAX = 250;

const withRepository = async <T>(
  folder: string,
  { environment, signal }: WorktreePlace,
  work: (repository: Repository) => Promise<T>,
): Promise<T> => {
  const place = { workspace: folder, environment, signal };
  // null means that there is no repository, so a result that may be null is wrapped
  const done = await useRepository(place, async (repository) => ({
    result: await work(repository),
  }));
  if (done !== null) return done.result;
  const why = `${folder} is not the working tree of a git repository (a bare one has none)`;
  throw new ProgramFailure('refused', why);
};

/** The hash of a commit by its hash, branch or tag; null if the repository does not have it. */
const resolveIn = async (repository: Repository, commit: string): Promise<string | null> => {
  if (commit.length > COMMIT_LENGTH_MAX || !/^[\w][\w./@^~+-]*$/.test(commit)) return null;
  return findCommit(repository, `${commit}^{commit}`);
};

export const resolveCommit = (place: WorktreePlace, commit: string): Promise<string | null> =>
  withRepository(place.repository, place, (repository) => resolveIn(repository, commit));

/**
 * The newest of these commits that the repository still has and that comes after `start`; otherwise
 * `start`.
 */
export const findNewestCommit = (
  place: WorktreePlace,
  start: string,
  commits: readonly string[],
): Promise<string> =>
  withRepository(place.repository, place, async (repository) => {
    for (const commit of commits.toReversed()) {
      const commitHash = await resolveIn(repository, commit);
      if (commitHash !== null && (await isAncestor(repository, start, commitHash)))
        return commitHash;
    }
    return start;
  });

/** Makes the worktree, with a detached HEAD at the commit. Leaves nothing behind if it fails. */
export const addWorktree = (place: WorktreePlace, commit: string): Promise<void> =>
  addWithIndex(place, commit, ['--reset', '-u', 'HEAD']);

/** Like `addWorktree`, with the commit's index and without files. */
export const addEmptyWorktree = (place: WorktreePlace, commit: string): Promise<void> =>
  addWithIndex(place, commit, ['HEAD']);

const addWithIndex = async (
  place: WorktreePlace,
  commit: string,
  readTreeArgs: readonly string[],
): Promise<void> => {
  await withRepository(place.repository, place, (repository) =>
    repository.changeWorktrees(['add', '--detach', '--no-checkout', '--', place.path, commit]),
  );
  try {
    await withRepository(place.path, place, async (worktree) => {
      await worktree.ask(['read-tree', ...readTreeArgs], { deadlineMs: CHECKOUT_DEADLINE_MS });
    });
  } catch (error) {
    // also after an abort, the usual failure; the first failure is the one to report
    const signal = AbortSignal.timeout(CHECKOUT_DEADLINE_MS);
    await removeWorktree({ ...place, signal }).catch(() => undefined);
    throw error;
  }
};

/**
 * Removes the worktree whatever is in it, and git's record of it if only that remains. `--force`
 * twice: also a locked one.
 */
export const removeWorktree = (place: WorktreePlace): Promise<void> =>
  withRepository(place.repository, place, (repository) =>
    repository.changeWorktrees(['remove', '--force', '--force', '--', place.path]),
  );

/** Whether the folder of the worktree is there, with its link to the repository. */
export const hasWorktree = async (folder: string): Promise<boolean> => {
  try {
    const [folderStatus, link] = await Promise.all([
      lstat(folder),
      lstat(path.join(folder, '.git')),
    ]);
    return folderStatus.isDirectory() && link.isFile();
  } catch {
    return false; // whatever keeps us from it keeps the session from it too
  }
};

/** What would be lost with the worktree. `start`: the commit that the session began with. */
const inspectWorktree = (place: WorktreePlace, start: string): Promise<WorktreeContents> =>
  withRepository(place.path, place, async (worktree) => {
    const status = await worktree.ask([
      'status',
      '--porcelain=v1',
      '-z',
      '--untracked-files=all',
      '--no-renames',
    ]);
    const changed = status.split('\0').flatMap((line) => (line === '' ? [] : [line.slice(3)]));
    const entries = (await listSilent(worktree)).filter((name) =>
      isFilled(path.join(worktree.top, name)),
    );
    // the repositories of submodules go with the worktree
    const modules = namesIn(path.join(worktree.gitFolder, 'modules'));
    const earlier = await worktree.ask(['reflog', 'show', '--format=%H', 'HEAD']);
    const kept = ['--not', '--branches', '--tags', '--remotes'];
    const own = await worktree.ask(['rev-list', '--max-count=1', '--stdin', ...kept], {
      input: `HEAD\n${earlier}^${start}\n`,
    });
    const silent = [...new Set([...entries, ...modules])];
    return { changed, silent, hasOwnCommits: own !== '' };
  });

/** Whether a file is there, or a folder with something in it. */
const isFilled = (place: string): boolean => {
  const status = entryStatus(place);
  return status !== null && (!status.isDirectory() || namesIn(place).length > 0);
};

const NAMED_MAX = 5;
const firstNames = (paths: readonly string[]): string =>
  paths.length <= NAMED_MAX
    ? paths.join(', ')
    : `${paths.slice(0, NAMED_MAX).join(', ')} and ${paths.length - NAMED_MAX} more`;

/**
 * Removes the worktree if nothing would be lost by it. `start`: the commit that the session began
 * with. Resolves with the reason why it is kept, and with null if it was removed. Never rejects.
 */
export const releaseWorktree = async (
  place: WorktreePlace,
  start: string,
): Promise<string | null> => {
  const looked = await attempt(() => inspectWorktree(place, start));
  if (looked.kind === 'fault') return `git could not tell what is in it: ${looked.fault.message}`;
  const { changed, silent, hasOwnCommits } = looked.value;
  if (changed.length > 0) return `not committed: ${firstNames(changed)}`;
  if (silent.length > 0) return `not looked at by git: ${firstNames(silent)}`;
  if (hasOwnCommits) return 'it holds commits that no branch has';
  const removed = await attempt(() => removeWorktree(place));
  return removed.kind === 'done' ? null : removed.fault.message;
};
