import type { Ignored } from './table.js';

/** An arrow of the table: frozen, made once, the same object in every step that takes it. */
export type Edge = {
  /** Stable within a version of the table: `from/event/index`. */
  readonly id: string;
  readonly from: string;
  /** null: taken without an event. */
  readonly event: string | null;
  /** The guard's name; empty where there is none. */
  readonly when: string;
  readonly to: string;
  /** Tells variants of an arrow apart; empty where there is one. */
  readonly as: string;
  /** The move's name. */
  readonly then: string;
  /** `stay`: neither exit nor entry ran. */
  readonly kind: 'go' | 'stay';
};

/** Names an event that changed nothing: never silent, never fatal. */
export type Diagnostic = {
  readonly kind: Ignored['ignore'];
  readonly state: string;
  readonly event: string;
  readonly why: string;
};

/** One application of the machine. `path` has every edge taken, through transient states too. */
export type Step<S, A> = {
  readonly state: S;
  readonly actions: readonly A[];
  readonly path: readonly Edge[];
  readonly diagnostics: readonly Diagnostic[];
};

/** A pair of state and event that has no arrow, and why. */
export type IgnoredPair = Ignored & { readonly state: string; readonly event: string };

/** All that can be said of a machine without running it: what pictures, documents and checks are made from. */
export type Described = {
  readonly edges: readonly Edge[];
  readonly ignored: readonly IgnoredPair[];
  /** Names, each with a line of documentation. */
  readonly states: Readonly<Record<string, string>>;
  readonly events: Readonly<Record<string, string>>;
  readonly initial: string;
  readonly transient: readonly string[];
  readonly ends: readonly string[];
};
