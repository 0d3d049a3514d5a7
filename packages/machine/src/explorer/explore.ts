/**
 * Explores every path through a finite model, breadth first.
 *
 * 1. Nodes with the same key are one node, and are expanded once. The model promises that the key
 *    has everything that decides the node's future.
 * 2. A violation is reported with a shortest path to any violation.
 * 3. Goals are checked when all nodes are known: each node must reach a node where the goal holds.
 * 4. An expanded node is dropped. Only 12 bytes, an empty place in the list of those that wait, its
 *    fingerprint and its arcs stay.
 *
 * A node is a state of the model; a label names a step from it, such as an event; an arc is a step
 * that was found. From top to bottom: the model; `explore`; the search; its arcs; and the set of
 * fingerprints by which a known node is recognised.
 */

/** A condition that every node must be able to reach, by labels that `via` allows. */
export type Goal<N, L> = {
  readonly name: string;
  readonly holds: (node: N) => boolean;
  readonly via: (label: L) => boolean;
};

export type FiniteModel<N, L> = {
  readonly initial: N;
  /** The labels possible in a node. Every call returns the same list in the same order. */
  readonly labels: (node: N) => readonly L[];
  /** The next node, and the faults of the step. The identical node means that nothing changed. */
  readonly next: (node: N, label: L) => { readonly node: N; readonly faults: readonly string[] };
  readonly key: (node: N) => string;
  /**
   * Faults of a node, checked once, when a step finds it: for checks that cost too much for every
   * step.
   */
  readonly findFaults: (node: N, from: N, label: L) => readonly string[];
  /** At most eight: each is a bit of a byte, and further ones would never hold. */
  readonly goals: readonly Goal<N, L>[];
};

type ViolationPath<L> = { readonly faults: readonly string[]; readonly path: readonly L[] };

export type Progress = { readonly states: number; readonly steps: number; readonly depth: number };

type Exploration<L> = Progress & {
  /** Whether every node was expanded, so that the result holds for all of them. */
  readonly complete: boolean;
  readonly violation: ViolationPath<L> | null;
};

type ExplorationLimits = {
  /** The exploration stops at this number of nodes. */
  readonly statesMax: number;
  /** Receives the progress every 10,000 nodes. */
  readonly watch?: (progress: Progress) => void;
};

const WATCHED_EVERY = 10_000;
const NONE: readonly never[] = [];

/** Explores a model until a violation, the limit, or the end. */
export const explore = <N, L>(
  model: FiniteModel<N, L>,
  limits: ExplorationLimits,
): Exploration<L> => {
  const search = new Search(model);
  let depth = 0;
  let levelEnd = 1;
  for (let index = 0; index < search.states; index++) {
    if (index === levelEnd) {
      depth += 1;
      levelEnd = search.states;
    }
    if (search.states > limits.statesMax)
      return {
        states: search.states,
        steps: search.steps,
        depth,
        complete: false,
        violation: null,
      };
    const violation = search.expand(index);
    const { states, steps } = search;
    if (violation !== null)
      return { states, steps, depth: violation.path.length, complete: false, violation };
    if (index % WATCHED_EVERY === WATCHED_EVERY - 1) limits.watch?.({ states, steps, depth });
  }
  const { states, steps } = search;
  return { states, steps, depth, complete: true, violation: search.deadEnd() };
};

/** The known nodes, numbered as they came. */
class Search<N, L> {
  readonly #model: FiniteModel<N, L>;
  readonly #known = new FingerprintSet();
  readonly #arcs = new ArcList();
  /** Nodes that wait for their expansion, by number. */
  readonly #waiting: (N | undefined)[] = [];
  #parents = new Uint32Array(1 << 10);
  /** Index of the label that found the node, among the labels of its parent. */
  #places = new Uint32Array(1 << 10);
  /** One bit a goal. */
  #holds = new Uint32Array(1 << 10);
  steps = 0;

  constructor(model: FiniteModel<N, L>) {
    this.#model = model;
    this.#number(model.initial, 0, 0);
  }

  get states(): number {
    return this.#known.size;
  }

  /** Takes every step that leaves a node. */
  expand(index: number): ViolationPath<L> | null {
    const { labels, next, findFaults, goals } = this.#model;
    const node = this.#waiting[index] as N; // each is expanded once, in the order of finding
    this.#waiting[index] = undefined;
    this.#arcs.leave();
    const possible = labels(node);
    for (let place = 0; place < possible.length; place++) {
      const label = possible[place] as L; // inside the list
      this.steps += 1;
      const step = next(node, label);
      if (step.faults.length > 0)
        return { faults: step.faults, path: [...this.#pathTo(index), label] };
      if (step.node === node) continue;
      const count = this.states; // the number that a new node gets
      const target = this.#number(step.node, index, place);
      const faults = target === count ? findFaults(step.node, node, label) : NONE;
      if (faults.length > 0) return { faults, path: [...this.#pathTo(index), label] };
      // Stryker disable next-line ConditionalExpression: a matter of memory
      if (target !== index)
        this.#arcs.add(
          target,
          markBits(goals, ({ via }) => via(label)),
        );
    }
    return null;
  }

  /** The first node that can't reach some goal. */
  deadEnd(): ViolationPath<L> | null {
    for (const [number, { name }] of this.#model.goals.entries()) {
      const bit = 1 << number;
      const reached = this.#arcs.reaching(
        this.states,
        (node) => ((this.#holds[node] ?? 0) & bit) !== 0,
        bit,
      );
      const lost = reached.indexOf(0);
      if (lost >= 0) return { faults: [`out of reach: ${name}`], path: this.#pathTo(lost) };
    }
    return null;
  }

  /** The number of a node. A new one waits for its expansion. */
  #number(node: N, parent: number, place: number): number {
    const count = this.states;
    const number = this.#known.add(this.#model.key(node));
    if (number < count) return number;
    if (number === this.#parents.length) {
      this.#parents = doubled(this.#parents);
      this.#places = doubled(this.#places);
      this.#holds = doubled(this.#holds);
    }
    this.#waiting[number] = node;
    this.#parents[number] = parent;
    this.#places[number] = place;
    this.#holds[number] = markBits(this.#model.goals, ({ holds }) => holds(node));
    return number;
  }

  /** The labels from the start to a node. The path is walked again, since nodes are not kept. */
  #pathTo(index: number): readonly L[] {
    const places: number[] = [];
    for (let at = index; at !== 0; at = this.#parents[at] ?? 0) places.push(this.#places[at] ?? 0);
    let node = this.#model.initial;
    return places.reverse().map((place) => {
      const label = this.#model.labels(node)[place] as L; // it was found there before
      node = this.#model.next(node, label).node;
      return label;
    });
  }
}

/** One bit for each goal. */
const markBits = <N, L>(
  goals: readonly Goal<N, L>[],
  isMarked: (goal: Goal<N, L>) => boolean,
): number =>
  goals.reduce((marks, goal, number) => (isMarked(goal) ? marks | (1 << number) : marks), 0);

/**
 * Arcs of a graph with numbered nodes: 5 bytes an arc, and 4 more during `reaching`.
 *
 * Arcs are added node by node, in the order of the numbers. Each has up to eight marks.
 */
export class ArcList {
  #targets = new Uint32Array(1 << 12);
  #marks = new Uint8Array(1 << 12);
  #firsts = new Uint32Array(1 << 10);
  #nodes = 0;
  #size = 0;

  /** Begins the next node: arcs added from here on leave it. */
  leave(): void {
    if (this.#nodes === this.#firsts.length) this.#firsts = doubled(this.#firsts);
    this.#firsts[this.#nodes++] = this.#size;
  }

  add(target: number, marks: number): void {
    if (this.#size === this.#targets.length) {
      this.#targets = doubled(this.#targets);
      const wider = new Uint8Array(this.#marks.length * 2);
      wider.set(this.#marks);
      this.#marks = wider;
    }
    this.#targets[this.#size] = target;
    this.#marks[this.#size++] = marks;
  }

  /**
   * Finds the nodes that reach a target by arcs with `mark`. The result has 1 for each of them,
   * else 0.
   */
  reaching(nodes: number, isTarget: (node: number) => boolean, mark: number): Uint8Array {
    const { firsts, sources } = this.#reversed(nodes, mark);
    const reached = new Uint8Array(nodes);
    const open = new Uint32Array(nodes);
    let count = 0;
    for (let node = 0; node < nodes; node++) {
      if (!isTarget(node)) continue;
      reached[node] = 1;
      open[count++] = node;
    }
    while (count > 0) {
      const node = open[--count] ?? 0;
      for (let index = firsts[node] ?? 0; index < (firsts[node + 1] ?? 0); index++) {
        const source = sources[index] ?? 0;
        if (reached[source] === 1) continue;
        reached[source] = 1;
        open[count++] = source;
      }
    }
    return reached;
  }

  /** The arcs with `mark`, reversed and sorted by target. */
  #reversed(
    nodes: number,
    mark: number,
  ): { readonly firsts: Uint32Array; readonly sources: Uint32Array } {
    const firsts = new Uint32Array(nodes + 1);
    const visit = (take: (source: number, target: number) => void): void => {
      for (let node = 0; node < this.#nodes; node++) {
        const end = node + 1 < this.#nodes ? (this.#firsts[node + 1] ?? 0) : this.#size;
        for (let index = this.#firsts[node] ?? 0; index < end; index++) {
          if (((this.#marks[index] ?? 0) & mark) !== 0) take(node, this.#targets[index] ?? 0);
        }
      }
    };
    // Counts the arcs to each target, adds the counts up to the places where those of each target
    // begin, then fills them in.
    visit((_, target) => {
      firsts[target + 1] = (firsts[target + 1] ?? 0) + 1;
    });
    for (let node = 0; node < nodes; node++)
      firsts[node + 1] = (firsts[node + 1] ?? 0) + (firsts[node] ?? 0);
    const sources = new Uint32Array(firsts[nodes] ?? 0);
    const next = firsts.slice();
    visit((source, target) => {
      const place = next[target] ?? 0;
      sources[place] = source;
      next[target] = place + 1;
    });
    return { firsts, sources };
  }
}

/** Copies the numbers into an array of twice the length. */
const doubled = (numbers: Uint32Array): Uint32Array<ArrayBuffer> => {
  const wider = new Uint32Array(numbers.length * 2);
  wider.set(numbers);
  return wider;
};

/**
 * Set of 64-bit fingerprints of texts: 24 to 48 bytes a text, whatever its length.
 *
 * 1. A new text gets the next number, from 0. The same text always gives the same number.
 * 2. Two different texts share a number with a probability of n² / 2⁶⁵ over n texts: for ten
 *    million, 3 in a million.
 */
export class FingerprintSet {
  #low = new Uint32Array(1 << 10);
  #high = new Uint32Array(1 << 10);
  /** Number + 1; 0 is an empty slot. */
  #numbers = new Uint32Array(1 << 10);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Returns the number of a text. A new text gets the `size` from before the call. */
  add(text: string): number {
    let low = 0x811c9dc5;
    let high = 0x1b873593;
    // Stryker disable next-line EqualityOperator: any number may stand for a text
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      low = Math.imul(low ^ code, 0x85ebca6b);
      low = (low << 13) | (low >>> 19);
      high = Math.imul(high ^ code, 0xc2b2ae35);
      high = (high << 17) | (high >>> 15);
    }
    // Stryker disable next-line ArithmeticOperator: any number may stand for a text
    return this.#place(mix(low ^ text.length), mix(high + low));
  }

  #place(low: number, high: number): number {
    const mask = this.#numbers.length - 1;
    let slot = (low ^ high) & mask;
    for (let number = this.#numbers[slot]; number !== 0; number = this.#numbers[slot]) {
      if (this.#low[slot] === low && this.#high[slot] === high) return (number ?? 0) - 1;
      slot = (slot + 1) & mask;
    }
    this.#low[slot] = low;
    this.#high[slot] = high;
    this.#numbers[slot] = ++this.#size;
    // Stryker disable next-line EqualityOperator: an even and an odd number differ
    if (this.#size * 2 > mask) this.#grow();
    return this.#size - 1;
  }

  #grow(): void {
    const [low, high, numbers] = [this.#low, this.#high, this.#numbers];
    const length = numbers.length * 2;
    this.#low = new Uint32Array(length);
    this.#high = new Uint32Array(length);
    this.#numbers = new Uint32Array(length);
    // Stryker disable next-line EqualityOperator: beyond the end the slots are empty
    for (let old = 0; old < numbers.length; old++) {
      const number = numbers[old] ?? 0;
      // Stryker disable next-line ConditionalExpression: a matter of speed
      if (number === 0) continue;
      const [oldLow, oldHigh] = [low[old] ?? 0, high[old] ?? 0];
      let slot = (oldLow ^ oldHigh) & (length - 1);
      while (this.#numbers[slot] !== 0) slot = (slot + 1) & (length - 1);
      this.#low[slot] = oldLow;
      this.#high[slot] = oldHigh;
      this.#numbers[slot] = number;
    }
  }
}

/**
 * Spreads a change of any bit over all of them (the last step of MurmurHash3); as an unsigned
 * number.
 */
const mix = (bits: number): number => {
  let mixed = bits ^ (bits >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
};
