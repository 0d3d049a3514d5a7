import type { Diagnostic, Edge } from '@pawl/machine/kernel/step-types';
import type { UserEvent } from '../machine/event.js';
import type { State } from '../machine/state.js';
import type { AgentTypes, MachineTypes } from './machine-types.js';

/** Types of a session's input (user events) and output (steps). Types only. */

type Without<E, K extends PropertyKey> = E extends unknown ? Omit<E, K> : never;
/** A user's event without its time, which the runtime stamps. */
export type Input = Without<UserEvent, 'at'>;

/** One step of the machine. `seq` is null for an event that is not journaled (a delta). */
export type Stepped<M extends MachineTypes = AgentTypes> = {
  readonly seq: number | null;
  readonly event: M['event'];
  /** The state after the event. */
  readonly state: M['state'];
  readonly actions: readonly M['action'][];
  /** The edges that were taken, in order; empty if the event had no effect. */
  readonly path: readonly Edge[];
  readonly diagnostics: readonly Diagnostic[];
};

/** Receives every step in order, after its event is durable. It can neither block the session nor change anything. */
export type Watcher<M extends MachineTypes = AgentTypes> = (stepped: Stepped<M>) => void;

/** The user's stopping policy, called before every model call: null allows it; a sentence ends the turn as the reason. */
export type StoppingPolicy = (state: State) => string | null | Promise<string | null>;
