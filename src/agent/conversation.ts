import { Log } from '../kernel/log.js';
import type { AssistantMessage, Message, ResultPart, TextOrigin, UserMessage, UserText } from './message.js';

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

/** What stands in the trailing user message; nothing where there is none. */
export const openParts = ({ open }: Conversation): UserMessage['parts'] => open?.parts ?? [];

/** The messages in order, oldest first. O(n): for requests, display and tests, never for a step. */
export const messagesOf = (conversation: Conversation): readonly Message[] => {
  const closed = conversation.closed.toArray();
  return conversation.open === null ? closed : [...closed, conversation.open];
};

/** Adds text to the trailing user message, or begins one. */
export const addTexts = (
  conversation: Conversation,
  origin: TextOrigin,
  texts: readonly string[],
): Conversation => {
  const parts = texts.map((text): UserText => ({ type: 'text', origin, text }));
  return addParts(conversation, parts);
};

/** The same, of texts with what is shown with them. */
export const addParts = (conversation: Conversation, parts: readonly UserText[]): Conversation =>
  parts.length === 0
    ? conversation
    : { ...conversation, open: { role: 'user', parts: [...openParts(conversation), ...parts] } };

/** Stores a reply; the trailing user message is closed by it. */
export const addReply = (conversation: Conversation, reply: AssistantMessage): Conversation => {
  const { closed, open } = conversation;
  return { closed: (open === null ? closed : closed.append(open)).append(reply), open: null };
};

/** Begins the user message that answers the calls of the reply just stored. */
export const addResults = (conversation: Conversation, results: readonly ResultPart[]): Conversation => ({
  ...conversation,
  open: { role: 'user', parts: results },
});

/** Whether the trailing user message answers calls. */
export const holdsResults = (conversation: Conversation): boolean =>
  openParts(conversation)[0]?.type === 'result';

/** How many messages a compaction would replace: all but the trailing user message and the calls it answers. */
export const compactableLength = (conversation: Conversation): number =>
  conversation.closed.length - (holdsResults(conversation) ? 1 : 0);

/** The conversation with its first `length` messages replaced by a summary; calls and results stay together. */
export const replaceBySummary = (
  conversation: Conversation,
  length: number,
  summary: string,
): Conversation => {
  const first: UserText = { type: 'text', origin: 'summary', text: summary };
  const kept = conversation.closed.toArray(length);
  if (kept.length === 0) {
    return {
      closed: Log.empty(),
      open: { role: 'user', parts: [first, ...openParts(conversation)] },
    };
  }
  return { closed: Log.from<Message>([{ role: 'user', parts: [first] }, ...kept]), open: conversation.open };
};

/** Takes the user's own text out of the trailing message: what it said, and what is left. */
export const takeBackInput = (
  conversation: Conversation,
): { readonly texts: readonly string[]; readonly conversation: Conversation } => {
  const parts = openParts(conversation);
  const own = parts.filter((part) => part.type === 'text' && part.origin === 'user');
  const left = parts.filter((part) => !own.includes(part));
  const open: UserMessage | null = left.length === 0 ? null : { role: 'user', parts: left };
  return { texts: own.map((part) => part.text), conversation: { ...conversation, open } };
};

/** About what a picture costs at its largest: providers scale it down to that. */
const IMAGE_TOKENS = 1_600;

export const imageTokens = (part: Message['parts'][number]): number =>
  'images' in part ? part.images.length * IMAGE_TOKENS : 0;

/** A rough size in tokens: four characters each. */
export const estimateTokens = (messages: readonly Message[]): number => {
  let characters = 0;
  let tokens = 0;
  for (const message of messages) {
    for (const part of message.parts) {
      tokens += imageTokens(part);
      characters +=
        part.type === 'call' ? JSON.stringify(part.input).length + part.tool.length : part.text.length;
    }
  }
  return tokens + Math.ceil(characters / 4);
};
