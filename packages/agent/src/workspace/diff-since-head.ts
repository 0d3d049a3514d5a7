import path from 'node:path';
import { plural } from '../platform/base/plural.js';
import { loadFile } from '../tools/files/file-text.js';
import { type GitPlace, type Repository, useRepository } from './git/git.js';
import { oneLine } from './printable-names.js';

/** Shows the uncommitted changes of a working tree to the user. */

export type DiffSinceHead = {
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
