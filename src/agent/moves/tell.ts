import { addReply, addResults, addTexts } from '../conversation.js';
import type { AssistantMessage, ResultPart, TextOrigin } from '../message.js';
import type { Session } from '../state.js';

/** Every way in which a move adds to the conversation, with the estimate of its size kept up. */

const charactersPerToken = 4;

const grown = (session: Session, characters: number): number =>
  session.contextTokens + Math.ceil(characters / charactersPerToken);

const sizeOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.length, 0);

/** Adds text to the trailing user message, or begins one. */
export const tell = (session: Session, origin: TextOrigin, texts: readonly string[]): Session => ({
  ...session,
  conversation: addTexts(session.conversation, origin, texts),
  contextTokens: grown(session, sizeOf(texts)),
});

/** Answers the calls of the reply just stored, in call order. */
export const answer = (session: Session, results: readonly ResultPart[]): Session => ({
  ...session,
  conversation: addResults(session.conversation, results),
  contextTokens: grown(session, sizeOf(results.map((result) => result.text))),
});

/** Stores what had come of a reply that was stopped: nobody counted it. */
export const storePartial = (session: Session, reply: AssistantMessage, text: string): Session => ({
  ...store(session, reply),
  contextTokens: grown(session, text.length),
});

/** Stores a reply. The provider's own count replaces the estimate, see `readReply`. */
export const store = (session: Session, reply: AssistantMessage): Session => ({
  ...session,
  conversation: addReply(session.conversation, reply),
});
