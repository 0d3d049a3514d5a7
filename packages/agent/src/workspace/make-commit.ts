/**
 * Commits certain files with git's plumbing commands.
 *
 * The tree is HEAD's, with these files as they are in the working tree. Other changes are not
 * included. The intended commit is in the journal before the branch or the index change. Both
 * change under git's index lock, or neither: a script of its own does it, which goes on if Pawl is
 * killed. Only index entries of the commit's files change, and only if the user has not staged them
 * meanwhile. The branch moves only if it still points to the observed commit: a simultaneous commit
 * by another process wins.
 */

import { chmod, copyFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from '../platform/files.js';
import { ProgramFailure } from '../platform/run-program.js';
import type { HookContext } from '../ports/hooks.js';
import type { Repository } from './git.js';
import {
  findUnfinished,
  takeSnapshot,
  takeStamp,
  type WorktreeSnapshot,
} from './repository-snapshot.js';

export type CommitOutcome = { readonly kind: 'committed'; readonly hash: string } | Lost;
/** Not committed, and nothing has changed: another process was faster, or holds a lock. */
type Lost = { readonly kind: 'lost'; readonly why: string };

/** `indexCopy`: the user's index just before the snapshot. */
export type CommitSnapshot = WorktreeSnapshot & { readonly indexCopy: string };

/** A file of a commit: its mode and object in the index after it, and before (undefined: none). */
type IndexChange = {
  readonly name: string;
  readonly entry: string;
  readonly before: string | undefined;
};

/** A tree that is ready to be committed. */
export type PreparedTree = {
  readonly kind: 'prepared';
  readonly snapshot: CommitSnapshot;
  /** HEAD's tree; the empty tree on a branch without commits. */
  readonly before: string;
  readonly tree: string;
  /** What the commit changes in the user's index. */
  readonly changes: readonly IndexChange[];
};

// ---- The tree ----

export const takeCommitSnapshot = async (repository: Repository): Promise<CommitSnapshot> => {
  const indexCopy = path.join(repository.scratch, 'index-of-snapshot');
  await copyIndex(repository.indexFile, indexCopy);
  return { ...(await takeSnapshot(repository)), indexCopy };
};

/** Writes the tree of the commit. `same`: it equals HEAD's tree. */
export const prepareTree = async (
  repository: Repository,
  snapshot: CommitSnapshot,
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
  const staged = await readIndex(repository, snapshot.indexCopy, names);
  // an entry with mode 0 removes the file from the index
  const gone = `0 ${'0'.repeat(before.length)}`;
  const changes = names.map((name) => ({
    name,
    entry: entries.get(name) ?? gone,
    before: staged.get(name),
  }));
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

/** Mode and object by name. Git lists an empty object for a file that is only announced (`-N`). */
const readIndex = async (repository: Repository, indexFile: string, names: readonly string[]) => {
  const output = await repository.ask(['ls-files', '--stage', '-z', '--', ...names], { indexFile });
  const entries = new Map<string, string>();
  for (const record of output.split('\0')) {
    const [, entry, name] = /^(\d+ [0-9a-f]+) \d\t(.*)$/s.exec(record) ?? [];
    if (entry !== undefined && name !== undefined) entries.set(name, entry);
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
  const ref = branch === null ? 'HEAD' : `refs/heads/${branch}`;
  await prepare({ kind: 'commit', gitFolder: repository.gitFolder, ref, before, commit });
  const noCommit = '0'.repeat(commit.length); // for git: the ref must not exist
  const why = `commit (pawl): ${message.split('\n')[0]}`;
  for (let time = 1; ; time++) {
    const { was, now } = await prepareIndex(repository, changes);
    const words = [repository.indexFile, was, now, ref, commit, before ?? noCommit, why];
    const { code, errors } = await repository.runScript(MOVE, words);
    if (code === MOVED) return { kind: 'committed', hash: commit };
    if (code === INDEX_CHANGED && time < TIMES_MAX) continue;
    return { kind: 'lost', why: whyLost(repository, code, errors) };
  }
};

const UNMERGED = 'files are not merged yet';

/**
 * Why committing is impossible now, such as an unfinished merge of the user; null if it is
 * possible.
 */
export const findObstacle = (
  { gitFolder }: Repository,
  snapshot?: WorktreeSnapshot,
): string | null => {
  const work = findUnfinished(gitFolder);
  if (work !== null) return `${work} is under way`;
  const hasUnmerged = [...(snapshot?.changed.values() ?? [])].some(
    ({ kind }) => kind === 'unmerged',
  );
  return hasUnmerged ? UNMERGED : null;
};

// ---- The branch and the index move together ----

/** How often the index is prepared again, if a git process wrote it meanwhile. */
const TIMES_MAX = 5;

/** Exit codes of the script. */
const MOVED = 0;
const LOCK_HELD = 10;
const INDEX_CHANGED = 11;
const HEAD_SWITCHED = 12;
const REF_REFUSED = 13;

/**
 * Moves a branch, or a HEAD that is detached, together with the user's index. The lock of the index
 * is a file beside it: while it is there, no other git process can commit, switch, add or reset in
 * this working tree. The script removes it however it ends. A signal while git moves the branch
 * may end git: whether the branch has moved decides.
 *
 * INDEX WAS NOW REF COMMIT BEFORE WHY GIT…    replaces INDEX by NOW if it still equals WAS
 */
const MOVE = `
index=$1 was=$2 now=$3 ref=$4 commit=$5 before=$6 why=$7
lock=$index.lock
shift 7
set -C
true >"$lock" || { [ -e "$lock" ] && exit ${LOCK_HELD}; exit 1; }
set +C
trap 'rm -f "$lock"' EXIT
trap 'exit 1' HUP INT PIPE TERM
if [ -e "$index" ] || [ -e "$was" ]; then
  cmp -s "$index" "$was" || { [ $? -le 2 ] && exit ${INDEX_CHANGED}; exit 1; }
fi
cp -p "$now" "$lock" || exit 1
[ "$("$@" symbolic-ref -q HEAD || echo HEAD)" = "$ref" ] || exit ${HEAD_SWITCHED}
deref=; [ "$ref" = HEAD ] && deref=--no-deref
refused=${REF_REFUSED}
trap refused=1 HUP INT PIPE TERM
"$@" update-ref $deref -m "$why" "$ref" "$commit" "$before" ||
  [ "$("$@" rev-parse -q --verify "$ref")" = "$commit" ] || exit $refused
trap '' HUP INT PIPE TERM
trap - EXIT
mv -f "$lock" "$index" || { rm -f "$lock"; exit 1; }
`;

/** Copies an index, unless there is none. Returns its mode. */
const copyIndex = async (from: string, to: string): Promise<number> => {
  await rm(to, { force: true });
  try {
    await copyFile(from, to);
    return (await stat(to)).mode & 0o777;
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    return 0o644;
  }
};

/**
 * Copies the user's index: `was`, as it is, and `now`, with the committed files in it. Without an
 * index there is no `was`: nothing was ever staged here, and the index begins with these files.
 */
const prepareIndex = async (repository: Repository, changes: readonly IndexChange[]) => {
  const was = path.join(repository.scratch, 'index-was');
  const now = path.join(repository.scratch, 'index-now');
  await copyIndex(repository.indexFile, was);
  const mode = await copyIndex(was, now);
  const names = changes.map(({ name }) => name);
  const entries = await readIndex(repository, now, names);
  const untouched = changes.filter(({ name, before }) => entries.get(name) === before);
  const input = joinNames(untouched.map(({ name, entry }) => `${entry} 0\t${name}`));
  await repository.ask(['update-index', '-z', '--index-info'], { indexFile: now, input });
  await chmod(now, mode);
  return { was, now };
};

/** Git's message about a lock of another process. */
const LOCKED = /Unable to create '([^'\n]+\.lock)': File exists/;

const describeHeldLock = (what: string, lock: string): string =>
  `another git process holds ${what}: ${lock} exists. If no git is running there, one was ` +
  `killed, and it is safe to delete that file: rm '${lock}'`;

/** Why another process was faster. Throws if the disk or git failed. */
const whyLost = ({ indexFile }: Repository, code: number | null, errors: string): string => {
  switch (code) {
    case LOCK_HELD:
      return describeHeldLock('the index', `${indexFile}.lock`);
    case INDEX_CHANGED:
      return 'other git processes write the index all the time';
    case HEAD_SWITCHED:
      return 'HEAD was switched at the same moment';
    case REF_REFUSED: {
      const [, lockFile] = LOCKED.exec(errors) ?? [];
      return lockFile === undefined ? errors : describeHeldLock('the branch', lockFile);
    }
    default:
      throw new ProgramFailure('refused', `the commit could not be made: ${errors}`);
  }
};
