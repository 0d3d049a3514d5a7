/**
 * Messages for refused edits. They let the model correct the edit without reading the file again.
 * "Requested" is what oldText says, in contrast to what the file has.
 *
 * From top to bottom: the messages; lines of the file; the nearest lines, found by votes of the
 * text's lines and words; and the first difference, with the words that describe it.
 */

import { findOccurrences, type SearchedFile, type Span } from './find-places.js';
import {
  commonEnds,
  foldTypography,
  getIndent,
  isEmptyLine,
  lineKey,
  lineTexts,
  type TextLine,
  trimEndBlanks,
} from './lines.js';

const SHOWN_LINES_MAX = 60;
const SHOWN_CHARACTERS_MAX = 6_000;
const LINE_CHARACTERS_MAX = 400;
const CONTEXT_LINES = 2;
const PLACES_SHOWN = 6;
const PLACES_NAMED = 40;
/** A shorter new text may be in the file by chance. */
const KNOWN_CHARACTERS_MIN = 12;

/**
 * The text matches nowhere: shows the nearest lines and the first difference. `readings` has at
 * least one.
 */
export const explainMissing = (
  file: SearchedFile,
  what: string,
  readings: readonly string[],
  newText: string,
): string => {
  // where the new text is in the file already
  const known =
    newText.trim().length >= KNOWN_CHARACTERS_MIN
      ? findOccurrences(file.text, newText, 1)[0]
      : undefined;
  const end = (known ?? 0) + newText.length;
  const message =
    known === undefined
      ? what
      : `${what} Its newText is already there (${describePlace(file, { start: known, end })}).`;
  const [best] = readings
    .map((text) => ({ text, nearest: findNearestLines(file, text) }))
    .sort((a, b) => (b.nearest?.votes ?? 0) - (a.nearest?.votes ?? 0));
  if (best === undefined || best.nearest === null) {
    const beginning =
      file.text === ''
        ? 'The file is empty.'
        : `The file begins like this:\n${showLines(file, 0, Math.min(4, lastIndex(file)), [])}`;
    return `${message} Nothing in the file resembles it. ${beginning}`;
  }
  const requested = lineTexts(best.text.replace(/\n$/, ''));
  const last = Math.min(best.nearest.last, lastIndex(file));
  const first = Math.min(best.nearest.first, last);
  return [
    `${message} The nearest place is ${describeLines(first, last)}:`,
    showLines(file, first, last, requested),
    `The first difference: ${findFirstDifference(file.lines, first, requested)}.`,
  ].join('\n');
};

/** The text matches in several places. `exact`: without tolerated differences. */
export const explainAmbiguous = (
  file: SearchedFile,
  name: string,
  places: readonly Span[],
  exact: boolean,
): string => {
  const how = exact ? '' : ', if differences in white space and the like are overlooked';
  const advice = exact ? ', or set replaceAll' : ', exactly as they are';
  const some = places.slice(0, PLACES_SHOWN);
  const shown = some.map((place) => showPlace(file, place, SHOWN_LINES_MAX / some.length));
  return (
    `${name}.oldText is in the file more than once (${nameLines(file, places)})${how}. Add ` +
    `lines around it until it is unique${advice}.\n${shown.join('\n--\n')}`
  );
};

/**
 * For a text in parts: one part matches in several places. `anchor` is a part with a single place.
 */
export const explainAmbiguousPart = (
  file: SearchedFile,
  name: string,
  places: readonly Span[],
  anchor: Span & { readonly isFirstPart: boolean },
): string => {
  const [first, last] = lineRange(file, anchor);
  const [from, to] = anchor.isFirstPart
    ? [first, Math.min(lastIndex(file), first + SHOWN_LINES_MAX - 1)]
    : [Math.max(0, last - SHOWN_LINES_MAX + 1), last];
  return [
    `${name}.oldText can be read in more than one way: a part of it, before or behind a ` +
      `marker, is in the file more than once (${nameLines(file, places)}).`,
    'Add lines to that part until it is unique, or write all lines out. ' +
      `${anchor.isFirstPart ? 'It begins at' : 'It goes on to'} ${describeLines(first, last)}:`,
    showLines(file, from, to, []),
  ].join('\n');
};

/** The place is known, but the new text is ambiguous. */
export const explainUnclear = (file: SearchedFile, why: string, place: Span): string =>
  `${why} It is about ${describePlace(file, place)}:\n${showPlace(file, place, SHOWN_LINES_MAX)}`;

/** `line 3` or `lines 3-5`. */
export const describePlace = (file: SearchedFile, { start, end }: Span): string => {
  const first = file.lineNumberAt(start);
  const behind = file.lineNumberAt(end);
  const last =
    end > start && behind > first && file.lines[behind - 1]?.start === end ? behind - 1 : behind;
  return describeLines(first - 1, last - 1);
};

const describeLines = (first: number, last: number): string =>
  first === last ? `line ${first + 1}` : `lines ${first + 1}-${last + 1}`;

// ---- Lines of the file ----

/** Indexes of the first and the last line. */
const lineRange = (
  file: SearchedFile,
  { start, end }: Span,
): readonly [first: number, last: number] => {
  const first = file.lineNumberAt(start) - 1;
  return [first, Math.max(first, file.lineNumberAt(Math.max(start, end - 1)) - 1)];
};

/** Index of the last line, without the empty one after the last line break. */
const lastIndex = (file: SearchedFile): number =>
  Math.max(0, file.lines.length - (file.text.endsWith('\n') ? 2 : 1));

const nameLines = (file: SearchedFile, places: readonly Span[]): string => {
  const numbers = places.map(({ start }) => file.lineNumberAt(start));
  const rest = numbers.length - PLACES_NAMED;
  return `lines ${numbers.slice(0, PLACES_NAMED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
};

/** A place with the lines around it. A long place shows its start and its end within `lines`. */
const showPlace = (file: SearchedFile, place: Span, lines: number): string => {
  const [first, last] = lineRange(file, place);
  const from = Math.max(0, first - CONTEXT_LINES);
  const to = Math.min(lastIndex(file), last + CONTEXT_LINES);
  if (to - from < lines) return showLines(file, from, to, []);
  const head = showLines(file, from, first + 1, []);
  const tail = showLines(file, last - 1, to, []);
  return `${head}\n[lines ${first + 3}-${last - 1} are not shown]\n${tail}`;
};

/**
 * Lines with numbers as `read` shows them. Indexes from 0, `last` included. Long lines are cut
 * around the difference.
 */
const showLines = (
  file: SearchedFile,
  first: number,
  last: number,
  requested: readonly string[],
): string => {
  const shown: string[] = [];
  let room = SHOWN_CHARACTERS_MAX;
  for (let index = first; index <= last; index++) {
    const text = file.lines[index]?.text ?? '';
    const line = showLine(text, index + 1, commonEnds(text, requested[index - first] ?? '')[0]);
    room -= line.length + 1;
    if (room < 0 || shown.length === SHOWN_LINES_MAX)
      return [...shown, `[lines ${index + 1}-${last + 1} are not shown]`].join('\n');
    shown.push(line);
  }
  return shown.join('\n');
};

/**
 * Words at a cut. They are omitted: the redactor, which hides keys and tokens in what the model
 * gets, can't recognise a part of one.
 */
const [OPEN_HEAD, OPEN_TAIL] = [/^[^\s"'`,;(){}<>[\]]+/, /[^\s"'`,;(){}<>[\]]+$/];

const showLine = (text: string, number: number, from: number): string => {
  if (text.length <= LINE_CHARACTERS_MAX) return `${number}\t${text}`;
  const start = Math.max(
    0,
    Math.min(from - LINE_CHARACTERS_MAX / 2, text.length - LINE_CHARACTERS_MAX),
  );
  const part = text.slice(start, start + LINE_CHARACTERS_MAX);
  const head = start === 0 ? '' : (OPEN_HEAD.exec(part)?.[0] ?? '');
  const rest = part.slice(head.length);
  const shown = start + LINE_CHARACTERS_MAX >= text.length ? rest : rest.replace(OPEN_TAIL, '');
  const first = start + head.length + 1;
  return `${number}\t[characters ${first}-${first + shown.length - 1} of ${text.length}] ${shown}`;
};

// ---- The nearest lines ----

/** How lines are compared here. */
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
/** The vote of a word; a whole line votes with its length. */
const PART_WEIGHT = 0.3;

/** Line indexes from 0; `last` is included. */
type NearestLines = { readonly first: number; readonly last: number; readonly votes: number };

/**
 * The lines that a missing text most likely meant; null if the file contains nothing of it. For
 * messages only, never for a change.
 *
 * Lines of the text that the file contains vote for the start of the text, and so do its words; if
 * there are none, any three characters in a row. Rare ones have more weight. One pass over the
 * file, and bounded work per line of the text.
 */
const findNearestLines = (file: SearchedFile, text: string): NearestLines | null => {
  const sought = lineTexts(text.replace(/\n$/, '')).slice(0, SOUGHT_LINES_MAX);
  const wholeLines = collectSightings(sought, file, wholeLine, SOUGHT_LINES_MAX);
  const votes = new Map<number, number>();
  vote(votes, wholeLines, (line) => Math.min(line.length, 40)); // a very long line must not decide
  const voteByParts = (split: (line: string) => readonly string[]): void =>
    vote(votes, collectSightings(sought, file, split, SOUGHT_PARTS_MAX), () => PART_WEIGHT);
  voteByParts(wordsIn);
  if (votes.size === 0) voteByParts(triplesIn);
  // at last also lines that stand in very many places
  if (votes.size === 0) vote(votes, wholeLines, (line) => line.length, Number.POSITIVE_INFINITY);
  let winner: readonly [begin: number, count: number] | null = null;
  for (const [begin, count] of votes) {
    const isBetter =
      winner === null || count > winner[1] || (count === winner[1] && begin < winner[0]);
    if (isBetter) winner = [begin, count];
  }
  if (winner === null) return null;
  const [begin, count] = winner;
  const placed = sought.flatMap((line, index) => {
    const at = nearestTo(begin + index, wholeLines.get(lineKey(line, COMPARED))?.places ?? []);
    return at === null ? [] : [{ index, at }];
  });
  const [top = { at: begin, index: 0 }] = placed;
  const bottom = placed.at(-1) ?? { at: begin, index: 0 };
  const end = file.lines.length - 1;
  const first = Math.min(Math.max(top.at - top.index, 0), end);
  const last = bottom.at + sought.length - 1 - bottom.index;
  return { first, last: Math.min(Math.max(last, first), end), votes: count };
};

/**
 * By content (a line, a word): the lines of the text that have it, its places in the file, and how
 * many places there are, also beyond the limit.
 */
type Sightings = Map<
  string,
  { readonly sought: number[]; readonly places: number[]; count: number }
>;

/** Where the file contains parts of the requested lines. */
const collectSightings = (
  sought: readonly string[],
  file: SearchedFile,
  split: (line: string) => readonly string[],
  most: number,
): Sightings => {
  const sightings: Sightings = new Map();
  for (const [index, line] of sought.entries()) {
    for (const part of split(line)) {
      const known = sightings.get(part);
      if (known === undefined) {
        if (sightings.size < most) sightings.set(part, { sought: [index], places: [], count: 0 });
      } else if (known.sought.length < PLACES_MAX) known.sought.push(index);
    }
  }
  for (const [index, { text }] of sightings.size === 0 ? [] : file.lines.entries()) {
    for (const part of split(text)) {
      const known = sightings.get(part);
      if (known === undefined) continue;
      known.count += 1;
      if (known.places.length < PLACES_MAX) known.places.push(index);
    }
  }
  return sightings;
};

/** A line as one piece of content; none for an empty line. */
const wholeLine = (line: string): readonly string[] => {
  const key = lineKey(line, COMPARED);
  return key === '' ? [] : [key];
};

const wordsIn = (line: string): readonly string[] =>
  line.slice(0, CHARACTERS_MAX).match(WORD) ?? [];

/** All substrings of three characters. */
const triplesIn = (line: string): readonly string[] => {
  const cut = line.slice(0, CHARACTERS_MAX);
  return Array.from({ length: Math.max(0, cut.length - 2) }, (_, at) => cut.slice(at, at + 3));
};

/**
 * Votes for the line where the text would begin: each place of a content says where. Content with
 * more than `countMax` places does not vote.
 */
const vote = (
  votes: Map<number, number>,
  sightings: Sightings,
  weigh: (key: string) => number,
  countMax = PLACES_MAX,
): void => {
  for (const [key, { sought, places, count }] of sightings) {
    if (count === 0 || count > countMax) continue;
    const weight = weigh(key) / (count * sought.length);
    for (const at of places) {
      for (const index of sought) votes.set(at - index, (votes.get(at - index) ?? 0) + weight);
    }
  }
};

/** The place that is nearest to the expected one, if one is close enough. */
const nearestTo = (expected: number, places: readonly number[]): number | null => {
  let nearest: number | null = null;
  for (const at of places) {
    if (Math.abs(at - expected) > DRIFT_MAX) continue;
    if (nearest === null || Math.abs(at - expected) < Math.abs(nearest - expected)) nearest = at;
  }
  return nearest;
};

// ---- The first difference ----

/** How many lines ahead to look for a line that the other side lacks. */
const AHEAD_MAX = 30;

/**
 * The first difference in content; if there is none, the first one in blanks. `first`: index of the
 * file's line where the text would begin. Line numbers in the message count from 1.
 */
const findFirstDifference = (
  lines: readonly TextLine[],
  first: number,
  requested: readonly string[],
): string => {
  const file = lines.slice(first, first + requested.length + AHEAD_MAX).map(({ text }) => text);
  const fileKeys = file.map(toleratedKey);
  const keys = requested.map(toleratedKey);
  for (const [index, key] of keys.entries()) {
    const there = fileKeys[index];
    if (there === key) continue;
    // the text may begin or end within a line
    const isEdge =
      index === 0 ? there?.endsWith(key) : index === keys.length - 1 && there?.startsWith(key);
    if (isEdge !== true || key === '')
      return describeMismatch(file, requested, index, first + index + 1);
  }
  for (const [index, line] of requested.entries()) {
    const there = file[index];
    // not where the text begins or ends within a line
    if (there === undefined || fileKeys[index] !== keys[index]) continue;
    const difference = describeLine(there, first + index + 1, line);
    if (difference !== null) return difference;
  }
  return `line ${first + 1} is where it would begin`;
};

/** The line without tolerated differences, which are never the reason for a refusal. */
const toleratedKey = (line: string): string => foldTypography(trimEndBlanks(line)).trim();

/**
 * Describes a mismatch: a line that only one side has, or different content. `number`: of the
 * file's line.
 */
const describeMismatch = (
  file: readonly string[],
  requested: readonly string[],
  index: number,
  number: number,
): string => {
  const [there, line = ''] = [file[index], requested[index]];
  if (there === undefined)
    return `line ${number} is behind the end of the file, oldText goes on with ${quoteLine(line)}`;
  const fileKeys = file.map(toleratedKey);
  const keys = requested.map(toleratedKey);
  const [fileKey = '', key = ''] = [fileKeys[index], keys[index]];
  const next = fileKeys[index + 1];
  // the next lines are equal: this one was changed, and none was added or removed
  const bothGoOn = next !== undefined && next === keys[index + 1] && next !== '';
  const missing = distanceTo(key, fileKeys, index);
  const added = distanceTo(fileKey, keys, index);
  if (!bothGoOn && missing < Number.POSITIVE_INFINITY && missing <= added && key !== '') {
    const lines = describeLines(number - 1, number + missing - 2);
    return (
      `${lines} of the file: oldText does not have ` +
      `${missing === 1 ? quoteLine(there) : `these ${missing} lines`}`
    );
  }
  if (!bothGoOn && added < Number.POSITIVE_INFINITY && fileKey !== '')
    return `before line ${number} oldText has ${quoteLine(line)}, which is not there in the file`;
  return describeLine(there, number, line) ?? `line ${number} differs`;
};

/** How many lines ahead the key stands; infinite if not within AHEAD_MAX. */
const distanceTo = (key: string, keys: readonly string[], from: number): number => {
  const at = keys.slice(from + 1, from + 1 + AHEAD_MAX).indexOf(key);
  return at < 0 ? Number.POSITIVE_INFINITY : at + 1;
};

/**
 * Describes the difference between the file's line and the requested line; null if they are equal.
 */
const describeLine = (file: string, number: number, requested: string): string | null => {
  if (file === requested) return null;
  const fileIndent = getIndent(file);
  const requestedIndent = getIndent(requested);
  const fileBody = trimEndBlanks(file.slice(fileIndent.length));
  const requestedBody = trimEndBlanks(requested.slice(requestedIndent.length));
  if (fileBody === requestedBody && fileIndent !== requestedIndent) {
    const [there, here] = [fileIndent, requestedIndent].map((one) =>
      one === '' ? 'no blanks' : describeBlanks(one),
    );
    return `line ${number}: the file has ${there} at its beginning, oldText has ${here}`;
  }
  if (fileBody === requestedBody) {
    const [there = '', here = ''] = [file, requested].map((line) =>
      line.slice(trimEndBlanks(line).length),
    );
    return (
      `line ${number}: the file has ${quotePiece(there)} at its end, oldText has ` +
      `${quotePiece(here)}`
    );
  }
  const pieces = differingWords(fileBody, requestedBody);
  const column = fileIndent.length + pieces.column;
  return (
    `line ${number}, column ${column}: the file has ${quotePiece(pieces.file)}, oldText has ` +
    `${quotePiece(pieces.requested)}`
  );
};

/**
 * Characters that end a word. Pieces are never cut inside a word, and so never inside a key or
 * token.
 */
const WORD_END = /[\s"'`,;(){}<>[\]]/;

/** The differing parts of two lines, extended to whole words. */
const differingWords = (file: string, requested: string) => {
  let [before, after] = commonEnds(file, requested);
  const column = before + 1;
  const isWord = (line: string, at: number): boolean =>
    at >= 0 && at < line.length && !WORD_END.test(line[at] ?? '');
  const begins = isWord(file, before) || isWord(requested, before);
  const ends =
    isWord(file, file.length - 1 - after) || isWord(requested, requested.length - 1 - after);
  if (begins) while (isWord(file, before - 1)) before -= 1;
  if (ends) while (isWord(file, file.length - after)) after -= 1;
  const cut = (line: string): string => line.slice(before, line.length - after);
  return { column, file: cut(file), requested: cut(requested) };
};

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

const quoteLine = (line: string): string =>
  line.trim() === '' ? 'an empty line' : quotePiece(line.trim());

/**
 * A piece of a line with its blanks and special characters named. Long pieces are not cut, because
 * the redactor would not recognise half of a secret.
 */
const quotePiece = (text: string): string => {
  if (text === '') return 'nothing';
  if (isEmptyLine(text)) return describeBlanks(text);
  if (text.length > QUOTED_MAX) return `${text.length} characters`;
  const [special] = text.match(/[^\u0020-\u007e]/u) ?? [];
  const name = special === undefined ? '' : ` (${NAMES[special] ?? codePoint(special)})`;
  return `\`${text}\`${text.length <= 12 ? name : ''}`;
};

const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Spaces and tabs in order: `a tab and 2 blanks`. */
const describeBlanks = (text: string): string => {
  const counted = (count: number, noun: string): string =>
    count === 1 ? `a ${noun}` : `${count} ${noun}s`;
  const runs = (text.match(/\t+| +|[^\t ]/g) ?? []).map((run) => {
    if (run.startsWith('\t')) return counted(run.length, 'tab');
    if (run.startsWith(' ')) return counted(run.length, 'blank');
    return `a ${NAMES[run] ?? 'character'} (${codePoint(run)})`;
  });
  return runs.length > 4 ? `${runs.slice(0, 4).join(', ')} and more` : runs.join(' and ');
};
