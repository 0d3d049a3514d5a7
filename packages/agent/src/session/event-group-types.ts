import type { EntryDraft } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import type { Stepped } from '../ports/session-input-output.js';
import type { Applied, Posted } from './posted-event-types.js';

/** Events of a session on their way into its journal. */

/** An event in the queue. */
export type Item<M extends MachineTypes> = {
  readonly event: Posted<M>;
  readonly applied?: Applied<M> | undefined;
  readonly sender?: { resolve(sent: { readonly seq: number }): void; reject(error: Error): void };
};

type Taken<M extends MachineTypes> = {
  readonly item: Item<M>;
  readonly stepped: Stepped<M>;
  readonly accepted: boolean;
};

/** Events that are journaled together. */
export type Group<M extends MachineTypes> = {
  readonly taken: Taken<M>[];
  readonly drafts: EntryDraft<M>[];
  /** Ids of announced work whose starting event has not arrived yet. */
  readonly starting: Set<string>;
};
