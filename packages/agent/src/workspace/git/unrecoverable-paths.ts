import path from 'node:path';
import type { ProcessEnvironment } from '../../platform/base/process-environment-type.js';
import type { FindLosses, GitLoss } from '../../policy/shell/unrecoverable-files.js';
import { ProgramFailure } from '../run-program.js';
import { type Repository, useRepository } from './git.js';

/** Finds the files that git could not restore: untracked, ignored, or changed since they were added. */

const STATUS = [
  'status',
  '--porcelain=v1',
  '-z',
  '--no-renames',
  '--untracked-files=normal',
  '--ignored=matching',
];
const LIST = ['ls-files', '-s', '-v', '-z'];

const kindOf = (columns: string): GitLoss['kind'] | null => {
  if (columns === '??') return 'untracked';
  if (columns === '!!') return 'ignored';
  // What is in the index can be restored, and a file that is gone can't be lost.
  return columns[1] === ' ' || columns[1] === 'D' ? null : 'changed';
};

const statusChanges = (output: string, top: string): readonly GitLoss[] =>
  output.split('\0').flatMap((entry) => {
    const kind = entry === '' ? null : kindOf(entry.slice(0, 2));
    return kind === null ? [] : [{ path: path.join(top, entry.slice(3)), kind }];
  });

/** Entries about which `status` is silent: submodules, and files whose changes the user told git to ignore. */
const silentEntries = (output: string, top: string): readonly GitLoss[] =>
  output.split('\0').flatMap((entry): readonly GitLoss[] => {
    const [, tag, mode, file] = /^(\S) (\d+) \S+ \d\t(.*)$/s.exec(entry) ?? [];
    if (file === undefined || (tag === 'H' && mode !== '160000')) return [];
    return [{ path: path.join(top, file), kind: 'changed' }];
  });

const changesIn = async (repository: Repository, paths: readonly string[]): Promise<readonly GitLoss[]> => {
  const { top } = repository;
  const status = await repository.ask([...STATUS, '--', ...paths]);
  const listed = await repository.ask([...LIST, '--', ...paths]);
  return [...statusChanges(status, top), ...silentEntries(listed, top)];
};

/** Looks with git, in the way in which Pawl always runs it. Null without a repository, and if git fails. */
export const lossesByGit =
  (environment: ProcessEnvironment): FindLosses =>
  async (workspace, paths) => {
    try {
      const place = { workspace, environment, signal: new AbortController().signal };
      return await useRepository(place, (repository) => changesIn(repository, paths));
    } catch (error) {
      if (error instanceof ProgramFailure) return null; // without git every file counts
      throw error;
    }
  };
