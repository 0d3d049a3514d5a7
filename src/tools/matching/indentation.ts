/**
 * How the indentation of a text relates to that of the lines it was written for, and what that makes of other lines.
 *
 * All lines are deeper, or less deep, by the same width. A tab is as wide as 2, 3, 4 or 8 blanks: which of these holds is
 * seen from the lines, never assumed.
 */

/** The indentation of one line, as it was given and as the file has it. */
export type IndentPair = { readonly given: string; readonly file: string };

const TAB_WIDTHS = [4, 2, 8, 3] as const;
/** More different indentations than this are nobody's mistake. */
const PAIRS_MAX = 100;

const widthOf = (indent: string, tab: number): number => {
  let width = 0;
  for (const one of indent) width += one === '\t' ? tab : 1;
  return width;
};

const distinct = (pairs: readonly IndentPair[]): readonly IndentPair[] => [
  ...new Map(pairs.map((pair) => [`${pair.given}\n${pair.file}`, pair])).values(),
];

/** By how much the file is indented more, if a tab is that wide; null if that is not the same for all lines. */
const shiftOf = (pairs: readonly IndentPair[], tab: number): number | null => {
  const [first = 0, ...others] = pairs.map(({ given, file }) => widthOf(file, tab) - widthOf(given, tab));
  return others.every((shift) => shift === first) ? first : null;
};

const tabWidths = (pairs: readonly IndentPair[]): readonly number[] =>
  pairs.some(({ given, file }) => given.includes('\t') || file.includes('\t')) ? TAB_WIDTHS : [1];

/** Whether lines keep their depth relative to one another. */
export const isConsistent = (pairs: readonly IndentPair[]): boolean => {
  const some = distinct(pairs);
  if (some.length > PAIRS_MAX) return false;
  return tabWidths(some).some((tab) => shiftOf(some, tab) !== null);
};

type Reading = {
  /** New indentation by the given one. */
  readonly table: ReadonlyMap<string, string>;
  /** Blanks behind tabs that the file does not have so. */
  readonly odd: boolean;
  /** Lines are as deep as they were given. */
  readonly sameDepth: boolean;
};

const render = (width: number, tab: number, given: string, files: readonly string[]): string => {
  const same = files.find((file) => widthOf(file, tab) === width);
  if (same !== undefined) return same;
  const inUse = files.some((file) => file !== '') ? files : [given];
  if (!inUse.some((one) => one.includes('\t'))) return ' '.repeat(width);
  return '\t'.repeat(Math.floor(width / tab)) + ' '.repeat(width % tab);
};

const isOdd = (indent: string, files: readonly string[]): boolean =>
  /\t +$/.test(indent) && !files.some((file) => / +$/.exec(file)?.[0] === / +$/.exec(indent)?.[0]);

/** New indentation for each old one with tabs of that width; null if the pairs contradict it. */
const readWith = (pairs: readonly IndentPair[], tab: number, indents: readonly string[]): Reading | null => {
  const shift = shiftOf(pairs, tab);
  if (shift === null) return null;
  const files = pairs.map(({ file }) => file);
  const table = new Map<string, string>();
  for (const indent of indents) {
    const width = widthOf(indent, tab) + shift;
    const known = pairs.find(({ given }) => given === indent)?.file;
    if (known === undefined && width < 0) return null;
    table.set(indent, known ?? render(width, tab, indent, files));
  }
  return { table, odd: [...table.values()].some((indent) => isOdd(indent, files)), sameDepth: shift === 0 };
};

/**
 * What each of these indentations becomes in the file; null where it becomes nothing, or one thing as well as another.
 */
export const reindent = (
  pairs: readonly IndentPair[],
  indents: readonly string[],
): ReadonlyMap<string, string> | null => {
  const some = distinct(pairs);
  const readings = tabWidths([...some, ...indents.map((given) => ({ given, file: '' }))])
    .map((tab) => readWith(some, tab, indents))
    .filter((reading) => reading !== null);
  const plain = readings.filter(({ odd }) => !odd);
  const usual = plain.length > 0 ? plain : readings;
  const sameDepth = usual.filter((reading) => reading.sameDepth);
  const best = sameDepth.length > 0 ? sameDepth : usual;
  const results = new Map(best.map(({ table }) => [JSON.stringify([...table]), table]));
  const [only] = results.values();
  return results.size === 1 && only !== undefined ? only : null;
};
