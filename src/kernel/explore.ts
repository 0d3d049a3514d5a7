import { Arcs, doubled } from './arcs.js';
import { Fingerprints } from './fingerprints.js';

/**
 * Walks every way through a finite model, breadth first.
 *
 * 1. A node is expanded once; nodes of the same key are the same node. That the key leaves nothing out on which the
 *    future depends is the model's promise.
 * 2. A violation comes with a shortest path: no shorter one leads to any.
 * 3. A goal is looked at once all nodes are known: from each of them a node where it holds must be in reach.
 * 4. A node is kept only until it is expanded; of an old one 8 bytes are left, its fingerprint and its arcs.
 */

/** What must stay in reach of every node, by those labels that `via` allows. */
export type Goal<N, L> = {
  readonly name: string;
  readonly holds: (node: N) => boolean;
  readonly via: (label: L) => boolean;
};

export type Model<N, L> = {
  readonly initial: N;
  /** What can happen in a node: the same list, in the same order, whenever it is asked. */
  readonly labels: (node: N) => readonly L[];
  /** Where a label leads, and what is wrong with that step. The very same node says that nothing changed. */
  readonly next: (node: N, label: L) => { readonly node: N; readonly faults: readonly string[] };
  readonly keyOf: (node: N) => string;
  /** What is wrong with a node: asked once, when this step finds it. For what is too dear to ask of every step. */
  readonly faultsOf: (node: N, from: N, label: L) => readonly string[];
  /** At most eight. */
  readonly goals: readonly Goal<N, L>[];
};

export type Violation<L> = { readonly faults: readonly string[]; readonly path: readonly L[] };

export type Progress = { readonly states: number; readonly steps: number; readonly depth: number };

export type Exploration<L> = Progress & {
  /** Whether every node was expanded: what is reported then holds of all of them. */
  readonly complete: boolean;
  readonly violation: Violation<L> | null;
};

export type Limits = {
  /** More nodes than this are not looked at. */
  readonly statesMax: number;
  /** Told every 10,000 nodes how far it is. */
  readonly watch?: (progress: Progress) => void;
};

const WATCHED_EVERY = 10_000;
const NONE: readonly never[] = [];

export const explore = <N, L>(model: Model<N, L>, limits: Limits): Exploration<L> => {
  const search = new Search(model);
  let depth = 0;
  let levelEnd = 1;
  for (let index = 0; index < search.states; index++) {
    if (index === levelEnd) {
      depth += 1;
      levelEnd = search.states;
    }
    if (search.states > limits.statesMax)
      return { states: search.states, steps: search.steps, depth, complete: false, violation: null };
    const violation = search.expand(index);
    const { states, steps } = search;
    if (violation !== null)
      return { states, steps, depth: violation.path.length, complete: false, violation };
    if (index % WATCHED_EVERY === WATCHED_EVERY - 1) limits.watch?.({ states, steps, depth });
  }
  const { states, steps } = search;
  return { states, steps, depth, complete: true, violation: search.deadEnd() };
};

class Search<N, L> {
  readonly #model: Model<N, L>;
  readonly #known = new Fingerprints();
  readonly #arcs = new Arcs();
  /** Nodes that were found and not yet expanded, by number; the others are let go. */
  readonly #waiting: (N | undefined)[] = [];
  #parents = new Uint32Array(1 << 10);
  /** Place of the label, among those of the parent, that found the node. */
  #places = new Uint32Array(1 << 10);
  /** One bit a goal. */
  #holds = new Uint32Array(1 << 10);
  steps = 0;

  constructor(model: Model<N, L>) {
    this.#model = model;
    this.#found(model.initial, 0, 0);
  }

  get states(): number {
    return this.#known.size;
  }

  /** Takes every step out of a node. */
  expand(index: number): Violation<L> | null {
    const { labels, next, faultsOf, goals } = this.#model;
    const node = this.#waiting[index] as N; // each is expanded once, in the order of finding
    this.#waiting[index] = undefined;
    this.#arcs.leave();
    const possible = labels(node);
    for (let place = 0; place < possible.length; place++) {
      const label = possible[place] as L; // inside the list
      this.steps += 1;
      const taken = next(node, label);
      if (taken.faults.length > 0) return { faults: taken.faults, path: [...this.#pathTo(index), label] };
      if (taken.node === node) continue;
      const count = this.states;
      const target = this.#found(taken.node, index, place);
      const faults = target === count ? faultsOf(taken.node, node, label) : NONE;
      if (faults.length > 0) return { faults, path: [...this.#pathTo(index), label] };
      if (target !== index)
        this.#arcs.add(
          target,
          marksOf(goals, ({ via }) => via(label)),
        );
    }
    return null;
  }

  /** The first node from which some goal is out of reach. */
  deadEnd(): Violation<L> | null {
    for (const [number, { name }] of this.#model.goals.entries()) {
      const bit = 1 << number;
      const reached = this.#arcs.reaching(this.states, (node) => ((this.#holds[node] ?? 0) & bit) !== 0, bit);
      const lost = reached.indexOf(0);
      if (lost >= 0) return { faults: [`out of reach: ${name}`], path: this.#pathTo(lost) };
    }
    return null;
  }

  #found(node: N, parent: number, place: number): number {
    const count = this.states;
    const number = this.#known.add(this.#model.keyOf(node));
    if (number < count) return number;
    if (number === this.#parents.length) {
      this.#parents = doubled(this.#parents);
      this.#places = doubled(this.#places);
      this.#holds = doubled(this.#holds);
    }
    this.#waiting[number] = node;
    this.#parents[number] = parent;
    this.#places[number] = place;
    this.#holds[number] = marksOf(this.#model.goals, ({ holds }) => holds(node));
    return number;
  }

  /** The labels that lead from the start to a node: walked again, since nodes are not kept. */
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

const marksOf = <N, L>(goals: readonly Goal<N, L>[], wanted: (goal: Goal<N, L>) => boolean): number =>
  goals.reduce((marks, goal, number) => (wanted(goal) ? marks | (1 << number) : marks), 0);
