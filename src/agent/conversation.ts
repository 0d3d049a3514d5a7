import { Log } from '../kernel/log.js';
import type { Message, UserMessage } from './message.js';

/**
 * The conversation in O(1) per append, with old values staying valid.
 *
 * 1. `closed` holds messages that were followed by a reply (or are one); they are never edited.
 * 2. `open` is the trailing user message, still unanswered; it may be extended until a reply is stored.
 */
export type Conversation = { readonly closed: Log<Message>; readonly open: UserMessage | null };

export const emptyConversation: Conversation = { closed: Log.empty(), open: null };

/** Number of messages, the open one counted. */
export const lengthOf = (conversation: Conversation): number =>
  conversation.closed.length + (conversation.open === null ? 0 : 1);

/** The messages in order, oldest first. O(n): for requests, display and tests, never for a step. */
export const messagesOf = (conversation: Conversation): readonly Message[] => {
  const closed = conversation.closed.toArray();
  return conversation.open === null ? closed : [...closed, conversation.open];
};

/** The last message, or undefined of an empty conversation. */
export const lastOf = (conversation: Conversation): Message | undefined =>
  conversation.open ?? conversation.closed.at(conversation.closed.length - 1);
