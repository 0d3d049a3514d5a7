/**
 * Simulated time. Everything that happens later stands in one list, ordered by its time; time jumps from one to the next.
 */
type Planned = {
  readonly at: number;
  readonly order: number;
  run: (() => void) | null;
  /** Its process: after its end nothing runs. */
  readonly owner: Owner | null;
};

type Owner = { readonly isDead: boolean };

const isBefore = (one: Planned, other: Planned): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order);

/** Resolves when every promise that could settle has settled: Node runs this queue after that of promises. */
const promisesSettled = (): Promise<true> => new Promise((resolve) => process.nextTick(resolve, true));

export class Timeline {
  /** Milliseconds since the simulation began. Never goes back. */
  now = 0;
  #ordered = 0;
  /** A binary heap. */
  readonly #heap: Planned[] = [];

  /** Runs `run` after `delayMs`; the returned function cancels that. */
  after(delayMs: number, run: () => void, owner: Owner | null = null): () => void {
    const planned = this.plan(delayMs, run, owner);
    return () => {
      planned.run = null;
    };
  }

  /** As `after`, for what is never cancelled. */
  plan(delayMs: number, run: () => void, owner: Owner | null): Planned {
    const planned: Planned = { at: this.now + Math.max(0, delayMs), order: this.#ordered++, run, owner };
    this.#heap.push(planned);
    this.#rise(this.#heap.length - 1);
    return planned;
  }

  /** Lets the next thing happen, and all that follows from it at once. False if nothing is planned. */
  advance(): Promise<true> | false {
    for (;;) {
      const next = this.#takeFirst();
      if (next === undefined) return false;
      if (next.run === null) continue;
      this.now = Math.max(this.now, next.at);
      if (next.owner?.isDead !== true) next.run();
      return promisesSettled();
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
