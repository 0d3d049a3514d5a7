import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import type { Repository } from './git.js';
import { lockIndex } from './index-lock.js';
import { type Head, type Look, stampOf } from './look.js';
import { ProgramFailure } from './program.js';

/**
 * A commit of certain files, made with plumbing.
 *
 * 1. The tree is HEAD's with these files as they are in the working tree: what else is changed or staged is not in it.
 * 2. The branch and the user's index change together, under git's own lock of the index, or not at all. Of the index
 *    only the entries of these files change, and of these only those that the user has not staged meanwhile.
 * 3. The branch moves only from where it was looked at: a commit that somebody else makes at the same moment wins.
 */

/** A tree that is ready to be committed. */
export type Prepared = {
  readonly kind: 'prepared';
  readonly look: Look;
  readonly names: readonly string[];
  /** Of HEAD; of a branch without commits the empty one. */
  readonly before: string;
  readonly tree: string;
  /** Lines for `update-index --index-info`, by name. */
  readonly entries: ReadonlyMap<string, string>;
};

export type Outcome =
  | { readonly kind: 'committed'; readonly hash: string }
  | { readonly kind: 'lost'; readonly why: string };

const joined = (names: readonly string[]): string => names.map((name) => `${name}\0`).join('');

/** `ls-files --stage -z`: mode, object and stage by name. */
const stagedIn = async (repository: Repository, indexFile: string, names: readonly string[]) => {
  const output = await repository.ask(['ls-files', '--stage', '-z', '--', ...names], { indexFile });
  const entries = new Map<string, { readonly mode: string; readonly object: string }>();
  for (const record of output.split('\0')) {
    const [, mode, object, name] = /^(\d+) ([0-9a-f]+) \d\t(.*)$/s.exec(record) ?? [];
    if (mode !== undefined && object !== undefined && name !== undefined) entries.set(name, { mode, object });
  }
  return entries;
};

/** The tree of a commit with the files as they are now, or why there is none. */
export const prepareTree = async (
  repository: Repository,
  look: Look,
  names: readonly string[],
): Promise<Prepared | { readonly kind: 'same' } | Extract<Outcome, { kind: 'lost' }>> => {
  const indexFile = path.join(repository.scratch, 'index-of-commit');
  const { hash } = look.head;
  if (hash !== null) await repository.ask(['read-tree', hash], { indexFile });
  const before = (
    hash === null
      ? await repository.ask(['mktree', '-z'], { input: '' })
      : await repository.ask(['rev-parse', `${hash}^{tree}`])
  ).trim();
  const update = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin'];
  await repository.ask(update, { indexFile, input: joined(names) });
  for (const name of names) {
    if ((await stampOf(path.join(repository.top, name))) === look.changed.get(name)?.stamp) continue;
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
  return { kind: 'prepared', look, names, before, tree, entries: new Map(entries) };
};

/** The user's index with the committed files in it, as a file of our own. */
const prepareIndex = async (repository: Repository, { look, names, entries }: Prepared): Promise<string> => {
  const indexFile = path.join(repository.scratch, 'index-of-user');
  try {
    await copyFile(repository.indexFile, indexFile);
  } catch (error) {
    // nothing was ever staged here, and the index begins with these files
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const staged = await stagedIn(repository, indexFile, names);
  const untouched = names.filter(
    (name) => (staged.get(name)?.object ?? null) === look.changed.get(name)?.staged,
  );
  const input = joined(untouched.flatMap((name) => entries.get(name) ?? []));
  await repository.ask(['update-index', '-z', '--index-info'], { indexFile, input });
  return indexFile;
};

/** The branch that HEAD names, in full; null if it is detached. */
const branchOf = async (repository: Repository): Promise<string | null> => {
  const end = await repository.run(['symbolic-ref', '--quiet', 'HEAD']);
  return end.code === 0 ? end.output.toString('utf8').trim() : null;
};

const moveHead = async (
  repository: Repository,
  { branch, hash }: Head,
  commit: string,
  subject: string,
): Promise<Outcome> => {
  const full = branch === null ? null : `refs/heads/${branch}`;
  if ((await branchOf(repository)) !== full)
    return { kind: 'lost', why: 'HEAD was switched at the same moment' };
  const target = full === null ? ['--no-deref', 'HEAD'] : [full];
  const old = hash ?? '0'.repeat(commit.length);
  const end = await repository.moveRef(['-m', `commit (pawl): ${subject}`, ...target, commit, old]);
  if (end.code === 0) return { kind: 'committed', hash: commit };
  return { kind: 'lost', why: end.errors };
};

/** Commits a prepared tree. Rejects where git or the disk fail; nothing of the user's has changed then. */
export const commitTree = async (
  repository: Repository,
  prepared: Prepared,
  message: string,
): Promise<Outcome> => {
  const { look, tree } = prepared;
  const parents = look.head.hash === null ? [] : ['-p', look.head.hash];
  const words = ['commit-tree', '--no-gpg-sign', ...parents, '-F', '-', tree];
  const commit = (await repository.ask(words, { input: `${message}\n` })).trim();
  const lock = await lockIndex(repository.indexFile);
  if (lock === null) return { kind: 'lost', why: 'another git process holds the index (index.lock)' };
  try {
    await lock.fill(await prepareIndex(repository, prepared));
    const [subject = ''] = message.split('\n');
    const outcome = await moveHead(repository, look.head, commit, subject);
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

/** Why this is no moment to commit, or null. */
export const whyNotNow = async (repository: Repository, look: Look): Promise<string | null> => {
  for (const [name, what] of STATE_FILES) {
    if ((await stampOf(path.join(repository.gitFolder, name))) !== 'absent') return `${what} is under way`;
  }
  const unmerged = [...look.changed.values()].some(({ kind }) => kind === 'unmerged');
  return unmerged ? 'files are not merged yet' : null;
};

/** Files that a filter turns into something else: committed without it, what it protects would be in the open. */
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

/** What the commit changes, as a patch; its beginning if it is longer than `bytesMax`. */
export const patchOf = async (
  repository: Repository,
  { before, tree }: Prepared,
  bytesMax: number,
): Promise<Buffer> => {
  const words = ['diff-tree', '-p', '-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color', before, tree];
  const end = await repository.run(words, { bytesMax, atMax: 'cut' });
  if (end.code !== 0) throw new ProgramFailure('refused', `git diff-tree failed: ${end.errors}`);
  return end.output;
};
