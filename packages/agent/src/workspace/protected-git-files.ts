/**
 * Protected files that git would write, or could not write (`ProtectedGitFiles` in tools/bash.ts).
 * The second are `stale`: they are as before git moved the working tree. A new session knows of
 * none.
 */

import path from 'node:path';
import { shellWords } from '../command/sandbox/shell-text.js';
import type { ProcessEnvironment } from '../platform/environment.js';
import { isWithin } from '../platform/files.js';
import { ProgramFailure } from '../platform/run-program.js';
import { oneLine, plural } from '../platform/text.js';
import { findProtection } from '../policy/paths.js';
import type { TreeMove } from '../policy/programs/git-moves.js';
import type { ProtectedGitFiles } from '../tools/bash.js';
import { findCommit, type Repository, useRepository } from './git.js';

const isProtected = (name: string): boolean => findProtection(name) !== null;

/** `git log` writes line feeds before the names of a commit. */
const names = (output: string): readonly string[] =>
  output
    .split('\0')
    .map((line) => line.replace(/^\n+/, ''))
    .filter(isProtected);

/** The answer of git, or nothing where it knows none: the command itself will fail then. */
const ask = async (
  repository: Repository,
  words: readonly string[],
): Promise<readonly string[]> => {
  const { code, output } = await repository.run(words);
  return code === 0 ? names(output.toString('utf8')) : [];
};

/** The commit that a word names. A branch of a remote may be named alone, as `git switch` does. */
const resolve = async (repository: Repository, revision: string): Promise<string | null> => {
  const commit = await findCommit(
    repository,
    revision === '@{upstream}' ? await findUpstream(repository) : revision,
  );
  if (commit !== null || revision.startsWith('-')) return commit;
  const listed = await repository.run([
    'for-each-ref',
    '--format=%(objectname)',
    `refs/remotes/*/${revision}`,
  ]);
  return listed.output.toString('utf8').split('\n')[0] || null;
};

/** What a merge or rebase without a name takes. Our git reads no settings of branches itself. */
const findUpstream = async ({ tryAsk, config }: Repository): Promise<string> => {
  const branch = (await tryAsk(['symbolic-ref', '--short', 'HEAD'])) ?? '';
  const [remote, ref = ''] = ['remote', 'merge'].map((key) =>
    config.get(`branch.${branch}.${key}`),
  );
  return remote === '.' ? ref : ref.replace('refs/heads/', `refs/remotes/${remote}/`);
};

const fillIn = (question: readonly string[], commit: string): readonly string[] =>
  question.map((word) => word.replace('{}', commit));

const changedByMove = async (
  repository: Repository,
  { revisions, questions }: TreeMove,
): Promise<readonly string[]> => {
  const changed: string[] = [];
  const commits = await Promise.all(revisions.map((one) => resolve(repository, one)));
  for (const question of questions) {
    if (!question.some((word) => word.includes('{}'))) {
      changed.push(...(await ask(repository, question)));
      continue;
    }
    for (const commit of commits)
      if (commit !== null) changed.push(...(await ask(repository, fillIn(question, commit))));
  }
  return changed;
};

const DIFF = ['diff', '--no-renames', '--no-ext-diff', '--no-textconv'];
/** How many earlier commits of HEAD are compared. */
const EARLIER_MAX = 20;

/** Whether a file has the content of an earlier commit of HEAD. */
const hasEarlierContent = async (repository: Repository, name: string): Promise<boolean> => {
  const log = await repository.run(['log', '-g', `-n${EARLIER_MAX}`, '--format=%H', 'HEAD']);
  for (const commit of log.output
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')) {
    const { code } = await repository.run([...DIFF, '--quiet', commit, '--', name]);
    if (code === 0) return true;
  }
  return false;
};

/** Protected files that are not as the index has them. */
const changedNames = (repository: Repository): Promise<readonly string[]> =>
  ask(repository, [...DIFF, '--name-only', '-z']);

export const createProtectedGitFiles = (environment: ProcessEnvironment): ProtectedGitFiles => {
  /** Files that git could not write when it moved on. */
  let stale: readonly string[] = [];
  /** Null: git fails, for example since it is late. */
  const look = async (
    workspace: string,
    find: (repository: Repository) => Promise<readonly string[]>,
  ): Promise<readonly string[] | null> => {
    const place = { workspace, environment, signal: new AbortController().signal };
    try {
      const files = await useRepository(place, async (repository) =>
        (await find(repository))
          .map((name) => path.join(repository.top, name))
          .filter((file) => isWithin(file, workspace)),
      );
      return [...new Set(files ?? [])];
    } catch (error) {
      if (error instanceof ProgramFailure) return null; // the files stay read-only for the command
      throw error;
    }
  };
  return {
    async find(workspace, moves) {
      if (moves.length === 0) return stale;
      const changed = await look(workspace, async (repository) =>
        moves === 'unknown'
          ? ask(repository, ['ls-files', '-z'])
          : (await Promise.all(moves.map((move) => changedByMove(repository, move)))).flat(),
      );
      return [...new Set([...(changed ?? []), ...stale])];
    },
    async beforeCommand(workspace, writable) {
      const changed = await look(workspace, changedNames);
      const changedBefore = changed ?? stale;
      stale = stale.filter((file) => changedBefore.includes(file)); // a job may have written them
      const unwritable = stale.filter((file) => !writable.includes(file));
      if (unwritable.length > 0)
        return `Not run: ${describeStale(unwritable, workspace, changed !== null)}`;
      const mayBeLeft = (file: string): boolean =>
        stale.includes(file) || !(changedBefore.includes(file) || writable.includes(file));
      return async () => {
        const unwritten = await look(workspace, async (repository) => {
          const found: string[] = [];
          for (const name of await changedNames(repository))
            if (
              mayBeLeft(path.join(repository.top, name)) &&
              (await hasEarlierContent(repository, name))
            )
              found.push(name);
          return found;
        });
        stale = unwritten ?? stale;
        return stale.length === 0 ? null : `[${describeStale(stale, workspace)}]`;
      };
    },
  };
};

/** How many files a sentence names. */
const SHOWN_MAX = 10;

/** `isKnown`: git was asked just now. The names are a repository's: they may be anything. */
const describeStale = (stale: readonly string[], workspace: string, isKnown = true): string => {
  const shown = stale.slice(0, SHOWN_MAX).map((file) => oneLine(path.relative(workspace, file)));
  const more = stale.length - shown.length;
  const rest = more === 0 ? '' : ` and ${plural(more, 'other file')}`;
  const [are, them] = stale.length === 1 ? ['is', 'it'] : ['are', 'them'];
  return (
    `${isKnown ? '' : 'git can’t be asked now. As far as known, '}` +
    `${shown.join(', ')}${rest} ${are} still as before git moved on: git could not write ${them}, ` +
    'or what it wrote was moved away, since protected files are read-only here. A commit of all ' +
    "files would take the branch's changes back. To finish the move: git checkout -- " +
    `${shellWords(shown)}${more === 0 ? '' : ', and the others'}`
  );
};
