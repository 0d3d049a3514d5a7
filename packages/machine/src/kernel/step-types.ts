import type { IgnoredCell } from './table.js';

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

/** An event that changed nothing, and why. `malformed`: the value is not an event of the machine. */
export type Diagnostic = {
  readonly kind: IgnoredCell['ignore'] | 'malformed';
  readonly state: string;
  readonly event: string;
  readonly why: string;
};

/** The result of one application of the machine. `path` has every edge taken, also through transient states. */
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
