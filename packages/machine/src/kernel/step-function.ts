import type { CompiledBranch, CompiledTable } from './compile-table.js';
import { typeIn } from './shape.js';
import type { Diagnostic, Edge, Step } from './step-types.js';
import type { HasName, HasType, IgnoredCell, MoveResult } from './table.js';

/**
 * One application of the machine.
 *
 * 1. A step takes the event's edge, then edges without an event until a state rests; at most `EDGES_MAX` of them.
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
    if (cell === undefined) return refuseUnknown(compiled, state, event);
    if ('ignore' in cell) return refused(state, event, cell.ignore, cell.why);
    for (const branch of cell) {
      if (branch.when !== undefined && !branch.when(state, event)) continue;
      const next = branch.move(state, event);
      if (!branch.plain) return settleState(compiled, state, event, branch, next);
      const diagnostics = next.late === undefined ? NONE : [lateIn(state, event, next.late)];
      return { state: next.state, actions: next.actions, path: branch.path, diagnostics };
    }
    return refused(state, event, 'fault', 'no branch applies');
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
    if (path.length > EDGES_MAX) return endless(before, event, path);
    if (branch.exit !== undefined) actions.push(...branch.exit(state, event));
    const moved: MoveResult<S, A> = branch === first ? next : branch.move(state, event);
    if (moved.late !== undefined) diagnostics.push(lateIn(state, event, moved.late));
    path.push(branch.edge);
    actions.push(...moved.actions);
    state = moved.state;
    if (branch.entry !== undefined) {
      const entry = branch.entry(state, event);
      state = entry.state;
      actions.push(...entry.actions);
    }
    entered ||= branch.edge.kind === 'go';
    branch = eventlessBranch(compiled, state, event, entered);
  }
  const rest = entered ? compiled.rows.get(state.name)?.rest?.(state, event) : undefined;
  if (rest !== undefined) actions.push(...rest.actions);
  return { state: rest?.state ?? state, actions, path, diagnostics };
};

const eventlessBranch = <S extends HasName, E extends HasType, A>(
  compiled: CompiledTable<S, E, A>,
  state: S,
  event: E,
  entered: boolean,
): CompiledBranch<S, E, A> | undefined => {
  const row = compiled.rows.get(state.name);
  if (row === undefined || (row.tried === 'entry' && !entered)) return undefined;
  return row.eventless.find((branch) => branch.when === undefined || branch.when(state, event));
};

const lateIn = (state: HasName, event: HasType, why: string): Diagnostic => ({
  kind: 'late',
  state: state.name,
  event: event.type,
  why,
});

/** There is no cell: the event is unknown, or the state is transient. */
const refuseUnknown = <S extends HasName, E extends HasType, A>(
  { events }: CompiledTable<S, E, A>,
  state: S,
  event: E,
): Step<S, A> =>
  events.has(event.type)
    ? refused(state, event, 'fault', 'no such pair of state and event')
    : refuseEvent(state, event, 'it is none of the events of this machine');

/** A step that changes nothing because the value is not an event of the machine. */
export const refuseEvent = <S extends HasName, A>(state: S, event: unknown, why: string): Step<S, A> => ({
  state,
  actions: NONE,
  path: NONE,
  diagnostics: [{ kind: 'malformed', state: state.name, event: typeIn(event) ?? '', why }],
});

const refused = <S extends HasName, A>(
  state: S,
  event: HasType,
  kind: IgnoredCell['ignore'],
  why: string,
): Step<S, A> => ({
  state,
  actions: NONE,
  path: NONE,
  diagnostics: [{ kind, state: state.name, event: event.type, why }],
});

const endless = <S extends HasName, A>(state: S, event: HasType, path: readonly Edge[]): Step<S, A> => {
  const last = path.slice(-6).map((edge) => edge.to);
  return refused(
    state,
    event,
    'fault',
    `${EDGES_MAX} states passed without coming to rest: … ${last.join(' -> ')}`,
  );
};
