import type { Arrow, Compiled } from './compile.js';
import type { Diagnostic, Edge, Step } from './step.js';
import type { Ignored, Named, Next, Typed } from './table.js';

/**
 * One application of the machine.
 *
 * 1. A step takes the event's edge, then edges without an event until a state rests; at most `passesMax` of them.
 * 2. Order of actions: exit, move, entry for each edge taken; rest at the end.
 * 3. A step that would not end changes nothing and says so.
 */

const NONE: readonly never[] = Object.freeze([]);
const passesMax = 100;

/** The step function of a compiled table: pure and total. */
export const stepper =
  <S extends Named, E extends Typed, A>(compiled: Compiled<S, E, A>) =>
  (state: S, event: E): Step<S, A> => {
    const cell = compiled.rows.get(state.name)?.get(event.type);
    if (cell === undefined) return refused(state, event, 'fault', 'no such pair of state and event');
    if ('ignore' in cell) return refused(state, event, cell.ignore, cell.why);
    for (const arrow of cell) {
      if (arrow.when !== undefined && !arrow.when(state, event)) continue;
      const next = arrow.move(state, event);
      if (!arrow.plain) return settle(compiled, state, event, arrow, next);
      const diagnostics = next.late === undefined ? NONE : [lateIn(state, event, next.late)];
      return { state: next.state, actions: next.actions, path: arrow.path, diagnostics };
    }
    return refused(state, event, 'fault', 'no branch applies');
  };

/** Follows edges without an event until a state rests. */
const settle = <S extends Named, E extends Typed, A>(
  compiled: Compiled<S, E, A>,
  before: S,
  event: E,
  first: Arrow<S, E, A>,
  next: Next<S, A>,
): Step<S, A> => {
  const actions: A[] = [];
  const path: Edge[] = [];
  const diagnostics: Diagnostic[] = [];
  let state = before;
  let entered = false;
  let arrow: Arrow<S, E, A> | undefined = first;
  while (arrow !== undefined) {
    if (path.length > passesMax) return endless(before, event, path);
    if (arrow.exit !== undefined) actions.push(...arrow.exit(state, event));
    const moved: Next<S, A> = arrow === first ? next : arrow.move(state, event);
    if (moved.late !== undefined) diagnostics.push(lateIn(state, event, moved.late));
    path.push(arrow.edge);
    actions.push(...moved.actions);
    state = moved.state;
    if (arrow.entry !== undefined) {
      const entry = arrow.entry(state, event);
      state = entry.state;
      actions.push(...entry.actions);
    }
    entered ||= arrow.edge.kind === 'go';
    arrow = passingOf(compiled, state, event, entered);
  }
  const rest = entered ? compiled.rest.get(state.name)?.(state, event) : undefined;
  if (rest !== undefined) actions.push(...rest.actions);
  return { state: rest?.state ?? state, actions, path, diagnostics };
};

const passingOf = <S extends Named, E extends Typed, A>(
  compiled: Compiled<S, E, A>,
  state: S,
  event: E,
  entered: boolean,
): Arrow<S, E, A> | undefined => {
  const own = compiled.passing.get(state.name);
  if (own === undefined || (own.tried === 'entry' && !entered)) return undefined;
  return own.arrows.find((arrow) => arrow.when === undefined || arrow.when(state, event));
};

const lateIn = (state: Named, event: Typed, why: string): Diagnostic => ({
  kind: 'late',
  state: state.name,
  event: event.type,
  why,
});

const refused = <S extends Named, A>(
  state: S,
  event: Typed,
  kind: Ignored['ignore'],
  why: string,
): Step<S, A> => ({
  state,
  actions: NONE,
  path: NONE,
  diagnostics: [{ kind, state: state.name, event: event.type, why }],
});

const endless = <S extends Named, A>(state: S, event: Typed, path: readonly Edge[]): Step<S, A> => {
  const last = path.slice(-6).map((edge) => edge.to);
  return refused(
    state,
    event,
    'fault',
    `${passesMax} states passed without coming to rest: … ${last.join(' -> ')}`,
  );
};
