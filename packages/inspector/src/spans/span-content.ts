import type { Message } from '@pawl/agent/machine/message';
import type { State } from '@pawl/agent/machine/state';

/** What was said, for spans, if the user wants it there. */

const CHARACTERS_MAX = 32_768;

/** Replaces secrets in a text. */
export type Redact = (text: string) => string;

/** The beginning of a long text: collectors refuse large attributes. Redacted first, so that no cut divides a secret. */
export const shownText = (text: string, redact: Redact): string => {
  const clean = redact(text);
  return clean.length <= CHARACTERS_MAX ? clean : `${clean.slice(0, CHARACTERS_MAX)}…`;
};

const partOf = (part: Message['parts'][number]): object => {
  switch (part.type) {
    case 'text':
      return { type: 'text', content: part.text };
    case 'reasoning':
      return { type: 'reasoning', content: part.text };
    case 'call':
      return { type: 'tool_call', id: part.callId, name: part.tool, arguments: part.input };
    case 'result':
      return { type: 'tool_call_response', id: part.callId, response: part.text };
    default:
      return part satisfies never;
  }
};

export const messagesText = (messages: readonly Message[], redact: Redact): string =>
  shownText(JSON.stringify(messages.map(({ role, parts }) => ({ role, parts: parts.map(partOf) }))), redact);

/** The message that a request adds to those before it. */
export const newMessages = ({ session }: State): readonly Message[] => {
  const { open } = session.conversation;
  return open === null ? [] : [open];
};

/** Whether a summary replaced the beginning of the conversation. */
export const isCompacted = ({ session: { conversation } }: State): boolean => {
  const first = conversation.closed.at(0) ?? conversation.open;
  return first?.role === 'user' && first.parts.some((part) => 'origin' in part && part.origin === 'summary');
};
