import {
  type Comparison,
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

/**
 * Finds a text in a file, in steps from strict to tolerant.
 *
 * The first step with a match ends the search; with several matches the text is ambiguous. A match
 * equals the text except for the differences that its step tolerates. Similarity alone is never a
 * match.
 */

/** Offsets in the file. */
export type Span = { readonly start: number; readonly end: number };

/**
 * A line of the requested text and its counterpart in the file. The first and the last may be
 * partial lines.
 */
export type LinePair = { readonly requested: string; readonly file: string };

export type FoundPart = Span & {
  readonly pairs: readonly LinePair[];
  /** The requested text ends with a line break, but the file ends without one. */
  readonly lacksBreak: boolean;
  /**
   * The requested text lacks the indentation of its first line; its other lines have another one.
   */
  readonly inside: boolean;
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
      /** For a text in parts: a part with exactly one place. `isFirst`: it is the first part. */
      readonly anchor?: Span & { readonly isFirst: boolean };
    };

/** Limit on the places to collect, unless all are requested. */
const PLACES_MAX = 1_000;
/** Limit on the ways to place the parts of one text. With more, the text is refused. */
const WAYS_MAX = 20_000;
/**
 * Limit on the lines whose indentation one step compares. Only files of repeated lines reach it.
 */
const COMPARED_LINES_MAX = 200_000;

/** A step searches a view of the text, also in the middle of lines, or compares whole lines. */
type Step = 'exact' | ViewKind | Comparison;

const WHOLE_LINES: readonly Comparison[] = [
  { typography: 'exact', indentation: 'exact' },
  { typography: 'exact', indentation: 'ignored' },
  { typography: 'folded', indentation: 'exact' },
  { typography: 'folded', indentation: 'ignored' },
];
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
  return wholeLines ? { kind: 'missing' } : findPartialEnd(file, sought);
};

/** Places of parts of whole lines in this order, with any text between them. */
export const findParts = (file: SearchedFile, parts: readonly string[]): Places => {
  for (const comparison of WHOLE_LINES) {
    const match = findLines(file, parts, comparison);
    if (match.kind !== 'missing') return match;
  }
  return { kind: 'missing' };
};

/** All exact places of the text, apart from line breaks; none if matches overlap. */
export const findAll = (
  file: SearchedFile,
  sought: string,
): { readonly places: readonly Span[]; readonly first: FoundPart } | null => {
  const exact = findSpans(file, sought, 'exact', Number.MAX_SAFE_INTEGER);
  const places =
    exact.length > 0 ? exact : findSpans(file, sought, 'endings', Number.MAX_SAFE_INTEGER);
  let end = 0;
  const apart = places.filter((place) => {
    const isApart = place.start >= end;
    if (isApart) end = place.end;
    return isApart;
  });
  const [first] = apart;
  return first === undefined ? null : { places: apart, first: describePart(file, sought, first) };
};

// ---- Anywhere in lines ----

const findText = (file: SearchedFile, sought: string, kind: 'exact' | ViewKind): Places => {
  const places = findSpans(file, sought, kind, PLACES_MAX);
  const [place] = places;
  if (place === undefined) return { kind: 'missing' };
  if (places.length > 1) return { kind: 'ambiguous', places };
  return { kind: 'matched', parts: [describePart(file, sought, place)] };
};

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
  return { start, end, pairs, lacksBreak, inside: false };
};

// ---- Whole lines ----

const findLines = (
  file: SearchedFile,
  texts: readonly string[],
  comparison: Comparison,
): Places => {
  const parts = texts.map(splitPart);
  if (parts.some(({ lines }) => lines.every(isEmptyLine))) return { kind: 'missing' };
  const candidates = parts.map((part) => findCandidates(file, part, comparison));
  const ways = waysThrough(
    candidates.map((one) => one.places),
    comparison.indentation === 'ignored',
  );
  if (ways?.length === 0) return { kind: 'missing' };
  const [only, second] = ways ?? [];
  if (only !== undefined && second === undefined && candidates.every(({ all }) => all))
    return { kind: 'matched', parts: only };
  const doubtful = candidates.find((one) => one.places.length > 1 || !one.all);
  const index = candidates.findIndex((one) => one.places.length === 1);
  const anchor = candidates[index]?.places[0];
  const known = anchor === undefined ? {} : { anchor: { ...anchor, isFirst: index === 0 } };
  return { kind: 'ambiguous', places: doubtful?.places ?? [], ...known };
};

/** The lines of a part. `closed`: it ends with a line break. */
type Part = { readonly lines: readonly string[]; readonly closed: boolean };

const splitPart = (text: string): Part => {
  const lines = lineTexts(text);
  const closed = lines.length > 1 && lines.at(-1) === '';
  return { lines: closed ? lines.slice(0, -1) : lines, closed };
};

type Candidates = { readonly places: readonly FoundPart[]; readonly all: boolean };

/** The places of one part. `all` is false if too many lines would have to be compared. */
const findCandidates = (file: SearchedFile, part: Part, comparison: Comparison): Candidates => {
  const starts = findStarts(file, part, comparison);
  if (comparison.indentation === 'exact')
    return { places: starts.map((first) => placeAt(file, part, first)), all: true };
  const most = Math.max(2, Math.floor(COMPARED_LINES_MAX / part.lines.length));
  const places = starts
    .slice(0, most)
    .map((first) => placeAt(file, part, first))
    .filter((place) => isConsistent(partIndents(place)));
  return { places, all: starts.length <= most };
};

/** Indexes of lines where the part may start, by comparing keys only. */
const findStarts = (file: SearchedFile, part: Part, comparison: Comparison): readonly number[] => {
  const keys = file.keys(comparison);
  const sought: number[] = [];
  for (const line of part.lines) {
    const number = keys.numberOf(lineKey(line, comparison));
    if (number === undefined) return [];
    sought.push(number);
  }
  // The empty line after the last line break is not a line of the file.
  const count = file.lines.length - (file.text.endsWith('\n') ? 1 : 0);
  return searchLinear(
    createSequence(keys.numbers.subarray(0, count)),
    createSequence(sought),
    PLACES_MAX,
  );
};

const placeAt = (file: SearchedFile, part: Part, first: number): FoundPart => {
  const lines = file.lines.slice(first, first + part.lines.length);
  const [from, last] = [lines[0], lines.at(-1)];
  if (from === undefined || last === undefined)
    throw new RangeError('a part has at least one line');
  const pairs = lines.map(({ text }, index) => ({
    requested: part.lines[index] ?? '',
    file: text,
  }));
  const inside = beginsInside(pairs);
  const lead = inside ? getIndent(from.text).length : 0;
  return {
    start: from.start + lead,
    end: part.closed ? last.next : last.end,
    pairs: pairs.map((pair, index) =>
      index === 0 ? { ...pair, file: pair.file.slice(lead) } : pair,
    ),
    lacksBreak: part.closed && last.next === last.end,
    inside,
  };
};

/** The indentations of the lines that are not empty. */
const indentPairs = (pairs: readonly LinePair[]): readonly IndentPair[] =>
  pairs
    .filter(({ requested }) => !isEmptyLine(requested))
    .map(({ requested, file }) => ({ requested: getIndent(requested), file: getIndent(file) }));

/** The same, without a first line whose indentation the requested text lacks. */
export const partIndents = ({ pairs, inside }: Pick<FoundPart, 'pairs' | 'inside'>) =>
  indentPairs(inside ? pairs.slice(1) : pairs);

/**
 * Whether the text was copied without the indentation of its first line: only that line has none,
 * and the others are consistent.
 */
const beginsInside = (pairs: readonly LinePair[]): boolean => {
  const [first, ...rest] = pairs;
  if (first === undefined || isEmptyLine(first.requested) || getIndent(first.requested) !== '')
    return false;
  const others = indentPairs(rest);
  return others.length > 0 && !isConsistent(indentPairs(pairs)) && isConsistent(others);
};

/**
 * A text that is indented otherwise than the file and ends within a line. Its last line must begin
 * as the file's line does, and a text of one line must stand nowhere else.
 */
const findPartialEnd = (file: SearchedFile, sought: string): Places => {
  const requested = lineTexts(sought);
  const last = requested.at(-1) ?? '';
  const body = last.slice(getIndent(last).length);
  if (isEmptyLine(last)) return { kind: 'missing' };
  const [, whole] = WHOLE_LINES;
  if (whole === undefined) return { kind: 'missing' };
  const head = requested.slice(0, -1);
  const isAlone = head.length > 0 || findOccurrences(file.text, body, 2).length === 1;
  if (!isAlone || (head.length > 0 && head.every(isEmptyLine))) return { kind: 'missing' };
  const starts =
    head.length > 0 ? findStarts(file, { lines: head, closed: true }, whole) : file.lines.keys();
  const places: FoundPart[] = [];
  for (const first of starts) {
    const end = file.lines[first + head.length];
    const lead = end === undefined ? 0 : getIndent(end.text).length;
    if (end === undefined || !end.text.startsWith(body, lead)) continue;
    const place = placeAt(file, { lines: requested, closed: false }, first);
    const pairs = place.pairs.map((pair, index) =>
      index === head.length ? { ...pair, file: pair.file.slice(0, lead + body.length) } : pair,
    );
    const indents = indentPairs(pairs);
    const isShifted = indents.some((pair) => pair.requested !== pair.file);
    const until = end.start + lead + body.length;
    if (place.inside || !isShifted || !isConsistent(indents)) continue;
    if (splitsCharacter(file.text, until)) continue;
    places.push({ ...place, pairs, end: until });
    if (places.length > PLACES_MAX) break;
  }
  const [only, second] = places;
  if (only === undefined) return { kind: 'missing' };
  return second === undefined ? { kind: 'matched', parts: [only] } : { kind: 'ambiguous', places };
};

type Way = readonly FoundPart[];

/**
 * All ways to choose one place per part, in the order of the file; null if there are too many.
 * `sameDepth`: the same change of indentation must fit all parts.
 */
const waysThrough = (candidates: readonly Way[], sameDepth: boolean): readonly Way[] | null => {
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

/** A number for each line; lines with equal keys have equal numbers. */
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
