/**
 * Which sessions `simulate` runs. The same seed gives the same sessions, with the same version of
 * Pawl.
 */
export type SimulationOptions = {
  /** Seed of the first session; each of the others has the next one. */
  readonly seed: number;
  readonly sessions: number;
  /** Whether a session that fails is made as short as possible. Default: yes. */
  readonly isShrunk?: boolean;
  /** What all sessions are about; absent: each draws it. */
  readonly about?: 'fallback';
};

/** A session that broke a promise. */
export type SimulationFailure = {
  readonly seed: number;
  /** The name of the promise. */
  readonly checker: string;
  readonly text: string;
  /** What happened, line by line, in the shortest session that breaks the same promise. */
  readonly trace: readonly string[];
  /** The random draws of that session. */
  readonly drawn: readonly number[];
};

export type SimulationReport = {
  readonly sessions: number;
  /** Events that were acknowledged. */
  readonly events: number;
  /** In how many sessions each situation occurred that must occur. */
  readonly situations: Readonly<Record<string, number>>;
  /** Null if every promise was kept. */
  readonly failure: SimulationFailure | null;
};
