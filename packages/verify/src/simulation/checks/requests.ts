import type { Message } from '@pawl/agent/machine/message';

/** What a strict provider refuses of the messages of a request; written without the machine's own rules. */
const userFault = (
  parts: Extract<Message, { role: 'user' }>['parts'],
  asked: readonly string[],
  at: number,
): string | null => {
  const answered = parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));
  if (answered.join() !== asked.join())
    return `message ${at} answers [${answered}], and [${asked}] were asked`;
  const firstText = parts.findIndex(({ type }) => type === 'text');
  if (firstText >= 0 && parts.slice(firstText).some(({ type }) => type === 'result'))
    return `message ${at} has a result after a text`;
  return parts.some(
    (part) => part.type === 'text' && part.text.trim() === '' && (part.images ?? []).length === 0,
  )
    ? `message ${at} has an empty text`
    : null;
};

export const requestFault = (messages: readonly Message[]): string | null => {
  let asked: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    const wanted = index % 2 === 0 ? 'user' : 'assistant';
    if (message.role !== wanted) return `message ${index} is the ${message.role}'s`;
    if (message.parts.length === 0) return `message ${index} is empty`;
    if (message.role === 'assistant') {
      asked = message.parts.flatMap((part) => (part.type === 'call' ? [part.callId] : []));
      if (new Set(asked).size < asked.length) return `message ${index} asks for a call twice`;
      continue;
    }
    const fault = userFault(message.parts, asked, index);
    if (fault !== null) return fault;
    asked = [];
  }
  return messages.at(-1)?.role === 'user' ? null : "the last message is not the user's";
};
