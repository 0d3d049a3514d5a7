import type { Redactor } from '@pawl/agent/platform/secrets/redactor';
import type { Clock } from '@pawl/agent/ports/clock';
import type { Blobs } from '@pawl/agent/ports/journal';
import type { Model, ModelRequest } from '@pawl/agent/ports/model';
import type { EnvironmentKind } from '../environment-and-journal-types.js';
import type { StopFacts, StopVerdict } from '../run/stop-policies.js';

/** The user's own reason to stop a run, asked before every model call. */
export type StopPolicy = (facts: StopFacts) => StopVerdict | Promise<StopVerdict>;

/** Dependencies of a tree of runs, besides its journal. */
export type AskEquipment = {
  /** The model with this id. Throws if there is none, which becomes a failed call. */
  model(modelId: string): Model;
  readonly environment: EnvironmentKind;
  /** The store of texts from memory. */
  readonly blobs: Pick<Blobs, 'get'>;
  /** System instructions for runs with an environment, fixed when the root began. */
  readonly instructions: string;
  /** Part of every request; empty: the model decides. */
  readonly effort: Pick<ModelRequest, 'effort'>;
  /** Replaces secrets in requests. The journal keeps the programs' texts unchanged. */
  readonly redactor: Redactor;
  /** Null if the user has none. */
  readonly policy: StopPolicy | null;
  readonly clock: Clock;
  /** A number from 0 to 1, for jitter. */
  random(): number;
};

/** Grace period in ms for an aborted call to report its usage. */
export const GRACE_MS = 5_000;
