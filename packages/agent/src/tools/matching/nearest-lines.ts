import type { SearchedFile } from './searched-file.js';
import { keyOf, linesOf } from './text-lines.js';

/**
 * Finds the lines that a missing text most likely meant. For messages only, never for a change.
 *
 * Lines of the text that the file contains vote for the start of the text, and so do its words; if there are none, any
 * three characters in a row. Rare ones have more weight. One pass over the file, and bounded work per line of the text.
 */

/** Line indexes from 0; `last` is included. */
export type NearestLines = { readonly first: number; readonly last: number; readonly votes: number };

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
export const nearestLines = (file: SearchedFile, text: string): NearestLines | null => {
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
