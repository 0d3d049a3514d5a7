/** Rows that are broken to the width of the screen already, and where the cursor stands among them. */
export type Frame = {
  readonly rows: readonly string[];
  /** Counted from 0; null hides the cursor. */
  readonly cursor: { readonly row: number; readonly column: number } | null;
};
