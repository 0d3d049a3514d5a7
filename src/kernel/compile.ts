import type { Edge, IgnoredPair } from './step.js';
import type { Guard, Ignored, Move, Named, Typed } from './table.js';

/** From the table to look-ups: made once, edges frozen and shared by all steps. */

type LooseBranch<S, E, A> = {
  readonly when?: Guard<S, E>;
  readonly to?: string;
  readonly as?: string;
} & (
  | { readonly then: Move<S, E, S, A>; readonly stay?: undefined }
  | { readonly then?: undefined; readonly stay: Move<S, E, S, A> }
);
type LooseCell<S, E, A> = LooseBranch<S, E, A> | readonly LooseBranch<S, E, A>[] | Ignored;
type Exit<S, E, A> = (state: S, event: E) => readonly A[];

/** A table whose totality the compiler has already proved. */
export type LooseTable<S, E, A> = {
  readonly on: Readonly<Record<string, Readonly<Record<string, LooseCell<S, E, A>>>>>;
  readonly any: Readonly<Record<string, LooseCell<S, E, A>>>;
  readonly transient: Readonly<Record<string, LooseCell<S, E, A>>>;
  readonly passed?: Readonly<
    Record<string, { readonly tried: 'entry' | 'always'; readonly branches: readonly LooseBranch<S, E, A>[] }>
  >;
  readonly entry?: Readonly<Record<string, Move<S, E, S, A>>>;
  readonly exit?: Readonly<Record<string, Exit<S, E, A>>>;
  readonly rest?: Readonly<Record<string, Move<S, E, S, A>>>;
};

/** A branch ready to be taken. `plain`: nothing can follow its move, so the step ends with it. */
export type Arrow<S, E, A> = {
  readonly when: Guard<S, E> | undefined;
  readonly move: Move<S, E, S, A>;
  readonly edge: Edge;
  readonly path: readonly Edge[];
  readonly plain: boolean;
  readonly exit: Exit<S, E, A> | undefined;
  readonly entry: Move<S, E, S, A> | undefined;
};
/** The arrows of a state that are taken without an event. */
export type Passing<S, E, A> = {
  readonly tried: 'entry' | 'always';
  readonly arrows: readonly Arrow<S, E, A>[];
};

export type Compiled<S, E, A> = {
  readonly rows: ReadonlyMap<string, ReadonlyMap<string, readonly Arrow<S, E, A>[] | Ignored>>;
  readonly passing: ReadonlyMap<string, Passing<S, E, A>>;
  readonly rest: ReadonlyMap<string, Move<S, E, S, A>>;
  readonly edges: readonly Edge[];
  readonly ignored: readonly IgnoredPair[];
};

/** Compiles a table. See `machine` in machine.ts for what the types of a table promise. */
export const compile = <S extends Named, E extends Typed, A>(
  states: readonly string[],
  events: readonly string[],
  transient: ReadonlySet<string>,
  table: LooseTable<S, E, A>,
): Compiled<S, E, A> => {
  const edges: Edge[] = [];
  const ignored: IgnoredPair[] = [];
  const rows = new Map<string, Map<string, readonly Arrow<S, E, A>[] | Ignored>>();
  const passing = new Map<string, Passing<S, E, A>>();

  const arrowsOf = (
    from: string,
    event: string | null,
    cell: LooseCell<S, E, A>,
  ): readonly Arrow<S, E, A>[] =>
    (Array.isArray(cell) ? cell : [cell]).map((branch: LooseBranch<S, E, A>, index) => {
      const edge = edgeOf(from, event, index, branch);
      edges.push(edge);
      return arrowOf(edge, branch, table, transient);
    });

  for (const state of states) {
    const eventless = transient.has(state) ? table.transient[state] : table.passed?.[state]?.branches;
    if (!transient.has(state)) {
      const row = new Map<string, readonly Arrow<S, E, A>[] | Ignored>();
      rows.set(state, row);
      for (const event of events) {
        // `Table` requires a cell or a default for every event.
        const cell = (table.on[state]?.[event] ?? table.any[event]) as LooseCell<S, E, A>;
        if ('ignore' in cell) ignored.push({ ...cell, state, event });
        row.set(event, 'ignore' in cell ? cell : arrowsOf(state, event, cell));
      }
    }
    if (eventless !== undefined) {
      passing.set(state, {
        tried: table.passed?.[state]?.tried ?? 'always',
        arrows: arrowsOf(state, null, eventless),
      });
    }
  }
  const rest = new Map(Object.entries(table.rest ?? {}));
  return { rows, passing, rest, edges: Object.freeze(edges), ignored: Object.freeze(ignored) };
};

const edgeOf = <S, E, A>(
  from: string,
  event: string | null,
  index: number,
  branch: LooseBranch<S, E, A>,
): Edge =>
  Object.freeze({
    id: `${from}/${event ?? ''}/${index}`,
    from,
    event,
    when: branch.when?.name ?? '',
    to: branch.to ?? from,
    as: branch.as ?? '',
    then: (branch.then ?? branch.stay).name,
    kind: branch.stay === undefined ? ('go' as const) : ('stay' as const),
  });

const arrowOf = <S, E, A>(
  edge: Edge,
  branch: LooseBranch<S, E, A>,
  table: LooseTable<S, E, A>,
  transient: ReadonlySet<string>,
): Arrow<S, E, A> => {
  const leaves = edge.kind === 'go';
  const exit = leaves ? table.exit?.[edge.from] : undefined;
  const entry = leaves ? table.entry?.[edge.to] : undefined;
  const rests = leaves && table.rest?.[edge.to] !== undefined;
  const passes = transient.has(edge.to) || table.passed?.[edge.to] !== undefined;
  const plain = exit === undefined && entry === undefined && !rests && !passes;
  const move = branch.then ?? branch.stay;
  return { when: branch.when, move, edge, path: Object.freeze([edge]), plain, exit, entry };
};
