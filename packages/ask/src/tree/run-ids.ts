/**
 * Ids of runs. The root is `n0`. A child is named by its parent, the cell, the sub-call and the slot, counted from 1:
 * `n0.c2.1.3`. An id therefore contains the ids of all ancestors, even of ended runs.
 */

export const ROOT = 'n0';

/** Parts that a child adds to the id of its parent. */
const wordsPerDepth = 3;

/** The parent of a run; null for the root. */
export const parentOf = (node: string): string | null => {
  const words = node.split('.');
  return words.length <= wordsPerDepth ? null : words.slice(0, -wordsPerDepth).join('.');
};

/** The run itself, then its ancestors up to the root. */
export const lineageOf = (node: string): readonly string[] => {
  const parent = parentOf(node);
  return parent === null ? [node] : [node, ...lineageOf(parent)];
};
