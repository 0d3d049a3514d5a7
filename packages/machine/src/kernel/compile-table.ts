import type { Edge, IgnoredPair } from './step-types.js';
import type { Guard, HasName, HasType, IgnoredCell, Move } from './table.js';

/** Compiles a table into look-ups. Edges are made once, frozen, and shared by all steps. */

type LooseBranch<S, E, A> = {
  readonly when?: Guard<S, E>;
  readonly to?: string;
  readonly as?: string;
} & (
  | { readonly then: Move<S, E, S, A>; readonly stay?: undefined }
  | { readonly then?: undefined; readonly stay: Move<S, E, S, A> }
);
type LooseCell<S, E, A> = LooseBranch<S, E, A> | readonly LooseBranch<S, E, A>[] | IgnoredCell;
type Exit<S, E, A> = (state: S, event: E) => readonly A[];
type LooseRow<S, E, A> = {
  readonly on?: Readonly<Record<string, LooseCell<S, E, A>>>;
  readonly always?: LooseBranch<S, E, A> | readonly LooseBranch<S, E, A>[];
  readonly alwaysOnEntry?: readonly LooseBranch<S, E, A>[];
  readonly entry?: Move<S, E, S, A>;
  readonly exit?: Exit<S, E, A>;
  readonly rest?: Move<S, E, S, A>;
};

/** A `Table` without its types: the compiler has already proved that it is total. */
export type LooseTable<S, E, A> = {
  readonly states: Readonly<Record<string, LooseRow<S, E, A>>>;
  readonly defaults: Readonly<Record<string, LooseCell<S, E, A>>>;
};

/** A branch ready to be taken. `plain`: nothing can follow its move, so the step ends with it. */
export type CompiledBranch<S, E, A> = {
  readonly when: Guard<S, E> | undefined;
  readonly move: Move<S, E, S, A>;
  readonly edge: Edge;
  readonly path: readonly Edge[];
  readonly plain: boolean;
  readonly exit: Exit<S, E, A> | undefined;
  readonly entry: Move<S, E, S, A> | undefined;
};
export type CompiledCell<S, E, A> = readonly CompiledBranch<S, E, A>[] | IgnoredCell;
export type CompiledRow<S, E, A> = {
  readonly cells: ReadonlyMap<string, CompiledCell<S, E, A>>;
  /** Branches without an event. */
  readonly eventless: readonly CompiledBranch<S, E, A>[];
  /** When they are tried: only on entry, or also after an event that stays. */
  readonly tried: 'entry' | 'always';
  readonly rest: Move<S, E, S, A> | undefined;
};
export type CompiledTable<S, E, A> = {
  readonly rows: ReadonlyMap<string, CompiledRow<S, E, A>>;
  readonly events: ReadonlySet<string>;
  readonly edges: readonly Edge[];
  readonly ignored: readonly IgnoredPair[];
};

/** See `machine` in make-machine.ts for what the types of a table promise. */
export const compileTable = <S extends HasName, E extends HasType, A>(
  states: readonly string[],
  events: readonly string[],
  transient: ReadonlySet<string>,
  table: LooseTable<S, E, A>,
): CompiledTable<S, E, A> => {
  const edges: Edge[] = [];
  const ignored: IgnoredPair[] = [];
  const rows = new Map<string, CompiledRow<S, E, A>>();

  const compileBranches = (
    from: string,
    event: string | null,
    branches: LooseBranch<S, E, A> | readonly LooseBranch<S, E, A>[],
  ): readonly CompiledBranch<S, E, A>[] =>
    [branches].flat().map((branch, index) => {
      const edge = edgeOf(from, event, index, branch);
      edges.push(edge);
      return compileBranch(edge, branch, table);
    });
  const compileCell = (state: string, event: string, cell: LooseCell<S, E, A>): CompiledCell<S, E, A> => {
    if (!('ignore' in cell)) return compileBranches(state, event, cell);
    ignored.push({ ...cell, state, event });
    return cell;
  };
  for (const state of states) {
    const row = table.states[state] ?? {};
    const cells = new Map<string, CompiledCell<S, E, A>>();
    if (!transient.has(state)) {
      for (const event of events) {
        // `Table` requires a cell or a default for every event.
        const cell = (row.on?.[event] ?? table.defaults[event]) as LooseCell<S, E, A>;
        cells.set(event, compileCell(state, event, cell));
      }
    }
    rows.set(state, {
      cells,
      eventless: compileBranches(state, null, row.always ?? row.alwaysOnEntry ?? []),
      tried: row.alwaysOnEntry === undefined ? 'always' : 'entry',
      rest: row.rest,
    });
  }
  return { rows, events: new Set(events), edges: Object.freeze(edges), ignored: Object.freeze(ignored) };
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

const compileBranch = <S, E, A>(
  edge: Edge,
  branch: LooseBranch<S, E, A>,
  table: LooseTable<S, E, A>,
): CompiledBranch<S, E, A> => {
  const leaves = edge.kind === 'go';
  const target = table.states[edge.to] ?? {};
  const exit = leaves ? table.states[edge.from]?.exit : undefined;
  const entry = leaves ? target.entry : undefined;
  const rests = leaves && target.rest !== undefined;
  const goesOn = target.always !== undefined || (leaves && target.alwaysOnEntry !== undefined);
  const plain = exit === undefined && entry === undefined && !rests && !goesOn;
  const move = branch.then ?? branch.stay;
  return { when: branch.when, move, edge, path: Object.freeze([edge]), plain, exit, entry };
};
