import { changeSession } from '../change.js';
import { addParts, addReply, addResults, addTexts, imageTokens } from '../conversation.js';
import type { QueuedInput } from '../event.js';
import type { AssistantMessage, ResultPart, TextOrigin, UserText } from '../message.js';
import type { Session } from '../state.js';

/** Every way in which a move adds to the conversation, with the estimate of its size kept up. */

const charactersPerToken = 4;

const grown = (session: Session, characters: number, tokens = 0): number =>
  session.contextTokens + tokens + Math.ceil(characters / charactersPerToken);

const tokensOfImages = (parts: readonly (ResultPart | UserText)[]): number =>
  parts.reduce((sum, part) => sum + imageTokens(part), 0);

const sizeOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.length, 0);

/** Adds text to the trailing user message, or begins one. */
export const tell = (session: Session, origin: TextOrigin, texts: readonly string[]): Session =>
  changeSession(session, {
    conversation: addTexts(session.conversation, origin, texts),
    contextTokens: grown(session, sizeOf(texts)),
  });

/** What the user said and showed joins the trailing user message. */
export const tellInputs = (session: Session, inputs: readonly QueuedInput[]): Session => {
  const parts = inputs.map(({ text, images }): UserText => {
    const shown = images === undefined ? {} : { images };
    return { type: 'text', origin: 'user', text, ...shown };
  });
  return changeSession(session, {
    conversation: addParts(session.conversation, parts),
    contextTokens: grown(session, sizeOf(inputs.map(({ text }) => text)), tokensOfImages(parts)),
  });
};

/** Answers the calls of the reply just stored, in call order. */
export const answer = (session: Session, results: readonly ResultPart[]): Session =>
  changeSession(session, {
    conversation: addResults(session.conversation, results),
    contextTokens: grown(session, sizeOf(results.map((result) => result.text)), tokensOfImages(results)),
  });

/** Stores what had come of a reply that was stopped: nobody counted it. */
export const storePartial = (session: Session, reply: AssistantMessage, text: string): Session =>
  changeSession(store(session, reply), {
    contextTokens: grown(session, text.length),
  });

/** Stores a reply. The provider's own count replaces the estimate, see `readReply`. */
export const store = (session: Session, reply: AssistantMessage): Session =>
  changeSession(session, {
    conversation: addReply(session.conversation, reply),
  });
