/**
 * Makes a machine from its table: the table is compiled into look-ups once, and each step follows
 * them.
 */

import { faultIn, typeIn } from './shape.js';
import type {
  Diagnostic,
  Edge,
  Guard,
  HasName,
  HasType,
  IgnoredCell,
  IgnoredPair,
  MachineDescription,
  MachineSpec,
  Move,
  MoveResult,
  Step,
  Table,
} from './table.js';

export type Machine<S extends HasName, E extends HasType, A> = MachineDescription & {
  /**
   * Pure and total: same state and event, same result; never throws. A value that is not an event
   * of the machine changes nothing and leaves a diagnostic of the kind `malformed`.
   */
  step(state: S, event: E): Step<S, A>;
  /** As `step`, for events that were checked before, such as those of a journal. */
  stepUnchecked(state: S, event: E): Step<S, A>;
};

/**
 * Makes a machine from a table. It is curried, so that the names are fixed before the table is
 * checked: `machine<State, Event, Action>()(spec)(table)`.
 */
export const machine =
  <S extends HasName, E extends HasType, A>() =>
  <const Transient extends S['name'], const Default extends E['type']>(
    spec: MachineSpec<S, E, Transient, Default>,
  ) =>
  (table: Table<S, E, A, Transient, Default>): Machine<S, E, A> => {
    // The only place where the table loses its types: `Table` has just proved that every cell fits
    // its state and event.
    const loose = table as never;
    const { states, events, initial, transient, ends, shape } = spec;
    const passed = new Set<string>(transient); // left at once, in the step that enters them
    const compiled = compileTable<S, E, A>(Object.keys(states), Object.keys(events), passed, loose);
    const { edges, ignored } = compiled;
    const stepUnchecked = stepper(compiled);
    const step = (state: S, event: E): Step<S, A> => {
      const untyped = typeIn(event) === null ? 'it has no type that is a text' : null;
      const why = shape === undefined ? untyped : faultIn(shape, event, 'the event');
      return why === null ? stepUnchecked(state, event) : refuseEvent(state, event, why);
    };
    return { step, stepUnchecked, edges, ignored, states, events, initial, transient, ends };
  };

/*
 * ---- One step ----
 *
 * 1. A step takes the event's edge, then edges without an event until a state rests; at most
 *    `EDGES_MAX` without an event.
 * 2. Order of actions: exit, move, entry for each edge taken; rest at the end.
 * 3. A step that does not come to rest changes nothing and leaves a diagnostic.
 */

const NONE: readonly never[] = Object.freeze([]);
const EDGES_MAX = 100;

/** Makes the step function of a compiled table: pure and total. */
export const stepper =
  <S extends HasName, E extends HasType, A>(compiled: CompiledTable<S, E, A>) =>
  (state: S, event: E): Step<S, A> => {
    const cell = compiled.rows.get(state.name)?.cells.get(event.type);
    if (cell === undefined)
      return compiled.events.has(event.type)
        ? refuse(state, event.type, 'fault', 'no such pair of state and event')
        : refuseEvent(state, event, 'it is none of the events of this machine');
    if ('ignore' in cell) return refuse(state, event.type, cell.ignore, cell.why);
    for (const branch of cell) {
      if (branch.when !== undefined && !branch.when(state, event)) continue;
      const next = branch.move(state, event);
      if (!branch.plain) return settleState(compiled, state, event, branch, next);
      const diagnostics = reasonsIn(state, event, next);
      return { state: next.state, actions: next.actions, path: branch.path, diagnostics };
    }
    return refuse(state, event.type, 'fault', 'no branch applies');
  };

/** Follows edges without an event until a state rests. */
const settleState = <S extends HasName, E extends HasType, A>(
  compiled: CompiledTable<S, E, A>,
  before: S,
  event: E,
  first: CompiledBranch<S, E, A>,
  next: MoveResult<S, A>,
): Step<S, A> => {
  const actions: A[] = [];
  const path: Edge[] = [];
  const diagnostics: Diagnostic[] = [];
  let state = before;
  let entered = false;
  let branch: CompiledBranch<S, E, A> | undefined = first;
  while (branch !== undefined) {
    if (path.length > EDGES_MAX) {
      const last = path.slice(-6).map((edge) => edge.to);
      const why = `${EDGES_MAX} states passed without coming to rest: … ${last.join(' -> ')}`;
      return refuse(before, event.type, 'fault', why);
    }
    if (branch.exit !== undefined) actions.push(...branch.exit(state, event));
    const moved: MoveResult<S, A> = branch === first ? next : branch.move(state, event);
    diagnostics.push(...reasonsIn(state, event, moved));
    path.push(branch.edge);
    actions.push(...moved.actions);
    state = moved.state;
    if (branch.entry !== undefined) {
      const entry = branch.entry(state, event);
      state = entry.state;
      actions.push(...entry.actions);
    }
    entered ||= branch.edge.kind === 'go';
    branch = compiled.rows
      .get(state.name)
      ?.eventless.find(({ when }) => when === undefined || when(state, event));
  }
  const rest = entered ? compiled.rows.get(state.name)?.rest?.(state, event) : undefined;
  if (rest !== undefined) actions.push(...rest.actions);
  return { state: rest?.state ?? state, actions, path, diagnostics };
};

/** Why a move changed nothing. */
const reasonsIn = <S, A>(
  { name }: HasName,
  { type }: HasType,
  { late, fault }: MoveResult<S, A>,
): readonly Diagnostic[] => {
  if (fault !== undefined) return [{ kind: 'fault', state: name, event: type, why: fault }];
  return late === undefined ? NONE : [{ kind: 'late', state: name, event: type, why: late }];
};

/** A step that changes nothing. */
const refuse = <S extends HasName, A>(
  state: S,
  event: string,
  kind: Diagnostic['kind'],
  why: string,
): Step<S, A> => ({
  state,
  actions: NONE,
  path: NONE,
  diagnostics: [{ kind, state: state.name, event, why }],
});

/** A step that changes nothing because the value is not an event of the machine. */
export const refuseEvent = <S extends HasName, A>(
  state: S,
  event: unknown,
  why: string,
): Step<S, A> => refuse(state, typeIn(event) ?? '', 'malformed', why);

// ---- Compilation ----

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
type LooseTable<S, E, A> = {
  readonly states: Readonly<Record<string, LooseRow<S, E, A>>>;
  readonly defaults: Readonly<Record<string, LooseCell<S, E, A>>>;
};

/** A branch ready to be taken. `plain`: nothing can follow its move, so the step ends with it. */
type CompiledBranch<S, E, A> = {
  readonly when: Guard<S, E> | undefined;
  readonly move: Move<S, E, S, A>;
  readonly edge: Edge;
  readonly path: readonly Edge[];
  readonly plain: boolean;
  readonly exit: Exit<S, E, A> | undefined;
  readonly entry: Move<S, E, S, A> | undefined;
};
type CompiledCell<S, E, A> = readonly CompiledBranch<S, E, A>[] | IgnoredCell;
type CompiledRow<S, E, A> = {
  readonly cells: ReadonlyMap<string, CompiledCell<S, E, A>>;
  /**
   * Branches without an event. After an event that stays, `plain` of its branch says whether they
   * are tried.
   */
  readonly eventless: readonly CompiledBranch<S, E, A>[];
  readonly rest: Move<S, E, S, A> | undefined;
};
export type CompiledTable<S, E, A> = {
  readonly rows: ReadonlyMap<string, CompiledRow<S, E, A>>;
  readonly events: ReadonlySet<string>;
  readonly edges: readonly Edge[];
  readonly ignored: readonly IgnoredPair[];
};

/**
 * Compiles a table into look-ups; `machine` has checked its types. Edges are made once, frozen, and
 * shared by all steps.
 */
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
      const compiled = compileBranch(from, event, index, branch, table.states);
      edges.push(compiled.edge);
      return compiled;
    });
  const compileCell = (
    state: string,
    event: string,
    cell: LooseCell<S, E, A>,
  ): CompiledCell<S, E, A> => {
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
      rest: row.rest,
    });
  }
  return {
    rows,
    events: new Set(events),
    edges: Object.freeze(edges),
    ignored: Object.freeze(ignored),
  };
};

const compileBranch = <S, E, A>(
  from: string,
  event: string | null,
  index: number,
  branch: LooseBranch<S, E, A>,
  states: LooseTable<S, E, A>['states'],
): CompiledBranch<S, E, A> => {
  const move = branch.then ?? branch.stay;
  const leaves = branch.stay === undefined;
  const edge: Edge = Object.freeze({
    id: `${from}/${event ?? ''}/${index}`,
    from,
    event,
    when: branch.when?.name ?? '',
    to: branch.to ?? from,
    as: branch.as ?? '',
    then: move.name,
    kind: leaves ? 'go' : 'stay',
  });
  const target = states[edge.to] ?? {};
  const exit = leaves ? states[from]?.exit : undefined;
  const entry = leaves ? target.entry : undefined;
  const rests = leaves && target.rest !== undefined;
  const goesOn = target.always !== undefined || (leaves && target.alwaysOnEntry !== undefined);
  const plain = exit === undefined && entry === undefined && !rests && !goesOn;
  return { when: branch.when, move, edge, path: Object.freeze([edge]), plain, exit, entry };
};
