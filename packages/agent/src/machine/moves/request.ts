/**
 * The conversation that a model call sends, and the request.
 *
 * The size of a request is only estimated until a provider has counted.
 */

import type { Action, RequestPurpose } from '../action.js';
import {
  addParts,
  addReply,
  addResults,
  addTexts,
  conversationLength,
  imageTokens,
} from '../conversation.js';
import type { QueuedInput } from '../event.js';
import type { AssistantMessage, ResultPart, TextOrigin, UserText } from '../message.js';
import {
  changeCalling,
  changeSession,
  go,
  type In,
  type MoveTo,
  nextId,
  type SessionData,
} from '../state.js';

/**
 * The state of a model call with the current conversation. `sendCall` sends it when the state comes
 * to rest.
 */
export const newCallingLlm = (
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
 * Rest of CallingLlm (the move with which the state begins to wait): the only place that sends a
 * request. The request gets a new id; a resumed
 * session keeps the id it has.
 */
export const sendCall = (state: In<'CallingLlm'>): MoveTo<'CallingLlm'> => {
  const { purpose } = state;
  const length = conversationLength(state.session.conversation);
  if (state.requestId !== '')
    return go(state, { type: 'SendLlmRequest', requestId: state.requestId, purpose, length });
  const [requestId, session] = nextId(state.session, 'request');
  const unaccounted = [...session.unaccounted, requestId];
  return go(changeCalling(state, { requestId, session: changeSession(session, { unaccounted }) }), {
    type: 'SendLlmRequest',
    requestId,
    purpose,
    length,
  });
};

/** Retracts the streamed text of a reply that is not stored (rules.md#streamed-text). */
export const retractPartial = (requestId: string, shown: string): readonly Action[] =>
  shown === '' ? [] : [{ type: 'RetractPartial', requestId }];

// ---- Additions to the conversation, with the estimate of its size ----

const charactersPerToken = 4;

/** The estimated size after an addition. */
const grownTokens = (session: SessionData, characters: number, tokens = 0): number =>
  session.contextTokens + tokens + Math.ceil(characters / charactersPerToken);

const countImageTokens = (parts: readonly (ResultPart | UserText)[]): number =>
  parts.reduce((sum, part) => sum + imageTokens(part), 0);

const totalLength = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + text.length, 0);

/** Adds text to the trailing user message, or begins one. */
export const appendTexts = (
  session: SessionData,
  origin: TextOrigin,
  texts: readonly string[],
): SessionData =>
  changeSession(session, {
    conversation: addTexts(session.conversation, origin, texts),
    contextTokens: grownTokens(session, totalLength(texts)),
  });

/** Adds inputs of the user, with their images, to the trailing user message. */
export const appendInputs = (session: SessionData, inputs: readonly QueuedInput[]): SessionData => {
  const parts = inputs.map(({ text, images }): UserText => {
    const shown = images === undefined ? {} : { images };
    return { type: 'text', origin: 'user', text, ...shown };
  });
  return changeSession(session, {
    conversation: addParts(session.conversation, parts),
    contextTokens: grownTokens(
      session,
      totalLength(inputs.map(({ text }) => text)),
      countImageTokens(parts),
    ),
  });
};

/** Appends the results for the calls of the last reply, in call order. */
export const appendResults = (session: SessionData, results: readonly ResultPart[]): SessionData =>
  changeSession(session, {
    conversation: addResults(session.conversation, results),
    contextTokens: grownTokens(
      session,
      totalLength(results.map((result) => result.text)),
      countImageTokens(results),
    ),
  });

/**
 * Stores the received part of a stopped reply and estimates its size, since no provider counted it.
 */
export const appendPartialReply = (
  session: SessionData,
  reply: AssistantMessage,
  text: string,
): SessionData =>
  changeSession(appendReply(session, reply), {
    contextTokens: grownTokens(session, text.length),
  });

/** Stores a complete reply. The provider's count replaces the estimate, see `readReply`. */
export const appendReply = (session: SessionData, reply: AssistantMessage): SessionData =>
  changeSession(session, {
    conversation: addReply(session.conversation, reply),
  });
