/**
 * Questions to git about uncommitted files: `diffSinceHead` is the diff of `/diff`; `lossesByGit`
 * and `lossesBeside` find files that git could not restore; `discardedByGit` finds changes that
 * `git restore` would discard; `answerOfGit` reads aliases and names of commits. The policy asks
 * the user about losses and discarded changes.
 */

import { lstatSync } from 'node:fs';
import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { hashBytes } from '../platform/files.js';
import { ProgramFailure } from '../platform/run-program.js';
import { oneLine, plural } from '../platform/text.js';
import type { PathRestore } from '../policy/programs/git-words.js';
import type {
  AskGit,
  FindDiscarded,
  FindLosses,
  GitLoss,
} from '../policy/shell/unrecoverable-files.js';
import type { Checkpoints } from '../ports/checkpoints.js';
import type { OwnWrite } from '../ports/tool.js';
import { loadFile } from '../tools/files.js';
import { findCommit, type GitPlace, type Repository, useRepository } from './git.js';

type DiffSinceHead = {
  readonly title: string;
  /** The title if nothing differs. */
  readonly nothing: string;
  /** A unified diff of each file. */
  readonly diffs: readonly string[];
};

const DIFF_BYTES_MAX = 2 * 1024 * 1024;
const NEW_FILES_MAX = 50;
const NEW_FILE_BYTES_MAX = 100_000;
const DIFF = 'diff --no-color --no-ext-diff --no-textconv --no-renames --no-prefix'.split(' ');

/**
 * The difference from HEAD, including new files that are not ignored; null if there is no
 * repository.
 */
export const diffSinceHead = (place: GitPlace): Promise<DiffSinceHead | null> =>
  useRepository(place, async (repository) => {
    const head = await findCommit(repository, 'HEAD');
    const listed = await repository.ask(['ls-files', '--others', '--exclude-standard', '-z']);
    const names = listed.split('\0').filter((name) => name !== '');
    const { diffs, more: moreChanged, isCut } = await showChanged(repository, head);
    for (const name of names.slice(0, NEW_FILES_MAX))
      diffs.push(await showNewFile(repository.top, name));
    const moreNew = Math.max(0, names.length - NEW_FILES_MAX);
    const since = head === null ? 'what is committed (nothing yet)' : `HEAD (${head.slice(0, 7)})`;
    const count = diffs.length + moreChanged + moreNew;
    const differ = `${plural(count, 'file')} ${count === 1 ? 'differs' : 'differ'} from ${since}`;
    const limits = [
      ...(isCut ? [`changed files are shown up to ${DIFF_BYTES_MAX / 1024 / 1024} MB`] : []),
      ...(moreNew > 0 ? [`${plural(moreNew, 'new file')} not shown`] : []),
    ];
    const who = `whoever changed ${count === 1 ? 'it' : 'them'}`;
    return {
      title: [`${differ}, ${who}`, ...limits].join('; '),
      nothing: `Nothing differs from ${since}.`,
      diffs,
    };
  });

/** The diffs of changed files. `more`: how many files follow where the output is cut. */
const showChanged = async (
  repository: Repository,
  head: string | null,
): Promise<{ readonly diffs: string[]; readonly more: number; readonly isCut: boolean }> => {
  if (head === null) return { diffs: [], more: 0, isCut: false };
  const args = [...DIFF, head, '--'];
  const { output, cut: isCut } = await repository.askPart(args, DIFF_BYTES_MAX);
  const files = output.toString('utf8').split(/^(?=diff --git )/m);
  const diffs = files.filter((text) => text !== '');
  if (!isCut) return { diffs, more: 0, isCut };
  const named = await repository.ask([...DIFF, '--name-only', '-z', head, '--']);
  return { diffs, more: named.split('\0').length - 1 - diffs.length, isCut };
};

/** A new file as a diff, or only its name if it is binary or too large. */
const showNewFile = async (top: string, name: string): Promise<string> => {
  const loaded = await loadFile(path.join(top, name));
  const bytes = loaded.kind === 'file' ? loaded.bytes : null;
  const head = `--- /dev/null\n+++ ${oneLine(name)}`;
  if (bytes === null || bytes.length > NEW_FILE_BYTES_MAX || bytes.includes(0))
    return `${head}\n(not shown)`;
  if (bytes.length === 0) return head;
  const lines = bytes.toString('utf8').replace(/\n$/, '').split('\n');
  return [head, `@@ -0,0 +1,${lines.length} @@`, ...lines.map((line) => `+${line}`)].join('\n');
};

const STATUS = ['status', '--porcelain=v1', '-z', '--no-renames'];
const UNRECOVERABLE = ['--untracked-files=normal', '--ignored=matching'];

/** Asks git in the way in which Pawl always runs it. Null without a repository, and if git fails. */
const askHere = async <T>(
  workspace: string,
  environment: ProcessEnvironment,
  ask: (repository: Repository) => Promise<T>,
): Promise<T | null> => {
  try {
    const place = { workspace, environment, signal: new AbortController().signal };
    return await useRepository(place, ask);
  } catch (error) {
    if (error instanceof ProgramFailure) return null; // the policy asks, as for what is unknown
    throw error;
  }
};

/** Finds the files that git could not restore: untracked, ignored, or changed since they were added. */
export const lossesByGit =
  (environment: ProcessEnvironment): FindLosses =>
  (workspace, paths) =>
    askHere(workspace, environment, async (repository) => {
      const status = await repository.ask([...STATUS, ...UNRECOVERABLE, '--', ...paths]);
      const silent = (await listSilent(repository, paths)).map(
        (name): Loss => ({ name, kind: 'changed' }),
      );
      const losses = [...parseStatus(status), ...silent];
      return losses.map(({ name, kind }) => ({ path: path.join(repository.top, name), kind }));
    });

/** Reads aliases and names of commits. */
export const answerOfGit =
  (environment: ProcessEnvironment): AskGit =>
  (workspace, about, name) =>
    askHere(workspace, environment, async ({ config, tryAsk }) =>
      about === 'alias'
        ? (config.get(`alias.${name.toLowerCase()}`) ?? null)
        : tryAsk(['rev-parse', '--verify', '--quiet', `${name}^{commit}`]),
    );

/**
 * Finds the files that neither git could restore nor a rewind (which takes back what a session
 * changed): what the checkpoints of the session keep is no loss.
 */
export const lossesBeside =
  (checkpoints: Pick<Checkpoints, 'unkept'>, findLosses: FindLosses): FindLosses =>
  async (workspace, paths) => {
    const losses = await findLosses(workspace, paths);
    // without git (null) every path is at risk
    const atRisk = losses?.map((loss) => loss.path) ?? paths;
    if (atRisk.length === 0) return losses;
    // the files that no checkpoint could give back
    const unkept = new Set(await checkpoints.unkept(atRisk));
    if (losses === null) return [...unkept].map((file) => ({ path: file, kind: 'untracked' }));
    return losses.filter(({ path: file }) => unkept.has(file));
  };

/** `name`: the path relative to the top. */
type Loss = { readonly name: string; readonly kind: GitLoss['kind'] };

const parseStatus = (output: string): readonly Loss[] =>
  parseEntries(output).flatMap(({ name, index, worktree }): readonly Loss[] => {
    if (index === '?') return [{ name, kind: 'untracked' }];
    if (index === '!') return [{ name, kind: 'ignored' }];
    // What is in the index can be restored, and a file that is gone can't be lost.
    return worktree === ' ' || worktree === 'D' ? [] : [{ name, kind: 'changed' }];
  });

const LISTED_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Entries about which `status` is silent: submodules, and files whose changes git is to ignore.
 * Without paths all of them.
 */
export const listSilent = async (
  repository: Repository,
  paths: readonly string[] = [],
): Promise<readonly string[]> => {
  const args = ['ls-files', '-s', '-v', '-z', '--', ...paths];
  const listed = await repository.ask(args, { bytesMax: LISTED_BYTES_MAX });
  return listed.split('\0').flatMap((entry) => {
    const [, tag, mode, name] = /^(\S) (\d+) \S+ \d\t(.*)$/s.exec(entry) ?? [];
    // `H`: an ordinary entry; mode 160000: a submodule
    return name === undefined || (tag === 'H' && mode !== '160000') ? [] : [name];
  });
};

/**
 * Finds the changes that taking paths back would discard: what is neither deleted nor as this
 * session left a file that was clean before. `ownWrite`: the hashes of a file before this session
 * first changed it, and after it last did; by real path.
 */
export const discardedByGit =
  (
    environment: ProcessEnvironment,
    ownWrite: (file: string) => OwnWrite | undefined,
  ): FindDiscarded =>
  (workspace, restores) =>
    askHere(workspace, environment, (repository) =>
      findDiscarded(repository, workspace, restores, ownWrite),
    );

const findDiscarded = async (
  repository: Repository,
  workspace: string,
  restores: readonly PathRestore[],
  ownWrite: (file: string) => OwnWrite | undefined,
): Promise<readonly string[]> => {
  const { top } = repository;
  // git restores exactly what the session found before its own change
  const isOwn = async (name: string): Promise<boolean> => {
    const write = ownWrite(path.join(top, name));
    if (write === undefined) return false;
    const loaded = await loadFile(path.join(top, name));
    if (loaded.kind !== 'file' || loaded.sha256 !== write.after) return false;
    const { code, output } = await repository.run(['cat-file', 'blob', `:0:${name}`]);
    return code === 0 && hashBytes(output) === write.before;
  };
  // nothing is lost where the working tree has what git has, or has no file
  //
  // | worktree | index     | from index         | from HEAD          |
  // |----------|-----------|--------------------|--------------------|
  // | as index | deleted   | nothing            | what stands there  |
  // | as index | other     | nothing            | the staged change  |
  // | deleted  | unchanged | what stands there  | what stands there  |
  // | deleted  | staged    | what stands there  | the staged change  |
  // | modified | unchanged | unless it is ours  | unless it is ours  |
  // | otherwise            | the change         | the change         |
  const isLost = async (entry: RestoredEntry, from: PathRestore['from']): Promise<boolean> => {
    const { name, index, worktree } = entry;
    const isStaged = index !== ' ';
    if (worktree === ' ' && from === 'index') return false;
    if (worktree === 'D' && (from === 'index' || !isStaged)) return !isFree(top, name);
    if (index === 'D' && worktree === ' ') return !isFree(top, name);
    return worktree !== 'M' || isStaged || !(await isOwn(name));
  };
  const lost = new Set<string>();
  for (const { paths, from } of restores) {
    const places = paths.map((one) => (one === ':/' ? top : path.resolve(workspace, one)));
    const status = await repository.ask([...STATUS, '--untracked-files=no', '--', ...places]);
    for (const name of await listSilent(repository, places)) lost.add(name);
    for (const entry of parseEntries(status)) if (await isLost(entry, from)) lost.add(entry.name);
  }
  return [...lost].map((name) => path.relative(workspace, path.join(top, name)));
};

type RestoredEntry = { readonly name: string; readonly index: string; readonly worktree: string };

/** Entries of `git status --porcelain=v1 -z`: a letter for the index and one for the worktree. */
const parseEntries = (output: string): readonly RestoredEntry[] =>
  output
    .split('\0')
    .filter((entry) => entry !== '')
    .map((entry) => ({ name: entry.slice(3), index: entry[0] ?? '', worktree: entry[1] ?? '' }));

/** Whether nothing stands where git would put the file back, so that nothing is replaced. */
const isFree = (top: string, name: string): boolean => {
  const parts = name.split('/');
  for (const [index] of parts.entries()) {
    const status = lstatSync(path.join(top, ...parts.slice(0, index + 1)), {
      throwIfNoEntry: false,
    });
    if (status === undefined) return true;
    if (!status.isDirectory()) return false;
  }
  return false;
};
