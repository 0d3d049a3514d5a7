import type { Repository } from './git.js';
import type { Head, Look } from './look.js';
import { settleAll } from './program.js';
import { oneLine, plural } from './words.js';

/** What became of HEAD between two looks, told by the graph of commits, never by what a command said. */

export type NewCommit = {
  readonly hash: string;
  readonly subject: string;
  readonly files: readonly string[];
  readonly insertions: number;
  readonly deletions: number;
};

export type Movement = {
  /** One sentence for each thing that happened; none if HEAD stands where it stood. */
  readonly sentences: readonly string[];
  /** Commits that are on this branch now and were on none before; newest first, at most LISTED_MAX. */
  readonly commits: readonly NewCommit[];
  /** Of all of them. */
  readonly count: number;
  /** `onward`: nothing that was there has gone from the branch. */
  readonly kind: 'none' | 'onward' | 'other';
  /** What was committed is no longer on the branch. */
  readonly lost: boolean;
};

const LISTED_MAX = 20;

export const STILL: Movement = { sentences: [], commits: [], count: 0, kind: 'none', lost: false };

export const shortHash = (hash: string): string => hash.slice(0, 8);

/** Where HEAD is, in words. */
export const placeOf = ({ branch }: Head): string => (branch === null ? 'a detached HEAD' : oneLine(branch));

/** Revisions for `--stdin`: from the first, without the others. */
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

export type Change = Pick<NewCommit, 'files' | 'insertions' | 'deletions'>;

const NOTHING: Change = { files: [], insertions: 0, deletions: 0 };

/** A binary file has no lines to count: it stands as '-'. */
const linesOf = (count: string): number => (count === '-' ? 0 : Number(count));

/** Adds one record of `--numstat -z`; what is none changes nothing. */
const withRecord = (change: Change, record: string): Change => {
  const file = /^\n?(\d+|-)\t(\d+|-)\t(.*)$/s.exec(record);
  if (file === null) return change;
  const [, added = '', removed = '', name = ''] = file;
  return {
    files: [...change.files, name],
    insertions: change.insertions + linesOf(added),
    deletions: change.deletions + linesOf(removed),
  };
};

/** What `--numstat -z` prints of one change. */
export const parseChange = (output: string): Change => output.split('\0').reduce(withRecord, NOTHING);

/** Reads what STATISTICS prints: a record with the commit, then one a file. */
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

/** What lies between two commits: how many only the old one has, how many only the new one. */
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

type Story = { readonly sentence: string; readonly onward: boolean; readonly lost: boolean };

/** How the branch came from one commit to another. */
const storyOf = (place: string, before: string, after: string, gap: Gap | null): Story => {
  const [from, to] = [shortHash(before), shortHash(after)];
  const other = (sentence: string): Story => ({ sentence, onward: false, lost: true });
  if (gap === null) return other(`${place} is at ${to}; ${from}, where it was, no longer exists.`);
  const { gone, come, related, sameParents } = gap;
  if (gone === 0) return { sentence: `${place} went on from ${from} to ${to}.`, onward: true, lost: false };
  if (sameParents)
    return { ...other(`The last commit of ${place}, ${from}, was replaced by ${to}.`), lost: false };
  if (!related) return other(`${place} went from ${from} to ${to}, which has no history in common with it.`);
  if (come === 0) return other(`${place} went back by ${plural(gone, 'commit')}, from ${from} to ${to}.`);
  const rewritten = `${plural(gone, 'commit')} gone from it, ${come} others in their place`;
  return other(`The history of ${place} was rewritten, from ${from} to ${to}: ${rewritten}.`);
};

const born = (place: string, hash: string): string =>
  `${place} has its first commits, up to ${shortHash(hash)}.`;

/** Of a branch that was left: its commits are still on it, so nothing is lost. */
const switched = (before: Head, after: Head): string =>
  `HEAD went from ${placeOf(before)} to ${placeOf(after)}${after.hash === null ? ', which has no commits yet' : ` at ${shortHash(after.hash)}`}.`;

/** What happened to HEAD since `before`. Of commits, only those are new that no branch had. */
export const movementOf = async (repository: Repository, before: Look, after: Head): Promise<Movement> => {
  const old = before.head;
  const sameBranch = old.branch === after.branch;
  if (sameBranch && old.hash === after.hash) return STILL;
  const sentences = sameBranch ? [] : [switched(old, after)];
  if (after.hash === null) {
    if (sameBranch) sentences.push(`${placeOf(after)} has no commits any more.`);
    return { ...STILL, sentences, kind: 'other', lost: sameBranch };
  }
  const known = old.hash === null ? before.tips : [old.hash, ...before.tips];
  const [count, commits] = await settleAll([
    countOf(repository, after.hash, known),
    listCommits(repository, after.hash, known),
  ]);
  if (!sameBranch) return { sentences, commits, count, kind: 'other', lost: false };
  if (old.hash === null) {
    return { sentences: [born(placeOf(after), after.hash)], commits, count, kind: 'onward', lost: false };
  }
  const gap = await gapBetween(repository, old.hash, after.hash);
  const { sentence, onward, lost } = storyOf(placeOf(after), old.hash, after.hash, gap);
  return { sentences: [sentence], commits, count, kind: onward ? 'onward' : 'other', lost };
};

/**
 * Files that a commit made here since `before` changed, relative to the top: no merges, and nothing that came from
 * elsewhere, was there already, or was uncommitted before.
 */
export const filesMade = async (
  repository: Repository,
  before: Look,
  after: Look,
  { commits }: Movement,
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
