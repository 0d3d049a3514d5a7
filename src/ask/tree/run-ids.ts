/**
 * Names of runs: the root is `n0`; a child is named by the cell that asked for it, the sub-call and the slot, both from
 * 1: `n0.c2.1.3`. So a name holds all of its ancestors, also of runs that are gone.
 */

export const ROOT = 'n0';

/** A child adds three words to its parent's name. */
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
