/** Lines of a text: where they are, their line breaks, characters and indentation. */

import { plural } from '../../platform/text.js';

export type TextLine = {
  /** The text without its line break. */
  readonly text: string;
  readonly start: number;
  /** Offset before the line break. */
  readonly end: number;
  /** Offset after the line break; for the last line the same as `end`. */
  readonly next: number;
};

/** Splits at `\n` and `\r\n`. A text that ends with a line break has an empty last line. */
export const splitLines = (text: string): readonly TextLine[] => {
  const lines: TextLine[] = [];
  let start = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', start)) {
    const end = at > start && text[at - 1] === '\r' ? at - 1 : at;
    lines.push({ text: text.slice(start, end), start, end, next: at + 1 });
    start = at + 1;
  }
  lines.push({ text: text.slice(start), start, end: text.length, next: text.length });
  return lines;
};

/** The lines as `splitLines` has them: without `\r`, and an empty one behind the last break. */
export const lineTexts = (text: string): readonly string[] =>
  splitLines(text).map((line) => line.text);

/** The lines as `wc` counts them: nothing follows the last line break. A `\r` stays. */
export const fileLines = (text: string): string[] => {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
};

/** With more ranges of lines the rest is only counted. */
const PLACES_SHOWN = 5;

/**
 * Ranges of lines for people: `lines 3-5, 9`; empty if there are none. Line 0 alone, the place
 * before the first line, is shown as 1.
 */
export const describeRanges = (
  ranges: readonly (readonly [first: number, last: number])[],
): string => {
  const shown = ranges
    .slice(0, PLACES_SHOWN)
    .map(([first, last]) => (first === last ? `${Math.max(1, first)}` : `${first}-${last}`));
  const rest = ranges.length - shown.length;
  const [only] = ranges;
  const noun = ranges.length === 1 && only !== undefined && only[0] === only[1] ? 'line' : 'lines';
  return shown.length === 0
    ? ''
    : `${noun} ${shown.join(', ')}${rest === 0 ? '' : ` and ${plural(rest, 'more place')}`}`;
};

// ---- Line breaks ----

export type LineEnding = '\n' | '\r\n';

/** Which line breaks a text has; `none` for a text without any. */
export const findEndings = (text: string): LineEnding | 'mixed' | 'none' => {
  let windows = 0;
  let all = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
    all += 1;
    if (text[at - 1] === '\r') windows += 1;
  }
  if (all === 0) return 'none';
  if (windows === 0) return '\n';
  return windows === all ? '\r\n' : 'mixed';
};

export const withEnding = (text: string, ending: LineEnding): string =>
  text.replace(/\r?\n/g, ending);

// ---- Characters ----

/** Plain characters by typographic one. */
const TYPOGRAPHIC = [
  ["'", '\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u00b4\uff07'],
  ['"', '\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\uff02'],
  ['-', '\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d'],
  [
    ' ',
    '\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000',
  ],
] as const;
const FOLDED = new Map<string, string>();
for (const [plain, typographic] of TYPOGRAPHIC)
  for (const character of typographic) FOLDED.set(character, plain);
const NOT_ASCII = /[\u0080-\uffff]/g;

/** The plain character for a typographic quote, dash or space; null for any other. */
export const plainCharacter = (character: string): string | null => FOLDED.get(character) ?? null;

/** Replaces typographic quotes, dashes and spaces with plain ones. The length stays the same. */
export const foldTypography = (text: string): string =>
  text.replace(NOT_ASCII, (character) => FOLDED.get(character) ?? character);

const isBlank = (text: string, at: number): boolean => {
  const unit = text.charCodeAt(at);
  return unit === 0x20 || unit === 0x09 || unit === 0x0b || unit === 0x0c;
};

/** Without trailing spaces and tabs. */
export const trimEndBlanks = (text: string): string => {
  let end = text.length;
  while (end > 0 && isBlank(text, end - 1)) end -= 1;
  return text.slice(0, end);
};

/** Whether a line has nothing but spaces, tabs and typographic spaces. */
export const isEmptyLine = (line: string): boolean => trimEndBlanks(foldTypography(line)) === '';

/** Leading spaces and tabs, with typographic spaces as plain ones. */
export const getIndent = (line: string): string => {
  let end = 0;
  let folded = false;
  for (; end < line.length; end++) {
    if (isBlank(line, end)) continue;
    if (line.charCodeAt(end) < 0x80 || FOLDED.get(line[end] ?? '') !== ' ') break;
    folded = true;
  }
  const indent = line.slice(0, end);
  return folded ? foldTypography(indent) : indent;
};

/** Which differences matter when two lines are compared. */
export type Comparison = {
  /** `folded`: typographic characters equal their plain counterparts. */
  readonly typography: 'folded' | 'exact';
  readonly indentation: 'ignored' | 'exact';
};

/** Lines with the same key are equal apart from trailing spaces, and what `Comparison` names. */
export const lineKey = (line: string, { typography, indentation }: Comparison): string => {
  const folded = typography === 'folded' ? foldTypography(line) : line;
  const trimmed = trimEndBlanks(folded);
  return indentation === 'ignored' ? trimmed.slice(getIndent(trimmed).length) : trimmed;
};

/** How many characters two texts have in common at their beginning, and after that at their end. */
export const commonEnds = (
  one: string,
  other: string,
): readonly [before: number, after: number] => {
  const most = Math.min(one.length, other.length);
  let before = 0;
  while (before < most && one[before] === other[before]) before += 1;
  let after = 0;
  while (after < most - before && one.at(-1 - after) === other.at(-1 - after)) after += 1;
  return [before, after];
};

// ---- Indentation ----

/** The indentation of one line in the requested text and in the file. */
export type IndentPair = { readonly requested: string; readonly file: string };

/** A tab may be so many spaces wide; the lines decide which. */
const TAB_WIDTHS = [4, 2, 8, 3] as const;
/** Limit on different indentations. More of them are not one consistent mistake. */
const PAIRS_MAX = 100;

/** Whether lines keep their depth relative to each other: all differ by the same width. */
export const isConsistent = (pairs: readonly IndentPair[]): boolean => {
  const distinct = distinctPairs(pairs);
  if (distinct.length > PAIRS_MAX) return false;
  return tabWidths(distinct).some((tab) => findShift(distinct, tab) !== null);
};

/**
 * By how much the file's levels are wider or narrower, as where it has two blanks a level and the
 * text four; null if the lines disagree. Two levels must show it: at one
 * level a text that lacks the line above it looks the same.
 */
export const findFactor = (pairs: readonly IndentPair[]): number | null => {
  const levels = distinctPairs(pairs).filter(({ requested, file }) => requested + file !== '');
  const [first] = levels;
  if (first === undefined || levels.length < 2 || levels.length > PAIRS_MAX) return null;
  if (levels.some(({ requested, file }) => /[^ ]/.test(requested + file))) return null;
  const factor = first.file.length / first.requested.length;
  const isSame = levels.every(({ requested, file }) => file.length === requested.length * factor);
  return isSame && factor > 0 && Number.isFinite(factor) ? factor : null;
};

/** Each indentation, so much wider; null if that is no whole number of blanks, or has tabs. */
const scaleIndents = (
  factor: number,
  indents: readonly string[],
): ReadonlyMap<string, string> | null => {
  const isWhole = (one: string): boolean =>
    !one.includes('\t') && Number.isInteger(one.length * factor);
  if (!indents.every(isWhole)) return null;
  return new Map(indents.map((one) => [one, ' '.repeat(one.length * factor)]));
};

/**
 * Applies the difference to other lines: the new value of each indentation; null if there is none,
 * or more than one.
 */
export const reindent = (
  pairs: readonly IndentPair[],
  indents: readonly string[],
): ReadonlyMap<string, string> | null => {
  const distinct = distinctPairs(pairs);
  const factor = isConsistent(distinct) ? null : findFactor(distinct);
  if (factor !== null) return scaleIndents(factor, indents);
  let tables = tabWidths([...distinct, ...indents.map((requested) => ({ requested, file: '' }))])
    .map((tab) => shiftIndents(distinct, tab, indents))
    .filter((table) => table !== null);
  // preferred: no odd spaces after tabs, and lines that keep their depth
  for (const isPreferred of [(one: Shifted) => !one.odd, (one: Shifted) => one.sameDepth]) {
    const preferred = tables.filter(isPreferred);
    if (preferred.length > 0) tables = preferred;
  }
  const results = new Map(tables.map(({ table }) => [JSON.stringify([...table]), table]));
  const [only] = results.values();
  return results.size === 1 && only !== undefined ? only : null;
};

/** Indentations, all changed by the same width. */
type Shifted = {
  /** From requested to new indentation. */
  readonly table: ReadonlyMap<string, string>;
  /** Spaces after tabs that the file does not have in this form. */
  readonly odd: boolean;
  /** The depth of the lines does not change. */
  readonly sameDepth: boolean;
};

/** The new indentation for each old one at this tab width; null if the pairs contradict it. */
const shiftIndents = (
  pairs: readonly IndentPair[],
  tab: number,
  indents: readonly string[],
): Shifted | null => {
  const shift = findShift(pairs, tab);
  if (shift === null) return null;
  const files = pairs.map(({ file }) => file);
  const table = new Map<string, string>();
  for (const indent of indents) {
    const width = indentWidth(indent, tab) + shift;
    const known = pairs.find(({ requested }) => requested === indent)?.file;
    if (known === undefined && width < 0) return null;
    table.set(indent, known ?? renderIndent(width, tab, indent, files));
  }
  const spaces = (indent: string): string | undefined => / +$/.exec(indent)?.[0];
  const isOdd = (indent: string): boolean =>
    /\t +$/.test(indent) && !files.some((file) => spaces(file) === spaces(indent));
  return { table, odd: [...table.values()].some(isOdd), sameDepth: shift === 0 };
};

/** The width of an indentation: each tab counts as `tab` columns, wherever it stands. */
const indentWidth = (indent: string, tab: number): number => {
  let width = 0;
  for (const one of indent) width += one === '\t' ? tab : 1;
  return width;
};

const distinctPairs = (pairs: readonly IndentPair[]): readonly IndentPair[] => [
  ...new Map(pairs.map((pair) => [`${pair.requested}\n${pair.file}`, pair])).values(),
];

/** The extra width of the file's indentation for this tab width; null if the lines disagree. */
const findShift = (pairs: readonly IndentPair[], tab: number): number | null => {
  const shifts = pairs.map(
    ({ requested, file }) => indentWidth(file, tab) - indentWidth(requested, tab),
  );
  const [first = 0] = shifts;
  return shifts.every((shift) => shift === first) ? first : null;
};

const tabWidths = (pairs: readonly IndentPair[]): readonly number[] =>
  pairs.some(({ requested, file }) => requested.includes('\t') || file.includes('\t'))
    ? TAB_WIDTHS
    : [1];

/** An indentation of this width, with tabs or spaces as the file has them. */
const renderIndent = (
  width: number,
  tab: number,
  requested: string,
  files: readonly string[],
): string => {
  const same = files.find((file) => indentWidth(file, tab) === width);
  if (same !== undefined) return same;
  const inUse = files.some((file) => file !== '') ? files : [requested];
  if (!inUse.some((one) => one.includes('\t'))) return ' '.repeat(width);
  return '\t'.repeat(Math.floor(width / tab)) + ' '.repeat(width % tab);
};
