/** The window in which something is read. */
export type WindowSize = { readonly columns: number; readonly rows: number };

/**
 * How far a text that is longer than the window has been read.
 *
 * 1. A row is read when it was drawn on the screen; rows are read in order, none is jumped over.
 * 2. In a window of another size nothing has been read.
 */
export class ReadingWindow {
  #window: WindowSize = { columns: 0, rows: 0 };
  #top = 0;
  #height = 1;
  #total = 0;
  /** Rows from the first one that were on the screen. */
  #seen = 0;

  /** `height` rows of `total` are drawn now: the first of them. */
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

  /** Rule 1: no further than to the first row that was not drawn. */
  scroll(by: number): void {
    this.#top = Math.max(0, Math.min(this.#top + by, this.#last, this.#seen));
  }

  /** Rows of one page. */
  get page(): number {
    return this.#height;
  }

  /** Rows that are still to be read. */
  get left(): number {
    return Math.max(0, this.#total - this.#seen);
  }

  /** Whether all of it was on the screen of this size. */
  isRead(window: WindowSize): boolean {
    return this.#fits(window) && this.#total > 0 && this.left === 0;
  }

  get #last(): number {
    return Math.max(0, this.#total - this.#height);
  }

  #fits({ columns, rows }: WindowSize): boolean {
    return columns === this.#window.columns && rows === this.#window.rows;
  }
}
