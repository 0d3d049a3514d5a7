/**
 * Finds a text in a file, in steps from strict to tolerant.
 *
 * The first step with a match ends the search; with several matches the text is ambiguous. A match
 * equals the text except for the differences that its step tolerates. Similarity alone is never a
 * match.
 *
 * From top to bottom: the steps and the three searches (`findPlaces`, `findParts`, `findAll`);
 * places anywhere in lines; places of whole lines; the file with indexes that searches share; and a
 * search in linear time, since a file of repeated lines would take quadratic time otherwise.
 *
 * "Requested" is the text that is sought, in contrast to what the file has. "Typography" is quotes,
 * dashes and blanks beside the plain ones.
 */

import {
  type Comparison,
  findFactor,
  foldTypography,
  getIndent,
  type IndentPair,
  isConsistent,
  isEmptyLine,
  lineKey,
  lineTexts,
  splitLines,
  type TextLine,
  trimEndBlanks,
} from './lines.js';

/** A range of offsets in the file. */
export type Span = { readonly start: number; readonly end: number };

/**
 * A line of the requested text and its counterpart in the file. The first and the last may be
 * partial lines.
 */
export type LinePair = { readonly requested: string; readonly file: string };

/**
 * How the first line of the requested text is indented: as the others; not at all, while they are;
 * deeper, while they are indented as in the file.
 */
export type FirstLine = 'asOthers' | 'bare' | 'deeper';

/** A place in the file of a text, or of one part of it. */
export type FoundPart = Span & {
  readonly pairs: readonly LinePair[];
  /** The requested text ends with a line break, but the file ends without one. */
  readonly lacksBreak: boolean;
  readonly firstLine: FirstLine;
  /** What follows on the last line, if its indentation differs and only its beginning matched. */
  readonly rest?: string;
};

export type Places =
  | {
      readonly kind: 'matched';
      /** In order. One, unless the text consists of parts. */
      readonly parts: readonly FoundPart[];
    }
  | { readonly kind: 'missing' }
  | {
      readonly kind: 'ambiguous';
      readonly places: readonly Span[];
      /** For a text in parts: a part with exactly one place, and whether it is the first part. */
      readonly anchor?: Span & { readonly isFirstPart: boolean };
    };

/** Limit on the places to collect, unless all are requested. */
const PLACES_MAX = 1_000;
/** Limit on the ways to place the parts of one text. With more, the text is refused. */
const WAYS_MAX = 20_000;
/**
 * Limit on the lines whose indentation one step compares; with more, the search is not complete.
 * Only files of repeated lines reach it.
 */
const COMPARED_LINES_MAX = 200_000;

/** A step searches a view of the text, also in the middle of lines, or compares whole lines. */
type Step = 'exact' | ViewKind | Comparison;

/** Steps that compare whole lines, from strict to tolerant. */
const WHOLE_LINES: readonly Comparison[] = [
  { typography: 'exact', indentation: 'exact' },
  { typography: 'exact', indentation: 'ignored' },
  { typography: 'folded', indentation: 'exact' },
  { typography: 'folded', indentation: 'ignored' },
];
/** All steps, from strict to tolerant. ViewKind says what the named ones tolerate. */
const STEPS: readonly Step[] = [
  ...(['exact', 'endings', 'blanks'] as const),
  ...WHOLE_LINES.slice(0, 2),
  'typography',
  ...WHOLE_LINES.slice(2),
];

/**
 * Places of a non-empty text. `wholeLines`: only matches of whole lines, since part of a line could
 * match by chance.
 */
export const findPlaces = (file: SearchedFile, sought: string, wholeLines: boolean): Places => {
  for (const step of wholeLines ? WHOLE_LINES : STEPS) {
    const match =
      typeof step === 'string' ? findText(file, sought, step) : findLines(file, [sought], step);
    if (match.kind !== 'missing') return match;
  }
  // at last, a text that ends within a line, and whose indentation differs
  for (const typography of wholeLines ? [] : (['exact', 'folded'] as const)) {
    const match = findLines(file, [sought], { typography, indentation: 'ignored' }, splitOpenPart);
    if (match.kind === 'missing') continue;
    const kind = typography === 'folded' ? 'typography' : 'exact';
    // the beginning of one line has one meaning only if it stands nowhere else
    const isAlone =
      sought.includes('\n') || findSpans(file, sought.trimStart(), kind, 2).length < 2;
    return match.kind === 'matched' && !isAlone ? { kind: 'missing' } : match;
  }
  return { kind: 'missing' };
};

/** Places of parts of whole lines in this order, with any text between them. */
export const findParts = (file: SearchedFile, parts: readonly string[]): Places => {
  for (const comparison of WHOLE_LINES) {
    const match = findLines(file, parts, comparison);
    if (match.kind !== 'missing') return match;
  }
  return { kind: 'missing' };
};

/**
 * All exact places of the text, with any kind of line breaks; null if there are none. Of places
 * that overlap only the first counts.
 */
export const findAll = (
  file: SearchedFile,
  sought: string,
): { readonly places: readonly Span[]; readonly first: FoundPart } | null => {
  const exact = findSpans(file, sought, 'exact', Number.MAX_SAFE_INTEGER);
  const places =
    exact.length > 0 ? exact : findSpans(file, sought, 'endings', Number.MAX_SAFE_INTEGER);
  let end = 0;
  const separate = places.filter((place) => {
    const isSeparate = place.start >= end;
    if (isSeparate) end = place.end;
    return isSeparate;
  });
  const [first] = separate;
  return first === undefined
    ? null
    : { places: separate, first: describePart(file, sought, first) };
};

// ---- Anywhere in lines ----

const findText = (file: SearchedFile, sought: string, kind: 'exact' | ViewKind): Places => {
  const places = findSpans(file, sought, kind, PLACES_MAX);
  const [place] = places;
  if (place === undefined) return { kind: 'missing' };
  if (places.length > 1) return { kind: 'ambiguous', places };
  return { kind: 'matched', parts: [describePart(file, sought, place)] };
};

/** Where the text stands in the file, or in a view of it. */
const findSpans = (
  file: SearchedFile,
  sought: string,
  kind: 'exact' | ViewKind,
  most: number,
): readonly Span[] => {
  const { text } = file;
  const isWhole = ({ start, end }: Span): boolean =>
    !splitsCharacter(text, start) && !splitsCharacter(text, end);
  if (kind === 'exact') {
    return findOccurrences(text, sought, most)
      .map((start) => {
        // a place that starts inside a CR LF is extended to the start of the line break
        const isInBreak = text[start] === '\n' && text[start - 1] === '\r';
        return { start: isInBreak ? start - 1 : start, end: start + sought.length };
      })
      .filter(isWhole);
  }
  const view = file.view(kind);
  const seen = viewSought(sought, kind);
  return findOccurrences(view.text, seen, most)
    .map((start) => ({ start: view.original(start), end: view.original(start + seen.length) }))
    .filter(isWhole);
};

/** Whether an offset lies inside a surrogate pair. */
const splitsCharacter = (text: string, offset: number): boolean =>
  /[\ud800-\udbff]/.test(text[offset - 1] ?? '') && /[\udc00-\udfff]/.test(text[offset] ?? '');

/**
 * The text as this view shows it. Its last line may be partial, so it keeps its trailing spaces.
 */
const viewSought = (sought: string, kind: ViewKind): string => {
  const lines = lineTexts(sought);
  const last = lines.at(-1) ?? '';
  const shown = lines.slice(0, -1).map((line) => viewLine(line, kind));
  return [...shown, kind === 'typography' ? foldTypography(last) : last].join('\n');
};

const viewLine = (line: string, kind: ViewKind): string => {
  if (kind === 'endings') return line;
  return trimEndBlanks(kind === 'typography' ? foldTypography(line) : line);
};

const describePart = (file: SearchedFile, sought: string, { start, end }: Span): FoundPart => {
  const requested = lineTexts(sought);
  const there = lineTexts(file.text.slice(start, end));
  const lacksBreak = requested.length === there.length + 1 && requested.at(-1) === '';
  const pairs = there.map((line, index) => ({ requested: requested[index] ?? '', file: line }));
  return { start, end, pairs, lacksBreak, firstLine: 'asOthers' };
};

// ---- Whole lines ----

/** The places of parts of whole lines, one after the other, under one comparison. */
const findLines = (
  file: SearchedFile,
  texts: readonly string[],
  comparison: Comparison,
  split: (text: string) => Part | null = splitPart,
): Places => {
  const parts = texts.map(split).filter((part) => part !== null);
  if (parts.length < texts.length || parts.some(({ lines }) => lines.every(isEmptyLine)))
    return { kind: 'missing' };
  const candidates = parts.map((part) => findCandidates(file, part, comparison));
  const ways = combinePlaces(
    candidates.map((one) => one.places),
    comparison.indentation === 'ignored',
  );
  const isComplete = candidates.every((one) => one.isComplete);
  const isMissing = ways?.length === 0 && isComplete;
  if (isMissing || candidates.some(({ places }) => places.length === 0)) return { kind: 'missing' };
  const [only, second] = ways ?? []; // null ways are too many, so the text is ambiguous
  if (only !== undefined && second === undefined && isComplete)
    return { kind: 'matched', parts: only };
  const doubtful = candidates.find((one) => one.places.length > 1 || !one.isComplete);
  // a part with one place: the message shows the lines from it on, or up to it
  const index = candidates.findIndex((one) => one.places.length === 1);
  const anchor = candidates[index]?.places[0];
  const known = anchor === undefined ? {} : { anchor: { ...anchor, isFirstPart: index === 0 } };
  return { kind: 'ambiguous', places: doubtful?.places ?? [], ...known };
};

/** The lines of a part. */
type Part = {
  readonly lines: readonly string[];
  /** It ends with a line break. */
  readonly closed: boolean;
  /** Its last line may be the beginning of a line. */
  readonly open?: true;
};

const splitPart = (text: string): Part => {
  const lines = lineTexts(text);
  const closed = lines.length > 1 && lines.at(-1) === '';
  return { lines: closed ? lines.slice(0, -1) : lines, closed };
};

/** A text that may end within a line; null if that says too little. */
const splitOpenPart = (text: string): Part | null => {
  const lines = lineTexts(text);
  const last = lines.at(-1) ?? '';
  if (lines.length === 1 ? !WORD.test(last) : isEmptyLine(last)) return null;
  return { lines, closed: false, open: true };
};

const WORD = /[\p{L}\p{N}_]/u;
const SPLIT_WORD = /[\p{L}\p{N}_]{2}/u;

/** Where the line that begins with this text, indentation aside, goes on; null for another one. */
const findEndOfBeginning = (
  line: string,
  beginning: string,
  { typography }: Comparison,
): number | null => {
  const [one, other] =
    typography === 'folded' ? [foldTypography(line), foldTypography(beginning)] : [line, beginning];
  const body = other.slice(getIndent(other).length);
  const indent = getIndent(one).length;
  const end = indent + body.length;
  const isSplit = SPLIT_WORD.test(one.slice(end - 1, end + 1)) || splitsCharacter(one, end);
  return one.startsWith(body, indent) && !isSplit ? end : null;
};

type Candidates = { readonly places: readonly FoundPart[]; readonly isComplete: boolean };

/** The places of one part; not complete with too many of them, or too many lines to compare. */
const findCandidates = (file: SearchedFile, part: Part, comparison: Comparison): Candidates => {
  const starts = findStarts(file, part, comparison);
  const isWhole = part.open === true || starts.length < PLACES_MAX;
  if (comparison.indentation === 'exact')
    return {
      places: starts.map((first) => placeAt(file, part, first, comparison)),
      isComplete: isWhole,
    };
  const most = Math.max(2, Math.floor(COMPARED_LINES_MAX / part.lines.length));
  const all = starts.slice(0, most).map((first) => placeAt(file, part, first, comparison));
  // consistent: the lines keep their depth relative to each other
  const places = all.filter((place) => isConsistent(partIndents(place)));
  const withDeeper = places.length > 0 ? places : all.flatMap(withDeeperFirstLine);
  const found =
    withDeeper.length > 0
      ? withDeeper
      : all.filter((place) => findFactor(partIndents(place)) !== null);
  return { places: found, isComplete: isWhole && starts.length <= most };
};

/** Indexes of lines where the part may start, by comparing keys only. */
const findStarts = (file: SearchedFile, part: Part, comparison: Comparison): readonly number[] => {
  const keys = file.keys(comparison);
  const sought: number[] = [];
  for (const line of part.open ? part.lines.slice(0, -1) : part.lines) {
    const number = keys.numberOf(lineKey(line, comparison));
    if (number === undefined) return [];
    sought.push(number);
  }
  // The empty line after the last line break is not a line of the file.
  const count = file.lines.length - (file.text.endsWith('\n') ? 1 : 0);
  const numbers = createSequence(keys.numbers.subarray(0, count));
  if (!part.open) return searchLinear(numbers, createSequence(sought), PLACES_MAX);
  const starts =
    sought.length === 0
      ? Array.from({ length: count }, (_, index) => index)
      : searchLinear(numbers, createSequence(sought), Number.MAX_SAFE_INTEGER);
  const last = part.lines.at(-1) ?? '';
  return starts.filter((first) => {
    const line = file.lines[first + sought.length];
    return line !== undefined && findEndOfBeginning(line.text, last, comparison) !== null;
  });
};

/** The place of a part that begins at this line. */
const placeAt = (
  file: SearchedFile,
  part: Part,
  first: number,
  comparison: Comparison,
): FoundPart => {
  const lines = file.lines.slice(first, first + part.lines.length);
  const from = lines[0];
  const last = lines.at(-1);
  if (from === undefined || last === undefined)
    throw new RangeError('a part has at least one line');
  const openEnd = part.open
    ? findEndOfBeginning(last.text, part.lines.at(-1) ?? '', comparison)
    : null;
  const pairs = lines.map((line, index) => ({
    requested: part.lines[index] ?? '',
    file: openEnd === null || line !== last ? line.text : line.text.slice(0, openEnd),
  }));
  const bare = beginsBare(pairs);
  const lead = bare ? getIndent(from.text).length : 0;
  return {
    start: from.start + lead,
    end: openEnd === null ? (part.closed ? last.next : last.end) : last.start + openEnd,
    pairs: pairs.map((pair, index) =>
      index === 0 ? { ...pair, file: pair.file.slice(lead) } : pair,
    ),
    lacksBreak: part.closed && last.next === last.end,
    firstLine: bare ? 'bare' : 'asOthers',
    ...(openEnd === null ? {} : { rest: last.text.slice(openEnd).trim() }),
  };
};

/** The indentations of the lines that are not empty. */
const indentPairs = (pairs: readonly LinePair[]): readonly IndentPair[] =>
  pairs
    .filter(({ requested }) => !isEmptyLine(requested))
    .map(({ requested, file }) => ({ requested: getIndent(requested), file: getIndent(file) }));

/** The same, without a first line that is indented in its own way. */
export const partIndents = ({ pairs, firstLine }: Pick<FoundPart, 'pairs' | 'firstLine'>) =>
  indentPairs(firstLine === 'asOthers' ? pairs : pairs.slice(1));

/**
 * Whether the text was copied without the indentation of its first line: only that line has none,
 * and the others are consistent.
 */
const beginsBare = (pairs: readonly LinePair[]): boolean => {
  const [first, ...rest] = pairs;
  if (first === undefined || isEmptyLine(first.requested) || getIndent(first.requested) !== '')
    return false;
  const others = indentPairs(rest);
  return others.length > 0 && !isConsistent(indentPairs(pairs)) && isConsistent(others);
};

/** The place, if only the first line is indented otherwise than in the file, and deeper. */
const withDeeperFirstLine = (place: FoundPart): readonly FoundPart[] => {
  const [first, ...rest] = place.pairs;
  if (first === undefined || isEmptyLine(first.requested)) return [];
  const others = indentPairs(rest);
  const isDeeper =
    getIndent(first.requested) !== getIndent(first.file) &&
    getIndent(first.requested).startsWith(getIndent(first.file)) &&
    others.length > 0 &&
    others.every(({ requested, file }) => requested === file);
  return isDeeper ? [{ ...place, firstLine: 'deeper' }] : [];
};

/** One place for each part. */
type Way = readonly FoundPart[];

/**
 * All ways to choose one place per part, in the order of the file; null if there are too many.
 * `sameDepth`: the same change of indentation must fit all parts.
 */
const combinePlaces = (candidates: readonly Way[], sameDepth: boolean): readonly Way[] | null => {
  let ways: readonly Way[] = [[]];
  for (const places of [...candidates].reverse()) {
    if (places.length * ways.length > WAYS_MAX) return null;
    ways = places.flatMap((place) =>
      ways
        .filter(([next]) => next === undefined || next.start >= place.end)
        .map((way) => [place, ...way])
        .filter((way) => !sameDepth || way.length < 2 || isConsistent(way.flatMap(partIndents))),
    );
  }
  return ways;
};

// ---- The file, with indexes that searches share ----

/** The text with changed line ends, and a way back to offsets of the file. */
type FileView = { readonly text: string; original(offset: number): number };

/** `endings`: only `\n`. `blanks`: also no trailing spaces. `typography`: also plain characters. */
type ViewKind = 'endings' | 'blanks' | 'typography';

/**
 * A number for each line; lines with equal keys have equal numbers. A key is what a comparison uses
 * of a line.
 */
type LineKeys = { readonly numbers: Int32Array; numberOf(key: string): number | undefined };

/** Each index is built on first use. */
export class SearchedFile {
  readonly text: string;
  readonly lines: readonly TextLine[];
  readonly #views = new Map<ViewKind, FileView>();
  readonly #keys = new Map<string, LineKeys>();

  constructor(text: string) {
    this.text = text;
    this.lines = splitLines(text);
  }

  view(kind: ViewKind): FileView {
    const view = this.#views.get(kind) ?? this.#createView(kind);
    this.#views.set(kind, view);
    return view;
  }

  keys(comparison: Comparison): LineKeys {
    const name = `${comparison.typography} ${comparison.indentation}`;
    const keys = this.#keys.get(name) ?? this.#createKeys(comparison);
    this.#keys.set(name, keys);
    return keys;
  }

  /** Line number of an offset, from 1. */
  lineNumberAt(offset: number): number {
    return lastUpTo(this.lines.length, (index) => this.lines[index]?.start ?? 0, offset) + 1;
  }

  #createView(kind: ViewKind): FileView {
    const shown = this.lines.map(({ text }) => viewLine(text, kind));
    const starts = new Float64Array(shown.length);
    let at = 0;
    for (const [index, text] of shown.entries()) {
      starts[index] = at;
      at += text.length + 1;
    }
    return {
      text: shown.join('\n'),
      original: (offset) => {
        const index = lastUpTo(starts.length, (one) => starts[one] ?? 0, offset);
        return (this.lines[index]?.start ?? 0) + offset - (starts[index] ?? 0);
      },
    };
  }

  #createKeys(comparison: Comparison): LineKeys {
    const known = new Map<string, number>();
    const numbers = new Int32Array(this.lines.length);
    for (const [index, { text }] of this.lines.entries()) {
      const key = lineKey(text, comparison);
      const number = known.get(key) ?? known.size;
      known.set(key, number);
      numbers[index] = number;
    }
    return { numbers, numberOf: (key) => known.get(key) };
  }
}

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

// ---- A sequence in another one, in linear time (Knuth, Morris, Pratt) ----

/** Limit for `String.indexOf`. It is fast on ordinary text, but quadratic on long hostile text. */
const PLAIN_SEARCH_MAX = 200;

/** Offsets of the non-empty text `sought`, overlapping ones included, at most `most`. */
export const findOccurrences = (text: string, sought: string, most: number): readonly number[] => {
  if (sought.length > PLAIN_SEARCH_MAX) {
    const readUnits = (one: string): Sequence => ({
      length: one.length,
      at: (index) => one.charCodeAt(index),
    });
    return searchLinear(readUnits(text), readUnits(sought), most);
  }
  const indexes: number[] = [];
  for (
    let at = text.indexOf(sought);
    at >= 0 && indexes.length < most;
    at = text.indexOf(sought, at + 1)
  )
    indexes.push(at);
  return indexes;
};

type Sequence = { readonly length: number; at(index: number): number };

const createSequence = (numbers: ArrayLike<number>): Sequence => ({
  length: numbers.length,
  at: (index) => numbers[index] ?? -1,
});

const searchLinear = (all: Sequence, sought: Sequence, most: number): readonly number[] => {
  // for each prefix the length of its longest proper prefix that is also a suffix
  const borders = new Int32Array(sought.length);
  // the length of the longest prefix that ends with `one`, after one of this length
  const grow = (length: number, one: number): number => {
    let matched = length;
    while (matched > 0 && one !== sought.at(matched)) matched = borders[matched - 1] ?? 0;
    return one === sought.at(matched) ? matched + 1 : matched;
  };
  for (let index = 1; index < sought.length; index++)
    borders[index] = grow(borders[index - 1] ?? 0, sought.at(index));
  const indexes: number[] = [];
  let length = 0;
  for (let index = 0; index < all.length && indexes.length < most; index++) {
    length = grow(length, all.at(index));
    if (length < sought.length) continue;
    indexes.push(index - sought.length + 1);
    length = borders[length - 1] ?? 0;
  }
  return indexes;
};
