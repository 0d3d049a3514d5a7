/** Messages for refused edits. They let the model correct the edit without reading the file again. */

import { type SearchedFile, type Span, textOccurrences } from './find-places.js';
import { foldTypography, indentOf, keyOf, linesOf, type TextLine, trimEndBlanks } from './lines.js';

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

/**
 * Finds the lines that a missing text most likely meant. For messages only, never for a change.
 *
 * Lines of the text that the file contains vote for the start of the text, and so do its words; if there are none, any
 * three characters in a row. Rare ones have more weight. One pass over the file, and bounded work per line of the text.
 */

/** Line indexes from 0; `last` is included. */
type NearestLines = { readonly first: number; readonly last: number; readonly votes: number };

const COMPARED = { typography: 'folded', indentation: 'ignored' } as const;
const WORD = /[\p{L}\p{N}_$]{2,}/gu;
/** Lines and words with more places say nothing about the position. */
const PLACES_MAX = 64;
const SOUGHT_LINES_MAX = 2_000;
const SOUGHT_PARTS_MAX = 4_000;
/** Limit on the compared characters of a very long line. */
const CHARACTERS_MAX = 4_000;
/** Distance in lines from the best vote, for omitted or added lines. */
const DRIFT_MAX = 20;
const PART_WEIGHT = 0.3;

/** By content: the lines of the text with it, and the places in the file. */
type Sightings = Map<string, { readonly sought: number[]; readonly found: number[]; count: number }>;

const addSought = (sightings: Sightings, key: string, index: number, most: number): void => {
  const known = sightings.get(key);
  if (known !== undefined) {
    if (known.sought.length < PLACES_MAX) known.sought.push(index);
  } else if (sightings.size < most) sightings.set(key, { sought: [index], found: [], count: 0 });
};

const addFound = (sightings: Sightings, key: string, index: number): void => {
  const known = sightings.get(key);
  if (known === undefined) return;
  known.count += 1;
  if (known.found.length < PLACES_MAX) known.found.push(index);
};

const wordsOf = (line: string): readonly string[] => line.slice(0, CHARACTERS_MAX).match(WORD) ?? [];

/** Votes for the line where the text would begin. Content with more than so many places does not vote. */
const vote = (
  votes: Map<number, number>,
  sightings: Sightings,
  weigh: (key: string) => number,
  countMax = PLACES_MAX,
): void => {
  for (const [key, { sought, found, count }] of sightings) {
    if (count === 0 || count > countMax) continue;
    const weight = weigh(key) / (count * sought.length);
    for (const at of found) {
      for (const index of sought) votes.set(at - index, (votes.get(at - index) ?? 0) + weight);
    }
  }
};

const best = (votes: ReadonlyMap<number, number>): readonly [begin: number, votes: number] | null => {
  let winner: readonly [number, number] | null = null;
  for (const [begin, count] of votes) {
    if (winner === null || count > winner[1] || (count === winner[1] && begin < winner[0]))
      winner = [begin, count];
  }
  return winner;
};

/** The place of a line that is nearest to the expected one, if one is close enough. */
const nearTo = (found: readonly number[] | undefined, expected: number): number | null => {
  let near: number | null = null;
  for (const at of found ?? []) {
    if (Math.abs(at - expected) > DRIFT_MAX) continue;
    if (near === null || Math.abs(at - expected) < Math.abs(near - expected)) near = at;
  }
  return near;
};

/** All substrings of three characters. */
const triplesOf = (line: string): readonly string[] => {
  const cut = line.slice(0, CHARACTERS_MAX);
  return Array.from({ length: Math.max(0, cut.length - 2) }, (_, at) => cut.slice(at, at + 3));
};

/** Where the file contains parts of the given lines. */
const sightingsOf = (
  sought: readonly string[],
  file: SearchedFile,
  partsOf: (line: string) => readonly string[],
  most: number,
): Sightings => {
  const sightings: Sightings = new Map();
  for (const [index, line] of sought.entries()) {
    for (const part of partsOf(line)) addSought(sightings, part, index, most);
  }
  if (sightings.size === 0) return sightings;
  for (const [index, { text }] of file.lines.entries()) {
    for (const part of partsOf(text)) addFound(sightings, part, index);
  }
  return sightings;
};

const wholeOf = (line: string): readonly string[] => {
  const key = keyOf(line, COMPARED);
  return key === '' ? [] : [key];
};

/** The nearest lines; null if the file contains nothing of the text. */
const nearestLines = (file: SearchedFile, text: string): NearestLines | null => {
  const body = linesOf(text.endsWith('\n') ? text.slice(0, -1) : text).slice(0, SOUGHT_LINES_MAX);
  const sought = body.map((line) => line.text);
  const wholeLines = sightingsOf(sought, file, wholeOf, SOUGHT_LINES_MAX);
  const votes = new Map<number, number>();
  vote(votes, wholeLines, (line) => Math.min(line.length, 40));
  vote(votes, sightingsOf(sought, file, wordsOf, SOUGHT_PARTS_MAX), () => PART_WEIGHT);
  if (votes.size === 0)
    vote(votes, sightingsOf(sought, file, triplesOf, SOUGHT_PARTS_MAX), () => PART_WEIGHT);
  if (votes.size === 0) vote(votes, wholeLines, (line) => line.length, Number.POSITIVE_INFINITY);
  const winner = best(votes);
  if (winner === null) return null;
  const [begin, count] = winner;
  const placed = sought.flatMap((line, index) => {
    const at = nearTo(wholeLines.get(keyOf(line, COMPARED))?.found, begin + index);
    return at === null ? [] : [{ index, at }];
  });
  const [top] = placed;
  const bottom = placed.at(-1);
  const first = top === undefined ? begin : top.at - top.index;
  const last =
    bottom === undefined ? begin + sought.length - 1 : bottom.at + sought.length - 1 - bottom.index;
  const end = file.lines.length - 1;
  const from = Math.min(Math.max(first, 0), end);
  return { first: from, last: Math.min(Math.max(last, from), end), votes: count };
};

/** Describes the first difference between a text and the nearest lines of the file. */

/** How many lines ahead to look for a line that the other side lacks. */
const AHEAD_MAX = 30;
const QUOTED_MAX = 60;

const NAMES: Readonly<Record<string, string>> = {
  '\u00a0': 'no-break blank',
  '\u2018': 'left single quote',
  '\u2019': 'right single quote',
  '\u201c': 'left double quote',
  '\u201d': 'right double quote',
  '\u2013': 'en dash',
  '\u2014': 'em dash',
  '\u200b': 'zero width blank',
  '\ufeff': 'byte order mark',
  '\r': 'carriage return',
};

const codeOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

const counted = (count: number, noun: string): string => (count === 1 ? `a ${noun}` : `${count} ${noun}s`);

/** Spaces and tabs in order: `a tab and 2 blanks`. */
const sayBlanks = (text: string): string => {
  const runs = text.match(/\t+| +|[^\t ]/g) ?? [];
  const said = runs.map((run) => {
    if (run.startsWith('\t')) return counted(run.length, 'tab');
    if (run.startsWith(' ')) return counted(run.length, 'blank');
    return `a ${NAMES[run] ?? 'character'} (${codeOf(run)})`;
  });
  return said.length > 4 ? `${said.slice(0, 4).join(', ')} and more` : said.join(' and ');
};

const isBlank = (text: string): boolean => trimEndBlanks(foldTypography(text)) === '';

/**
 * A piece of a line with its blanks and special characters named. Long pieces are not cut, because the redactor would not
 * recognise half of a secret.
 */
const sayPiece = (text: string): string => {
  if (text === '') return 'nothing';
  if (isBlank(text)) return sayBlanks(text);
  if (text.length > QUOTED_MAX) return `${text.length} characters`;
  const [special] = text.match(/[^\u0020-\u007e]/u) ?? [];
  const name = special === undefined ? '' : ` (${NAMES[special] ?? codeOf(special)})`;
  return `\`${text}\`${special !== undefined && text.length <= 12 ? name : ''}`;
};

/** Characters that end a word. Pieces are never cut inside a word, and so never inside a key or token. */
const WORD_END = /[\s"'`,;(){}<>[\]]/;

type Pieces = { readonly column: number; readonly file: string; readonly given: string };

/** The differing parts of two lines, extended to whole words. */
const differing = (file: string, given: string): Pieces => {
  const most = Math.min(file.length, given.length);
  let before = 0;
  while (before < most && file[before] === given[before]) before += 1;
  let after = 0;
  while (after < most - before && file.at(-1 - after) === given.at(-1 - after)) after += 1;
  const column = before + 1;
  const isWord = (line: string, at: number): boolean =>
    at >= 0 && at < line.length && !WORD_END.test(line[at] ?? '');
  const begins = isWord(file, before) || isWord(given, before);
  const ends = isWord(file, file.length - 1 - after) || isWord(given, given.length - 1 - after);
  if (begins) while (isWord(file, before - 1)) before -= 1;
  if (ends) while (isWord(file, file.length - after)) after -= 1;
  return {
    column,
    file: file.slice(before, file.length - after),
    given: given.slice(before, given.length - after),
  };
};

/** Describes the difference between the given line and the file's line; null if they are equal. */
const lineDifference = (file: TextLine, number: number, given: string): string | null => {
  if (file.text === given) return null;
  const [fileIndent, givenIndent] = [indentOf(file.text), indentOf(given)];
  const [fileBody, givenBody] = [file.text.slice(fileIndent.length), given.slice(givenIndent.length)];
  if (trimEndBlanks(fileBody) === trimEndBlanks(givenBody) && fileIndent !== givenIndent) {
    const [there, wanted] = [fileIndent, givenIndent].map((one) =>
      one === '' ? 'no blanks' : sayBlanks(one),
    );
    return `line ${number}: the file has ${there} at its beginning, oldText has ${wanted}`;
  }
  const pieces = differing(trimEndBlanks(fileBody), trimEndBlanks(givenBody));
  if (pieces.file === '' && pieces.given === '') {
    const [there, wanted] = [file.text, given].map((line) => line.slice(trimEndBlanks(line).length));
    return `line ${number}: the file has ${sayPiece(there ?? '')} at its end, oldText has ${sayPiece(wanted ?? '')}`;
  }
  const column = fileIndent.length + pieces.column;
  return `line ${number}, column ${column}: the file has ${sayPiece(pieces.file)}, oldText has ${sayPiece(pieces.given)}`;
};

/** The line without tolerated differences, which are never the reason for a refusal. */
const plain = (line: string): string => foldTypography(trimEndBlanks(line)).trim();

const distanceTo = (lines: readonly string[], from: number, wanted: string): number => {
  for (let ahead = 1; ahead <= AHEAD_MAX && from + ahead < lines.length; ahead++) {
    if (lines[from + ahead] === wanted) return ahead;
  }
  return Number.POSITIVE_INFINITY;
};

const quoteLine = (line: string): string => (line.trim() === '' ? 'an empty line' : sayPiece(line.trim()));

type Compared = {
  readonly file: readonly TextLine[];
  readonly given: readonly string[];
  readonly offset: number;
};

/** Describes a mismatch: a line that only one side has, or different content. */
const mismatch = ({ file, given, offset }: Compared, at: number, index: number): string => {
  const [there, wanted] = [file[at], given[index]];
  const number = offset + at + 1;
  if (there === undefined)
    return `line ${number} is behind the end of the file, oldText goes on with ${quoteLine(wanted ?? '')}`;
  const fileKeys = file.map(({ text }) => plain(text));
  const givenKeys = given.map(plain);
  const bothGoOn =
    fileKeys[at + 1] !== undefined && fileKeys[at + 1] === givenKeys[index + 1] && fileKeys[at + 1] !== '';
  const missing = distanceTo(fileKeys, at, givenKeys[index] ?? '');
  const added = distanceTo(givenKeys, index, fileKeys[at] ?? '');
  if (!bothGoOn && missing < Number.POSITIVE_INFINITY && missing <= added && givenKeys[index] !== '') {
    const lines = missing === 1 ? `line ${number}` : `lines ${number}-${number + missing - 1}`;
    return `${lines} of the file: oldText does not have ${missing === 1 ? quoteLine(there.text) : `these ${missing} lines`}`;
  }
  if (!bothGoOn && added < Number.POSITIVE_INFINITY && fileKeys[at] !== '') {
    return `before line ${number} oldText has ${quoteLine(wanted ?? '')}, which is not there in the file`;
  }
  return lineDifference(there, number, wanted ?? '') ?? `line ${number} differs`;
};

/**
 * The first difference in content; if there is none, the first one in blanks. `first`: index of the file's line where the
 * text would begin. Line numbers in the message count from 1.
 */
const firstDifference = (lines: readonly TextLine[], first: number, given: readonly string[]): string => {
  const file = lines.slice(first, first + given.length + AHEAD_MAX);
  for (const [index, wanted] of given.entries()) {
    const there = file[index];
    const [fileKey, key] = [there === undefined ? null : plain(there.text), plain(wanted)];
    if (fileKey === key) continue;
    const isEdge =
      index === 0 ? fileKey?.endsWith(key) : index === given.length - 1 && fileKey?.startsWith(key);
    if (isEdge === true && key !== '') continue;
    return mismatch({ file, given, offset: first }, index, index);
  }
  for (const [index, wanted] of given.entries()) {
    const there = file[index];
    const difference = there === undefined ? null : lineDifference(there, first + index + 1, wanted);
    if (difference !== null) return difference;
  }
  return `line ${first + 1} is where it would begin`;
};
