import { type Conversation, messagesOf } from '../conversation.js';
import type { Message } from '../message.js';

/**
 * The messages of a request: the first `length` of the conversation.
 *
 * Reasoning goes back only to the model that made it, and never from a cut reply (docs/rules.md#reasoning).
 */
export const requestMessages = (
  conversation: Conversation,
  length: number,
  model: string,
): readonly Message[] =>
  messagesOf(conversation)
    .slice(0, length)
    .map((message) => withoutForeignReasoning(message, model));

const withoutForeignReasoning = (message: Message, model: string): Message => {
  if (message.role === 'user' || (message.model === model && !message.cut)) return message;
  if (!message.parts.some((part) => part.type === 'reasoning')) return message;
  return { ...message, parts: message.parts.filter((part) => part.type !== 'reasoning') };
};
