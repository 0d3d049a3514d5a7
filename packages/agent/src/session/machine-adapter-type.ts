import type { MachineTypes } from '../ports/machine-types.js';
import type { Stepped } from '../ports/session-input-output.js';
import type { Posted } from './posted-event-types.js';

/** What the loop needs to know about a machine: its step, and how to journal its events. */
export type MachineAdapter<M extends MachineTypes> = {
  step(state: M['state'], event: M['event']): Omit<Stepped<M>, 'seq' | 'event'>;
  /** Whether the event is shown at once and not journaled immediately. */
  isVolatile(event: M['event']): boolean;
  /** Merges a volatile event into `kept`, to journal both later; null if there is nothing to journal. */
  keep(kept: M['event'] | null, event: M['event']): M['event'] | null;
  /** Whether `next` contains everything in `kept`. */
  holds(next: M['event'], kept: M['event']): boolean;
  /** The id of the work that the event starts, for which a group may wait (see `prepare`); null for other events. */
  startOf(event: Posted<M>): string | null;
};
