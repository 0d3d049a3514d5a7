import { endingsOf, type LineEnding, withEnding } from './line-endings.js';

/**
 * Where the text of an edit stands in a file.
 *
 * 1. Exact matches come first. Only without one are other line endings tried, then whole lines that differ in
 *    trailing white space: what is found less strictly is never preferred.
 * 2. Several places are an answer only to an edit that wants all of them, and never by trailing white space.
 */

export type Place = { readonly start: number; readonly end: number };
export type Strictness = 'exact' | 'lineEndings' | 'trailingSpace';

export type Found =
  | { readonly kind: 'found'; readonly places: readonly Place[]; readonly strictness: Strictness }
  | { readonly kind: 'missing' }
  | { readonly kind: 'ambiguous'; readonly lines: readonly number[] };

const PLACES_NAMED = 8;

const lineAt = (text: string, offset: number): number => {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
};

/** A place that would begin between the two characters of a line break begins before both. */
const exactPlaces = (text: string, sought: string): Place[] => {
  const places: Place[] = [];
  for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + sought.length)) {
    const insideBreak = text[at] === '\n' && text[at - 1] === '\r';
    places.push({ start: insideBreak ? at - 1 : at, end: at + sought.length });
  }
  return places;
};

/** A text that overlaps itself is in more places than can be replaced at once. */
const overlapsItself = (text: string, sought: string, places: readonly Place[]): boolean =>
  places.length === 1 &&
  places[0] !== undefined &&
  text.indexOf(sought, places[0].end - sought.length + 1) >= 0;

/** Finds text as if every line break were `\n`; places are those of the text as it is. */
const placesByLines = (text: string, sought: string): Place[] => {
  if (!text.includes('\r\n') && !sought.includes('\r\n')) return [];
  const unix = withEnding(text, '\n');
  const places = exactPlaces(unix, withEnding(sought, '\n'));
  const breaks: number[] = []; // offsets in `unix` of the line breaks that have a `\r` in `text`
  let removed = 0;
  for (let at = text.indexOf('\r\n'); at >= 0; at = text.indexOf('\r\n', at + 2)) {
    breaks.push(at - removed);
    removed += 1;
  }
  let passed = 0;
  const original = (offset: number): number => {
    while (passed < breaks.length && (breaks[passed] ?? 0) < offset) passed += 1;
    return offset + passed;
  };
  return places.map(({ start, end }) => ({ start: original(start), end: original(end) }));
};

type Line = { readonly text: string; readonly start: number; readonly end: number; readonly next: number };

const linesOf = (text: string): Line[] => {
  const lines: Line[] = [];
  let start = 0;
  while (start <= text.length) {
    const at = text.indexOf('\n', start);
    const stop = at < 0 ? text.length : at;
    const end = at > start && text[at - 1] === '\r' ? at - 1 : stop;
    const next = at < 0 ? text.length : at + 1;
    lines.push({ text: text.slice(start, end).trimEnd(), start, end, next });
    if (at < 0) break;
    start = next;
  }
  return lines;
};

/** Whole lines that are the same up to white space at their ends. */
const placesByWholeLines = (text: string, sought: string): Place[] => {
  const wanted = linesOf(sought);
  const endsWithBreak = sought.endsWith('\n');
  if (endsWithBreak) wanted.pop();
  if (wanted.every((line) => line.text === '')) return [];
  const lines = linesOf(text);
  const places: Place[] = [];
  for (let first = 0; first + wanted.length <= lines.length; first++) {
    if (!wanted.every((line, index) => line.text === lines[first + index]?.text)) continue;
    const from = lines[first];
    const last = lines[first + wanted.length - 1];
    if (from === undefined || last === undefined) continue;
    places.push({ start: from.start, end: endsWithBreak ? last.next : last.end });
  }
  return places;
};

export const findPlaces = (text: string, sought: string, all: boolean): Found => {
  const tries = [
    ['exact', exactPlaces],
    ['lineEndings', placesByLines],
    ['trailingSpace', placesByWholeLines],
  ] as const;
  for (const [strictness, search] of tries) {
    const places = search(text, sought);
    if (places.length === 0) continue;
    const single = places.length === 1 && !(strictness === 'exact' && overlapsItself(text, sought, places));
    if (single || (all && strictness !== 'trailingSpace')) return { kind: 'found', places, strictness };
    return {
      kind: 'ambiguous',
      lines: places.slice(0, PLACES_NAMED).map(({ start }) => lineAt(text, start)),
    };
  }
  return { kind: 'missing' };
};

/** The replacement with the line endings that the file has there. */
export const fitEndings = (text: string, replacement: string, place: Place): string => {
  const endings = endingsOf(text);
  if (endings === 'none') return replacement;
  if (endings !== 'mixed') return withEnding(replacement, endings);
  const at = text.indexOf('\n', place.start);
  const near: LineEnding = at > 0 && text[at - 1] === '\r' ? '\r\n' : '\n';
  return withEnding(replacement, near);
};
