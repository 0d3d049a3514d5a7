/**
 * What has changed in a file since the model saw it, and whether a place in it is still the same
 * one.
 */

import { diffArrays } from 'diff';
import type { ShownLines } from '../../machine/call.js';
import type { Span } from './find-places.js';
import { describeRanges, fileLines, splitLines, type TextLine } from './lines.js';

/** With more changed lines the texts are not compared. */
const CHANGED_LINES_MAX = 2_000;

export type ChangedLines = {
  /** Changed lines of the present text for people: `lines 3-5, 9`; empty if there are none. */
  readonly places: string;
  /** Whether each place consists of unchanged lines, and is the same one in both texts. */
  areSame(earlier: readonly Span[], now: readonly Span[]): boolean;
};

/** Compares two texts of a file; null if too much has changed. */
export const compareLines = (earlier: string, now: string): ChangedLines | null => {
  const earlierLines = splitLines(earlier);
  const nowLines = splitLines(now);
  const compared = pairLines(
    earlierLines.map((line) => withBreak(earlier, line)),
    nowLines.map((line) => withBreak(now, line)),
  );
  if (compared === null) return null;
  const { partners, changed } = compared;
  const isSame = (before: Span, after: Span): boolean => {
    const first = lineAt(earlierLines, before.start);
    const last = lineAt(earlierLines, before.end);
    const from = lineAt(nowLines, after.start);
    const to = lineAt(nowLines, after.end);
    if (last - first !== to - from) return false;
    // a place that ends where a line begins does not touch that line
    const until = before.end === earlierLines[last]?.start && last > first ? last - 1 : last;
    for (let line = first; line <= until; line++)
      if (partners[line] !== from + line - first) return false;
    const startsAlike =
      before.start - (earlierLines[first]?.start ?? 0) ===
      after.start - (nowLines[from]?.start ?? 0);
    return startsAlike && before.end - before.start === after.end - after.start;
  };
  return {
    places: describeRanges(changed),
    areSame: (before, after) =>
      before.length === after.length &&
      before.every((span, index) => {
        const other = after[index];
        return other !== undefined && isSame(span, other);
      }),
  };
};

/**
 * Lines that the model knows of `earlier`, as lines of `now`, which this session has made of it:
 * what it put beside them is known, too. None if too much has changed.
 */
export const moveLines = (
  lines: readonly ShownLines[],
  earlier: string,
  now: string,
): readonly ShownLines[] => {
  const before = fileLines(earlier);
  const after = fileLines(now);
  if (lines.every(({ first, last }) => first === 1 && last === undefined)) return lines;
  const partners = pairLines(before, after)?.partners;
  if (partners === undefined) return [];
  const isSame = (line: number): boolean => partners[line] !== -1;
  return lines.flatMap(({ by, first, last = before.length }) => {
    let [above, below] = [first - 2, last]; // the lines beside the range, as indices
    while (above >= 0 && !isSame(above)) above -= 1;
    while (below < before.length && !isSame(below)) below += 1;
    const from = above < 0 ? 1 : (partners[above] ?? 0) + 2;
    const to = below >= before.length ? after.length : (partners[below] ?? 0);
    return to < from ? [] : [{ by, first: from, last: to }];
  });
};

type Compared = {
  /** For each line of the earlier text the index of the same line now; -1 for a changed one. */
  readonly partners: Int32Array;
  /** Ranges of changed lines now, from 1. A range of removed lines is the line before them. */
  readonly changed: readonly (readonly [first: number, last: number])[];
};

/** A line with its line break. */
const withBreak = (text: string, { start, next }: TextLine): string => text.slice(start, next);

/** Which lines of both texts are the same; null if too much has changed. */
const pairLines = (earlier: readonly string[], now: readonly string[]): Compared | null => {
  const parts = diffArrays([...earlier], [...now], { maxEditLength: CHANGED_LINES_MAX });
  if (parts === undefined) return null;
  const partners = new Int32Array(earlier.length).fill(-1);
  const changed: (readonly [number, number])[] = [];
  let before = 0;
  let after = 0;
  for (const [index, { added, removed, value }] of parts.entries()) {
    if (removed) {
      before += value.length;
      const isReplaced = parts[index + 1]?.added === true || parts[index - 1]?.added === true;
      if (!isReplaced) changed.push([after, after]);
    } else if (added) {
      changed.push([after + 1, after + value.length]);
      after += value.length;
    } else {
      for (let at = 0; at < value.length; at++) partners[before + at] = after + at;
      before += value.length;
      after += value.length;
    }
  }
  return { partners, changed };
};

/** Index of the line that holds an offset. */
const lineAt = (lines: readonly TextLine[], offset: number): number => {
  const index = lines.findIndex(({ next }) => offset < next);
  return index < 0 ? lines.length - 1 : index;
};
