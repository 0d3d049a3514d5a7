/**
 * Marks the words in which a changed line differs from the line it replaces. The diff library is loaded after the first
 * paint. Until then nothing is marked, and neither are lines that have little in common.
 */
type Compare = typeof import('diff')['diffWordsWithSpace'];

let compare: Compare | null = null;

/** Resolves when `markWords` can compare. The library is part of the program, so loading doesn't fail. */
export const loadWordMarks = async (): Promise<void> => {
  compare ??= (await import('diff')).diffWordsWithSpace;
};

/** A part of a line; `length` in UTF-16 units. `marked`: the other line doesn't contain it. */
export type MarkedPart = { readonly length: number; readonly marked: boolean };

export type MarkedPair = {
  readonly before: readonly MarkedPart[];
  readonly after: readonly MarkedPart[];
  /** Share of the longer line that both lines have in common, from 0 to 1. */
  readonly shared: number;
};

/** Longer lines are data or generated code. Comparing them takes long and shows nothing. */
const LENGTH_MAX = 400;
/** Lines with less in common are two different lines, not one changed line. */
const SHARED_MIN = 0.4;

/** The parts of both lines; null if the lines should not be compared. */
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
