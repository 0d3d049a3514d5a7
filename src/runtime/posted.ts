import type { Event } from '../agent/event.js';
import type { Stepped } from '../needs.js';

type WithoutTime<E> = E extends unknown ? Omit<E, 'at'> : never;

/** An event on its way to the loop, which stamps its time. */
export type Posted = WithoutTime<Event>;

/** Called when the event is durable and applied. `accepted`: the machine's state changed by it. */
export type Applied = (stepped: Stepped, accepted: boolean) => void;

/** Puts an event into the session's queue. Ignored after the session has ended: then nothing may be acted on. */
export type Post = (event: Posted, applied?: Applied) => void;
