import type { Safe } from './safe-text.js';

/** Rows that are broken to the width of the screen already, and where the cursor stands among them. */
export type Frame = {
  readonly rows: readonly Safe[];
  /** Counted from 0; null hides the cursor. */
  readonly cursor: { readonly row: number; readonly column: number } | null;
};
