/**
 * An append-only list. Each list is a view: a shared buffer and a length.
 *
 * 1. Appending to the newest view is O(1) and shares everything; older views stay valid.
 * 2. Appending to an older view starts a new segment that points at its parent: a fork is O(1),
 *    too.
 * 3. The buffer is private, so nothing can write to it or freeze it: a view is a value.
 */
export class AppendList<T> {
  /** The view that this one continues in another buffer. */
  readonly #parent: AppendList<T> | undefined;
  /** Index of the first item in the buffer; those before it are the parent's. */
  readonly #base: number;
  readonly #buffer: T[];
  readonly length: number;

  private constructor(
    parent: AppendList<T> | undefined,
    base: number,
    buffer: T[],
    length: number,
  ) {
    this.#parent = parent;
    this.#base = base;
    this.#buffer = buffer;
    this.length = length;
  }

  static empty<T>(): AppendList<T> {
    return new AppendList<T>(undefined, 0, [], 0);
  }

  static from<T>(items: readonly T[]): AppendList<T> {
    return new AppendList<T>(undefined, 0, items.slice(), items.length);
  }

  append(item: T): AppendList<T> {
    if (this.#buffer.length === this.length - this.#base) {
      this.#buffer.push(item);
      return new AppendList(this.#parent, this.#base, this.#buffer, this.length + 1);
    }
    return new AppendList<T>(this, this.length, [item], this.length + 1);
  }

  /** The item at `index` (from 0), or undefined outside the view. */
  at(index: number): T | undefined {
    if (index >= this.length) return undefined;
    let view: AppendList<T> = this;
    while (index < view.#base && view.#parent !== undefined) view = view.#parent;
    return view.#buffer[index - view.#base];
  }

  /** Whether `older` is a prefix of this view, by identity of the buffer. */
  continues(older: AppendList<T>): boolean {
    let view: AppendList<T> | undefined = this;
    while (view !== undefined && view.#buffer !== older.#buffer) view = view.#parent;
    return view !== undefined && older.length <= view.length;
  }

  /** The items from `start` (default 0) in order, as a fresh array. */
  toArray(start = 0): T[] {
    // Stryker disable next-line ArrayDeclaration: a matter of speed
    const items = new Array<T>(Math.max(0, this.length - start));
    let end = this.length;
    for (let view: AppendList<T> | undefined = this; view !== undefined; view = view.#parent) {
      for (let index = Math.max(start, view.#base); index < end; index++) {
        // a view never ends behind its buffer
        items[index - start] = view.#buffer[index - view.#base] as T;
      }
      end = view.#base;
    }
    return items;
  }

  /** JSON of a view is the JSON of its items. */
  toJSON(): T[] {
    return this.toArray();
  }
}
