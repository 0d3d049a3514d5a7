import type { Action, RequestPurpose } from '../../action.js';
import { changeCalling, changeSession } from '../../change-state.js';
import { lengthOf } from '../../conversation.js';
import type { MoveTo } from '../../move-result.js';
import { go } from '../../move-result.js';
import type { In, SessionData } from '../../state.js';
import { nextId } from './next-id.js';

/** A model call with the current conversation. `sendCall` sends it when the state comes to rest. */
export const callModel = (
  session: SessionData,
  purpose: RequestPurpose,
  attempt: number,
): In<'CallingLlm'> => ({
  name: 'CallingLlm',
  session,
  purpose,
  requestId: '',
  attempt,
  partial: '',
  call: { mode: 'open' },
});

/**
 * Rest of CallingLlm: the only place that sends a request. The request gets a new id; a resumed session keeps the id it
 * has.
 */
export const sendCall = (state: In<'CallingLlm'>): MoveTo<'CallingLlm'> => {
  const sent = state.requestId === '' ? numbered(state) : state;
  const { requestId, purpose, session } = sent;
  return go(sent, {
    type: 'SendLlmRequest',
    requestId,
    purpose,
    length: lengthOf(session.conversation),
  });
};

const numbered = (state: In<'CallingLlm'>): In<'CallingLlm'> => {
  const [requestId, session] = nextId(state.session, 'request');
  const unaccounted = [...session.unaccounted, requestId];
  return changeCalling(state, { requestId, session: changeSession(session, { unaccounted }) });
};

/** Retracts the streamed text of a reply that is not stored (docs/rules.md#streamed-text). */
export const retractPartial = (requestId: string, shown: string): readonly Action[] =>
  shown === '' ? [] : [{ type: 'RetractPartial', requestId }];
