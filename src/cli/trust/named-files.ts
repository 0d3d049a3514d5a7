import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import type { StdioServer } from '../../config/mcp-servers.js';
import { isWithin } from '../../files/is-within.js';
import { readRegular } from '../../files/regular-file.js';

/**
 * The files of a project that the settings of a server or a hook name, with the hash of each: if one changes, the user is asked
 * again.
 *
 * 1. A file counts in every form that programs understand: `server.mjs`, `--require=./first.js`, `sh -c "node ./server"`,
 *    a variable in front of it, a text in `env`.
 * 2. The work is bounded, since the project is of strangers: a file is hashed once, and beyond the limits its line
 *    says that it is not watched.
 */

const FILE_BYTES_MAX = 4 * 1024 * 1024;
const ALL_BYTES_MAX = 16 * 1024 * 1024;
const WORDS_MAX = 300;
/** What Node finds by `./server` or `.`. */
const namesOf = (word: string): readonly string[] =>
  word === '.' || word.includes('/') ? [word, `${word}.js`, `${word}/index.js`] : [word];

export type ProjectPlace = {
  readonly workspace: string;
  /** Real path of the project's folder. */
  readonly top: string;
};

/** What is started: a server, or a hook. */
export type StartedProgram = Pick<StdioServer, 'command' | 'args' | 'env' | 'cwd'>;

const textsOf = ({ command, args, env }: StartedProgram): readonly string[] => [
  command,
  ...args,
  ...Object.values(env),
];

/** The texts of the settings, whole and in pieces; null if there are too many. */
const wordsOf = (started: StartedProgram): ReadonlySet<string> | null => {
  const texts = textsOf(started);
  const words = new Set(texts.flatMap((text) => [text, ...text.split(/[\s=,;:'"]+/)]));
  words.delete('');
  return words.size > WORDS_MAX ? null : words;
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

/** One line for each file; null if the settings have more words than anybody reads. */
export const namedFiles = async (
  started: StartedProgram,
  { workspace, top }: ProjectPlace,
): Promise<readonly string[] | null> => {
  const words = wordsOf(started);
  if (words === null) return null;
  const byFile = new Map<string, Described | null>();
  let bytesLeft = ALL_BYTES_MAX;
  for (const name of [...words].flatMap(namesOf)) {
    const file = path.resolve(workspace, started.cwd ?? '.', name);
    const real = await realpath(file).catch(() => null); // most words name no file
    if (real === null || !isWithin(real, top) || byFile.has(real)) continue;
    const described = await describe(
      real,
      path.relative(workspace, real),
      Math.min(FILE_BYTES_MAX, bytesLeft),
    );
    byFile.set(real, described);
    bytesLeft -= described?.bytes ?? 0;
  }
  return [...byFile.values()].flatMap((described) => (described === null ? [] : [described.line]));
};
