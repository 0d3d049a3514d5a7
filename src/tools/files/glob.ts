/**
 * Globs as people write them for files, read by picomatch: `find` and `search` speak this one dialect.
 *
 * `*` and `?` stay within a name, `**` crosses folders, `[a-z]`, `[!a-z]`, `{a,b}` and `{1..3}` choose, `\` takes the
 * meaning of the next character, `!` in front negates the whole. Hidden files count. A glob without a slash means a file
 * of that name in any folder; a slash in front ties it to the folder itself, one at the end means all files below.
 * Brackets without an end, parentheses and `|` stand for themselves.
 */

/** Each more makes a regular expression try so many more ways on names that are made for it. */
const STARS_IN_NAME_MAX = 4;
const DEEP_STARS_MAX = 4;

type Read = { readonly text: string; readonly next: number };

/** `[...]` from its bracket on, never for a slash; null if it is never closed. */
const readClass = (glob: string, from: number): Read | null => {
  let at = from + 1;
  const negated = glob[at] === '!' || glob[at] === '^';
  if (negated) at += 1;
  let inside = '';
  for (let first = true; at < glob.length; first = false) {
    const sign = glob[at] ?? '';
    if (sign === ']' && !first) return { text: `[${negated ? '^' : ''}${inside}]`, next: at + 1 };
    const pair = sign === '\\' ? glob.slice(at, at + 2) : sign;
    if (pair === '[' || pair === ']' || pair === '^') inside += `\\${pair}`;
    else if (!pair.endsWith('/')) inside += pair;
    at += pair.length;
  }
  return null;
};

/** Whether the brace is closed behind its place. */
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

/** The glob in the words of picomatch, which reads some signs otherwise: `(a|b)`, `[!a]`, quotes, open brackets. */
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

const countOf = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

const hasTooManyStars = (glob: string): boolean =>
  countOf(glob, /\*\*/g) > DEEP_STARS_MAX ||
  glob.split('/').some((name) => countOf(name, /\*+/g) > STARS_IN_NAME_MAX);

/** Without the signs in front and at the end that say where it holds. */
const anchor = (glob: string): string => {
  const bare = glob.replace(/^(?:\.?\/)+/, '');
  const below = bare.endsWith('/') ? `${bare.replace(/\/+$/, '')}/**` : bare;
  return bare.replace(/\/+$/, '').includes('/') || glob.startsWith('/') || glob.startsWith('./')
    ? below
    : `**/${below}`;
};

export type ReadGlob =
  | { readonly kind: 'glob'; fits(path: string): boolean }
  | { readonly kind: 'invalid'; readonly why: string };

/** Reads a glob as a test of paths relative to a folder, with `/` between names. */
export const readGlob = async (glob: string): Promise<ReadGlob> => {
  const { default: picomatch } = await import('picomatch');
  const negated = glob.startsWith('!');
  const positive = negated ? glob.slice(1) : glob;
  if (hasTooManyStars(positive)) {
    return { kind: 'invalid', why: `it has more than ${STARS_IN_NAME_MAX} * in one name, or ** in all` };
  }
  try {
    const fits = picomatch.makeRe(translate(anchor(positive)), {
      dot: true,
      noextglob: true,
      nonegate: true,
      fastpaths: false,
      strictSlashes: true,
      debug: true, // a glob that makes no regular expression is refused
    });
    return { kind: 'glob', fits: (path) => fits.test(path) !== negated };
  } catch (error) {
    return { kind: 'invalid', why: error instanceof Error ? error.message : String(error) };
  }
};

const PLAIN_NAME = /^(?=.*[\w.-])[\w.*-]+$/;

/**
 * Names that every file has which the glob fits, as globs of `*` alone; null where nothing simple can be said. With
 * them a search need not look into other files.
 */
export const plainNames = (glob: string): readonly string[] | null => {
  const [, head, choice, tail] =
    /^(?:[^{}\\]*\/)?([^{}\\/]*)(?:\{([^{}\\/]*)\}([^{}\\/]*))?$/.exec(glob) ?? [];
  if (head === undefined || glob.startsWith('!')) return null;
  const names = choice === undefined ? [head] : choice.split(',').map((one) => `${head}${one}${tail ?? ''}`);
  return names.every((name) => PLAIN_NAME.test(name) && !name.includes('**') && !name.includes('..'))
    ? names
    : null;
};
