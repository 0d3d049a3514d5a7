import type { Diagnostic, Edge, MachineDescription } from '../kernel/step-types.js';
import type { EventOf, HasType } from '../kernel/table.js';
import type { BuildReport } from './build-report.js';

/** The types of machines that are built by calls. build-machine.ts makes them. */

/** One state, several, or `*` for every state that is not terminal. */
export type From<S extends string> = S | readonly S[] | '*';

export type StateOptions<C, R> = {
  readonly onEnter?: (context: C) => R;
  readonly onExit?: (context: C) => R;
  /** A line for diagrams and documents. */
  readonly about?: string;
};
export type TransitionOptions<E, C, R> = {
  readonly guard?: (event: E, context: C) => boolean;
  readonly action?: (event: E, context: C) => R;
  /** Stays in the state: neither onExit nor onEnter runs. */
  readonly internal?: true;
  /** Names the transition in failures and diagrams. */
  readonly label?: string;
};
export type AlwaysOptions<C, R> = {
  readonly guard?: (context: C) => boolean;
  readonly action?: (context: C) => R;
  readonly label?: string;
};

export type BuilderStep<S extends string, C> = {
  readonly state: S;
  readonly context: C;
  /** Every transition taken, also those without an event; empty if there was none. */
  readonly path: readonly Edge[];
  /** Names an event that had no transition. */
  readonly diagnostics: readonly Diagnostic[];
};

/** Frozen and shared: each driver keeps its own state and context. */
export type BuiltMachine<S extends string, E extends HasType, C> = MachineDescription & {
  readonly initial: S;
  readonly report: BuildReport<S>;
  /** Throws CallbackFailed and EndlessTransitions. */
  step(state: S, context: C, event: E): BuilderStep<S, C>;
  /** Enters a state: runs its onEnter, then transitions without an event. */
  enter(state: S, context: C): BuilderStep<S, C>;
  /** Goes to a state even if no transition leads there: runs onExit and onEnter, but no action. */
  move(state: S, context: C, to: S): BuilderStep<S, C>;
  /** The states to which a transition leads from this one. */
  legalFrom(state: S): readonly S[];
  isTerminal(state: S): boolean;
  isError(state: S): boolean;
};

/** Every registration returns the builder. `R` is the return type of callbacks. */
export type MachineBuilder<S extends string, E extends HasType, C, R> = {
  /** Optional for a state without callbacks. The last call for a name counts. */
  state(name: S, options?: StateOptions<C, R>): MachineBuilder<S, E, C, R>;
  /** `event`: one type or several. Guard and action receive exactly these. `to: '*'` keeps the current state. */
  transition<const T extends E['type']>(
    from: From<S>,
    event: T | readonly T[],
    to: S | '*',
    options?: TransitionOptions<EventOf<E, T>, C, R>,
  ): MachineBuilder<S, E, C, R>;
  /** A transition without an event. Its guard is tried when the state is entered and after events that stay. */
  always(from: From<S>, to: S, options?: AlwaysOptions<C, R>): MachineBuilder<S, E, C, R>;
  /** States where a run ends. Only transitions that name them leave them, not those from `'*'`. */
  terminal(...names: readonly S[]): MachineBuilder<S, E, C, R>;
  /** States that mean failure; see `isError`. */
  error(...names: readonly S[]): MachineBuilder<S, E, C, R>;
  /** Freezes. Later registrations throw MachineFrozen. */
  build(initial: S): BuiltMachine<S, E, C>;
};

/** Callbacks return the next context and change nothing. */
export type StateMachine<S extends string, E extends HasType, C> = MachineBuilder<S, E, C, C>;
/** Callbacks change the context, which stays the same object. */
export type MutableStateMachine<S extends string, E extends HasType, C> = MachineBuilder<S, E, C, void>;
