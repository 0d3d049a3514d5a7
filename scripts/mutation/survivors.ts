/** Mutants that no test catches, and why none can or should. A mutant is known by its texts, wherever its line moves. */

export type Survivor = {
  readonly file: string;
  readonly mutator: string;
  /** What stood there and what stood there instead, white space squeezed. */
  readonly was: string;
  readonly becomes: string;
  /** As many of the same in one file; 1 if left out. */
  readonly count?: number;
  readonly because: string;
};

export const survivors: readonly Survivor[] = [];
