/**
 * The table of a machine, total by type.
 *
 * 1. Every resting state answers every event. The last branch of a transient state has no guard. A
 *    missing cell, a wrong target, a list that can fall through, a move of another state: none of
 *    them compiles.
 * 2. Guards look, moves compute, the table decides. Both are named functions: the names label the
 *    diagram.
 *
 * A resting state waits for an event; a transient one is left at once, in the same step. From top
 * to bottom: branches, cells and rows; the whole table; and what a step of a machine results in.
 */

import type { Shape } from './shape.js';

export type HasName = { readonly name: string };
export type HasType = { readonly type: string };
/** The state of this name. */
export type StateOf<S extends HasName, K extends S['name']> = Extract<S, { readonly name: K }>;
/** The event of this type. */
export type EventOf<E extends HasType, T extends E['type']> = Extract<E, { readonly type: T }>;

/**
 * The next state, and actions in order. `late` or `fault` says why the event changed nothing; it
 * becomes a diagnostic of this kind.
 */
export type MoveResult<S, A> = {
  readonly state: S;
  readonly actions: readonly A[];
  readonly late?: string;
  readonly fault?: string;
};
export type Move<From, E, To, A> = (state: From, event: E) => MoveResult<To, A>;
export type Guard<From, E> = (state: From, event: E) => boolean;

/**
 * Leaves the state: exit and entry run, also when `to` is the state itself. `as` names a variant of
 * the arrow.
 */
type Go<S extends HasName, E, A, From> = {
  [K in S['name']]: {
    readonly to: K;
    readonly then: Move<From, E, StateOf<S, K>, A>;
    readonly as?: string;
    readonly stay?: undefined;
  };
}[S['name']];
/** Stays: exit, entry and rest do not run. */
type Stay<E, A, From> = {
  readonly stay: Move<From, E, From, A>;
  readonly to?: undefined;
  readonly as?: string;
  readonly then?: undefined;
};

type OpenBranch<S extends HasName, E, A, From> = (Go<S, E, A, From> | Stay<E, A, From>) & {
  readonly when?: undefined;
};
type GuardedBranch<S extends HasName, E, A, From> = (Go<S, E, A, From> | Stay<E, A, From>) & {
  readonly when: Guard<From, E>;
};
/** First match wins. The last branch has no guard, so a list cannot fall through. */
type Branches<S extends HasName, E, A, From> =
  | OpenBranch<S, E, A, From>
  | readonly [...GuardedBranch<S, E, A, From>[], OpenBranch<S, E, A, From>];
/**
 * Changes nothing and leaves a diagnostic. `late`: the event is harmless. `fault`: the runtime
 * broke the protocol.
 */
export type IgnoredCell = { readonly ignore: 'late' | 'fault'; readonly why: string };
type TableCell<S extends HasName, E, A, From> = Branches<S, E, A, From> | IgnoredCell;

/** A default cell, for every resting state without a cell of its own for the event. */
type DefaultCell<S extends HasName, E, A, From extends S> =
  | {
      readonly stay: <F extends From>(state: F, event: E) => MoveResult<F, A>;
      readonly to?: undefined;
      readonly when?: undefined;
      readonly as?: string;
    }
  | (Go<S, E, A, From> & { readonly when?: undefined });

/** Branches that a resting state takes without an event. If none applies, the state rests. */
type EventlessBranches<S extends HasName, E, A, From> = readonly (Go<S, E, A, From> & {
  readonly when: Guard<From, E>;
})[];

type RowMoves<E, A, From> = {
  /** Runs when the state is entered, before its eventless branches. */
  readonly entry?: Move<From, E, From, A>;
  /** Runs when the state is left, before the move's own actions. */
  readonly exit?: (state: From, event: E) => readonly A[];
};

type RestingRow<
  S extends HasName,
  E extends HasType,
  A,
  Default extends E['type'],
  From,
> = RowMoves<E, A, From> & {
  readonly on: {
    readonly [T in Exclude<E['type'], Default>]: TableCell<S, EventOf<E, T>, A, From>;
  } & { readonly [T in Default]?: TableCell<S, EventOf<E, T>, A, From> };
  /** Runs when the entered state comes to rest, after everything else. */
  readonly rest?: Move<From, E, From, A>;
} & (
    | {
        /** Tried on entry and after every event that stays. */
        readonly always?: EventlessBranches<S, E, A, From>;
        readonly alwaysOnEntry?: undefined;
      }
    | {
        readonly always?: undefined;
        /** Tried on entry only. */
        readonly alwaysOnEntry: EventlessBranches<S, E, A, From>;
      }
  );

type TransientRow<S extends HasName, E, A, From> = RowMoves<E, A, From> & {
  readonly always: Branches<S, E, A, From>;
  readonly on?: undefined;
  readonly alwaysOnEntry?: undefined;
  readonly rest?: undefined;
};

export type Table<
  S extends HasName,
  E extends HasType,
  A,
  Transient extends S['name'],
  Default extends E['type'],
> = {
  readonly states: {
    readonly [K in S['name']]: K extends Transient
      ? TransientRow<S, E, A, StateOf<S, K>>
      : RestingRow<S, E, A, Default, StateOf<S, K>>;
  };
  readonly defaults: {
    readonly [T in Default]: DefaultCell<
      S,
      EventOf<E, T>,
      A,
      Exclude<S, { readonly name: Transient }>
    >;
  };
};

/**
 * The names of a machine, each with one line of documentation: a forgotten state or event does not
 * compile.
 */
export type MachineSpec<S extends HasName, E extends HasType, Transient, Default> = {
  readonly states: { readonly [K in S['name']]: string };
  readonly events: { readonly [T in E['type']]: string };
  /** The shape of every event. Without it the stepper checks only that an event has a type. */
  readonly shape?: Shape<E>;
  readonly initial: S['name'];
  readonly transient: readonly Transient[];
  /** Events that have a default cell. */
  readonly defaults: readonly Default[];
  /** States drawn with an end mark. */
  readonly ends: readonly S['name'][];
};

/** A harmless event that changes nothing here. */
export const late = (why: string): IgnoredCell => ({ ignore: 'late', why });
/** An event that the runtime must never send here. */
export const fault = (why: string): IgnoredCell => ({ ignore: 'fault', why });

/** A branch of the table. Frozen, made once, the same object in every step that takes it. */
export type Edge = {
  /** Stable within a version of the table: `from/event/index`. */
  readonly id: string;
  readonly from: string;
  /** null for an edge that is taken without an event. */
  readonly event: string | null;
  /** The guard's name; empty without a guard. */
  readonly when: string;
  readonly to: string;
  /** The variant of the edge; empty for an edge without variants. */
  readonly as: string;
  /** The move's name. */
  readonly then: string;
  /** `stay`: exit and entry do not run. */
  readonly kind: 'go' | 'stay';
};

/**
 * An event that changed nothing, and why. `malformed`: the value is not an event of the machine.
 */
export type Diagnostic = {
  readonly kind: IgnoredCell['ignore'] | 'malformed';
  readonly state: string;
  readonly event: string;
  readonly why: string;
};

/**
 * The result of one application of the machine. `path` has every edge taken, also through transient
 * states.
 */
export type Step<S, A> = {
  readonly state: S;
  readonly actions: readonly A[];
  readonly path: readonly Edge[];
  readonly diagnostics: readonly Diagnostic[];
};

/** A pair of state and event without an edge, and why. */
export type IgnoredPair = IgnoredCell & { readonly state: string; readonly event: string };

/** A machine as data: the source of diagrams, documents and checks. */
export type MachineDescription = {
  readonly edges: readonly Edge[];
  readonly ignored: readonly IgnoredPair[];
  /** Names, each with one line of documentation. */
  readonly states: Readonly<Record<string, string>>;
  readonly events: Readonly<Record<string, string>>;
  readonly initial: string;
  readonly transient: readonly string[];
  readonly ends: readonly string[];
};
