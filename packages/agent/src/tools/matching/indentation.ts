/**
 * Compares the indentation of a text with that of the file, and applies the difference to other lines.
 *
 * All lines must differ by the same width. A tab may be 2, 3, 4 or 8 spaces wide; the lines decide which.
 */

/** The indentation of one line in the given text and in the file. */
export type IndentPair = { readonly given: string; readonly file: string };

const TAB_WIDTHS = [4, 2, 8, 3] as const;
/** Limit on different indentations. More of them are not one consistent mistake. */
const PAIRS_MAX = 100;

const widthOf = (indent: string, tab: number): number => {
  let width = 0;
  for (const one of indent) width += one === '\t' ? tab : 1;
  return width;
};

const distinct = (pairs: readonly IndentPair[]): readonly IndentPair[] => [
  ...new Map(pairs.map((pair) => [`${pair.given}\n${pair.file}`, pair])).values(),
];

/** The extra width of the file's indentation for this tab width; null if the lines disagree. */
const shiftOf = (pairs: readonly IndentPair[], tab: number): number | null => {
  const [first = 0, ...others] = pairs.map(({ given, file }) => widthOf(file, tab) - widthOf(given, tab));
  return others.every((shift) => shift === first) ? first : null;
};

const tabWidths = (pairs: readonly IndentPair[]): readonly number[] =>
  pairs.some(({ given, file }) => given.includes('\t') || file.includes('\t')) ? TAB_WIDTHS : [1];

/** Whether lines keep their depth relative to each other. */
export const isConsistent = (pairs: readonly IndentPair[]): boolean => {
  const some = distinct(pairs);
  if (some.length > PAIRS_MAX) return false;
  return tabWidths(some).some((tab) => shiftOf(some, tab) !== null);
};

type Reading = {
  /** From given to new indentation. */
  readonly table: ReadonlyMap<string, string>;
  /** Spaces after tabs that the file does not have in this form. */
  readonly odd: boolean;
  /** The depth of the lines does not change. */
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

/** The new indentation for each old one at this tab width; null if the pairs contradict it. */
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

/** The new value of each indentation; null if there is none, or more than one. */
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
