import { textOccurrences } from './find-occurrences.js';
import type { Span } from './find-places.js';
import { firstDifference } from './first-difference.js';
import { nearestLines } from './nearest-lines.js';
import type { SearchedFile } from './searched-file.js';
import { linesOf } from './text-lines.js';

/** Messages for refused edits. They let the model correct the edit without reading the file again. */

const SHOWN_LINES_MAX = 60;
const SHOWN_CHARACTERS_MAX = 6_000;
const LINE_CHARACTERS_MAX = 400;
const CONTEXT_LINES = 2;
const PLACES_SHOWN = 6;
const PLACES_NAMED = 40;
/** Shorter texts match by chance. */
const KNOWN_CHARACTERS_MIN = 12;

/** Words at a cut. They are left out, because the redactor can't recognise part of a key or token. */
const [OPEN_HEAD, OPEN_TAIL] = [/^[^\s"'`,;(){}<>[\]]+/, /[^\s"'`,;(){}<>[\]]+$/];

const showLine = (text: string, number: number, from: number): string => {
  if (text.length <= LINE_CHARACTERS_MAX) return `${number}\t${text}`;
  const start = Math.max(0, Math.min(from - LINE_CHARACTERS_MAX / 2, text.length - LINE_CHARACTERS_MAX));
  const part = text.slice(start, start + LINE_CHARACTERS_MAX);
  const head = start === 0 ? '' : (OPEN_HEAD.exec(part)?.[0] ?? '');
  const rest = part.slice(head.length);
  const shown = start + LINE_CHARACTERS_MAX >= text.length ? rest : rest.replace(OPEN_TAIL, '');
  const first = start + head.length + 1;
  return `${number}\t[characters ${first}-${first + shown.length - 1} of ${text.length}] ${shown}`;
};

/** Length of the common prefix of two texts. */
const commonLength = (one: string, other: string): number => {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
};

/** Lines with numbers as `read` shows them. Indexes from 0, `last` included. Long lines are cut around the difference. */
const showLines = (file: SearchedFile, first: number, last: number, given: readonly string[]): string => {
  const shown: string[] = [];
  let room = SHOWN_CHARACTERS_MAX;
  for (let index = first; index <= last; index++) {
    const text = file.lines[index]?.text ?? '';
    const line = showLine(text, index + 1, commonLength(text, given[index - first] ?? ''));
    room -= line.length + 1;
    if (room < 0 || shown.length === SHOWN_LINES_MAX) {
      return [...shown, `[lines ${index + 1}-${last + 1} are not shown]`].join('\n');
    }
    shown.push(line);
  }
  return shown.join('\n');
};

/** Index of the last line, without the empty one after the last line break. */
const lastIndexOf = (file: SearchedFile): number =>
  Math.max(0, file.lines.length - (file.text.endsWith('\n') ? 2 : 1));

const numbersOf = (first: number, last: number): string =>
  first === last ? `line ${first + 1}` : `lines ${first + 1}-${last + 1}`;

/** `line 3` or `lines 3-5`. */
export const sayPlace = (file: SearchedFile, { start, end }: Span): string => {
  const [first, behind] = [file.lineNumberAt(start), file.lineNumberAt(end)];
  const last = end > start && behind > first && file.lines[behind - 1]?.start === end ? behind - 1 : behind;
  return numbersOf(first - 1, last - 1);
};

const beginningOf = (file: SearchedFile): string =>
  file.text === ''
    ? 'The file is empty.'
    : `The file begins like this:\n${showLines(file, 0, Math.min(4, lastIndexOf(file)), [])}`;

/** A place with the lines around it. A long place shows its start and its end within `lines`. */
const showPlace = (file: SearchedFile, place: Span, lines: number): string => {
  const first = file.lineNumberAt(place.start) - 1;
  const last = Math.max(first, file.lineNumberAt(Math.max(place.start, place.end - 1)) - 1);
  const from = Math.max(0, first - CONTEXT_LINES);
  const to = Math.min(lastIndexOf(file), last + CONTEXT_LINES);
  if (to - from < lines) return showLines(file, from, to, []);
  const [head, tail] = [showLines(file, from, first + 1, []), showLines(file, last - 1, to, [])];
  return `${head}\n[lines ${first + 3}-${last - 1} are not shown]\n${tail}`;
};

const nameLines = (file: SearchedFile, places: readonly Span[]): string => {
  const numbers = places.map(({ start }) => file.lineNumberAt(start));
  const rest = numbers.length - PLACES_NAMED;
  return `lines ${numbers.slice(0, PLACES_NAMED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
};

/** For a text in parts: one part matches in several places. `anchor` is a part with a single place. */
export const sayAmbiguousPart = (
  file: SearchedFile,
  name: string,
  places: readonly Span[],
  anchor: Span & { readonly isFirst: boolean },
): string => {
  const first = file.lineNumberAt(anchor.start) - 1;
  const last = Math.max(first, file.lineNumberAt(Math.max(anchor.start, anchor.end - 1)) - 1);
  const [from, to] = anchor.isFirst
    ? [first, Math.min(lastIndexOf(file), first + SHOWN_LINES_MAX - 1)]
    : [Math.max(0, last - SHOWN_LINES_MAX + 1), last];
  return [
    `${name}.oldText can be read in more than one way: a part of it, before or behind a marker, is in the file more than once (${nameLines(file, places)}).`,
    `Add lines to that part until it is unique, or write all lines out. ${anchor.isFirst ? 'It begins at' : 'It goes on to'} ${numbersOf(first, last)}:`,
    showLines(file, from, to, []),
  ].join('\n');
};

/** The text matches in several places. `exact`: without tolerated differences. */
export const sayAmbiguous = (
  file: SearchedFile,
  name: string,
  places: readonly Span[],
  exact: boolean,
): string => {
  const named = nameLines(file, places);
  const how = exact ? '' : ', if differences in white space and the like are overlooked';
  const way = exact ? ', or set replaceAll' : ', exactly as they are';
  const some = places.slice(0, PLACES_SHOWN);
  const shown = some.map((place) => showPlace(file, place, Math.max(8, SHOWN_LINES_MAX / some.length)));
  return `${name}.oldText is in the file more than once (${named})${how}. Add lines around it until it is unique${way}.\n${shown.join('\n--\n')}`;
};

/** The text matches nowhere: shows the nearest lines and the first difference. `readings` has at least one. */
export const sayMissing = (
  file: SearchedFile,
  name: string,
  readings: readonly string[],
  newText: string,
): string => {
  const missing = `${name}.oldText is not in the file.`;
  const ranked = readings
    .map((text) => ({ text, nearest: nearestLines(file, text) }))
    .sort((a, b) => (b.nearest?.votes ?? 0) - (a.nearest?.votes ?? 0));
  const known =
    newText.trim().length >= KNOWN_CHARACTERS_MIN ? textOccurrences(file.text, newText, 1)[0] : undefined;
  const done =
    known === undefined
      ? ''
      : ` Its newText is already there (${sayPlace(file, { start: known, end: known + newText.length })}).`;
  const [best] = ranked;
  if (best === undefined || best.nearest === null) {
    return `${missing}${done} Nothing in the file resembles it. ${beginningOf(file)}`;
  }
  const { first, last } = best.nearest;
  const given = linesOf(best.text.endsWith('\n') ? best.text.slice(0, -1) : best.text).map(
    ({ text }) => text,
  );
  const end = Math.min(last, lastIndexOf(file));
  const from = Math.min(first, end);
  return [
    `${missing}${done} The nearest place is ${numbersOf(from, end)}:`,
    showLines(file, from, end, given),
    `The first difference: ${firstDifference(file.lines, from, given)}.`,
  ].join('\n');
};

/** The place is known, but the new text is ambiguous. */
export const sayUnclear = (file: SearchedFile, why: string, place: Span): string =>
  `${why} It is about ${sayPlace(file, place)}:\n${showPlace(file, place, SHOWN_LINES_MAX)}`;
