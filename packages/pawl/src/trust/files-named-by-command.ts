import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { StdioServer } from '@pawl/agent/extensions/mcp-servers';
import type { ProcessEnvironment } from '@pawl/agent/platform/base/process-environment-type';
import { isWithin } from '@pawl/agent/platform/files/is-within';
import { readRegular } from '@pawl/agent/platform/files/regular-file';

/**
 * The files of a project that the settings of a server or a hook name, with the hash of each: if one changes, the user is asked
 * again.
 *
 * 1. A file counts in every form that programs understand: `server.mjs`, `--require=./first.js`, `sh -c "node ./server"`,
 *    `sh<./first.sh`, `cd scripts && ./first.sh`, `python -m scripts.first`, a text in `env`.
 * 2. A link that leads out of the project is named with its target.
 * 3. The work is bounded, since the project is of strangers: a file is hashed once, and beyond the limits its line
 *    says that it is not watched.
 */

const FILE_BYTES_MAX = 4 * 1024 * 1024;
const ALL_BYTES_MAX = 16 * 1024 * 1024;
const WORDS_MAX = 300;
/** Folders that the words name, from which other words are read too. */
const FOLDERS_MAX = 4;

/** What Node finds by `./server` or `.`, and Python by `-m scripts.first`. */
const namesOf = (word: string): readonly string[] => {
  const names = [word, `${word}.js`, `${word}/index.js`];
  if (!/^[\w.]+$/.test(word)) return names;
  const module = word.replaceAll('.', '/');
  return [...names, `${module}.py`, `${module}/__main__.py`];
};

export type ProjectPlace = {
  readonly workspace: string;
  /** Real path of the project's folder. */
  readonly top: string;
  /** Has the home folder, which shells write as `~` and `$HOME`. */
  readonly environment: ProcessEnvironment;
};

/** What is started: a server, or a hook. Its words may be read from `cwd` and from the workspace. */
export type StartedProgram = Pick<StdioServer, 'command' | 'args' | 'env' | 'cwd'>;

const textsOf = ({ command, args, env }: StartedProgram): readonly string[] => [
  command,
  ...args,
  ...Object.values(env),
];

/** Between two words in a shell's text or a list of options. */
const WORD = /(?:\\.|[^\s=,;:'"|&<>()`\\])+/gs;
const HERE = /\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`/g;
const HOME = /\$HOME\b|\$\{HOME\}|(?<![^\s=,;:'"|&<>()`])~(?=\/)/g;

/** The texts of the settings, whole and in pieces; null if there are too many. */
const wordsOf = (
  started: StartedProgram,
  { HOME: home = '' }: ProcessEnvironment,
): readonly string[] | null => {
  const texts = textsOf(started).map((text) => text.replace(HERE, '.').replace(HOME, () => home || '~'));
  const pieces = texts.flatMap((text) => [
    ...[text, ...text.split(/['"]/)],
    ...(text.match(WORD) ?? []).map((word) => word.replace(/\\(.)/gs, '$1')),
  ]);
  const words = new Set(pieces);
  words.delete('');
  return words.size > WORDS_MAX ? null : [...words];
};

type Described = { readonly line: string; readonly bytes: number };

/** What the user reads about a file; null if there is none. */
const describe = async (real: string, shown: string, bytesMax: number): Promise<Described | null> => {
  const loaded = await readRegular(real, bytesMax, { follow: false });
  if (loaded.kind === 'absent' || loaded.kind === 'folder') return null;
  // No line break in a name can imitate another line.
  const name = JSON.stringify(shown).slice(1, -1);
  const about = `file of the project: ${name}`;
  if (loaded.kind === 'unusable')
    return { line: `${about} (not watched: you are not asked again if it changes)`, bytes: 0 };
  const hash = createHash('sha256').update(loaded.bytes).digest('hex').slice(0, 32);
  return { line: `${about} (sha256 ${hash})`, bytes: loaded.bytes.length };
};

/** The real path as the kernel finds it: `link/../file` is beside the link's target. Null for no file. */
const findReal = (folder: string, name: string): Promise<string | null> =>
  realpath(name.startsWith('/') ? name : `${folder}/${name}`).catch(() => null); // most words name no file

/** The folders from which the words may be read: where it starts, and those of the project that the words name. */
const foldersOf = async (
  words: readonly string[],
  { cwd }: StartedProgram,
  { workspace, top }: ProjectPlace,
): Promise<ReadonlySet<string>> => {
  const folders = new Set([path.resolve(workspace, cwd ?? '.'), workspace]);
  const most = folders.size + FOLDERS_MAX;
  for (const folder of [...folders]) {
    for (const word of words) {
      const real = await findReal(folder, word);
      if (real === null || !isWithin(real, top) || folders.size === most) continue;
      if ((await stat(real).catch(() => null))?.isDirectory() === true) folders.add(real);
    }
  }
  return folders;
};

/** What the user reads about a name that leads out of the project; null for a folder. */
const describeLink = async (real: string, shown: string): Promise<Described | null> => {
  if ((await stat(real).catch(() => null))?.isFile() !== true) return null;
  const [name, target] = [shown, real].map((one) => JSON.stringify(one).slice(1, -1));
  return { line: `file of the project: ${name} (leads to ${target}, which is not watched)`, bytes: 0 };
};

/** One line for each file; null if the settings have more words than anybody reads. */
export const namedFiles = async (
  started: StartedProgram,
  place: ProjectPlace,
): Promise<readonly string[] | null> => {
  const { workspace, top, environment } = place;
  const words = wordsOf(started, environment);
  if (words === null) return null;
  const byFile = new Map<string, Described | null>();
  let bytesLeft = ALL_BYTES_MAX;
  const take = async (folder: string, name: string): Promise<void> => {
    const real = await findReal(folder, name);
    if (real === null) return;
    const written = path.resolve(folder, name);
    const key = isWithin(real, top) ? real : `${written} ${real}`;
    if (byFile.has(key) || (key !== real && !isWithin(written, top))) return;
    const described =
      key === real
        ? await describe(real, path.relative(workspace, real), Math.min(FILE_BYTES_MAX, bytesLeft))
        : await describeLink(real, path.relative(workspace, written));
    byFile.set(key, described);
    bytesLeft -= described?.bytes ?? 0;
  };
  const names = words.flatMap(namesOf);
  for (const folder of await foldersOf(words, started, place))
    for (const name of names) await take(folder, name);
  return [...byFile.values()].flatMap((described) => (described === null ? [] : [described.line]));
};
