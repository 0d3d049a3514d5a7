/**
 * Finds a text in a file, in steps from strict to tolerant.
 *
 * The first step with a match ends the search; with several matches the text is ambiguous. A match equals the text
 * except for the differences that its step tolerates. Similarity alone is never a match.
 */

import {
  type Comparison,
  foldTypography,
  type IndentPair,
  indentOf,
  isConsistent,
  keyOf,
  linesOf,
  type TextLine,
  trimEndBlanks,
} from './lines.js';

/** Offsets in the file. */
export type Span = { readonly start: number; readonly end: number };

/** A line of the given text and its counterpart in the file. The first and the last may be partial lines. */
export type LinePair = { readonly given: string; readonly file: string };

export type FoundPart = Span & {
  readonly pairs: readonly LinePair[];
  /** The given text ends with a line break, but the file ends without one. */
  readonly lacksBreak: boolean;
  /** The given text starts after the indentation of its first line; its other lines have a different indentation. */
  readonly inside: boolean;
};

export type Places =
  | {
      readonly kind: 'found';
      /** In order. One, unless the text consists of parts. */
      readonly parts: readonly FoundPart[];
    }
  | { readonly kind: 'missing' }
  | {
      readonly kind: 'ambiguous';
      readonly places: readonly Span[];
      /** For a text in parts: a part with exactly one place. `isFirst`: it is the first part. */
      readonly anchor?: Span & { readonly isFirst: boolean };
    };

/** Limit on the places to collect, unless all are requested. */
const PLACES_MAX = 1_000;
/** Limit on the ways to place the parts of one text. With more, the text is refused. */
const WAYS_MAX = 20_000;
/** Limit on the lines whose indentation one step compares. Only files of repeated lines reach it. */
const COMPARED_LINES_MAX = 200_000;

const splitsCharacter = (text: string, offset: number): boolean =>
  /[\ud800-\udbff]/.test(text[offset - 1] ?? '') && /[\udc00-\udfff]/.test(text[offset] ?? '');

const textsOf = (text: string): readonly string[] => linesOf(text).map((line) => line.text);

const partAt = (file: SearchedFile, sought: string, { start, end }: Span): FoundPart => {
  const given = textsOf(sought);
  const there = textsOf(file.text.slice(start, end));
  const lacksBreak = given.length === there.length + 1 && given.at(-1) === '';
  const pairs = there.map((line, index) => ({ given: given[index] ?? '', file: line }));
  return { start, end, pairs, lacksBreak, inside: false };
};

// ---- Anywhere in lines ----

/** Extends a place that starts inside a CR LF to the start of the line break. */
const withWholeBreak = (text: string, { start, end }: Span): Span =>
  text[start] === '\n' && text[start - 1] === '\r' ? { start: start - 1, end } : { start, end };

const exactPlaces = ({ text }: SearchedFile, sought: string, most: number): readonly Span[] =>
  textOccurrences(text, sought, most)
    .map((start) => withWholeBreak(text, { start, end: start + sought.length }))
    .filter(({ start, end }) => !splitsCharacter(text, start) && !splitsCharacter(text, end));

/** The text as this view shows it. Its last line may be partial, so it keeps its trailing spaces. */
const seenAs = (sought: string, kind: ViewKind): string => {
  const lines = textsOf(sought).map((line, index, all) => {
    if (kind === 'endings') return line;
    const shown = kind === 'typography' ? foldTypography(line) : line;
    return index === all.length - 1 ? shown : trimEndBlanks(shown);
  });
  return lines.join('\n');
};

const placesInView = (file: SearchedFile, sought: string, kind: ViewKind, most: number): readonly Span[] => {
  const view = file.view(kind);
  const seen = seenAs(sought, kind);
  return textOccurrences(view.text, seen, most)
    .map((start) => ({ start: view.original(start), end: view.original(start + seen.length) }))
    .filter(({ start, end }) => !splitsCharacter(file.text, start) && !splitsCharacter(file.text, end));
};

// ---- Whole lines ----

/** The lines of a part. `closed`: it ends with a line break. */
type Part = { readonly text: string; readonly lines: readonly string[]; readonly closed: boolean };

const partOf = (text: string): Part => {
  const lines = textsOf(text);
  const closed = lines.length > 1 && lines.at(-1) === '';
  return { text, lines: closed ? lines.slice(0, -1) : lines, closed };
};

/** Indexes of lines where the part may start, by comparing keys only. */
const startsOf = (file: SearchedFile, part: Part, comparison: Comparison): readonly number[] => {
  const keys = file.keys(comparison);
  const sought: number[] = [];
  for (const line of part.lines) {
    const number = keys.numberOf(keyOf(line, comparison));
    if (number === undefined) return [];
    sought.push(number);
  }
  // The empty line after the last line break is not a line of the file.
  const count = file.lines.length - (file.text.endsWith('\n') ? 1 : 0);
  return numberOccurrences(keys.numbers.subarray(0, count), sought, PLACES_MAX);
};

const isEmptyLine = (line: string): boolean => trimEndBlanks(foldTypography(line)) === '';

/** The indentations of the lines that are not empty. */
export const indentPairsOf = (pairs: readonly LinePair[]): readonly IndentPair[] =>
  pairs
    .filter(({ given }) => !isEmptyLine(given))
    .map(({ given, file }) => ({ given: indentOf(given), file: indentOf(file) }));

/**
 * Whether the text was copied without the indentation of its first line: only that line has none, and the others are
 * consistent.
 */
const beginsInside = (pairs: readonly LinePair[]): boolean => {
  const [first, ...rest] = pairs;
  if (first === undefined || isEmptyLine(first.given) || indentOf(first.given) !== '') return false;
  const others = indentPairsOf(rest);
  return others.length > 0 && !isConsistent(indentPairsOf(pairs)) && isConsistent(others);
};

const placeOf = (file: SearchedFile, part: Part, first: number): FoundPart => {
  const lines = file.lines.slice(first, first + part.lines.length);
  const [from, last] = [lines[0], lines.at(-1)];
  if (from === undefined || last === undefined) throw new RangeError('a part has at least one line');
  const pairs = lines.map(({ text }, index) => ({ given: part.lines[index] ?? '', file: text }));
  const inside = beginsInside(pairs);
  const lead = inside ? indentOf(from.text).length : 0;
  return {
    start: from.start + lead,
    end: part.closed ? last.next : last.end,
    pairs: pairs.map((pair, index) => (index === 0 ? { ...pair, file: pair.file.slice(lead) } : pair)),
    lacksBreak: part.closed && last.next === last.end,
    inside,
  };
};

type Candidates = { readonly parts: readonly FoundPart[]; readonly all: boolean };

/** The places of one part. `all` is false if too many lines would have to be compared. */
const candidatesOf = (file: SearchedFile, part: Part, comparison: Comparison): Candidates => {
  const starts = startsOf(file, part, comparison);
  if (comparison.indentation === 'exact') {
    return { parts: starts.map((first) => placeOf(file, part, first)), all: true };
  }
  const most = Math.max(2, Math.floor(COMPARED_LINES_MAX / part.lines.length));
  const parts = starts
    .slice(0, most)
    .map((first) => placeOf(file, part, first))
    .filter(({ pairs, inside }) => isConsistent(indentPairsOf(inside ? pairs.slice(1) : pairs)));
  return { parts, all: starts.length <= most };
};

type Way = readonly FoundPart[];

/** Whether the same change of indentation fits all parts. */
const keepsDepth = (way: Way): boolean =>
  way.length < 2 ||
  isConsistent(way.flatMap(({ pairs, inside }) => indentPairsOf(inside ? pairs.slice(1) : pairs)));

/** All ways to choose one place per part, in the order of the file; null if there are too many. */
const waysThrough = (
  candidates: readonly (readonly FoundPart[])[],
  sameDepth: boolean,
): readonly Way[] | null => {
  let ways: readonly Way[] = [[]];
  for (const places of [...candidates].reverse()) {
    if (places.length * ways.length > WAYS_MAX) return null;
    ways = places.flatMap((place) =>
      ways
        .filter(([next]) => next === undefined || next.start >= place.end)
        .map((way) => [place, ...way])
        .filter((way) => !sameDepth || keepsDepth(way)),
    );
  }
  return ways;
};

const findLines = (file: SearchedFile, texts: readonly string[], comparison: Comparison): Places => {
  const parts = texts.map(partOf);
  if (parts.some(({ lines }) => lines.every(isEmptyLine))) return { kind: 'missing' };
  const candidates = parts.map((part) => candidatesOf(file, part, comparison));
  const sameDepth = comparison.indentation === 'ignored';
  const ways = waysThrough(
    candidates.map((one) => one.parts),
    sameDepth,
  );
  if (ways?.length === 0) return { kind: 'missing' };
  const [only, second] = ways ?? [];
  if (only !== undefined && second === undefined && candidates.every(({ all }) => all))
    return { kind: 'found', parts: only };
  const doubtful = candidates.find((one) => one.parts.length > 1 || !one.all);
  const index = candidates.findIndex((one) => one.parts.length === 1);
  const anchor = candidates[index]?.parts[0];
  const known = anchor === undefined ? {} : { anchor: { ...anchor, isFirst: index === 0 } };
  return { kind: 'ambiguous', places: doubtful?.parts ?? [], ...known };
};

// ---- The steps ----

type Step = (file: SearchedFile, sought: string) => Places;

const only = (file: SearchedFile, sought: string, places: readonly Span[]): Places => {
  const [place, ...others] = places;
  if (place === undefined) return { kind: 'missing' };
  if (others.length > 0) return { kind: 'ambiguous', places };
  return { kind: 'found', parts: [partAt(file, sought, place)] };
};

const inView =
  (kind: ViewKind): Step =>
  (file, sought) =>
    only(file, sought, placesInView(file, sought, kind, PLACES_MAX));

const byLines =
  (typography: Comparison['typography'], indentation: Comparison['indentation']): Step =>
  (file, sought) =>
    findLines(file, [sought], { typography, indentation });

/** Finds a sequence in another one in linear time (Knuth, Morris, Pratt). */

/** Limit for `String.indexOf`. It is fast on ordinary text, but quadratic on long text made for that purpose. */
const PLAIN_SEARCH_MAX = 200;

/** Failure table: for each prefix the length of its longest proper prefix that is also a suffix. */
const bordersOf = (sought: Sequence): Int32Array => {
  const borders = new Int32Array(sought.length);
  let length = 0;
  for (let index = 1; index < sought.length; index++) {
    while (length > 0 && sought.at(index) !== sought.at(length)) length = borders[length - 1] ?? 0;
    if (sought.at(index) === sought.at(length)) length += 1;
    borders[index] = length;
  }
  return borders;
};

const searchLinear = (all: Sequence, sought: Sequence, most: number): number[] => {
  const borders = bordersOf(sought);
  const found: number[] = [];
  let length = 0;
  for (let index = 0; index < all.length && found.length < most; index++) {
    while (length > 0 && all.at(index) !== sought.at(length)) length = borders[length - 1] ?? 0;
    if (all.at(index) === sought.at(length)) length += 1;
    if (length < sought.length) continue;
    found.push(index - sought.length + 1);
    length = borders[length - 1] ?? 0;
  }
  return found;
};

const searchPlain = (text: string, sought: string, most: number): number[] => {
  const found: number[] = [];
  for (let at = text.indexOf(sought); at >= 0 && found.length < most; at = text.indexOf(sought, at + 1))
    found.push(at);
  return found;
};

const unitsOf = (text: string): Sequence => ({
  length: text.length,
  at: (index) => text.charCodeAt(index),
});

const numbersOf = (numbers: ArrayLike<number>): Sequence => ({
  length: numbers.length,
  at: (index) => numbers[index] ?? -1,
});

/** Offsets of the non-empty text `sought`, overlapping ones included, at most `most`. */
export const textOccurrences = (text: string, sought: string, most: number): number[] =>
  sought.length <= PLAIN_SEARCH_MAX
    ? searchPlain(text, sought, most)
    : searchLinear(unitsOf(text), unitsOf(sought), most);

/** The same for numbers. */
const numberOccurrences = (all: ArrayLike<number>, sought: ArrayLike<number>, most: number): number[] =>
  searchLinear(numbersOf(all), numbersOf(sought), most);

const STEPS: readonly Step[] = [
  (file, sought) => only(file, sought, exactPlaces(file, sought, PLACES_MAX)),
  inView('endings'),
  inView('blanks'),
  byLines('exact', 'exact'),
  byLines('exact', 'ignored'),
  inView('typography'),
  byLines('folded', 'exact'),
  byLines('folded', 'ignored'),
];
/** Steps for a text whose line numbers were removed: whole lines only, since part of a line could match by chance. */
const LINE_STEPS: readonly Step[] = STEPS.slice(3).filter((step) => step !== STEPS[5]);

const firstFound = (steps: readonly (() => Places)[]): Places => {
  for (const step of steps) {
    const found = step();
    if (found.kind !== 'missing') return found;
  }
  return { kind: 'missing' };
};

/** Places of a non-empty text. `wholeLines`: only matches of whole lines. */
export const findPlaces = (file: SearchedFile, sought: string, wholeLines: boolean): Places =>
  firstFound((wholeLines ? LINE_STEPS : STEPS).map((step) => () => step(file, sought)));

/** Places of parts of whole lines in this order, with any text between them. */
export const findParts = (file: SearchedFile, parts: readonly string[]): Places =>
  firstFound(
    (
      [
        ['exact', 'exact'],
        ['exact', 'ignored'],
        ['folded', 'exact'],
        ['folded', 'ignored'],
      ] as const
    ).map(
      ([typography, indentation]) =>
        () =>
          findLines(file, parts, { typography, indentation }),
    ),
  );

/** All exact places of the text, apart from line breaks; none if matches overlap. */
export const findAll = (
  file: SearchedFile,
  sought: string,
): { readonly places: readonly Span[]; readonly first: FoundPart } | null => {
  const exact = exactPlaces(file, sought, Number.MAX_SAFE_INTEGER);
  const places = exact.length > 0 ? exact : placesInView(file, sought, 'endings', Number.MAX_SAFE_INTEGER);
  let end = 0;
  const apart = places.filter((place) => {
    const isApart = place.start >= end;
    if (isApart) end = place.end;
    return isApart;
  });
  const [first] = apart;
  return first === undefined ? null : { places: apart, first: partAt(file, sought, first) };
};

/** A file's text with indexes that searches share. Each index is built on first use. */

/** The text with changed line ends, and a way back to offsets of the file. */
type FileView = {
  readonly text: string;
  /** Offset in the file for an offset in `text`. */
  original(offset: number): number;
};

/** `endings`: only `\n`. `blanks`: also no trailing spaces. `typography`: also plain characters. */
type ViewKind = 'endings' | 'blanks' | 'typography';

/** A number for each line; lines with equal keys have equal numbers. */
type LineKeys = { readonly numbers: Int32Array; numberOf(key: string): number | undefined };

export type SearchedFile = {
  readonly text: string;
  readonly lines: readonly TextLine[];
  view(kind: ViewKind): FileView;
  keys(comparison: Comparison): LineKeys;
  /** Line number of an offset, from 1. */
  lineNumberAt(offset: number): number;
};

/** Index of the last of the ascending numbers that is not larger than `value`. */
const lastUpTo = (count: number, numberAt: (index: number) => number, value: number): number => {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (numberAt(middle) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
};

const makeView = (lines: readonly TextLine[], kind: ViewKind): FileView => {
  const shown = lines.map(({ text }) => {
    if (kind === 'endings') return text;
    return trimEndBlanks(kind === 'typography' ? foldTypography(text) : text);
  });
  const starts = new Float64Array(lines.length);
  let at = 0;
  for (const [index, text] of shown.entries()) {
    starts[index] = at;
    at += text.length + 1;
  }
  return {
    text: shown.join('\n'),
    original(offset) {
      const index = lastUpTo(starts.length, (one) => starts[one] ?? 0, offset);
      return (lines[index]?.start ?? 0) + offset - (starts[index] ?? 0);
    },
  };
};

const makeKeys = (lines: readonly TextLine[], comparison: Comparison): LineKeys => {
  const known = new Map<string, number>();
  const numbers = new Int32Array(lines.length);
  for (const [index, { text }] of lines.entries()) {
    const key = keyOf(text, comparison);
    const number = known.get(key) ?? known.size;
    known.set(key, number);
    numbers[index] = number;
  }
  return { numbers, numberOf: (key) => known.get(key) };
};

export const searchedFile = (text: string): SearchedFile => {
  const views = new Map<ViewKind, FileView>();
  const keyLists = new Map<string, LineKeys>();
  const lines = linesOf(text);
  return {
    text,
    lines,
    view(kind) {
      const view = views.get(kind) ?? makeView(lines, kind);
      views.set(kind, view);
      return view;
    },
    keys(comparison) {
      const name = `${comparison.typography} ${comparison.indentation}`;
      const keys = keyLists.get(name) ?? makeKeys(lines, comparison);
      keyLists.set(name, keys);
      return keys;
    },
    lineNumberAt: (offset) => lastUpTo(lines.length, (index) => lines[index]?.start ?? 0, offset) + 1,
  };
};

type Sequence = { readonly length: number; at(index: number): number };
