import type { AgentTypes, MachineTypes } from '../ports/machine-types.js';
import type { Stepped } from '../ports/session-input-output.js';

type WithoutTime<E> = E extends unknown ? Omit<E, 'at'> : never;

/** An event on its way to the loop, which stamps its time. */
export type Posted<M extends MachineTypes = AgentTypes> = WithoutTime<M['event']>;

/** Called when the event is durable and applied. `accepted`: it changed the machine's state, and
 * its actions are performed: they are not when the disk is full. */
export type Applied<M extends MachineTypes = AgentTypes> = (stepped: Stepped<M>, accepted: boolean) => void;

/** Told when a posted event is durable and applied, with the state after it. `accepted`: see Applied. */
export type Told<M extends MachineTypes = AgentTypes> = (accepted: boolean, state: M['state']) => void;

/** Queues an event for the session. Ignored after the session has ended. */
export type Post<M extends MachineTypes = AgentTypes> = (event: Posted<M>, told?: Told<M>) => void;
