import type { AskTypes } from '../../needs-recursive.js';
import { stepTree } from '../../recursive/tree.js';
import type { Flow } from '../flow.js';

/** Every event of a tree is journaled as it comes, and none is waited for. */
export const askFlow: Flow<AskTypes> = {
  step: stepTree,
  isVolatile: () => false,
  keep: (kept) => kept,
  holds: () => false,
  startOf: () => null,
};
