/** Ids of calls for clients, unique in a session: a model may use an id again in a later reply. */

import type { Stepped } from '../ports/session.js';

export const clientCallId = (batchId: string, callId: string): string => `${batchId}.${callId}`;

/** The batch of the calls of a reply; null if none begins, since the turn ends before. */
export const findReplyBatch = ({ event, state, actions }: Stepped): string | null => {
  if (event.type !== 'LlmCompleted') return null;
  if (state.name === 'ExecutingTools') return state.batchId;
  // All calls were refused, so the batch has ended in the same step.
  return actions.find((action) => action.type === 'DisplayToolResult')?.batchId ?? null;
};
