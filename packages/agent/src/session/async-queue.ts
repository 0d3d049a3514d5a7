/** An unbounded queue between a producer and one reader. It holds references, not copies. */
export class AsyncQueue<T> {
  #held: T[] = [];
  #over: { readonly error: Error | null } | null = null;
  #wake: (() => void) | null = null;

  push(item: T): void {
    this.#held.push(item);
    this.#wake?.();
  }

  /** The reader gets the queued values, then the error if there is one. */
  end(error: Error | null): void {
    this.#over ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const items = this.#held;
      this.#held = [];
      yield* items;
      if (this.#held.length > 0) continue;
      if (this.#over !== null) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    if (this.#over?.error) throw this.#over.error;
  }
}
