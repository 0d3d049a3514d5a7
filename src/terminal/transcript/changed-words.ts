/**
 * Which words of a changed line differ from the line that it replaces. The library that compares them is loaded after
 * the first paint; before that, and where lines have little in common, nothing is marked.
 */
type Compare = typeof import('diff')['diffWordsWithSpace'];

let compare: Compare | null = null;

/** Resolves when `markWords` uses it; it comes with the program, so it does not fail. */
export const loadWordMarks = async (): Promise<void> => {
  compare ??= (await import('diff')).diffWordsWithSpace;
};

/** A part of a line, by its length in UTF-16 units; `marked`: the other line does not have it. */
export type MarkedPart = { readonly length: number; readonly marked: boolean };

export type MarkedPair = {
  readonly before: readonly MarkedPart[];
  readonly after: readonly MarkedPart[];
  /** The share of the longer line that both have, from 0 to 1. */
  readonly shared: number;
};

/** Longer lines are data or generated: comparing them costs time and shows nothing. */
const LENGTH_MAX = 400;
/** Lines that share less of their words are two lines, not one that was changed. */
const SHARED_MIN = 0.4;

/** The parts of both lines; null where they are not to be compared. */
export const markWords = (before: string, after: string): MarkedPair | null => {
  if (compare === null || Math.max(before.length, after.length) > LENGTH_MAX) return null;
  const parts = compare(before, after);
  const common = parts
    .filter(({ added, removed }) => !added && !removed)
    .reduce((sum, { value }) => sum + value.trim().length, 0);
  const longer = Math.max(before.trim().length, after.trim().length);
  const shared = longer === 0 ? 0 : common / longer;
  if (shared < SHARED_MIN) return null;
  const side = (other: 'added' | 'removed'): readonly MarkedPart[] =>
    parts
      .filter((part) => !part[other])
      .map(({ value, added, removed }) => ({ length: value.length, marked: added || removed }));
  return { before: side('added'), after: side('removed'), shared };
};
