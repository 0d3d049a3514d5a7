/**
 * The conversation of a run with its model. User messages and replies alternate, as every provider
 * accepts it. A text has an origin: `user` for the task, `note` for what the machine adds, such as
 * the output of programs.
 */

import { addReply, addTexts, type Conversation } from '@pawl/agent/machine/conversation';
import type { AssistantMessage, Message, TextOrigin } from '@pawl/agent/machine/message';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { Reply, Run } from './state.js';
import { cutCharacters } from './texts-for-model.js';

/** Adds a text to the unsent user message, or begins one. */
export const addUserText = (run: Run, origin: TextOrigin, text: string): Run => ({
  ...run,
  conversation: addTexts(run.conversation, origin, [text]),
  characters: run.characters + text.length,
});

/** The reply without tool calls (code mode offers no tools); null if no text remains. */
export const withoutCalls = (message: AssistantMessage): AssistantMessage | null => {
  const parts = message.parts.filter((part) => part.type !== 'call');
  const hasText = parts.some((part) => part.type === 'text' && part.text.trim() !== '');
  return hasText ? { ...message, parts } : null;
};

export const getText = (message: AssistantMessage | null): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');

/** Stores a reply. Without a message, the user message before it stays open and is extended. */
export const storeReply = (run: Run, { message, text }: Reply): Run =>
  message === null
    ? run
    : {
        ...run,
        conversation: addReply(run.conversation, message),
        characters: run.characters + text.length,
        lastText: text,
      };

// ---- A conversation that is too long ----

/** A note is cut to this many characters, if it is more than twice as long. */
const noteMax = 1_000;

const cutNotes = (message: Message): Message =>
  message.role === 'assistant'
    ? message
    : {
        ...message,
        parts: message.parts.map((part) =>
          part.type === 'text' && part.origin === 'note' && part.text.length > 2 * noteMax
            ? { ...part, text: cutCharacters(part.text, noteMax) }
            : part,
        ),
      };

const countCharacters = (messages: readonly Message[]): number => {
  let sum = 0;
  for (const { parts } of messages) {
    for (const part of parts) if (part.type === 'text') sum += part.text.length;
  }
  return sum;
};

/** Cuts the output of earlier iterations; null if that saves nothing. */
export const cutOutputs = (run: Run): Run | null => {
  // `closed`: all messages up to the last reply
  const before = run.conversation.closed.toArray();
  const after = before.map(cutNotes);
  const saved = countCharacters(before) - countCharacters(after);
  if (saved <= 0) return null;
  const conversation: Conversation = { ...run.conversation, closed: AppendList.from(after) };
  return { ...run, conversation, characters: run.characters - saved };
};
