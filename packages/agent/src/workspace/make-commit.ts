/**
 * Commits certain files with git's plumbing commands, and settles a commit whose program was
 * killed.
 *
 * From top to bottom: the tree of the commit, the commit, the move of the branch and the index
 * under git's lock, and the settling after a crash. A claim (commit-claim.ts) proves meanwhile
 * which locks are ours.
 *
 * The tree is HEAD's, with these files as they are in the working tree. Other changes are not
 * included. The intended commit is in the journal before the branch or the index change. Both
 * change under git's index lock, or neither. Only index entries of the commit's files change, and
 * only if the user has not staged them meanwhile. The branch moves only if it still points to the
 * observed commit: a simultaneous commit by somebody else wins.
 */

import { copyFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { chmod, copyFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readTextOrEmptySync } from '../platform/files.js';
import { atExit, hasEnded } from '../platform/start-program.js';
import type { HookContext } from '../ports/hooks.js';
import { CommitClaim, type CommitIntent, listClaims, newClaimName } from './commit-claim.js';
import { findCommit, hasCommit, isAncestor, type Repository } from './git.js';
import { shortHash } from './head-changes.js';
import { NO_OBJECT, takeStamp, type WorktreeSnapshot } from './repository-snapshot.js';

export type CommitOutcome = { readonly kind: 'committed'; readonly hash: string } | Lost;
/** Not committed, and nothing has changed: somebody else was faster, or holds a lock. */
type Lost = { readonly kind: 'lost'; readonly why: string };

/**
 * A file of a commit: its line for `update-index --index-info`, and its object in the index before
 * (null: none).
 */
type IndexChange = {
  readonly name: string;
  readonly entry: string;
  readonly staged: string | null;
};

/** A tree that is ready to be committed. */
export type PreparedTree = {
  readonly kind: 'prepared';
  readonly snapshot: WorktreeSnapshot;
  /** HEAD's tree; the empty tree on a branch without commits. */
  readonly before: string;
  readonly tree: string;
  /** What the commit changes in the user's index. */
  readonly changes: readonly IndexChange[];
};

// ---- The tree ----

/** Writes the tree of the commit. `same`: it equals HEAD's tree. */
export const prepareTree = async (
  repository: Repository,
  snapshot: WorktreeSnapshot,
  names: readonly string[],
): Promise<PreparedTree | { readonly kind: 'same' } | Lost> => {
  const indexFile = path.join(repository.scratch, 'index-of-commit');
  const { hash } = snapshot.head;
  if (hash !== null) await repository.ask(['read-tree', hash], { indexFile });
  const before = await askTree(repository, hash);
  const update = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin'];
  await repository.ask(update, { indexFile, input: joinNames(names) });
  const isChanged = (name: string): boolean =>
    takeStamp(path.join(repository.top, name)) !== snapshot.changed.get(name)?.stamp;
  if (names.some(isChanged)) return { kind: 'lost', why: 'a file was changed at the same moment' };
  const tree = (await repository.ask(['write-tree', '--missing-ok'], { indexFile })).trim();
  if (tree === before) return { kind: 'same' };
  const entries = await readIndex(repository, indexFile, names);
  const changes = names.flatMap((name): readonly IndexChange[] => {
    const staged = snapshot.changed.get(name)?.staged;
    // an entry with mode 0 removes the file from the index
    const { mode, object } = entries.get(name) ?? { mode: '0', object: '0'.repeat(before.length) };
    return staged === undefined ? [] : [{ name, entry: `${mode} ${object} 0\t${name}`, staged }];
  });
  return { kind: 'prepared', snapshot, before, tree, changes };
};

/** The tree of a commit; the empty tree for null. */
export const askTree = async (repository: Repository, commit: string | null): Promise<string> =>
  (commit === null
    ? await repository.ask(['mktree', '-z'], { input: '' })
    : await repository.ask(['rev-parse', `${commit}^{tree}`])
  ).trim();

export const joinNames = (names: readonly string[]): string =>
  names.map((name) => `${name}\0`).join('');

/** Mode and object by name. */
const readIndex = async (repository: Repository, indexFile: string, names: readonly string[]) => {
  const output = await repository.ask(['ls-files', '--stage', '-z', '--', ...names], { indexFile });
  const entries = new Map<string, { readonly mode: string; readonly object: string }>();
  for (const record of output.split('\0')) {
    const [, mode, object, name] = /^(\d+) ([0-9a-f]+) \d\t(.*)$/s.exec(record) ?? [];
    if (mode !== undefined && object !== undefined && name !== undefined)
      entries.set(name, { mode, object });
  }
  return entries;
};

// ---- The commit ----

/**
 * Commits a prepared tree. `prepare` writes the intent to the journal. Rejects if git or the disk
 * fails; nothing of the user's has changed then.
 */
export const commitTree = async (
  repository: Repository,
  { snapshot, tree, changes }: PreparedTree,
  message: string,
  prepare: HookContext['prepare'],
): Promise<CommitOutcome> => {
  const { hash: before, branch } = snapshot.head;
  const parents = before === null ? [] : ['-p', before];
  const args = ['commit-tree', '--no-gpg-sign', ...parents, '-F', '-', tree];
  const commit = (await repository.ask(args, { input: `${message}\n` })).trim();
  const intent = { ref: branch === null ? 'HEAD' : `refs/heads/${branch}`, before, commit };
  const claim = newClaimName();
  await prepare({ kind: 'commit', gitFolder: repository.gitFolder, claim, ...intent });
  return applyCommit(repository, {
    intent,
    changes,
    claim: new CommitClaim(repository.gitFolder, claim),
    reflog: `commit (pawl): ${message.split('\n')[0]}`,
  });
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

const UNMERGED = 'files are not merged yet';

/**
 * Why committing is impossible now, such as an unfinished merge of the user; null if it is
 * possible.
 */
export const findObstacle = (
  { gitFolder }: Repository,
  snapshot?: WorktreeSnapshot,
): string | null => {
  const state = STATE_FILES.find(([name]) => takeStamp(path.join(gitFolder, name)) !== 'absent');
  if (state !== undefined) return `${state[1]} is under way`;
  const hasUnmerged = [...(snapshot?.changed.values() ?? [])].some(
    ({ kind }) => kind === 'unmerged',
  );
  return hasUnmerged ? UNMERGED : null;
};

// ---- The branch and the index move together ----

/** A commit that exists as an object, to be applied to the branch and the index. */
type Application = {
  readonly intent: CommitIntent;
  readonly changes: readonly IndexChange[];
  readonly claim: CommitClaim;
  /**
   * The line of the reflog; null if the branch has the commit already and only the index changes.
   */
  readonly reflog: string | null;
};

/** Moves a branch to a commit that exists, together with the user's index. */
const applyCommit = async (
  repository: Repository,
  application: Application,
): Promise<CommitOutcome> => {
  const { claim, intent, changes, reflog } = application;
  try {
    claim.make(intent);
    const lock = lockIndex(repository.indexFile, claim);
    if (lock === null) return lost(describeHeldLock('the index', `${repository.indexFile}.lock`));
    try {
      await lock.fill(await prepareIndex(repository, changes));
      const why =
        reflog === null ? null : await moveBranch(repository, { intent, claim, reflog }, lock);
      if (why !== null) return lost(why);
      await lock.replace();
      return { kind: 'committed', hash: intent.commit };
    } finally {
      await lock.release();
    }
  } finally {
    claim.remove();
  }
};

const lost = (why: string): Lost => ({ kind: 'lost', why });

/** A copy of the user's index with the committed files in it. */
const prepareIndex = async (
  repository: Repository,
  changes: readonly IndexChange[],
): Promise<string> => {
  const indexFile = path.join(repository.scratch, 'index-of-user');
  try {
    copyFileSync(repository.indexFile, indexFile);
  } catch (error) {
    // nothing was ever staged here, and the index begins with these files
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const names = changes.map(({ name }) => name);
  const now = await readIndex(repository, indexFile, names);
  const untouched = changes.filter(
    ({ name, staged }) => (now.get(name)?.object ?? null) === staged,
  );
  const input = joinNames(untouched.map(({ entry }) => entry));
  await repository.ask(['update-index', '-z', '--index-info'], { indexFile, input });
  return indexFile;
};

type Move = Pick<Application, 'intent' | 'claim'> & { readonly reflog: string };

/** Moves the branch under the lock of the index; null, or why it has not moved. */
const moveBranch = async (
  repository: Repository,
  { intent: { ref, before, commit }, claim, reflog }: Move,
  lock: IndexLock,
): Promise<string | null> => {
  if ((await askHeadRef(repository)) !== ref) return 'HEAD was switched at the same moment';
  lock.onExit('keep');
  const { moved, errors } = await repository.moveRef(
    { ref, from: before, to: commit, why: reflog },
    {
      started: (pid) => claim.noteMover(pid),
      locked: () => {
        for (const file of refLocks(repository, ref))
          if (isTaken(repository, ref, file)) claim.note(file);
      },
    },
  );
  // git may have been killed after it moved the ref
  const isMoved = moved || (await findCommit(repository, ref)) === commit;
  lock.onExit(isMoved ? 'replace' : 'release');
  if (isMoved) return null;
  const [, lockFile] = LOCKED.exec(errors) ?? [];
  return lockFile === undefined ? errors : describeHeldLock('the branch', lockFile);
};

/** Git's message about a lock of another process. */
const LOCKED = /Unable to create '([^'\n]+\.lock)': File exists/;

const describeHeldLock = (what: string, lock: string): string =>
  `another git process holds ${what}: ${lock} exists. If no git is running there, one was ` +
  `killed, and it is safe to delete that file: rm '${lock}'`;

/** The ref that HEAD moves: its branch, or HEAD itself if it is detached. */
const askHeadRef = async (repository: Repository): Promise<string> =>
  (await repository.tryAsk(['symbolic-ref', '--quiet', 'HEAD'])) ?? 'HEAD';

const HEAD_BYTES_MAX = 4_096;

/** The locks that git may take to move a ref. */
const refLocks = ({ gitFolder, shared }: Repository, ref: string): readonly string[] => {
  const branch = ref === 'HEAD' ? [] : [path.join(shared, `${ref}.lock`)];
  return [
    path.join(gitFolder, 'HEAD.lock'),
    ...branch,
    path.join(shared, 'reftable/tables.list.lock'),
  ];
};

/** Whether git takes this lock for the ref: HEAD is locked only if it is, or points to, the ref. */
const isTaken = ({ gitFolder }: Repository, ref: string, lock: string): boolean =>
  ref === 'HEAD' ||
  path.basename(lock) !== 'HEAD.lock' ||
  readTextOrEmptySync(path.join(gitFolder, 'HEAD'), HEAD_BYTES_MAX).trim() === `ref: ${ref}`;

/**
 * Git's lock of an index, a file beside it. While it is held, no other git process can commit,
 * switch, add or reset in this working tree. It is always released, even at exit. Only a killed
 * program leaves it behind, and the claim then proves whose it is.
 */
class IndexLock {
  readonly #indexFile: string;
  readonly #lock: string;
  readonly #cancelAtExit: () => void;
  #exitAction: 'release' | 'replace' | 'keep' = 'release';

  constructor(indexFile: string, claim: CommitClaim) {
    this.#indexFile = indexFile;
    this.#lock = `${indexFile}.lock`;
    this.#cancelAtExit = atExit(() => {
      if (this.#exitAction === 'keep') return;
      if (this.#exitAction === 'replace') renameSync(this.#lock, indexFile);
      else claim.release(this.#lock);
      claim.remove();
    });
  }

  /**
   * Writes the new index to the lock file. After that a full disk can't prevent the replacement.
   */
  async fill(file: string): Promise<void> {
    await copyFile(file, this.#lock);
    const mode = statSync(this.#indexFile, { throwIfNoEntry: false })?.mode ?? 0o644;
    await chmod(this.#lock, mode & 0o777);
  }

  /**
   * What an exit of this program does with the lock from now on: `release` it, `replace` the index,
   * or `keep` it for the next session, since it is not known whether the branch has moved.
   */
  onExit(action: 'release' | 'replace' | 'keep'): void {
    this.#exitAction = action;
  }

  /** Replaces the index by the new one, and releases the lock. */
  async replace(): Promise<void> {
    await rename(this.#lock, this.#indexFile);
    this.#cancelAtExit();
  }

  async release(): Promise<void> {
    await rm(this.#lock, { force: true });
    this.#cancelAtExit();
  }
}

/** Takes the lock; null if another process holds it. Throws if there can be no lock file. */
export const lockIndex = (indexFile: string, claim: CommitClaim): IndexLock | null =>
  claim.take(`${indexFile}.lock`) ? new IndexLock(indexFile, claim) : null;

// ---- After a crash ----

export type SettledCommit =
  | { readonly kind: 'committed'; readonly warning: string }
  | { readonly kind: 'abandoned'; readonly why: string };

const asCommitted = (warning = ''): SettledCommit => ({ kind: 'committed', warning });
const asAbandoned = (why: string): SettledCommit => ({ kind: 'abandoned', why });

/**
 * Settles an interrupted commit by looking at the repository. If the branch has the commit, only
 * the index is completed. If the branch is as it was, the commit is finished or abandoned, as
 * `ifUnmade` says. If the branch is elsewhere, nothing changes.
 */
export const settleCommit = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
  ifUnmade: 'finish' | 'giveUp',
): Promise<SettledCommit> => {
  if (!(await waitForMover(claim)))
    return asAbandoned(`git (process ${claim.mover()?.pid}) still moves the branch: end it`);
  releaseLocks(repository, claim, intent);
  try {
    const { ref, before, commit } = intent;
    if (!(await hasCommit(repository, commit)))
      return asAbandoned('the repository does not have the commit, so it is another one');
    const tip = await findCommit(repository, ref);
    if (tip === commit) return await completeIndex(repository, claim, intent);
    if (tip === before && ifUnmade === 'finish')
      return await finishCommit(repository, claim, intent);
    if (tip === before) return asAbandoned('the session was interrupted before the branch moved');
    if (tip !== null && (await isAncestor(repository, commit, tip))) return asCommitted();
    return asAbandoned('the branch has been moved since');
  } finally {
    claim.remove();
  }
};

const WAIT_MS = 10_000;
const STEP_MS = 20;

/** Waits for a git process of ours that still moves the branch; false if it does not end. */
const waitForMover = async (claim: CommitClaim): Promise<boolean> => {
  const mover = claim.mover();
  for (let waitedMs = 0; mover !== null && !hasEnded(mover); waitedMs += STEP_MS) {
    if (waitedMs >= WAIT_MS) return false;
    await delay(STEP_MS);
  }
  return true;
};

const LOCK_BYTES_MAX = 256;

/**
 * Removes the locks that are provably ours: linked in the claim, or a lock of the branch that holds
 * our commit.
 */
const releaseLocks = (
  repository: Repository,
  claim: CommitClaim,
  { ref, commit }: CommitIntent,
): void => {
  for (const lock of [`${repository.indexFile}.lock`, ...refLocks(repository, ref)]) {
    claim.release(lock);
    const isOfBranch = lock.endsWith(`${ref}.lock`);
    if (isOfBranch && readTextOrEmptySync(lock, LOCK_BYTES_MAX).trim() === commit) rmSync(lock);
  }
};

/** The branch has the commit: puts its files into the index. */
const completeIndex = async (repository: Repository, claim: CommitClaim, intent: CommitIntent) => {
  // otherwise the index belongs to another branch now
  if ((await askHeadRef(repository)) !== intent.ref) return asCommitted();
  const outcome = await reapply(repository, claim, intent, null);
  if (outcome.kind === 'committed') return asCommitted();
  const what = `the commit ${shortHash(intent.commit)} is made, but the index could not be updated`;
  return asCommitted(`${what}: ${outcome.why}. Then run: git reset -q`);
};

/** Moves the branch to the commit after all, unless something is unfinished there. */
const finishCommit = async (repository: Repository, claim: CommitClaim, intent: CommitIntent) => {
  const unmerged = await repository.ask(['ls-files', '--unmerged', '-z']);
  const obstacle = unmerged === '' ? findObstacle(repository) : UNMERGED;
  if (obstacle !== null) return asAbandoned(obstacle);
  const outcome = await reapply(repository, claim, intent, 'commit (pawl), resumed');
  return outcome.kind === 'committed' ? asCommitted() : asAbandoned(outcome.why);
};

/** A record of `diff-tree --raw`: modes, objects and the kind of change. */
const RAW = /^:\d+ (\d+) ([0-9a-f]+) ([0-9a-f]+) [A-Z]\d*$/;

/** Applies the commit of an earlier process. Its changes are read from the commit. */
const reapply = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
  reflog: string | null,
): Promise<CommitOutcome> => {
  const from = intent.before ?? (await askTree(repository, null));
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', from, intent.commit];
  const fields = (await repository.ask(args)).split('\0');
  const changes: IndexChange[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [, mode, old, now] = RAW.exec(fields[at] ?? '') ?? [];
    const name = fields[at + 1];
    if (mode === undefined || old === undefined || now === undefined || name === undefined)
      continue;
    const entry = `${NO_OBJECT.test(now) ? '0' : mode} ${now} 0\t${name}`;
    changes.push({ name, entry, staged: NO_OBJECT.test(old) ? null : old });
  }
  // `applyCommit` makes it again, with this process as its owner
  claim.remove();
  return applyCommit(repository, { intent, claim, changes, reflog });
};

/**
 * Settles the interrupted commits of sessions whose processes are dead. Returns a sentence for
 * each; commits in progress stay as they are.
 */
export const settleAbandoned = async (repository: Repository): Promise<readonly string[]> => {
  const news: string[] = [];
  for (const claim of listClaims(repository.gitFolder)) {
    const record = claim.read();
    if (record === null) claim.removeUnrecorded();
    if (record === null || !hasEnded(record.owner)) continue;
    const settled = await settleCommit(repository, claim, record.intent, 'giveUp');
    const what = `An automatic commit (${shortHash(record.intent.commit)}) was interrupted by a crash`;
    news.push(
      settled.kind === 'committed'
        ? `${what}. It is made${settled.warning === '' ? '' : `: ${settled.warning}`}.`
        : `${what} and was not made: ${settled.why}. Its files are uncommitted.`,
    );
  }
  return news;
};
