import type { Event } from '../agent/event.js';
import { step } from '../agent/machine.js';
import type { Stepped } from '../needs.js';
import type { AgentTypes, MachineTypes } from '../needs-machine.js';
import type { Posted } from './posted.js';

/** What the events of one machine are to the loop. */
export type Flow<M extends MachineTypes> = {
  step(state: M['state'], event: M['event']): Omit<Stepped<M>, 'seq' | 'event'>;
  /** Whether the event is shown at once and not journaled as it comes. */
  isVolatile(event: M['event']): boolean;
  /** What is to be journaled of `kept` and a volatile event that comes after it; null for nothing. */
  keep(kept: M['event'] | null, event: M['event']): M['event'] | null;
  /** Whether all that `kept` says is in `next`. */
  holds(next: M['event'], kept: M['event']): boolean;
  /** The id of what is started by the event, for which a group may wait (see `prepare`); null of other events. */
  startOf(event: Posted<M>): string | null;
};

const isVolatile = (event: Event): boolean =>
  event.type === 'TextDelta' ||
  event.type === 'ReasoningDelta' ||
  event.type === 'ToolCallDelta' ||
  event.type === 'ToolProgress';

/** Text is kept, merged, of one reply at a time: between two requests there is always another event (2.13). */
const keepText = (kept: Event | null, event: Event): Event | null => {
  if (event.type !== 'TextDelta') return kept;
  return { ...event, text: (kept?.type === 'TextDelta' ? kept.text : '') + event.text };
};

/** The agent's deltas are volatile; a group waits for the ToolStarted of the calls that it starts. */
export const agentFlow: Flow<AgentTypes> = {
  step,
  isVolatile,
  keep: keepText,
  holds: (next, kept) =>
    next.type === 'LlmCompleted' && kept.type === 'TextDelta' && next.requestId === kept.requestId,
  startOf: (event) => (event.type === 'ToolStarted' ? event.callId : null),
};
