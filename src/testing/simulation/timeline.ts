/**
 * Simulated time. Everything that happens later stands in one list, ordered by its time; time jumps from one to the next.
 */
type Planned = { readonly at: number; readonly order: number; run: (() => void) | null };

const isBefore = (one: Planned, other: Planned): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order);

/** Resolves when every promise that could settle has settled: Node runs this queue after that of promises. */
const promisesSettled = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

export class Timeline {
  /** Milliseconds since the simulation began. Never goes back. */
  now = 0;
  #ordered = 0;
  /** A binary heap. */
  readonly #heap: Planned[] = [];

  /** Runs `run` after `delayMs`; the returned function cancels that. */
  after(delayMs: number, run: () => void): () => void {
    const planned: Planned = { at: this.now + Math.max(0, delayMs), order: this.#ordered++, run };
    this.#heap.push(planned);
    this.#rise(this.#heap.length - 1);
    return () => {
      planned.run = null;
    };
  }

  /** Lets the next thing happen, and all that follows from it at once. False if nothing is planned. */
  async advance(): Promise<boolean> {
    for (;;) {
      const next = this.#takeFirst();
      if (next === undefined) return false;
      if (next.run === null) continue;
      this.now = Math.max(this.now, next.at);
      next.run();
      await promisesSettled();
      return true;
    }
  }

  /** Time passes at once, as in a call that blocks. */
  pass(durationMs: number): void {
    this.now += durationMs;
  }

  #takeFirst(): Planned | undefined {
    const [first] = this.#heap;
    const last = this.#heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#sink();
    }
    return first;
  }

  #rise(from: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#swapIfBefore(index, parent)) return;
      index = parent;
    }
  }

  #sink(): void {
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const [one, other] = [this.#heap[left], this.#heap[left + 1]];
      if (one === undefined) return;
      const child = other !== undefined && isBefore(other, one) ? left + 1 : left;
      if (!this.#swapIfBefore(child, index)) return;
      index = child;
    }
  }

  #swapIfBefore(lower: number, upper: number): boolean {
    const [one, other] = [this.#heap[lower], this.#heap[upper]];
    if (one === undefined || other === undefined || !isBefore(one, other)) return false;
    this.#heap[lower] = other;
    this.#heap[upper] = one;
    return true;
  }
}
