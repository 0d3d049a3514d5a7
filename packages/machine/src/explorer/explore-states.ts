import { ArcList, doubled } from './arc-list.js';
import { FingerprintSet } from './fingerprint-set.js';

/**
 * Explores every path through a finite model, breadth first.
 *
 * 1. Nodes with the same key are one node, and are expanded once. The model promises that the key has everything that
 *    decides the node's future.
 * 2. A violation is reported with a shortest path to any violation.
 * 3. Goals are checked when all nodes are known: each node must reach a node where the goal holds.
 * 4. An expanded node is dropped. Only 8 bytes, its fingerprint and its arcs are kept.
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
  readonly keyOf: (node: N) => string;
  /** Faults of a node, checked once, when a step finds it: for checks that cost too much for every step. */
  readonly faultsOf: (node: N, from: N, label: L) => readonly string[];
  /** At most eight. */
  readonly goals: readonly Goal<N, L>[];
};

export type ViolationPath<L> = { readonly faults: readonly string[]; readonly path: readonly L[] };

export type Progress = { readonly states: number; readonly steps: number; readonly depth: number };

export type Exploration<L> = Progress & {
  /** Whether every node was expanded, so that the result holds for all of them. */
  readonly complete: boolean;
  readonly violation: ViolationPath<L> | null;
};

export type ExplorationLimits = {
  /** The exploration stops at this number of nodes. */
  readonly statesMax: number;
  /** Receives the progress every 10,000 nodes. */
  readonly watch?: (progress: Progress) => void;
};

const WATCHED_EVERY = 10_000;
const NONE: readonly never[] = [];

export const explore = <N, L>(model: FiniteModel<N, L>, limits: ExplorationLimits): Exploration<L> => {
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
    this.#found(model.initial, 0, 0);
  }

  get states(): number {
    return this.#known.size;
  }

  /** Takes every step that leaves a node. */
  expand(index: number): ViolationPath<L> | null {
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

  /** The first node that can't reach some goal. */
  deadEnd(): ViolationPath<L> | null {
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

const marksOf = <N, L>(goals: readonly Goal<N, L>[], wanted: (goal: Goal<N, L>) => boolean): number =>
  goals.reduce((marks, goal, number) => (wanted(goal) ? marks | (1 << number) : marks), 0);
