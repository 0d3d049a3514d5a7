import type { Action } from '../action.js';

/** Takes back what was streamed of a reply that is not stored; nothing, if nothing was (R8). */
export const retract = (requestId: string, shown: string): readonly Action[] =>
  shown === '' ? [] : [{ type: 'RetractPartial', requestId }];
