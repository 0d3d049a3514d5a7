/**
 * Small functions for texts that people and models read. Pure, since pages in a browser use them
 * too.
 */

/** `1 line`, `2 lines`; `2 entries` with a plural of its own. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

/**
 * A whole number as people read it, 1,234,567. The platform's own formatter takes 16 ms to load at
 * its first use.
 */
export const groupDigits = (count: number): string =>
  String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');

/** What belongs to the character before it: accents, joiners, variations, tones of skin. */
const CONTINUES = /^(?:\p{M}|\u200d|[\u{1f3fb}-\u{1f3ff}])/u;
const JOINER = '\u200d';
/** No character is longer than so many UTF-16 units: further accents are not shown. */
const CHARACTER_UNITS_MAX = 32;

/** Whether the place stands between two UTF-16 units of one code point. */
const isInCodePoint = (text: string, at: number): boolean =>
  /^[\udc00-\udfff]$/.test(text.charAt(at)) && /^[\ud800-\udbff]$/.test(text.charAt(at - 1));

/** Whether the place stands within what a person sees as one character. */
const isInCharacter = (text: string, at: number): boolean =>
  isInCodePoint(text, at) ||
  text.charAt(at - 1) === JOINER ||
  CONTINUES.test(text.slice(at, at + 2));

/** The text's start, at most `most` UTF-16 units long. It ends with a whole character. */
export const firstCharacters = (text: string, most: number): string => {
  if (text.length <= most) return text;
  let end = most;
  while (end > 0 && most - end < CHARACTER_UNITS_MAX && isInCharacter(text, end)) end -= 1;
  if (isInCharacter(text, end)) end = isInCodePoint(text, most) ? most - 1 : most;
  return text.slice(0, end);
};

/** The text, at most `most` UTF-16 units long: `mark`, which counts, stands for the missing end. */
export const cut = (text: string, most: number, mark = '…'): string =>
  text.length <= most ? text : `${firstCharacters(text, Math.max(0, most - mark.length))}${mark}`;

const ONE_LINE_MAX = 200;

/** What may not stand in a line of others' words: it would begin another one, or nobody sees it. */
export const LINE_BREAKS = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;
export const INVISIBLE = /\p{Cf}/gu;

/**
 * A file name or commit subject, safe to show to models and people: one line of limited length,
 * without control characters.
 */
export const oneLine = (text: string): string =>
  cut(text.replace(LINE_BREAKS, ' ').replace(INVISIBLE, '').trim(), ONE_LINE_MAX);

/** A Markdown code block whose fence is longer than any run of backticks in the text. */
export const codeFence = (text: string, language = ''): string => {
  let longest = 2;
  for (const [ticks] of text.matchAll(/`+/g)) longest = Math.max(longest, ticks.length);
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`;
};

/** Edit distance: the number of letters to add, drop, change or swap. */
const editDistance = (left: string, right: string): number => {
  const rows: number[][] = [Array.from({ length: right.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number =>
    rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let row = 1; row <= left.length; row++) {
    const line = [row];
    rows.push(line);
    for (let column = 1; column <= right.length; column++) {
      const here = left[row - 1];
      const there = right[column - 1];
      const change = at(row - 1, column - 1) + (here === there ? 0 : 1);
      const isSwapped = here === right[column - 2] && left[row - 2] === there;
      const swap = isSwapped ? at(row - 2, column - 2) + 1 : change;
      line.push(Math.min(change, swap, at(row - 1, column) + 1, at(row, column - 1) + 1));
    }
  }
  return at(left.length, right.length);
};

/** Names like the word, the nearest first. */
export const nearestWords = (word: string, names: readonly string[]): readonly string[] =>
  names
    .filter((name) => Math.abs(name.length - word.length) <= Math.max(1, name.length / 3))
    .map((name) => ({ name, far: editDistance(word, name) }))
    .filter(({ name, far }) => far <= Math.max(1, Math.floor(name.length / 3)))
    .sort((one, other) => one.far - other.far)
    .map(({ name }) => name);

/** The name that was probably meant; undefined if none is similar. */
export const nearestWord = (word: string, names: readonly string[]): string | undefined =>
  nearestWords(word, names)[0];

/** Plain words for the errors of paths that users cause most often. */
const PATH_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'a part of its path is not a folder',
  EACCES: 'its permissions do not allow it',
  ELOOP: 'its symlinks lead in a circle',
  ENAMETOOLONG: 'its name is too long',
};

/** Why a path can't be used, without the name of a system call; null for other errors. */
export const pathErrorText = (error: unknown): string | null =>
  error instanceof Error && 'code' in error ? (PATH_ERRORS[String(error.code)] ?? null) : null;

// ---- The code blocks of a Markdown text ----

/**
 * A fenced block.
 *
 * 1. A fence is three or more backticks or tildes, indented or not. Only as many of the same, or
 *    more, and nothing else on the line, close it: so a block can show other blocks.
 * 2. An unclosed block extends to the end of the text.
 * 3. The indentation of the opening fence is removed from the lines of the block, as far as they
 *    have it.
 */
export type CodeBlock = {
  /** The text after the opening fence: `repl`, `js title=x`, or empty. */
  readonly info: string;
  readonly text: string;
  readonly closed: 'yes' | 'no';
  /** Start and end offsets of the block in the text, including its fences. */
  readonly from: number;
  readonly to: number;
};

/** An opening fence: its indentation, and its character and how often it stands there. */
type Opening = {
  readonly indent: number;
  readonly mark: string;
  readonly size: number;
  readonly info: string;
};

const isBlank = (code: number): boolean => code === 32 || code === 9;

/** The first index from `from` on whose character is another one. */
const skip = (line: string, from: number, is: (code: number) => boolean): number => {
  let index = from;
  while (index < line.length && is(line.charCodeAt(index))) index += 1;
  return index;
};

const FENCE_MIN = 3;

/**
 * The opening fence in a line, or null. A backtick after a fence of backticks makes it inline code.
 */
const readOpening = (line: string): Opening | null => {
  const indent = skip(line, 0, isBlank);
  const mark = line[indent];
  if (mark !== '`' && mark !== '~') return null;
  const end = skip(line, indent, (code) => code === mark.charCodeAt(0));
  if (end - indent < FENCE_MIN) return null;
  const info = line.slice(end).trim();
  return mark === '`' && info.includes('`') ? null : { indent, mark, size: end - indent, info };
};

const closes = (line: string, { mark, size }: Opening): boolean => {
  const start = skip(line, 0, isBlank);
  const end = skip(line, start, (code) => code === mark.charCodeAt(0));
  return end - start >= size && skip(line, end, isBlank) === line.length;
};

const unindent = (line: string, indent: number): string => {
  let count = 0;
  while (count < indent && isBlank(line.charCodeAt(count))) count += 1;
  return line.slice(count);
};

type Line = { readonly text: string; readonly from: number; readonly to: number };

/** Lines without their LF or CR LF; the offsets include it. */
export function* readLines(text: string): Generator<Line> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    const to = end < 0 ? text.length : end + 1;
    const content = end < 0 ? text.length : end;
    const isWindows = content > from && text.charCodeAt(content - 1) === 13;
    yield { text: text.slice(from, isWindows ? content - 1 : content), from, to };
    from = to;
  }
}

/** All blocks from the first to the last, in one pass over the lines. */
export const findFences = (text: string): readonly CodeBlock[] => {
  const fences: CodeBlock[] = [];
  let open: (Opening & { readonly from: number; readonly lines: string[] }) | null = null;
  const end = (closed: CodeBlock['closed'], to: number): void => {
    if (open === null) return;
    fences.push({ info: open.info, text: open.lines.join('\n'), closed, from: open.from, to });
    open = null;
  };
  for (const line of readLines(text)) {
    if (open === null) {
      const opening = readOpening(line.text);
      if (opening !== null) open = { ...opening, from: line.from, lines: [] };
    } else if (closes(line.text, open)) end('yes', line.to);
    else open.lines.push(unindent(line.text, open.indent));
  }
  end('no', text.length);
  return fences;
};

/** A point in time as people write it: local date and time, to the minute. */
export const localTime = (at: number): string => {
  const time = new Date(at);
  const [month, day, hours, minutes] = [
    time.getMonth() + 1,
    time.getDate(),
    time.getHours(),
    time.getMinutes(),
  ].map((part) => String(part).padStart(2, '0'));
  return `${time.getFullYear()}-${month}-${day} ${hours}:${minutes}`;
};
