import type { Clock, Model } from '../../needs.js';
import type { EnvironmentKind } from '../../needs-recursive.js';
import type { StopFacts, Verdict } from '../../recursive/policies.js';

/** The user's own reason to stop a run, asked before every model call. */
export type StopPolicy = (facts: StopFacts) => Verdict | Promise<Verdict>;

/** What a tree of runs works with, besides its journal. */
export type AskEquipment = {
  /** The model of that name; throws if there is none, which the wall reports as a failed call. */
  model(modelId: string): Model;
  readonly environment: EnvironmentKind;
  /** What a run with an environment is told, frozen when the root began. */
  readonly instructions: string;
  /** null: there is none. */
  readonly policy: StopPolicy | null;
  readonly clock: Clock;
  /** A number from 0 to 1, for jitter. */
  random(): number;
};

/** What is given time to end after it was told to. */
export const GRACE_MS = 5_000;
