import type { From, StateOptions } from './builder.js';
import { type Compiled, compile } from './compile.js';
import { reportOf } from './report.js';
import type { Edge } from './step.js';
import type { Next, Typed } from './table.js';

/** What was registered, on its way to the arrows that the stepper knows. */

export type Row<S, C, R> = {
  readonly from: readonly S[] | '*';
  /** null: without an event. */
  readonly events: readonly string[] | null;
  readonly to: S | '*';
  readonly guard: ((event: Typed, context: C) => boolean) | undefined;
  readonly action: ((event: Typed, context: C) => R) | undefined;
  readonly internal: 'no' | 'yes';
  readonly label: string;
};

export type Plan<S extends string, C, R> = {
  readonly rows: Row<S, C, R>[];
  readonly states: Map<S, StateOptions<C, R>>;
  readonly ends: Set<string>;
  readonly errors: Set<string>;
  /** The context after a callback, from the one before and what the callback returned. */
  readonly next: (context: C, returned: R) => C;
};

/** State and context as the one state that the stepper knows. */
export type Held<S, C> = { readonly name: S; readonly context: C };
type Move<S, C> = (held: Held<S, C>, event: Typed) => Next<Held<S, C>, never>;
export type Arrow<S, C> = {
  readonly when?: (held: Held<S, C>, event: Typed) => boolean;
  readonly to?: S;
  readonly as: string;
} & (
  | { readonly then: Move<S, C>; readonly stay?: undefined }
  | { readonly then?: undefined; readonly stay: Move<S, C> }
);
export type CompiledPlan<S, C> = Compiled<Held<S, C>, Typed, never>;

/** The event with which a machine begins in a state, and the mark of what is taken where nothing else is. */
export const START = '\0start';
const UNMATCHED = '\0unmatched';
/** Arrows that somebody registered. */
export const isRegistered = (edge: Edge): boolean => edge.event !== START && edge.as !== UNMATCHED;

const NONE: readonly never[] = Object.freeze([]);
/** What a move of such a machine leads to: it wishes nothing of anybody. */
export const hold = <S extends string, C>(name: S, context: C): Next<Held<S, C>, never> => ({
  state: { name, context },
  actions: NONE,
});
const settle = <H>(held: H): Next<H, never> => ({ state: held, actions: NONE });
const unmatched = <H>(held: H): Next<H, never> => ({ ...settle(held), late: 'no transition applies' });

export const listOf = <S extends string>(from: From<S>): readonly S[] | '*' => {
  if (typeof from !== 'string') return [...from];
  // A name that is '*' means any state, here and everywhere.
  return from === '*' ? '*' : [from as S];
};

/** The rows of a pair as they are tried: those that name the state, then those for any. */
const rowsFor = <S extends string, C, R>(
  plan: Plan<S, C, R>,
  state: S,
  event: string | null,
): readonly Row<S, C, R>[] => {
  const of = plan.rows.filter(({ events }) => (event === null ? events === null : events?.includes(event)));
  const exact = of.filter(({ from }) => from !== '*' && from.includes(state));
  return plan.ends.has(state) ? exact : [...exact, ...of.filter(({ from }) => from === '*')];
};

/** All names that were ever mentioned, in that order, the initial one first. */
export const namesOf = <S extends string, C, R>(plan: Plan<S, C, R>, initial: S): readonly S[] => {
  const { rows, states, ends, errors } = plan;
  const used = rows.flatMap(({ from, to }) => [...(from === '*' ? [] : from), ...(to === '*' ? [] : [to])]);
  // Nothing but names of states was put into these two sets.
  const marked = [...ends, ...errors] as S[];
  return [...new Set([initial, ...states.keys(), ...used, ...marked])];
};

export const eventsOf = <S extends string, C, R>({ rows }: Plan<S, C, R>): readonly string[] => [
  ...new Set(rows.flatMap(({ events }) => events ?? [])),
];

/** Compiles to what the stepper of the tables steps. */
export const compilePlan = <S extends string, C, R>(
  plan: Plan<S, C, R>,
  names: readonly S[],
  arrowOf: (from: S, row: Row<S, C, R>) => Arrow<S, C>,
): CompiledPlan<S, C> => {
  const events = eventsOf(plan);
  const arrowsOf = (state: S, event: string | null): readonly Arrow<S, C>[] =>
    rowsFor(plan, state, event).map((row) => arrowOf(state, row));
  const rowOf = (state: S) => [
    ...events.map(
      (event) => [event, [...arrowsOf(state, event), { as: UNMATCHED, stay: unmatched }]] as const,
    ),
    [START, [{ as: '', stay: settle }]] as const,
  ];
  return compile<Held<S, C>, Typed, never>(names, [...events, START], new Set(), {
    on: Object.fromEntries(names.map((state) => [state, Object.fromEntries(rowOf(state))])),
    any: {},
    transient: {},
    passed: Object.fromEntries(
      names.map((state) => [state, { tried: 'always' as const, branches: arrowsOf(state, null) }]),
    ),
  });
};

/** What can be said of it without running it. */
export const describePlan = <S extends string, C, R>(
  plan: Plan<S, C, R>,
  initial: S,
  names: readonly S[],
  all: readonly Edge[],
) => {
  const events = eventsOf(plan);
  const edges = Object.freeze(all.filter(isRegistered));
  const goesOn = (state: S): boolean => rowsFor(plan, state, null).some(({ guard }) => guard === undefined);
  const transient = names.filter(goesOn);
  return {
    ...{ edges, initial, transient, ends: [...plan.ends], ignored: [] },
    states: Object.fromEntries(names.map((name) => [name, plan.states.get(name)?.about ?? ''])),
    events: Object.fromEntries(events.map((event) => [event, ''])),
    report: reportOf({ initial, states: names, ends: plan.ends, transient, events, edges }),
  };
};
