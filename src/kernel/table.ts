/**
 * What a machine is: a table, total by type.
 *
 * 1. Every resting state answers every event; every transient state has branches of which the last has no guard.
 *    A missing cell, a wrong target, a list that can fall through, a move of another state: none of them compiles.
 * 2. Guards look, moves compute, the table decides. Both are named functions: the names label the diagram.
 */

export type Named = { readonly name: string };
export type Typed = { readonly type: string };
export type StateOf<S extends Named, K extends S['name']> = Extract<S, { readonly name: K }>;
export type EventOf<E extends Typed, T extends E['type']> = Extract<E, { readonly type: T }>;

/** What a move returns. `late` says why an event changed nothing; it becomes a diagnostic. */
export type Next<S, A> = { readonly state: S; readonly actions: readonly A[]; readonly late?: string };
export type Move<From, E, To, A> = (state: From, event: E) => Next<To, A>;
export type Guard<From, E> = (state: From, event: E) => boolean;

/** Leaves the state (exit and entry run, also when `to` is the state itself). `as` tells variants of an arrow apart. */
type Go<S extends Named, E, A, From> = {
  [K in S['name']]: {
    readonly to: K;
    readonly then: Move<From, E, StateOf<S, K>, A>;
    readonly as?: string;
    readonly stay?: undefined;
  };
}[S['name']];
/** Stays: neither exit nor entry nor rest runs. */
type Stay<E, A, From> = {
  readonly stay: Move<From, E, From, A>;
  readonly to?: undefined;
  readonly as?: string;
  readonly then?: undefined;
};

export type Open<S extends Named, E, A, From> = (Go<S, E, A, From> | Stay<E, A, From>) & {
  readonly when?: undefined;
};
export type Guarded<S extends Named, E, A, From> = (Go<S, E, A, From> | Stay<E, A, From>) & {
  readonly when: Guard<From, E>;
};
/** First match wins; the last branch has no guard, so a list cannot fall through. */
export type Branches<S extends Named, E, A, From> =
  | Open<S, E, A, From>
  | readonly [...Guarded<S, E, A, From>[], Open<S, E, A, From>];
/** `late`: harmless. `fault`: the runtime broke the protocol. Both leave the state alone and leave a diagnostic. */
export type Ignored = { readonly ignore: 'late' | 'fault'; readonly why: string };
export type Cell<S extends Named, E, A, From> = Branches<S, E, A, From> | Ignored;

/** A default cell: for every resting state that has none of its own for the event. */
type AnyBranch<S extends Named, E, A, From extends S> =
  | {
      readonly stay: <F extends From>(state: F, event: E) => Next<F, A>;
      readonly to?: undefined;
      readonly when?: undefined;
      readonly as?: string;
    }
  | (Go<S, E, A, From> & { readonly when?: undefined });

/** Branches of a resting state that are taken without an event. */
type Passed<S extends Named, E, A, From> = {
  /** `entry`: tried only when the state is entered; `always`: also after an event that stays. */
  readonly tried: 'entry' | 'always';
  readonly branches: readonly (Go<S, E, A, From> & { readonly when: Guard<From, E> })[];
};

export type Table<
  S extends Named,
  E extends Typed,
  A,
  Transient extends S['name'],
  Default extends E['type'],
> = {
  readonly on: {
    readonly [K in Exclude<S['name'], Transient>]: {
      readonly [T in Exclude<E['type'], Default>]: Cell<S, EventOf<E, T>, A, StateOf<S, K>>;
    } & { readonly [T in Default]?: Cell<S, EventOf<E, T>, A, StateOf<S, K>> };
  };
  readonly any: {
    readonly [T in Default]: AnyBranch<S, EventOf<E, T>, A, Exclude<S, { readonly name: Transient }>>;
  };
  readonly transient: { readonly [K in Transient]: Branches<S, E, A, StateOf<S, K>> };
  readonly passed?: { readonly [K in Exclude<S['name'], Transient>]?: Passed<S, E, A, StateOf<S, K>> };
  /** Runs when the state is entered, passed or not. */
  readonly entry?: { readonly [K in S['name']]?: Move<StateOf<S, K>, E, StateOf<S, K>, A> };
  /** Runs when the state is left, before the move's own actions. */
  readonly exit?: { readonly [K in S['name']]?: (state: StateOf<S, K>, event: E) => readonly A[] };
  /** Runs when an entered state comes to rest, after everything else. */
  readonly rest?: {
    readonly [K in Exclude<S['name'], Transient>]?: Move<StateOf<S, K>, E, StateOf<S, K>, A>;
  };
};

/** Names with one line of documentation each: a forgotten state or event does not compile. */
export type Spec<S extends Named, E extends Typed, Transient, Default> = {
  readonly states: { readonly [K in S['name']]: string };
  readonly events: { readonly [T in E['type']]: string };
  readonly initial: S['name'];
  readonly transient: readonly Transient[];
  /** Events that have a default row. */
  readonly defaults: readonly Default[];
  /** States drawn with an end mark. */
  readonly ends: readonly S['name'][];
};

/** A harmless event that changes nothing here. */
export const late = (why: string): Ignored => ({ ignore: 'late', why });
/** An event that the runtime must never send here. */
export const fault = (why: string): Ignored => ({ ignore: 'fault', why });
