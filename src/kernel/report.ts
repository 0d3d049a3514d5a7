import type { Edge } from './step.js';

/** A pair of state and event. */
export type Pair<S extends string> = { readonly state: S; readonly event: string };

/** An arrow that is never taken, because `behind` comes first and has no guard. */
export type Shadowed = { readonly edge: Edge; readonly behind: Edge };

/** What a machine's table lets suspect. Nothing of it is an error: a pair may be missing on purpose. */
export type BuildReport<S extends string> = {
  /** States that no way leads to from the initial one, guards not considered. */
  readonly unreachable: readonly S[];
  /** Pairs without a transition; terminal states and those that never rest left out. */
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

/** Arrows of one pair stand in the order in which they are tried. */
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

/** Looks at a table as a whole. */
export const reportOf = <S extends string>(table: {
  readonly initial: S;
  readonly states: readonly S[];
  readonly ends: ReadonlySet<string>;
  /** States that never rest, which no event finds. */
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
