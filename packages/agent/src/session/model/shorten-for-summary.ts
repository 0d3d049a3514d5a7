import { estimateTokens } from '../../machine/conversation.js';
import type {
  AssistantMessage,
  AssistantPart,
  Json,
  JsonObject,
  Message,
  UserMessage,
  UserText,
} from '../../machine/message.js';
import { cutText } from '../tools/truncate-output.js';

/**
 * Shortens a conversation so that it can be summarised in one request. The window may be overfull, or the session may now
 * use a model with a smaller one.
 *
 * 1. A conversation that fits is unchanged. Otherwise long texts are cut, then cut more, then the oldest exchanges are
 *    left out.
 * 2. Calls and their results stay together, roles alternate, and no message is empty.
 * 3. The first message stays (the task, or the last summary), and so do the user's words of exchanges that are left out.
 * 4. Only the request becomes smaller. The journal keeps everything.
 */

/** Limits for a long text in bytes, one for each attempt. */
const CUTS = [4_096, 1_024, 256] as const;
const SMALLEST_CUT = CUTS[2];

const shorten = (text: string, limitBytes: number): string => {
  const cut = cutText(text, limitBytes);
  return cut === null ? text : `${cut.head}\n… ${cut.leftOutBytes} bytes left out …\n${cut.tail}`;
};

const shortenInput = (input: JsonObject, limitBytes: number): JsonObject =>
  Object.fromEntries(Object.entries(input).map(([name, value]) => [name, shortenJson(value, limitBytes)]));

/** `Array.isArray` does not narrow readonly arrays. */
const isList = (value: readonly Json[] | JsonObject): value is readonly Json[] => Array.isArray(value);

const shortenJson = (value: Json, limitBytes: number): Json => {
  if (typeof value === 'string') return shorten(value, limitBytes);
  if (typeof value !== 'object' || value === null) return value;
  if (isList(value)) return value.map((item) => shortenJson(item, limitBytes));
  return shortenInput(value, limitBytes);
};

/** Parts that the provider has sealed (reasoning, metadata) can be left out, but not changed. */
const shortenPart = (part: AssistantPart, limitBytes: number): AssistantPart | null => {
  if (part.type === 'reasoning') return null;
  if (part.type === 'text') return { type: 'text', text: shorten(part.text, limitBytes) };
  const { callId, tool, input } = part;
  return { type: 'call', callId, tool, input: shortenInput(input, limitBytes) };
};

const shortenReply = (reply: AssistantMessage, limitBytes: number): AssistantMessage => {
  const parts = reply.parts.map((part) => shortenPart(part, limitBytes)).filter((part) => part !== null);
  return parts.length === 0 ? reply : { ...reply, parts };
};

/** The user's words and summaries are cut last. */
const shortenUser = (message: UserMessage, limitBytes: number): UserMessage => ({
  ...message,
  parts: message.parts.map((part) => {
    const ownWords = part.type === 'text' && part.origin !== 'note' && limitBytes > SMALLEST_CUT;
    return ownWords ? part : { ...part, text: shorten(part.text, ownCut(part, limitBytes)) };
  }),
});

const ownCut = (part: UserMessage['parts'][number], limitBytes: number): number =>
  part.type === 'text' && part.origin !== 'note' ? CUTS[0] : limitBytes;

const shortenAll = (messages: readonly Message[], limitBytes: number): readonly Message[] =>
  messages.map((message) =>
    message.role === 'user' ? shortenUser(message, limitBytes) : shortenReply(message, limitBytes),
  );

/** Groups each reply with the message that answers it. */
const exchangesOf = (messages: readonly Message[]): readonly (readonly Message[])[] => {
  const exchanges: Message[][] = [];
  for (const message of messages) {
    if (message.role === 'assistant') exchanges.push([message]);
    else exchanges.at(-1)?.push(message);
  }
  return exchanges;
};

/** The user's words of exchanges that are left out, as one note. The newest ones first, as far as there is room. */
const leftOutNote = (left: readonly Message[], roomTokens: number): UserText => {
  const said: string[] = [];
  let characters = 0;
  for (const { parts } of left.toReversed()) {
    for (const part of parts.toReversed()) {
      if (part.type !== 'text' || !('origin' in part) || part.origin !== 'user') continue;
      const text = shorten(part.text, SMALLEST_CUT);
      characters += text.length;
      if (characters > roomTokens) break; // a quarter of the room, at four characters per token
      said.unshift(`- ${text}`);
    }
  }
  const words = said.length === 0 ? [] : ['The user said in them:', ...said];
  const text = [`[${left.length} messages that came here are left out: they did not fit]`, ...words].join(
    '\n',
  );
  return { type: 'text', origin: 'note', text };
};

const leaveOut = (messages: readonly Message[], roomTokens: number): readonly Message[] => {
  const [first, ...rest] = messages;
  if (first === undefined || first.role === 'assistant') return messages;
  const exchanges = exchangesOf(rest);
  // The first message, the note that is added to it, and the newest exchanges.
  let left = roomTokens / 2 - estimateTokens([first]);
  let from = exchanges.length;
  while (from > 0) {
    left -= estimateTokens(exchanges[from - 1] ?? []);
    if (left < 0) break;
    from -= 1;
  }
  const note = leftOutNote(exchanges.slice(0, from).flat(), roomTokens);
  const opening: UserMessage = { role: 'user', parts: [...first.parts, note] };
  return [opening, ...exchanges.slice(from).flat()];
};

/** Messages that fit into `roomTokens`, estimated at four characters per token. */
export const fitMessages = (messages: readonly Message[], roomTokens: number): readonly Message[] => {
  const fits = (some: readonly Message[]): boolean => estimateTokens(some) <= roomTokens;
  if (fits(messages)) return messages;
  for (const limitBytes of CUTS) {
    const shortened = shortenAll(messages, limitBytes);
    if (fits(shortened)) return shortened;
  }
  return leaveOut(shortenAll(messages, SMALLEST_CUT), roomTokens);
};
