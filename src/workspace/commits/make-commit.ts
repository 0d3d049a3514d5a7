import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import type { Repository } from '../git/git.js';
import { lockIndex } from '../git/lock-index.js';
import type { Head } from '../git/refs.js';
import { ProgramFailure } from '../run-program.js';
import { stampOf, type WorktreeSnapshot } from '../worktree-snapshot.js';

/**
 * Commits certain files with git's plumbing commands.
 *
 * 1. The tree is HEAD's, with these files as they are in the working tree. Other changes are not included.
 * 2. The branch and the user's index change together, under git's own index lock, or not at all. Only index entries of
 *    these files change, and only if the user has not staged them meanwhile.
 * 3. The branch moves only if it still points to the observed commit. A simultaneous commit by somebody else wins.
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

export type CommitOutcome =
  | { readonly kind: 'committed'; readonly hash: string }
  | { readonly kind: 'lost'; readonly why: string };

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

/** A copy of the user's index with the committed files in it. */
const prepareIndex = async (
  repository: Repository,
  { snapshot, names, entries }: PreparedTree,
): Promise<string> => {
  const indexFile = path.join(repository.scratch, 'index-of-user');
  try {
    await copyFile(repository.indexFile, indexFile);
  } catch (error) {
    // nothing was ever staged here, and the index begins with these files
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const staged = await stagedIn(repository, indexFile, names);
  const untouched = names.filter(
    (name) => (staged.get(name)?.object ?? null) === snapshot.changed.get(name)?.staged,
  );
  const input = joined(untouched.flatMap((name) => entries.get(name) ?? []));
  await repository.ask(['update-index', '-z', '--index-info'], { indexFile, input });
  return indexFile;
};

/** The full name of HEAD's branch; null if HEAD is detached. */
const branchOf = async (repository: Repository): Promise<string | null> => {
  const end = await repository.run(['symbolic-ref', '--quiet', 'HEAD']);
  return end.code === 0 ? end.output.toString('utf8').trim() : null;
};

const moveHead = async (
  repository: Repository,
  { branch, hash }: Head,
  commit: string,
  subject: string,
): Promise<CommitOutcome> => {
  const full = branch === null ? null : `refs/heads/${branch}`;
  if ((await branchOf(repository)) !== full)
    return { kind: 'lost', why: 'HEAD was switched at the same moment' };
  const target = full === null ? ['--no-deref', 'HEAD'] : [full];
  const old = hash ?? '0'.repeat(commit.length);
  const end = await repository.moveRef(['-m', `commit (pawl): ${subject}`, ...target, commit, old]);
  if (end.code === 0) return { kind: 'committed', hash: commit };
  return { kind: 'lost', why: end.errors };
};

/** Commits a prepared tree. Rejects if git or the disk fails; nothing of the user's has changed then. */
export const commitTree = async (
  repository: Repository,
  prepared: PreparedTree,
  message: string,
): Promise<CommitOutcome> => {
  const { snapshot, tree } = prepared;
  const parents = snapshot.head.hash === null ? [] : ['-p', snapshot.head.hash];
  const words = ['commit-tree', '--no-gpg-sign', ...parents, '-F', '-', tree];
  const commit = (await repository.ask(words, { input: `${message}\n` })).trim();
  const lock = await lockIndex(repository.indexFile);
  if (lock === null) return { kind: 'lost', why: 'another git process holds the index (index.lock)' };
  try {
    await lock.fill(await prepareIndex(repository, prepared));
    const [subject = ''] = message.split('\n');
    const outcome = await moveHead(repository, snapshot.head, commit, subject);
    if (outcome.kind === 'committed') await lock.replace();
    return outcome;
  } finally {
    await lock.release();
  }
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

/** Why committing is impossible now; null if it is possible. */
export const whyNotNow = async (
  repository: Repository,
  snapshot: WorktreeSnapshot,
): Promise<string | null> => {
  for (const [name, what] of STATE_FILES) {
    if ((await stampOf(path.join(repository.gitFolder, name))) !== 'absent') return `${what} is under way`;
  }
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
