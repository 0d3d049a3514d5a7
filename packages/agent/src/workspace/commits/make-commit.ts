import path from 'node:path';
import type { HookContext } from '../../ports/after-tool-hooks.js';
import { CommitClaim, newClaimName } from '../git/commit-claim.js';
import type { Repository } from '../git/git.js';
import { ProgramFailure } from '../run-program.js';
import { stampOf, type WorktreeSnapshot } from '../worktree-snapshot.js';
import { applyCommit, type CommitOutcome, type IndexChange, joined, stagedIn } from './apply-commit.js';

/**
 * Commits certain files with git's plumbing commands.
 *
 * 1. The tree is HEAD's, with these files as they are in the working tree. Other changes are not included.
 * 2. The intended commit is in the journal before the branch or the index change (apply-commit.ts). An interrupted
 *    commit is settled by looking (settle-commit.ts).
 */

/** A tree that is ready to be committed. */
export type PreparedTree = {
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
export const underWay = async ({ gitFolder }: Repository): Promise<string | null> => {
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
