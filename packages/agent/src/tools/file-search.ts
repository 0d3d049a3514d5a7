/** What `find`, `search` and `list` share. */

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { type HeldFolder, holdFolder } from '../platform/files.js';
import { ripgrepProgram } from '../platform/find-program.js';
import { startProgram } from '../platform/start-program.js';

// ---- Ripgrep ----

// It follows no symlinks and changes nothing. It opens files by path, so a process that replaces
// folders meanwhile can redirect it. Its results are therefore verified below a held folder (one
// that is open, so that it can't be replaced) before they are shown.

const MESSAGES_CHARACTERS_MAX = 2_000;
/** Longer records are cut here. */
const RECORD_CHARACTERS_MAX = 1_000_000;

/** Exit codes of ripgrep; all others: it failed, perhaps for some files only. */
const FOUND = 0;
const NOTHING_FOUND = 1;

/** Why ripgrep could not search. */
export type RipgrepFault = { readonly isOfPattern: boolean; readonly text: string };

const KILLED: RipgrepFault = { isOfPattern: false, text: 'ripgrep was ended from outside' };

export type RipgrepEnd = {
  /** It has not searched everything, though nobody stopped it. */
  readonly isPartial: boolean;
  /** Null also if only some files were unreadable. */
  readonly fault: RipgrepFault | null;
  /** Stopped before the last record. */
  readonly more: boolean;
};

export type RipgrepRequest = {
  /** Arguments. */
  readonly words: readonly string[];
  /** The folder to run in. */
  readonly folder: HeldFolder;
  readonly signal: AbortSignal;
  /** Record separator: a line break, or NUL (`--null` with `--files`). */
  readonly end: '\n' | '\0';
  /** Text to search, in place of files: the path `-`. */
  readonly input?: string;
  /** Called for each record. `enough` ends the run. */
  take(record: string): 'more' | 'enough';
};

/**
 * Options of every run: hidden files count; ignore files apply with or without a repository.
 * Messages about single files are off, since they could name files outside if folders are replaced.
 */
const COMMON_OPTIONS = [
  ...['--no-config', '--color=never', '--hidden', '--no-require-git', '--glob=!.git'],
  ...['--no-messages', '--no-ignore-messages'],
];

const PATTERN_FAULT =
  /^rg: (?:regex parse error:\n(?:.*\n)*?error: (.*)|(compiled regex .*|the literal .* is not allowed in a regex))/;

/** Of ripgrep's messages only one about the pattern is shown: others may name files outside. */
export const readFault = (messages: string): RipgrepFault | null => {
  if (messages === '') return null;
  const [, syntax, other] = PATTERN_FAULT.exec(messages) ?? [];
  const text = syntax ?? other;
  return { isOfPattern: text !== undefined, text: text ?? 'ripgrep ended with an error' };
};

/** Calls `take` for each record. A record that ends with NUL may hold line breaks. */
const readRecords = (output: Readable, end: string, take: (record: string) => void): void => {
  const decoder = new StringDecoder('utf8');
  let unfinished = '';
  const add = (text: string): void => {
    unfinished = (unfinished + text).slice(0, RECORD_CHARACTERS_MAX);
  };
  output.on('data', (bytes: Buffer) => {
    const [first = '', ...rest] = decoder.write(bytes).split(end);
    add(first);
    for (const next of rest) {
      take(unfinished);
      unfinished = '';
      add(next);
    }
  });
  output.on('end', () => {
    add(decoder.end());
    if (unfinished !== '') take(unfinished);
  });
};

const start = async (request: RipgrepRequest): Promise<RipgrepEnd> => {
  const program = await ripgrepProgram();
  const { words, folder, signal, take, end, input } = request;
  return new Promise((resolve, reject) => {
    const child = startProgram(program, [...COMMON_OPTIONS, ...words], {
      cwd: folder.reach,
      stdio: ['pipe', 'pipe', 'pipe'],
      // three pipes, which the general type of startProgram does not say
    }) as ChildProcessWithoutNullStreams;
    child.stdin.on('error', () => undefined); // ripgrep may end before it has read all
    child.stdin.end(input);
    const stop = (): void => {
      child.kill('SIGKILL'); // it changes nothing, so it needs no time to end
    };
    let more = false;
    let messages = '';
    readRecords(child.stdout, end, (record) => {
      if (more || take(record) === 'more') return;
      more = true;
      stop();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      messages = (messages + text).slice(0, MESSAGES_CHARACTERS_MAX);
    });
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    child.once('error', reject);
    child.once('close', (code) => {
      signal.removeEventListener('abort', stop);
      const isPartial = !more && !signal.aborted && code !== FOUND && code !== NOTHING_FOUND;
      const fault = isPartial && code === null ? KILLED : readFault(messages.trim());
      resolve({ more, isPartial, fault });
    });
  });
};

/**
 * Runs ripgrep until it ends, `take` has enough, or it is aborted. Rejects with advice if it can't
 * be started.
 */
export const runRipgrep = (request: RipgrepRequest): Promise<RipgrepEnd> =>
  start(request).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `ripgrep can't be started: ${why} Install it again with the package, optional ` +
        'dependencies included.',
    );
  });

/** Relative names of the files below a folder that no ignore file excludes. */
export const listFiles = (
  request: Pick<RipgrepRequest, 'folder' | 'signal' | 'take'>,
): Promise<RipgrepEnd> => runRipgrep({ ...request, words: ['--files', '--null'], end: '\0' });

/**
 * Runs `work` in a folder that is held open; null if its path now leads elsewhere or to no folder.
 */
export const withFolder = async <T>(
  real: string,
  work: (folder: HeldFolder) => Promise<T>,
): Promise<T | null> => {
  const held = await holdFolder(real).catch(() => null); // null: access denied
  if (held?.kind !== 'held') return null;
  try {
    return await work(held.folder);
  } finally {
    await held.folder.close();
  }
};

// ---- Globs ----

/** More stars make the regular expression slow on hostile names. */
const STARS_IN_NAME_MAX = 4;
const DEEP_STARS_MAX = 4;

type CompiledGlob =
  | { readonly kind: 'glob'; fits(path: string): boolean }
  | { readonly kind: 'invalid'; readonly why: string };

/**
 * Compiles a glob into a test for paths relative to a folder, with `/` between names. It is matched
 * by picomatch, in one dialect for all tools:
 *
 * `*` and `?` match within a name, `**` across folders. `[a-z]`, `[!a-z]`, `{a,b}` and `{1..3}` are
 * alternatives. `\` escapes the next character. A leading `!` negates the glob. Hidden files match
 * too. A glob without a slash matches a name in any folder; a leading slash anchors it to the
 * folder itself; a trailing slash means all files below. Unclosed brackets, parentheses and `|` are
 * literal.
 */
export const readGlob = async (glob: string): Promise<CompiledGlob> => {
  const { default: picomatch } = await import('picomatch');
  const negated = glob.startsWith('!');
  const positive = negated ? glob.slice(1) : glob;
  if (hasTooManyStars(positive)) {
    return {
      kind: 'invalid',
      why: `it has more than ${STARS_IN_NAME_MAX} * in one name, or ** in all`,
    };
  }
  try {
    const fits = picomatch.makeRe(translate(anchor(positive)), {
      dot: true,
      noextglob: true,
      nonegate: true,
      fastpaths: false,
      strictSlashes: true,
      expandRange,
      debug: true, // refuses a glob that gives an invalid regular expression
    });
    return { kind: 'glob', fits: (path) => fits.test(path) !== negated };
  } catch (error) {
    return { kind: 'invalid', why: error instanceof Error ? error.message : String(error) };
  }
};

/** Numbers for which a range may stand. */
const RANGE_MAX = 1_000;

/** `{a..c}` or `{8..12}` for a regular expression: alone, picomatch knows ranges of characters. */
const expandRange = (...args: readonly unknown[]): string => {
  const ends = args.filter((arg) => typeof arg === 'string').sort();
  const [first = '', last = ''] = ends;
  if (ends.length === 2 && ends.every((end) => /^[a-z\d]$/i.test(end))) return `[${first}-${last}]`;
  const [from = 0, to = 0] = ends.map(Number).sort((one, other) => one - other);
  const areNumbers = ends.length === 2 && ends.every((end) => /^\d+$/.test(end));
  if (!areNumbers || to - from >= RANGE_MAX)
    throw new Error(`a range has two letters, or two numbers with less than ${RANGE_MAX} between`);
  const length = ends.some((end) => /^0\d/.test(end)) ? Math.max(first.length, last.length) : 0;
  const numbers = Array.from({ length: to - from + 1 }, (_, at) =>
    String(from + at).padStart(length, '0'),
  );
  return `(${numbers.join('|')})`;
};

/** A translated piece, and the index after it. */
type Piece = { readonly text: string; readonly next: number };

/** Reads `[...]` from its bracket on. A class never matches a slash. null if it is never closed. */
const readClass = (glob: string, from: number): Piece | null => {
  let at = from + 1;
  const negated = glob[at] === '!' || glob[at] === '^';
  if (negated) at += 1;
  let inside = '';
  for (let first = true; at < glob.length; first = false) {
    const sign = glob[at] ?? '';
    if (sign === ']' && !first) {
      // a range that holds the slash becomes two
      const ranges = inside.replace(/([ -.])-([0-\uffff])/g, '$1-.0-$2');
      return { text: `[${negated ? '^' : ''}${ranges}]`, next: at + 1 };
    }
    const pair = sign === '\\' ? glob.slice(at, at + 2) : sign;
    if (pair === '[' || pair === ']' || pair === '^') inside += `\\${pair}`;
    else if (!pair.endsWith('/')) inside += pair;
    at += pair.length;
  }
  return null;
};

/** Whether the brace at this position is closed later. */
const isClosed = (glob: string, from: number): boolean => {
  let depth = 0;
  for (let at = from; at < glob.length; at++) {
    if (glob[at] === '\\') at += 1;
    else if (glob[at] === '{') depth += 1;
    else if (glob[at] === '}') depth -= 1;
    if (depth === 0) return true;
  }
  return false;
};

/**
 * The glob in picomatch's syntax, which differs for `(a|b)`, `[!a]`, quotes and unclosed brackets.
 */
const translate = (glob: string): string => {
  let translated = '';
  let depth = 0;
  for (let at = 0; at < glob.length; ) {
    const sign = glob[at] ?? '';
    const read = sign === '[' ? readClass(glob, at) : null;
    if (read !== null) {
      translated += read.text;
      at = read.next;
      continue;
    }
    const pair = sign === '\\' ? glob.slice(at, at + 2) : sign;
    at += pair.length;
    if (sign === '{' && isClosed(glob, at - 1)) depth += 1;
    else if (sign === '}' && depth > 0) depth -= 1;
    else if (pair === '\\' || '[]{}()|"!+@'.includes(pair)) {
      translated += `\\${pair}`;
      continue;
    }
    translated += pair;
  }
  return translated;
};

const countMatches = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

const hasTooManyStars = (glob: string): boolean =>
  countMatches(glob, /\*\*/g) > DEEP_STARS_MAX ||
  glob.split('/').some((name) => countMatches(name, /\*+/g) > STARS_IN_NAME_MAX);

/** Writes out where the glob applies, which leading and trailing slashes say. */
const anchor = (glob: string): string => {
  const bare = glob.replace(/^(?:\.?\/)+/, '');
  const below = bare.endsWith('/') ? `${bare.replace(/\/+$/, '')}/**` : bare;
  return bare.replace(/\/+$/, '').includes('/') || glob.startsWith('/') || glob.startsWith('./')
    ? below
    : `**/${below}`;
};

/** A name with no other special sign than `*`, and not of stars alone. */
const PLAIN_NAME = /^(?=.*[\w.-])[\w.*-]+$/;

/**
 * File names that every match of the glob must have, as globs with only `*`; null if there is no
 * simple answer. A search can then skip all other files.
 */
export const plainNames = (glob: string): readonly string[] | null => {
  const [, head, choice, tail] =
    /^(?:[^{}\\]*\/)?([^{}\\/]*)(?:\{([^{}\\/]*)\}([^{}\\/]*))?$/.exec(glob) ?? [];
  if (head === undefined || glob.startsWith('!')) return null;
  const names =
    choice === undefined ? [head] : choice.split(',').map((one) => `${head}${one}${tail ?? ''}`);
  return names.every(
    (name) => PLAIN_NAME.test(name) && !name.includes('**') && !name.includes('..'),
  )
    ? names
    : null;
};
