/** Size of the window in which a text is read. */
export type WindowSize = { readonly columns: number; readonly rows: number };

export const isSameSize = (one: WindowSize, other: WindowSize): boolean =>
  one.columns === other.columns && one.rows === other.rows;

/**
 * How far the user has read a text that is longer than the window.
 *
 * 1. A row is read once it was drawn. Rows are read in order; none is skipped.
 * 2. A change of the window's size marks all rows as unread.
 */
export class ReadingWindow {
  #window: WindowSize = { columns: 0, rows: 0 };
  #top = 0;
  #height = 1;
  #total = 0;
  /** Number of rows that were on the screen, from the first one. */
  #seen = 0;

  /** Draws up to `height` of `total` rows; returns the index of the first one. */
  show(total: number, height: number, window: WindowSize): number {
    if (!this.#fits(window)) {
      this.#window = window;
      this.#top = 0;
      this.#seen = 0;
    }
    this.#total = total;
    this.#height = Math.max(1, height);
    this.#top = Math.min(this.#top, this.#last);
    if (this.#top <= this.#seen) this.#seen = Math.max(this.#seen, Math.min(total, this.#top + this.#height));
    return this.#top;
  }

  /** Scrolls if the key does that; returns whether it does. */
  takeKey(key: string): boolean {
    const steps: Readonly<Record<string, number>> = {
      up: -1,
      down: 1,
      enter: 1,
      pageup: -this.#height,
      pagedown: this.#height,
      ' ': this.#height,
      home: Number.NEGATIVE_INFINITY,
      end: Number.POSITIVE_INFINITY,
    };
    const step = steps[key];
    if (step !== undefined) this.scroll(step);
    return step !== undefined;
  }

  nextPage(): void {
    this.scroll(this.#height);
  }

  /** Scrolls at most to the first unread row (rule 1). */
  scroll(by: number): void {
    this.#top = Math.max(0, Math.min(this.#top + by, this.#last, this.#seen));
  }

  /** Unread rows. */
  get left(): number {
    return Math.max(0, this.#total - this.#seen);
  }

  /** Whether all rows were on a screen of this size. */
  isRead(window: WindowSize): boolean {
    return this.#fits(window) && this.#total > 0 && this.left === 0;
  }

  get #last(): number {
    return Math.max(0, this.#total - this.#height);
  }

  #fits(window: WindowSize): boolean {
    return isSameSize(window, this.#window);
  }
}
