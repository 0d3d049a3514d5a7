/**
 * Arcs of a graph with numbered nodes: 9 bytes an arc.
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

  /** Finds the nodes that reach a `wanted` node by arcs with `mark`. The result has 1 for each of them, else 0. */
  reaching(nodes: number, wanted: (node: number) => boolean, mark: number): Uint8Array {
    const { firsts, sources } = this.#reversed(nodes, mark);
    const reached = new Uint8Array(nodes);
    const open = new Uint32Array(nodes);
    let count = 0;
    for (let node = 0; node < nodes; node++) {
      if (!wanted(node)) continue;
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
  #reversed(nodes: number, mark: number): { readonly firsts: Uint32Array; readonly sources: Uint32Array } {
    const firsts = new Uint32Array(nodes + 1);
    const visit = (take: (source: number, target: number) => void): void => {
      for (let node = 0; node < this.#nodes; node++) {
        const end = node + 1 < this.#nodes ? (this.#firsts[node + 1] ?? 0) : this.#size;
        for (let index = this.#firsts[node] ?? 0; index < end; index++) {
          if (((this.#marks[index] ?? 0) & mark) !== 0) take(node, this.#targets[index] ?? 0);
        }
      }
    };
    visit((_, target) => {
      firsts[target + 1] = (firsts[target + 1] ?? 0) + 1;
    });
    for (let node = 0; node < nodes; node++) firsts[node + 1] = (firsts[node + 1] ?? 0) + (firsts[node] ?? 0);
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
export const doubled = (numbers: Uint32Array): Uint32Array<ArrayBuffer> => {
  const wider = new Uint32Array(numbers.length * 2);
  wider.set(numbers);
  return wider;
};
