import type { BuildReport } from './report.js';
import type { Described, Diagnostic, Edge } from './step.js';
import type { EventOf, Typed } from './table.js';

/** What a machine that is put together call by call looks like from outside; build.ts makes it. */

/** One state, several, or any that is not terminal. */
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
  /** Tells transitions apart, in failures and diagrams. */
  readonly label?: string;
};
export type AlwaysOptions<C, R> = {
  readonly guard?: (context: C) => boolean;
  readonly action?: (context: C) => R;
  readonly label?: string;
};

export type Stepped<S extends string, C> = {
  readonly state: S;
  readonly context: C;
  /** Every transition taken, those without an event too; empty where none was. */
  readonly path: readonly Edge[];
  /** Names the event that had no transition. */
  readonly diagnostics: readonly Diagnostic[];
};

/** Frozen, and the same for all who drive it: state and context are theirs. */
export type BuiltMachine<S extends string, E extends Typed, C> = Described & {
  readonly initial: S;
  readonly report: BuildReport<S>;
  /** Throws CallbackFailed and EndlessTransitions. */
  step(state: S, context: C, event: E): Stepped<S, C>;
  /** Begins in a state: its onEnter, then transitions without an event. */
  enter(state: S, context: C): Stepped<S, C>;
  /** Goes to a state whether a transition leads there or not: onExit, onEnter, no action. */
  move(state: S, context: C, to: S): Stepped<S, C>;
  /** The states to which a transition leads from this one. */
  legalFrom(state: S): readonly S[];
  isTerminal(state: S): boolean;
  isError(state: S): boolean;
};

/** Chainable: every registration returns the builder. `R` is what a callback returns. */
export type MachineBuilder<S extends string, E extends Typed, C, R> = {
  /** Optional for a state without callbacks. Again for the same name: the later options count. */
  state(name: S, options?: StateOptions<C, R>): MachineBuilder<S, E, C, R>;
  /** `event`: one type or several; guard and action get exactly these. `to: '*'` is the state it is in. */
  transition<const T extends E['type']>(
    from: From<S>,
    event: T | readonly T[],
    to: S | '*',
    options?: TransitionOptions<EventOf<E, T>, C, R>,
  ): MachineBuilder<S, E, C, R>;
  /** A transition without an event: taken as soon as its guard holds in a state that was entered or stayed in. */
  always(from: From<S>, to: S, options?: AlwaysOptions<C, R>): MachineBuilder<S, E, C, R>;
  /** States where a run ends. They may be left by transitions that name them, not by `'*'`. */
  terminal(...names: readonly S[]): MachineBuilder<S, E, C, R>;
  /** States that mean failure; see `isError`. */
  error(...names: readonly S[]): MachineBuilder<S, E, C, R>;
  /** Freezes. Later registrations throw MachineFrozen. */
  build(initial: S): BuiltMachine<S, E, C>;
};

/** Callbacks return the next context and change nothing. */
export type StateMachine<S extends string, E extends Typed, C> = MachineBuilder<S, E, C, C>;
/** Callbacks change the context, which stays the same object. */
export type MutableStateMachine<S extends string, E extends Typed, C> = MachineBuilder<S, E, C, void>;
