import { type CompiledTable, compileTable } from '../kernel/compile-table.js';
import type { Edge } from '../kernel/step-types.js';
import type { HasType, MoveResult } from '../kernel/table.js';
import { reportOf } from './build-report.js';
import type { From, StateOptions } from './builder-types.js';

/** Compiles the registrations of a builder into a table for the stepper. */

export type Registration<S, C, R> = {
  readonly from: readonly S[] | '*';
  /** null for a transition without an event. */
  readonly events: readonly string[] | null;
  readonly to: S | '*';
  readonly guard: ((event: HasType, context: C) => boolean) | undefined;
  readonly action: ((event: HasType, context: C) => R) | undefined;
  readonly internal: 'no' | 'yes';
  readonly label: string;
};

export type MachinePlan<S extends string, C, R> = {
  readonly rows: Registration<S, C, R>[];
  readonly states: Map<S, StateOptions<C, R>>;
  readonly ends: Set<string>;
  readonly errors: Set<string>;
  /** The context after a callback, from the context before it and its return value. */
  readonly next: (context: C, returned: R) => C;
};

/** State and context as one state of the stepper. */
export type PlannedState<S, C> = { readonly name: S; readonly context: C };
type Move<S, C> = (held: PlannedState<S, C>, event: HasType) => MoveResult<PlannedState<S, C>, never>;
export type PlannedBranch<S, C> = {
  readonly when?: (held: PlannedState<S, C>, event: HasType) => boolean;
  readonly to?: S;
  readonly as: string;
} & (
  | { readonly then: Move<S, C>; readonly stay?: undefined }
  | { readonly then?: undefined; readonly stay: Move<S, C> }
);
export type CompiledPlan<S, C> = CompiledTable<PlannedState<S, C>, HasType, never>;

/** START: the event that enters a state. UNMATCHED: marks the branch taken when no transition applies. */
export const START = '\0start';
const UNMATCHED = '\0unmatched';
/** Whether the edge comes from a registration. */
export const isRegistered = (edge: Edge): boolean => edge.event !== START && edge.as !== UNMATCHED;

const NONE: readonly never[] = Object.freeze([]);
/** The result of a move; these machines have no actions. */
export const hold = <S extends string, C>(name: S, context: C): MoveResult<PlannedState<S, C>, never> => ({
  state: { name, context },
  actions: NONE,
});
const settle = <H>(held: H): MoveResult<H, never> => ({ state: held, actions: NONE });
const unmatched = <H>(held: H): MoveResult<H, never> => ({ ...settle(held), late: 'no transition applies' });

export const listOf = <S extends string>(from: From<S>): readonly S[] | '*' => {
  if (typeof from !== 'string') return [...from];
  // A name that is '*' means any state, here and everywhere.
  return from === '*' ? '*' : [from as S];
};

/** Registrations for a state and event in the order of trial: those that name the state, then those for `*`. */
const rowsFor = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  state: S,
  event: string | null,
): readonly Registration<S, C, R>[] => {
  const of = plan.rows.filter(({ events }) => (event === null ? events === null : events?.includes(event)));
  const exact = of.filter(({ from }) => from !== '*' && from.includes(state));
  return plan.ends.has(state) ? exact : [...exact, ...of.filter(({ from }) => from === '*')];
};

/** All states mentioned, in that order, the initial one first. */
export const namesOf = <S extends string, C, R>(plan: MachinePlan<S, C, R>, initial: S): readonly S[] => {
  const { rows, states, ends, errors } = plan;
  const used = rows.flatMap(({ from, to }) => [...(from === '*' ? [] : from), ...(to === '*' ? [] : [to])]);
  // These two sets hold only names of states.
  const marked = [...ends, ...errors] as S[];
  return [...new Set([initial, ...states.keys(), ...used, ...marked])];
};

export const eventsOf = <S extends string, C, R>({ rows }: MachinePlan<S, C, R>): readonly string[] => [
  ...new Set(rows.flatMap(({ events }) => events ?? [])),
];

/** Compiles the plan into a table for the stepper. */
export const compilePlan = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  names: readonly S[],
  arcellsOf: (from: S, row: Registration<S, C, R>) => PlannedBranch<S, C>,
): CompiledPlan<S, C> => {
  const events = eventsOf(plan);
  const branchesOf = (state: S, event: string | null): readonly PlannedBranch<S, C>[] =>
    rowsFor(plan, state, event).map((row) => arcellsOf(state, row));
  const cellsOf = (state: S) => [
    ...events.map(
      (event) => [event, [...branchesOf(state, event), { as: UNMATCHED, stay: unmatched }]] as const,
    ),
    [START, [{ as: '', stay: settle }]] as const,
  ];
  return compileTable<PlannedState<S, C>, HasType, never>(names, [...events, START], new Set(), {
    states: Object.fromEntries(
      names.map((state) => [
        state,
        { on: Object.fromEntries(cellsOf(state)), always: branchesOf(state, null) },
      ]),
    ),
    defaults: {},
  });
};

/** Describes the machine without running it. */
export const describePlan = <S extends string, C, R>(
  plan: MachinePlan<S, C, R>,
  initial: S,
  names: readonly S[],
  all: readonly Edge[],
) => {
  const events = eventsOf(plan);
  const edges = Object.freeze(all.filter(isRegistered));
  const goesOn = (state: S): boolean => rowsFor(plan, state, null).some(({ guard }) => guard === undefined);
  const transient = names.filter(goesOn);
  return {
    edges,
    initial,
    transient,
    ends: [...plan.ends],
    ignored: [],
    states: Object.fromEntries(names.map((name) => [name, plan.states.get(name)?.about ?? ''])),
    events: Object.fromEntries(events.map((event) => [event, ''])),
    report: reportOf({ initial, states: names, ends: plan.ends, transient, events, edges }),
  };
};
