import type { Edge } from '../kernel/step-types.js';

/** A pair of state and event. */
export type Pair<S extends string> = { readonly state: S; readonly event: string };

/** An edge that is never taken, because `behind` comes first and has no guard. */
export type Shadowed = { readonly edge: Edge; readonly behind: Edge };

/** Suspicious parts of a machine. None is an error: a pair may be missing on purpose. */
export type BuildReport<S extends string> = {
  /** States that no path from the initial state reaches, regardless of guards. */
  readonly unreachable: readonly S[];
  /** Pairs without a transition, except those of terminal and transient states. */
  readonly missing: readonly Pair<S>[];
  readonly shadowed: readonly Shadowed[];
};

const reachable = (initial: string, edges: readonly Edge[]): ReadonlySet<string> => {
  const found = new Set([initial]);
  for (const state of found) {
    for (const edge of edges) if (edge.from === state) found.add(edge.to);
  }
  return found;
};

/** Finds shadowed edges. The edges of one pair are in the order of trial. */
const shadowsOf = (edges: readonly Edge[]): readonly Shadowed[] => {
  const open = new Map<string, Edge>();
  const shadowed: Shadowed[] = [];
  for (const edge of edges) {
    const pair = JSON.stringify([edge.from, edge.event]);
    const behind = open.get(pair);
    if (behind !== undefined) shadowed.push({ edge, behind });
    else if (edge.when === '') open.set(pair, edge);
  }
  return shadowed;
};

/** Reports on a whole machine. */
export const reportOf = <S extends string>(table: {
  readonly initial: S;
  readonly states: readonly S[];
  readonly ends: ReadonlySet<string>;
  /** Transient states: no event can meet them. */
  readonly transient: readonly S[];
  readonly events: readonly string[];
  readonly edges: readonly Edge[];
}): BuildReport<S> => {
  const { initial, states, ends, transient, events, edges } = table;
  const found = reachable(initial, edges);
  const has = new Set(edges.map(({ from, event }) => JSON.stringify([from, event])));
  return {
    unreachable: states.filter((state) => !found.has(state)),
    missing: states
      .filter((state) => !ends.has(state) && !transient.includes(state))
      .flatMap((state) => events.map((event) => ({ state, event })))
      .filter(({ state, event }) => !has.has(JSON.stringify([state, event]))),
    shadowed: shadowsOf(edges),
  };
};
