/**
 * The conversation that the model sees. Every change makes a new value, and old ones stay valid,
 * since states are never changed.
 */

import { AppendList } from '@pawl/machine/kernel/append-list';
import type {
  AssistantMessage,
  Message,
  ResultPart,
  TextOrigin,
  UserMessage,
  UserText,
} from './message.js';

/**
 * An immutable conversation with O(1) appends.
 *
 * 1. `closed` holds all messages up to the last reply. They never change.
 * 2. `open` is the unanswered user message at the end, or null. It grows until a reply is stored.
 */
export type Conversation = {
  readonly closed: AppendList<Message>;
  readonly open: UserMessage | null;
};

export const emptyConversation: Conversation = { closed: AppendList.empty(), open: null };

/** Number of messages, including the open one. */
export const conversationLength = (conversation: Conversation): number =>
  conversation.closed.length + (conversation.open === null ? 0 : 1);

/** Parts of the trailing user message; empty if there is none. */
export const openParts = ({ open }: Conversation): UserMessage['parts'] => open?.parts ?? [];

/** All messages, oldest first. O(n), so not for an ordinary step. */
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

/** As `addTexts`, for texts with images. */
export const addParts = (conversation: Conversation, parts: readonly UserText[]): Conversation =>
  parts.length === 0
    ? conversation
    : { ...conversation, open: { role: 'user', parts: [...openParts(conversation), ...parts] } };

/** Stores a reply and closes the trailing user message. */
export const addReply = (conversation: Conversation, reply: AssistantMessage): Conversation => {
  const { closed, open } = conversation;
  return { closed: (open === null ? closed : closed.append(open)).append(reply), open: null };
};

/** Begins the user message with the results for the calls of the last reply. None is open then. */
export const addResults = (
  conversation: Conversation,
  results: readonly ResultPart[],
): Conversation => ({
  ...conversation,
  open: { role: 'user', parts: results },
});

/** Whether the trailing user message holds results. */
export const holdsResults = (conversation: Conversation): boolean =>
  openParts(conversation)[0]?.type === 'result';

/**
 * Number of messages that a compaction would replace: all but the trailing user message and the
 * calls it answers.
 */
export const compactableLength = (conversation: Conversation): number =>
  conversation.closed.length - (holdsResults(conversation) ? 1 : 0);

/** Replaces the first `length` messages by a summary. Calls and results stay together. */
export const replaceBySummary = (
  conversation: Conversation,
  length: number,
  summary: string,
): Conversation => {
  const first: UserText = { type: 'text', origin: 'summary', text: summary };
  const rest = conversation.closed.toArray(length);
  if (rest.length === 0) {
    return {
      closed: AppendList.empty(),
      open: { role: 'user', parts: [first, ...openParts(conversation)] },
    };
  }
  return {
    closed: AppendList.from<Message>([{ role: 'user', parts: [first] }, ...rest]),
    open: conversation.open,
  };
};

/** Takes the user's own texts, with their images, out of the trailing message. */
export const takeBackInput = (
  conversation: Conversation,
): { readonly inputs: readonly UserText[]; readonly conversation: Conversation } => {
  const parts = openParts(conversation);
  const isUsers = (part: (typeof parts)[number]): part is UserText =>
    // Stryker disable next-line ConditionalExpression: asked for the compiler
    part.type === 'text' && part.origin === 'user';
  const others = parts.filter((part) => !isUsers(part));
  const open: UserMessage | null = others.length === 0 ? null : { role: 'user', parts: others };
  return { inputs: parts.filter(isUsers), conversation: { ...conversation, open } };
};

/** Approximate tokens of an image at the size to which providers scale it down. */
const IMAGE_TOKENS = 1_600;

export const imageTokens = (part: Message['parts'][number]): number =>
  'images' in part ? part.images.length * IMAGE_TOKENS : 0;

/** A rough size in tokens: one for every four characters. */
export const estimateTokens = (messages: readonly Message[]): number => {
  let characters = 0;
  let tokens = 0;
  for (const message of messages) {
    for (const part of message.parts) {
      tokens += imageTokens(part);
      characters +=
        part.type === 'call'
          ? JSON.stringify(part.input).length + part.tool.length
          : part.text.length;
    }
  }
  return tokens + Math.ceil(characters / 4);
};

/**
 * The messages of a request: the first `length` of the conversation.
 *
 * Reasoning goes back only to the model that made it, and never from a cut reply
 * (rules.md#reasoning). A summary has a frame that says whose text it is.
 */
export const requestMessages = (
  conversation: Conversation,
  length: number,
  model: string,
): readonly Message[] =>
  messagesOf(conversation)
    .slice(0, length)
    .map((message, index) =>
      // Stryker disable next-line ConditionalExpression: only the first has a summary
      withoutForeignReasoning(index === 0 ? frameSummary(message) : message, model),
    );

/** Names the user's request of a running turn, which stands below its summary word for word. */
export const PRESERVED_REQUEST = 'what the user asked for, word for word';

/** Says what a summary is, so that the model does not take its own words for the user's. */
const frameSummary = (message: Message): Message => {
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  if (message.role !== 'user') return message;
  const parts = message.parts.map((part) => {
    // Stryker disable next-line ConditionalExpression: asked for the compiler
    if (part.type !== 'text' || part.origin !== 'summary') return part;
    const next = part.text.includes(`[kept: ${PRESERVED_REQUEST}]`)
      ? "You are in the middle of the work: go on with 'Next'."
      : 'Go on from it.';
    const frame =
      `[The conversation so far was replaced by your summary of it. ${next} Files that you read ` +
      'still count as read for edit; read one again before write replaces it.]';
    return { ...part, text: `${frame}\n\n${part.text}` };
  });
  return { ...message, parts };
};

const withoutForeignReasoning = (message: Message, model: string): Message => {
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  if (message.role === 'user' || (message.model === model && !message.cut)) return message;
  if (!message.parts.some((part) => part.type === 'reasoning')) return message;
  return { ...message, parts: message.parts.filter((part) => part.type !== 'reasoning') };
};
