/** How HEAD moved between two observations, by whom, and what is said about it. */

import type { JudgedCall } from '../machine/call.js';
import { settleAll } from '../platform/run-program.js';
import { plural } from '../platform/text.js';
import type { CallChanges } from './agent-changes.js';
import { type GitPlace, oneLine, type Repository, statistics, useRepository } from './git.js';
import type { Head, Refs, WorktreeSnapshot } from './repository-snapshot.js';

type NewCommit = {
  readonly hash: string;
  readonly subject: string;
  readonly files: readonly string[];
  readonly insertions: number;
  readonly deletions: number;
};

type HeadChange = {
  /** One sentence for each change; empty if HEAD did not move. */
  readonly sentences: readonly string[];
  /** Commits that are on this branch now and were on no branch before; newest first, at most LISTED_MAX. */
  readonly commits: readonly NewCommit[];
  /** Number of all new commits. */
  readonly count: number;
  /** Commits are no longer on the branch. */
  readonly lost: boolean;
};

const LISTED_MAX = 20;

const STILL: HeadChange = { sentences: [], commits: [], count: 0, lost: false };

export const isSameHead = (one: Head, other: Head): boolean =>
  one.branch === other.branch && one.hash === other.hash;

/** Joins successive changes. */
const joinHeadChanges = (movements: readonly HeadChange[]): HeadChange => ({
  sentences: movements.flatMap(({ sentences }) => sentences),
  commits: movements.toReversed().flatMap(({ commits }) => commits),
  count: movements.reduce((sum, { count }) => sum + count, 0),
  lost: movements.some(({ lost }) => lost),
});

export const shortHash = (hash: string): string => hash.slice(0, 8);

/** The name of HEAD's branch, for people. */
export const placeOf = ({ branch }: Head): string => (branch === null ? 'a detached HEAD' : oneLine(branch));

/** Input for `--stdin`: revisions reachable from `from`, without those of `without`. */
const range = (from: string, without: readonly string[]): string =>
  `${[from, ...without.map((hash) => `^${hash}`)].join('\n')}\n`;

const countOf = async (repository: Repository, from: string, without: readonly string[]): Promise<number> => {
  const input = range(from, without);
  return Number(await repository.ask(['rev-list', '--count', '--ignore-missing', '--stdin'], { input }));
};

const STATISTICS = [
  ...['diff-tree', '--stdin', '-r', '--root', '--always', '--diff-merges=first-parent', '--numstat', '-z'],
  ...['--no-renames', '--no-ext-diff', '--no-textconv', '--ignore-submodules=all', '--format=#%H %s'],
];

export type CommitStatistics = Pick<NewCommit, 'files' | 'insertions' | 'deletions'>;

const NOTHING: CommitStatistics = { files: [], insertions: 0, deletions: 0 };

/** The number of lines; git prints '-' for a binary file. */
const linesOf = (count: string): number => (count === '-' ? 0 : Number(count));

/** Adds one record of `--numstat -z`. Other records are ignored. */
const withRecord = (change: CommitStatistics, record: string): CommitStatistics => {
  const file = /^\n?(\d+|-)\t(\d+|-)\t(.*)$/s.exec(record);
  if (file === null) return change;
  const [, added = '', removed = '', name = ''] = file;
  return {
    files: [...change.files, name],
    insertions: change.insertions + linesOf(added),
    deletions: change.deletions + linesOf(removed),
  };
};

/** Parses the output of `--numstat -z` for one change. */
export const parseStatistics = (output: string): CommitStatistics =>
  output.split('\0').reduce(withRecord, NOTHING);

/** Parses the output of STATISTICS: a record for each commit, followed by one for each file. */
const parseCommits = (output: string): readonly NewCommit[] => {
  const commits: NewCommit[] = [];
  for (const record of output.split('\0')) {
    const [, hash, subject = ''] = /^\n?#([0-9a-f]+) (.*)$/s.exec(record) ?? [];
    const last = commits.at(-1);
    if (hash !== undefined) commits.push({ hash, subject: oneLine(subject), ...NOTHING });
    else if (last !== undefined) commits[commits.length - 1] = { ...last, ...withRecord(last, record) };
  }
  return commits;
};

const listCommits = async (
  repository: Repository,
  from: string,
  without: readonly string[],
): Promise<readonly NewCommit[]> => {
  const words = ['rev-list', `--max-count=${LISTED_MAX}`, '--ignore-missing', '--stdin'];
  const hashes = await repository.ask(words, { input: range(from, without) });
  return hashes === '' ? [] : parseCommits(await repository.ask(STATISTICS, { input: hashes }));
};

/**
 * The difference between two commits: `gone` counts commits that only the old one has, `come` those that only the new
 * one has.
 */
type Gap = {
  readonly gone: number;
  readonly come: number;
  readonly related: boolean;
  readonly sameParents: boolean;
};

const parentsOf = async (repository: Repository, hash: string): Promise<string> => {
  const line = await repository.ask(['rev-list', '--max-count=1', '--parents', hash]);
  return line.trim().split(' ').slice(1).join(' ');
};

const gapBetween = async (repository: Repository, before: string, after: string): Promise<Gap | null> => {
  const known = await repository.run(['cat-file', '-e', `${before}^{commit}`]);
  if (known.code !== 0) return null;
  const [gone, come, base] = await settleAll([
    countOf(repository, before, [after]),
    countOf(repository, after, [before]),
    repository.run(['merge-base', before, after]),
  ]);
  const amended = gone === 1 && come > 0;
  const sameParents =
    amended && (await parentsOf(repository, before)) === (await parentsOf(repository, after));
  return { gone, come, related: base.code === 0, sameParents };
};

type Story = { readonly sentence: string; readonly lost: boolean };

/** Describes how the branch moved from one commit to another. */
const storyOf = (place: string, before: string, after: string, gap: Gap | null): Story => {
  const [from, to] = [shortHash(before), shortHash(after)];
  const other = (sentence: string): Story => ({ sentence, lost: true });
  if (gap === null) return other(`${place} is at ${to}; ${from}, where it was, no longer exists.`);
  const { gone, come, related, sameParents } = gap;
  if (gone === 0) return { sentence: `${place} went on from ${from} to ${to}.`, lost: false };
  if (sameParents)
    return { ...other(`The last commit of ${place}, ${from}, was replaced by ${to}.`), lost: false };
  if (!related) return other(`${place} went from ${from} to ${to}, which has no history in common with it.`);
  if (come === 0) return other(`${place} went back by ${plural(gone, 'commit')}, from ${from} to ${to}.`);
  const rewritten = `${plural(gone, 'commit')} gone from it, ${come} new in their place`;
  return other(`The history of ${place} was rewritten, from ${from} to ${to}: ${rewritten}.`);
};

const born = (place: string, hash: string): string =>
  `${place} has its first commits, up to ${shortHash(hash)}.`;

/** Describes a switch of branches. The old branch keeps its commits, so nothing is lost. */
const switched = (before: Head, after: Head): string =>
  `HEAD went from ${placeOf(before)} to ${placeOf(after)}${after.hash === null ? ', which has no commits yet' : ` at ${shortHash(after.hash)}`}.`;

/** How HEAD moved since `before`. A commit is new if it was on no branch. */
const headChangeOf = async (repository: Repository, before: Refs, after: Head): Promise<HeadChange> => {
  const old = before.head;
  const sameBranch = old.branch === after.branch;
  if (sameBranch && old.hash === after.hash) return STILL;
  const sentences = sameBranch ? [] : [switched(old, after)];
  if (after.hash === null) {
    if (sameBranch) sentences.push(`${placeOf(after)} has no commits any more.`);
    return { ...STILL, sentences, lost: sameBranch };
  }
  const known = old.hash === null ? before.tips : [old.hash, ...before.tips];
  const [count, commits] = await settleAll([
    countOf(repository, after.hash, known),
    listCommits(repository, after.hash, known),
  ]);
  if (!sameBranch) return { sentences, commits, count, lost: false };
  if (old.hash === null) {
    return { sentences: [born(placeOf(after), after.hash)], commits, count, lost: false };
  }
  const gap = await gapBetween(repository, old.hash, after.hash);
  const { sentence, lost } = storyOf(placeOf(after), old.hash, after.hash, gap);
  return { sentences: [sentence], commits, count, lost };
};

/**
 * Files changed by commits that were made here since `before`, relative to the top. Excludes merges, commits from
 * remotes, and files that had uncommitted changes before.
 */
const filesMade = async (
  repository: Repository,
  before: WorktreeSnapshot,
  after: WorktreeSnapshot,
  { commits }: HeadChange,
): Promise<readonly string[]> => {
  const [from, to] = [before.head.hash, after.head.hash];
  if (commits.length === 0 || from === null || to === null) return [];
  const input = range(to, [from, ...before.tips, ...after.remoteTips]);
  const revisions = ['rev-list', `--max-count=${LISTED_MAX}`, '--no-merges', '--ignore-missing', '--stdin'];
  const made = new Set((await repository.ask(revisions, { input })).split('\n'));
  const output = await repository.ask(['diff-tree', '-r', '--name-only', '-z', '--no-renames', from, to]);
  const different = new Set(output.split('\0'));
  const files = commits.filter(({ hash }) => made.has(hash)).flatMap((commit) => commit.files);
  return [...new Set(files)].filter((name) => different.has(name) && !before.changed.has(name));
};

/** Notes and warnings about new commits. */

/** Who moved HEAD: the agent's calls, somebody else between them, or unknown because a check failed. */
export type HeadMover = 'calls' | 'others' | 'unknown';

type HeadMove = { readonly by: HeadMover; readonly change: HeadChange };

/** A commit with statistics in its subject. */
export const describeCommit = ({ hash, subject, files, insertions, deletions }: NewCommit) => ({
  hash,
  subject: `${subject} (${statistics(files.length, insertions, deletions)})`,
});

const OPENINGS: Readonly<Record<HeadMover, string>> = {
  calls: '',
  others: 'Between your calls, not by them: ',
  unknown: 'Since the last check, by an unknown author: ',
};

/** The changes that the calls made. */
export const byCalls = (moved: readonly HeadMove[]): HeadChange =>
  joinHeadChanges(moved.flatMap(({ by, change }) => (by === 'calls' ? [change] : [])));

/**
 * The note for the model: how HEAD moved, by the calls and between them, and the commits of the calls. `changed`:
 * number of files with uncommitted changes; null if unknown.
 */
export const noteOf = (moved: readonly HeadMove[], { head }: Refs, changed: number | null): string => {
  const lines = moved.flatMap(({ by, change }) =>
    change.sentences.map((sentence) => `${OPENINGS[by]}${sentence}`),
  );
  if (lines.length === 0) return '';
  const { commits, count } = byCalls(moved);
  const listed = commits.map(describeCommit);
  const more = count - listed.length;
  if (listed.length > 0) lines.push(`${plural(count, 'new commit')} on ${placeOf(head)}:`);
  lines.push(...listed.map(({ hash, subject }) => `  ${shortHash(hash)} ${subject}`));
  if (more > 0) lines.push(`  and ${more} more`);
  if (changed === 0) lines.push('The working tree is clean.');
  else if (changed !== null) lines.push(`${plural(changed, 'file')} with uncommitted changes.`);
  return `[git] ${lines.join('\n')}`;
};

/** The warning for the user: commits that are no longer on the branch, and commits that are not listed. */
export const warningOf = ({ lost, sentences, count, commits }: HeadChange): string =>
  [
    ...(lost ? sentences : []),
    ...(count > commits.length
      ? [`${count} new commits, of which the newest ${commits.length} are shown.`]
      : []),
  ].join(' ');

/** One move of HEAD. */
type HeadStep = { readonly by: HeadMover; readonly from: Refs; readonly to: Refs };

/** The refs of a repository before its first commit. */
export const unborn = ({ top, gitFolder, head }: Refs): Refs => ({
  top,
  gitFolder,
  head: { ...head, hash: null },
  tips: [],
  remoteTips: [],
  stash: null,
});

/** Everything that happened to the repository since the last report. */
export class RepositoryEvents {
  #steps: readonly HeadStep[] = [];
  #callChanges: readonly CallChanges[] = [];
  #began: WorktreeSnapshot | null = null;

  /** The first snapshot before a call; null if there is none. */
  get began(): WorktreeSnapshot | null {
    return this.#began;
  }

  begin(snapshot: WorktreeSnapshot | null): void {
    this.#began ??= snapshot;
  }

  /** Records a move of HEAD. Successive moves by the same mover are merged. */
  move(by: HeadMover, from: Refs, to: Refs): void {
    if (isSameHead(from.head, to.head)) return;
    const last = this.#steps.at(-1);
    this.#steps =
      last?.by === by ? [...this.#steps.slice(0, -1), { ...last, to }] : [...this.#steps, { by, from, to }];
  }

  add(changes: CallChanges): void {
    this.#callChanges = [...this.#callChanges, changes];
  }

  /** Whether calls of earlier batches wait for a report. */
  isOwing(): boolean {
    return this.#callChanges.length > 0;
  }

  /** Whether nothing is recorded. */
  isEmpty(): boolean {
    return this.#steps.length + this.#callChanges.length === 0 && this.#began === null;
  }

  clear(): void {
    this.#steps = [];
    this.#callChanges = [];
    this.#began = null;
  }

  async moved(place: GitPlace): Promise<readonly HeadMove[]> {
    const moved: HeadMove[] = [];
    for (const { by, from, to } of this.#steps) {
      const change = await useRepository(place, (repository) => headChangeOf(repository, from, to.head));
      if (change !== null) moved.push({ by, change });
    }
    return moved;
  }

  /** Files that commits of the calls changed, relative to the top; empty without snapshots. */
  async made(place: GitPlace, now: WorktreeSnapshot | null, within: HeadChange): Promise<readonly string[]> {
    const began = this.#began;
    if (began === null || now === null || within.commits.length === 0) return [];
    return (await useRepository(place, (repository) => filesMade(repository, began, now, within))) ?? [];
  }

  /** The changes of a call; undefined without a snapshot before and after it. */
  changesOf({ callId }: JudgedCall): CallChanges | undefined {
    return this.#callChanges.find(({ call }) => call.callId === callId);
  }

  /** Calls of earlier batches without a report, then those of this batch. */
  toReport(calls: readonly JudgedCall[]): readonly JudgedCall[] {
    const isOwn = new Set(calls.map(({ callId }) => callId));
    const earlier = this.#callChanges.map(({ call }) => call).filter(({ callId }) => !isOwn.has(callId));
    return [...earlier, ...calls];
  }
}
