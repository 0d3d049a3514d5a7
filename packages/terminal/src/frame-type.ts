import type { Safe } from './safe-text.js';

/** Rows that already fit the width of the screen, and the cursor's place in them. */
export type Frame = {
  readonly rows: readonly Safe[];
  /** Counted from 0; null hides the cursor. */
  readonly cursor: { readonly row: number; readonly column: number } | null;
};
