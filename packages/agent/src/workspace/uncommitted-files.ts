/** Uncommitted files: their diff for the user, and which of them git could not restore. */

import path from 'node:path';
import type { ProcessEnvironment } from '../platform/environment.js';
import { ProgramFailure } from '../platform/run-program.js';
import { plural } from '../platform/text.js';
import type { FindLosses, GitLoss } from '../policy/shell/unrecoverable-files.js';
import { loadFile } from '../tools/files.js';
import { type GitPlace, oneLine, type Repository, useRepository } from './git.js';

type DiffSinceHead = {
  readonly title: string;
  /** The title if `diff` is empty. */
  readonly nothing: string;
  readonly diff: string;
};

const BYTES_MAX = 2 * 1024 * 1024;
const NEW_FILES_MAX = 50;
const NEW_FILE_BYTES_MAX = 100_000;

const tracked = async (repository: Repository, head: string): Promise<string> => {
  const words = ['diff', '--no-color', '--no-ext-diff', '--no-textconv', '--no-renames', head, '--'];
  return (await repository.run(words, { bytesMax: BYTES_MAX, atMax: 'cut' })).output.toString('utf8');
};

/** A new file as a diff, or only its name if it is binary or too large. */
const newFile = async (top: string, name: string): Promise<string> => {
  const loaded = await loadFile(path.join(top, name));
  const bytes = loaded.kind === 'file' ? loaded.bytes : null;
  const head = `--- /dev/null\n+++ b/${oneLine(name)}`;
  if (bytes === null || bytes.length > NEW_FILE_BYTES_MAX || bytes.includes(0)) return `${head}\n(not shown)`;
  const lines = bytes.toString('utf8').replace(/\n$/, '').split('\n');
  return [head, `@@ -0,0 +1,${lines.length} @@`, ...lines.map((line) => `+${line}`)].join('\n');
};

/** The difference from HEAD, including new files that are not ignored; null if there is no repository. */
export const diffSinceHead = (place: GitPlace): Promise<DiffSinceHead | null> =>
  useRepository(place, async (repository) => {
    const head = await repository.run(['rev-parse', '--verify', '--quiet', 'HEAD']);
    const hash = head.output.toString('utf8').trim();
    const names = (await repository.ask(['ls-files', '--others', '--exclude-standard', '-z']))
      .split('\0')
      .filter((name) => name !== '');
    const changed = hash === '' ? '' : await tracked(repository, hash);
    const added: string[] = [];
    for (const name of names.slice(0, NEW_FILES_MAX)) added.push(await newFile(repository.top, name));
    const left = names.length - added.length;
    const since = hash === '' ? 'what is committed (nothing yet)' : `HEAD (${hash.slice(0, 7)})`;
    return {
      title: `differs from ${since}, whoever changed it: ${plural(names.length, 'new file')} among it`,
      nothing: `Nothing differs from ${since}.`,
      diff: [changed.trimEnd(), ...added, ...(left > 0 ? [`… ${plural(left, 'more new file')}`] : [])]
        .filter((text) => text !== '')
        .join('\n'),
    };
  });

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

const lossKind = (columns: string): GitLoss['kind'] | null => {
  if (columns === '??') return 'untracked';
  if (columns === '!!') return 'ignored';
  // What is in the index can be restored, and a file that is gone can't be lost.
  return columns[1] === ' ' || columns[1] === 'D' ? null : 'changed';
};

const statusChanges = (output: string, top: string): readonly GitLoss[] =>
  output.split('\0').flatMap((entry) => {
    const kind = entry === '' ? null : lossKind(entry.slice(0, 2));
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
