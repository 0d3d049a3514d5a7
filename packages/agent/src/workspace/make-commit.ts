/** Makes a commit of certain files with git's plumbing commands: tree, index and branch; and settles one that was interrupted. */

import { renameSync, rmSync } from 'node:fs';
import { chmod, copyFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readTextOrEmptySync } from '../platform/files.js';
import { hasEnded } from '../platform/process-identity.js';
import { ProgramFailure } from '../platform/run-program.js';
import { atExit } from '../platform/start-program.js';
import type { HookContext } from '../ports/hooks.js';
import { CommitClaim, type CommitIntent, listClaims, newClaimName } from './commit-claim.js';
import type { Repository } from './git.js';
import { shortHash } from './head-changes.js';
import { stampOf, type WorktreeSnapshot } from './repository-snapshot.js';

/**
 * Commits certain files with git's plumbing commands.
 *
 * 1. The tree is HEAD's, with these files as they are in the working tree. Other changes are not included.
 * 2. The intended commit is in the journal before the branch or the index change (apply-commit.ts). An interrupted
 *    commit is settled by looking (settle-commit.ts).
 */

/** A tree that is ready to be committed. */
type PreparedTree = {
  readonly kind: 'prepared';
  readonly snapshot: WorktreeSnapshot;
  readonly names: readonly string[];
  /** HEAD's tree; the empty tree on a branch without commits. */
  readonly before: string;
  readonly tree: string;
  /** Lines for `update-index --index-info`, by name. */
  readonly entries: ReadonlyMap<string, string>;
};

/** Writes the tree of the commit. `same`: it equals HEAD's tree. */
export const prepareTree = async (
  repository: Repository,
  snapshot: WorktreeSnapshot,
  names: readonly string[],
): Promise<PreparedTree | { readonly kind: 'same' } | Extract<CommitOutcome, { kind: 'lost' }>> => {
  const indexFile = path.join(repository.scratch, 'index-of-commit');
  const { hash } = snapshot.head;
  if (hash !== null) await repository.ask(['read-tree', hash], { indexFile });
  const before = (
    hash === null
      ? await repository.ask(['mktree', '-z'], { input: '' })
      : await repository.ask(['rev-parse', `${hash}^{tree}`])
  ).trim();
  const update = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin'];
  await repository.ask(update, { indexFile, input: joined(names) });
  for (const name of names) {
    if ((await stampOf(path.join(repository.top, name))) === snapshot.changed.get(name)?.stamp) continue;
    return { kind: 'lost', why: 'a file was changed at the same moment' };
  }
  const tree = (await repository.ask(['write-tree', '--missing-ok'], { indexFile })).trim();
  if (tree === before) return { kind: 'same' };
  const staged = await stagedIn(repository, indexFile, names);
  const gone = '0'.repeat(before.length);
  const entries = names.map((name) => {
    const entry = staged.get(name);
    return [
      name,
      entry === undefined ? `0 ${gone} 0\t${name}` : `${entry.mode} ${entry.object} 0\t${name}`,
    ] as const;
  });
  return { kind: 'prepared', snapshot, names, before, tree, entries: new Map(entries) };
};

/** What the commit changes in the user's index. */
const indexChanges = ({ snapshot, names, entries }: PreparedTree): readonly IndexChange[] =>
  names.flatMap((name) => {
    const entry = entries.get(name);
    const staged = snapshot.changed.get(name)?.staged;
    return entry === undefined || staged === undefined ? [] : [{ name, entry, staged }];
  });

/**
 * Commits a prepared tree. `prepare` writes the intent to the journal. Rejects if git or the disk fails; nothing of the
 * user's has changed then.
 */
export const commitTree = async (
  repository: Repository,
  prepared: PreparedTree,
  message: string,
  prepare: HookContext['prepare'],
): Promise<CommitOutcome> => {
  const { snapshot, tree } = prepared;
  const { hash: before, branch } = snapshot.head;
  const parents = before === null ? [] : ['-p', before];
  const words = ['commit-tree', '--no-gpg-sign', ...parents, '-F', '-', tree];
  const commit = (await repository.ask(words, { input: `${message}\n` })).trim();
  const intent = { ref: branch === null ? 'HEAD' : `refs/heads/${branch}`, before, commit };
  const claim = newClaimName();
  await prepare({ kind: 'commit', gitFolder: repository.gitFolder, claim, ...intent });
  const [subject = ''] = message.split('\n');
  return applyCommit(repository, {
    intent,
    claim: new CommitClaim(repository.gitFolder, claim),
    changes: indexChanges(prepared),
    why: `commit (pawl): ${subject}`,
  });
};

const STATE_FILES = [
  ['MERGE_HEAD', 'a merge'],
  ['rebase-merge', 'a rebase'],
  ['rebase-apply', 'a rebase'],
  ['CHERRY_PICK_HEAD', 'a cherry-pick'],
  ['REVERT_HEAD', 'a revert'],
  ['sequencer', 'a cherry-pick or revert'],
  ['BISECT_LOG', 'a bisect'],
] as const;

/** What the user has begun in the repository, such as a merge; null if nothing. */
const underWay = async ({ gitFolder }: Repository): Promise<string | null> => {
  for (const [name, what] of STATE_FILES) {
    if ((await stampOf(path.join(gitFolder, name))) !== 'absent') return `${what} is under way`;
  }
  return null;
};

/** Why committing is impossible now; null if it is possible. */
export const whyNotNow = async (
  repository: Repository,
  snapshot: WorktreeSnapshot,
): Promise<string | null> => {
  const begun = await underWay(repository);
  if (begun !== null) return begun;
  const unmerged = [...snapshot.changed.values()].some(({ kind }) => kind === 'unmerged');
  return unmerged ? 'files are not merged yet' : null;
};

/** Files with a filter. Committing them without it would reveal content that the filter protects. */
export const filtered = async (
  repository: Repository,
  names: readonly string[],
): Promise<ReadonlySet<string>> => {
  const output = await repository.ask(['check-attr', '-z', '--stdin', 'filter'], { input: joined(names) });
  const fields = output.split('\0');
  const found = new Set<string>();
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const [name, , value] = fields.slice(at, at + 3);
    if (name !== undefined && value !== 'unspecified' && value !== 'unset') found.add(name);
  }
  return found;
};

/** The patch of the commit, at most its first `bytesMax` bytes. */
export const patchOf = async (
  repository: Repository,
  { before, tree }: PreparedTree,
  bytesMax: number,
): Promise<Buffer> => {
  const words = ['diff-tree', '-p', '-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color', before, tree];
  const end = await repository.run(words, { bytesMax, atMax: 'cut' });
  if (end.code !== 0) throw new ProgramFailure('refused', `git diff-tree failed: ${end.errors}`);
  return end.output;
};

/**
 * Moves a branch to a commit that exists, together with the user's index.
 *
 * 1. Both change under git's own index lock, or neither. Only index entries of the commit's files change, and only if
 *    the user has not staged them meanwhile.
 * 2. The branch moves only if it still points to the observed commit. A simultaneous commit by somebody else wins.
 */

type CommitOutcome =
  | { readonly kind: 'committed'; readonly hash: string }
  | { readonly kind: 'lost'; readonly why: string };

/** A file of a commit: its line for `update-index --index-info`, and its object in the index before (null: none). */
type IndexChange = { readonly name: string; readonly entry: string; readonly staged: string | null };

type CommitOrder = {
  readonly intent: CommitIntent;
  readonly changes: readonly IndexChange[];
  readonly claim: CommitClaim;
  /** For the reflog. */
  readonly why: string;
};

const joined = (names: readonly string[]): string => names.map((name) => `${name}\0`).join('');

/** Mode and object by name, from `ls-files --stage -z`. */
const stagedIn = async (repository: Repository, indexFile: string, names: readonly string[]) => {
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
const currentRef = async (repository: Repository): Promise<string> => {
  const end = await repository.run(['symbolic-ref', '--quiet', 'HEAD']);
  return end.code === 0 ? end.output.toString('utf8').trim() : 'HEAD';
};

/** The commit of a ref; null if it does not exist. */
const commitOf = async (repository: Repository, ref: string): Promise<string | null> => {
  const end = await repository.run(['rev-parse', '--verify', '--quiet', ref]);
  return end.code === 0 ? end.output.toString('utf8').trim() : null;
};

const HEAD_BYTES_MAX = 4_096;

/** The locks that git may take to move a ref. */
const refLocks = ({ gitFolder, shared }: Repository, ref: string): readonly string[] => {
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
const applyCommit = (repository: Repository, order: CommitOrder): Promise<CommitOutcome> =>
  underLock(repository, order, (lock) => moveRef(repository, order, lock));

/** The same for a branch that has the commit already: only the index changes. */
const applyIndex = (repository: Repository, order: IndexOrder): Promise<CommitOutcome> =>
  underLock(repository, order, async () => ({ kind: 'committed', hash: order.intent.commit }));

/**
 * Settles a commit whose program was killed, by looking at the repository.
 *
 * 1. Locks are removed only if they are provably ours: a second hard link is in the claim, or the lock of the branch
 *    holds our commit. A git process of ours that still runs is waited for.
 * 2. If the branch has the commit, only the index is completed. If the branch is as it was, the commit is finished or
 *    given up. If the branch is elsewhere, nothing changes.
 */

export type SettledCommit =
  | { readonly kind: 'made'; readonly warning: string }
  | { readonly kind: 'notMade'; readonly why: string };

const WAIT_MS = 10_000;
const STEP_MS = 20;
const LOCK_BYTES_MAX = 256;

/** Whether the git process that moves the branch has ended. */
const moverEnded = async (claim: CommitClaim): Promise<boolean> => {
  const mover = claim.mover();
  for (let waitedMs = 0; mover !== null && !hasEnded(mover); waitedMs += STEP_MS) {
    if (waitedMs >= WAIT_MS) return false;
    await delay(STEP_MS);
  }
  return true;
};

/** Rule 1. */
const releaseLocks = (repository: Repository, claim: CommitClaim, { ref, commit }: CommitIntent): void => {
  for (const lock of [`${repository.indexFile}.lock`, ...refLocks(repository, ref)]) {
    claim.release(lock);
    const isBranch = lock.endsWith(`${ref}.lock`);
    if (isBranch && readTextOrEmptySync(lock, LOCK_BYTES_MAX).trim() === commit) rmSync(lock);
  }
};

const RECORD = /^:\d+ (\d+) ([0-9a-f]+) ([0-9a-f]+) [A-Z]\d*$/;
const NO_OBJECT = /^0+$/;

/** What a commit changes in an index that is as its parent. */
const changesOf = async (
  repository: Repository,
  { before, commit }: CommitIntent,
): Promise<readonly IndexChange[]> => {
  const from = before ?? (await repository.ask(['mktree', '-z'], { input: '' })).trim();
  const output = await repository.ask(['diff-tree', '-r', '-z', '--raw', '--no-renames', from, commit]);
  const fields = output.split('\0');
  const changes: IndexChange[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [, mode, old, now] = RECORD.exec(fields[at] ?? '') ?? [];
    const name = fields[at + 1];
    if (mode === undefined || old === undefined || now === undefined || name === undefined) continue;
    const entry = NO_OBJECT.test(now) ? `0 ${now} 0\t${name}` : `${mode} ${now} 0\t${name}`;
    changes.push({ name, entry, staged: NO_OBJECT.test(old) ? null : old });
  }
  return changes;
};

const isAncestor = async (repository: Repository, commit: string, tip: string): Promise<boolean> =>
  (await repository.run(['merge-base', '--is-ancestor', commit, tip])).code === 0;

const completeIndex = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
): Promise<SettledCommit> => {
  const made = (warning: string): SettledCommit => ({ kind: 'made', warning });
  // the index belongs to another branch now
  if ((await currentRef(repository)) !== intent.ref) return made('');
  const changes = await changesOf(repository, intent);
  claim.remove();
  const outcome = await applyIndex(repository, { intent, claim, changes });
  if (outcome.kind === 'committed') return made('');
  const what = `the commit ${shortHash(intent.commit)} is made, but the index could not be updated`;
  return made(`${what}: ${outcome.why}. Then run: git reset -q`);
};

const finish = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
): Promise<SettledCommit> => {
  const unmerged = (await repository.ask(['ls-files', '--unmerged', '-z'])) !== '';
  const why = unmerged ? 'files are not merged yet' : await underWay(repository);
  if (why !== null) return { kind: 'notMade', why };
  const changes = await changesOf(repository, intent);
  claim.remove();
  const outcome = await applyCommit(repository, { intent, claim, changes, why: 'commit (pawl), resumed' });
  return outcome.kind === 'committed' ? { kind: 'made', warning: '' } : { kind: 'notMade', why: outcome.why };
};

/** Rule 2. */
const decide = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
  unmade: 'finish' | 'giveUp',
): Promise<SettledCommit> => {
  const { ref, before, commit } = intent;
  if ((await repository.run(['cat-file', '-e', `${commit}^{commit}`])).code !== 0)
    return { kind: 'notMade', why: 'the repository does not have the commit, so it is another one' };
  const tip = await commitOf(repository, ref);
  if (tip === commit) return completeIndex(repository, claim, intent);
  if (tip === before) {
    const interrupted = 'the session was interrupted before the branch moved';
    return unmade === 'finish' ? finish(repository, claim, intent) : { kind: 'notMade', why: interrupted };
  }
  if (tip !== null && (await isAncestor(repository, commit, tip))) return { kind: 'made', warning: '' };
  return { kind: 'notMade', why: 'the branch has been moved since' };
};

/** Settles an interrupted commit. `unmade`: what happens with a commit that the branch does not have yet. */
export const settleCommit = async (
  repository: Repository,
  claim: CommitClaim,
  intent: CommitIntent,
  unmade: 'finish' | 'giveUp',
): Promise<SettledCommit> => {
  if (!(await moverEnded(claim)))
    return { kind: 'notMade', why: `git (process ${claim.mover()?.pid}) still moves the branch: end it` };
  releaseLocks(repository, claim, intent);
  try {
    return await decide(repository, claim, intent, unmade);
  } finally {
    claim.remove();
  }
};

/**
 * Settles the interrupted commits of sessions whose processes are dead. Returns a sentence for each; commits that are
 * being made now are left alone.
 */
export const settleAbandoned = async (repository: Repository): Promise<readonly string[]> => {
  const told: string[] = [];
  for (const claim of listClaims(repository.gitFolder)) {
    const record = claim.read();
    if (record === null || !hasEnded(record.owner)) continue;
    const { commit } = record.intent;
    const settled = await settleCommit(repository, claim, record.intent, 'giveUp');
    const what = `An automatic commit (${shortHash(commit)}) was interrupted by a crash`;
    told.push(
      settled.kind === 'made'
        ? `${what}. It is made${settled.warning === '' ? '' : `: ${settled.warning}`}.`
        : `${what} and was not made: ${settled.why}. Its files are uncommitted.`,
    );
  }
  return told;
};

/**
 * Git's own lock of an index, a file beside it. While it is held, no other git process can commit, switch, add or reset
 * in this working tree.
 *
 * The lock is always released, even at exit. Only a killed program leaves it behind, and the claim then proves whose it
 * is.
 */
type IndexLock = {
  /** Writes the new index to the lock file. After that a full disk can't prevent the replacement. */
  fill(file: string): Promise<void>;
  /**
   * What an exit of this program does with the lock from now on: `release` it, `replace` the index, or `keep` it for
   * the next session, since it is not known whether the branch has moved.
   */
  onExit(does: 'release' | 'replace' | 'keep'): void;
  /** Replaces the index by the new one, and releases the lock. */
  replace(): Promise<void>;
  release(): Promise<void>;
};

const USUAL_MODE = 0o644;

const modeOf = async (file: string): Promise<number> => {
  try {
    return (await stat(file)).mode & 0o777;
  } catch {
    return USUAL_MODE; // there is no index yet
  }
};

/** Takes the lock; null if another process holds it. Rejects if the lock file can't be made. */
const lockIndex = (indexFile: string, claim: CommitClaim): IndexLock | null => {
  const lock = `${indexFile}.lock`;
  if (!claim.take(lock)) return null;
  let duty: 'release' | 'replace' | 'keep' = 'release';
  const leave = (): void => {
    if (duty === 'keep') return;
    if (duty === 'replace') renameSync(lock, indexFile);
    else claim.release(lock);
    claim.remove();
  };
  const callOff = atExit(leave);
  return {
    async fill(file) {
      await copyFile(file, lock);
      await chmod(lock, await modeOf(indexFile));
    },
    onExit(does) {
      duty = does;
    },
    async replace() {
      await rename(lock, indexFile);
      callOff();
    },
    async release() {
      await rm(lock, { force: true });
      callOff();
    },
  };
};
