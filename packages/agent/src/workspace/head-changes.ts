/**
 * How HEAD moved between two looks at a repository, by whom, and the note about it. Determined from
 * the commit graph and never from the output of the agent's command.
 */

import { fallbackAuthor } from '../platform/environment.js';
import { settleAll } from '../platform/run-program.js';
import { oneLine, plural } from '../platform/text.js';
import { hasCommit, type Repository } from './git.js';
import { type Head, isSameHead, type Refs } from './repository-snapshot.js';

export type NewCommit = CommitStatistics & {
  readonly hash: string;
  readonly subject: string;
  /** The author's address. */
  readonly author: string;
  /** The configuration wants signatures, and it has none. Known of the newest commit only. */
  readonly isUnsigned?: true;
};

export type HeadChange = {
  /** One sentence for each change; empty if HEAD did not move. */
  readonly sentences: readonly string[];
  /**
   * Commits that are on this branch now and were on no branch before; newest first, at most
   * LISTED_MAX.
   */
  readonly commits: readonly NewCommit[];
  /** Number of all new commits. */
  readonly count: number;
  /** Commits are no longer on the branch. */
  readonly lost: boolean;
};

const LISTED_MAX = 20;

export const shortHash = (hash: string): string => hash.slice(0, 8);

/** The name of HEAD's branch, for people. */
export const describeHead = ({ branch }: Head): string =>
  branch === null ? 'a detached HEAD' : oneLine(branch);

/** How HEAD moved since `before`. A commit is new if it was on no branch. */
export const findHeadChange = async (
  repository: Repository,
  before: Refs,
  after: Head,
): Promise<HeadChange> => {
  const old = before.head;
  if (isSameHead(old, after)) return { sentences: [], commits: [], count: 0, lost: false };
  const branch = describeHead(after);
  const isSameBranch = old.branch === after.branch;
  // the old branch of a switch keeps its commits, so nothing is lost
  const end = after.hash === null ? ', which has no commits yet' : ` at ${shortHash(after.hash)}`;
  const switched = isSameBranch ? [] : [`HEAD went from ${describeHead(old)} to ${branch}${end}.`];
  if (after.hash === null) {
    const sentences = isSameBranch ? [`${branch} has no commits any more.`] : switched;
    return { sentences, commits: [], count: 0, lost: isSameBranch };
  }
  const earlier = old.hash === null ? before.tips : [old.hash, ...before.tips];
  // like Promise.all, but waits for all even if one rejects
  const [count, commits] = await settleAll([
    countCommits(repository, after.hash, earlier),
    listCommits(repository, after.hash, earlier),
  ]);
  if (!isSameBranch) return { sentences: switched, commits, count, lost: false };
  if (old.hash === null) {
    const sentence = `${branch} has its first commits, up to ${shortHash(after.hash)}.`;
    return { sentences: [sentence], commits, count, lost: false };
  }
  const { sentence, lost } = await describeMove(repository, branch, old.hash, after.hash);
  return { sentences: [sentence], commits, count, lost };
};

/** How the branch moved from one commit to another. */
const describeMove = async (
  repository: Repository,
  branch: string,
  before: string,
  after: string,
) => {
  const from = shortHash(before);
  const to = shortHash(after);
  const losing = (sentence: string) => ({ sentence: `${sentence}.`, lost: true });
  const keeping = (sentence: string) => ({ sentence: `${sentence}.`, lost: false });
  if (!(await hasCommit(repository, before)))
    return losing(`${branch} is at ${to}; ${from}, where it was, no longer exists`);
  // how many commits only the old one has, and only the new one
  const [removed, added, base] = await settleAll([
    countCommits(repository, before, [after]),
    countCommits(repository, after, [before]),
    repository.tryAsk(['merge-base', before, after]),
  ]);
  if (removed === 0) return keeping(`${branch} went on from ${from} to ${to}`);
  const isAmended =
    removed === 1 &&
    added > 0 &&
    (await listParents(repository, before)) === (await listParents(repository, after));
  if (isAmended) return keeping(`The last commit of ${branch}, ${from}, was replaced by ${to}`);
  if (base === null)
    return losing(`${branch} went from ${from} to ${to}, which has no history in common with it`);
  if (added === 0)
    return losing(`${branch} went back by ${plural(removed, 'commit')}, from ${from} to ${to}`);
  const rewritten = `${plural(removed, 'commit')} gone from it, ${added} new in their place`;
  return losing(`The history of ${branch} was rewritten, from ${from} to ${to}: ${rewritten}`);
};

/** The hashes of a commit's parents. */
const listParents = async (repository: Repository, hash: string): Promise<string> => {
  const line = await repository.ask(['rev-list', '--max-count=1', '--parents', hash]);
  return line.trim().split(' ').slice(1).join(' ');
};

/** Input for `--stdin`: revisions reachable from `from`, without those of `without`. */
const range = (from: string, without: readonly string[]): string =>
  `${[from, ...without.map((hash) => `^${hash}`)].join('\n')}\n`;

const countCommits = async (repository: Repository, from: string, without: readonly string[]) => {
  const args = ['rev-list', '--count', '--ignore-missing', '--stdin'];
  return Number(await repository.ask(args, { input: range(from, without) }));
};

// ---- Commits with their statistics ----

export type CommitStatistics = {
  readonly files: readonly string[];
  readonly insertions: number;
  readonly deletions: number;
};

const NUMSTAT = ['-r', '--numstat', '-z', '--no-renames', '--no-ext-diff', '--no-textconv'];
const COMMIT_RECORDS = [
  '--stdin',
  '--root',
  '--always',
  '--diff-merges=first-parent',
  '--format=#%H %ae%x09%s',
];

const listCommits = async (
  repository: Repository,
  from: string,
  without: readonly string[],
): Promise<readonly NewCommit[]> => {
  const args = ['rev-list', `--max-count=${LISTED_MAX}`, '--ignore-missing', '--stdin'];
  const hashes = await repository.ask(args, { input: range(from, without) });
  if (hashes === '') return [];
  const shown = ['diff-tree', ...NUMSTAT, ...COMMIT_RECORDS, '--ignore-submodules=all'];
  const output = await repository.ask(shown, { input: hashes });
  // a record for each commit, followed by one for each of its files
  const commits: NewCommit[] = [];
  for (const record of output.split('\0')) {
    const [, hash, author = '', subject = ''] =
      /^\n?#([0-9a-f]+) ([^\t]*)\t(.*)$/s.exec(record) ?? [];
    const last = commits.at(-1);
    if (hash !== undefined) commits.push({ hash, author, subject: oneLine(subject), ...NOTHING });
    else if (last !== undefined)
      commits[commits.length - 1] = { ...last, ...addRecord(last, record) };
  }
  const [newest, ...others] = commits;
  if (newest === undefined || !wantsSignatures(repository)) return commits;
  const object = await repository.ask(['cat-file', 'commit', newest.hash]);
  const [header = ''] = object.split('\n\n', 1); // the message may have such a line, too
  return SIGNATURE.test(header) ? commits : [{ ...newest, isUnsigned: true }, ...others];
};

const SIGNATURE = /^gpgsig(?:-sha256)? /m;

const wantsSignatures = ({ config }: Repository): boolean =>
  /^(?:true|yes|on|1)$/i.test(config.get('commit.gpgsign') ?? '');

/** The statistics of one change. */
export const countChanges = async (
  repository: Repository,
  from: string,
  to: string,
): Promise<CommitStatistics> => {
  const output = await repository.ask(['diff-tree', ...NUMSTAT, from, to]);
  return output.split('\0').reduce(addRecord, NOTHING);
};

const NOTHING: CommitStatistics = { files: [], insertions: 0, deletions: 0 };

/** Adds one record of `--numstat -z`. Other records are ignored. */
const addRecord = (change: CommitStatistics, record: string): CommitStatistics => {
  const [, added, removed, name = ''] = /^\n?(\d+|-)\t(\d+|-)\t(.*)$/s.exec(record) ?? [];
  if (added === undefined || removed === undefined) return change;
  // `-` for a binary file
  const count = (lines: string): number => (lines === '-' ? 0 : Number(lines));
  return {
    files: [...change.files, name],
    insertions: change.insertions + count(added),
    deletions: change.deletions + count(removed),
  };
};

/** `feat: more (3 files, +10 -2)`. */
export const describeChange = (
  subject: string,
  { files, insertions, deletions }: CommitStatistics,
): string => `${subject} (${plural(files.length, 'file')}, +${insertions} -${deletions})`;

/** The files in local commits since `before`, relative to the top; not in merges. */
export const findLocalFiles = async (
  repository: Repository,
  before: Refs,
  { head, remoteTips }: Refs,
  commits: readonly NewCommit[],
): Promise<readonly string[]> => {
  if (commits.length === 0 || head.hash === null) return [];
  const old = before.head.hash === null ? [] : [before.head.hash];
  const input = range(head.hash, [...old, ...before.tips, ...remoteTips]);
  const limit = `--max-count=${LISTED_MAX}`;
  const args = ['rev-list', limit, '--no-merges', '--ignore-missing', '--stdin'];
  const local = new Set((await repository.ask(args, { input })).split('\n'));
  return commits.filter(({ hash }) => local.has(hash)).flatMap((commit) => commit.files);
};

// ---- Texts about moves ----

/**
 * Who moved HEAD: the agent's calls, another program between them, or unknown because a look
 * failed.
 */
export type HeadMover = 'calls' | 'others' | 'unknown';

export type HeadMove = { readonly by: HeadMover; readonly change: HeadChange };

const OPENINGS: Readonly<Record<HeadMover, string>> = {
  calls: '',
  others: 'Between your calls, not by them: ',
  unknown: 'Since the last check, by an unknown author: ',
};

/** The changes by the agent's calls, as one. */
export const changeByCalls = (moves: readonly HeadMove[]): HeadChange => {
  const changes = moves.flatMap(({ by, change }) => (by === 'calls' ? [change] : []));
  return {
    sentences: changes.flatMap(({ sentences }) => sentences),
    commits: changes.toReversed().flatMap(({ commits }) => commits),
    count: changes.reduce((sum, { count }) => sum + count, 0),
    lost: changes.some(({ lost }) => lost),
  };
};

/**
 * The note for the model: how HEAD moved, by the calls and between them, and the commits of the
 * calls. `changed`: number of files with uncommitted changes; null if unknown.
 */
export const noteMoves = (
  moves: readonly HeadMove[],
  { head }: Refs,
  changed: number | null,
): string => {
  const lines = moves.flatMap(({ by, change }) =>
    change.sentences.map((sentence) => `${OPENINGS[by]}${sentence}`),
  );
  if (lines.length === 0) return '';
  const { commits, count } = changeByCalls(moves);
  if (commits.length > 0) lines.push(`${plural(count, 'new commit')} on ${describeHead(head)}:`);
  for (const commit of commits)
    lines.push(`  ${shortHash(commit.hash)} ${describeChange(commit.subject, commit)}`);
  if (count > commits.length) lines.push(`  and ${count - commits.length} more`);
  if (commits.some(({ author }) => author === fallbackAuthor('email')))
    lines.push(
      `Their author is ${fallbackAuthor('name')} <${fallbackAuthor('email')}>: git knows no name ` +
        'or address of the user here (user.name, user.email).',
    );
  if (commits[0]?.isUnsigned === true)
    lines.push(
      'They are not signed, though commit.gpgsign is on (the sandbox has no keys). Tell the user, ' +
        'who can sign them.',
    );
  if (changed === 0) lines.push('The working tree is clean.');
  else if (changed !== null) lines.push(`${plural(changed, 'file')} with uncommitted changes.`);
  return `[git] ${lines.join('\n')}`;
};

/**
 * The warning for the user: commits that are no longer on the branch, and commits that are not
 * listed.
 */
export const warnOfMoves = ({ lost, sentences, count, commits }: HeadChange): string => {
  const unlisted = `${count} new commits, of which the newest ${commits.length} are shown.`;
  return [...(lost ? sentences : []), ...(count > commits.length ? [unlisted] : [])].join(' ');
};
