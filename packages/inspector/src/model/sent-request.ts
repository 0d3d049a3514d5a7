/**
 * The requests to the model, as the runtime builds them from the state (`requestAt`), and how much
 * of one a provider could have in its cache (`sharedPrefix`): the beginning that is equal in the
 * request before it.
 */

import { requestMessages } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import type { InspectedSession } from '../page-data-types.js';
import type { SessionHistory } from './session-history.js';

type SentRequest = {
  /** The entry after which it was sent. */
  readonly seq: number;
  readonly requestId: string;
  readonly model: string;
  /**
   * The parts in the order in which providers cache them: tools, instructions, then each message.
   */
  readonly parts: readonly RequestPart[];
};

/** `bytes`: of the text in UTF-8. */
export type RequestPart = { readonly title: string; readonly text: string; readonly bytes: number };

/** The last request up to the entry; null if there is none. */
export const requestAt = (
  history: SessionHistory,
  prompt: InspectedSession['prompt'],
  seq: number,
): SentRequest | null => {
  for (let at = Math.min(seq, history.seq); at > 0; at--) {
    const step = history.stepAt(at);
    const sent = step?.actions.findLast(({ type }) => type === 'SendLlmRequest');
    if (step === null || sent?.type !== 'SendLlmRequest') continue;
    const { conversation, settings } = step.state.session;
    // The action names how many messages of the conversation it sends.
    const messages = requestMessages(conversation, sent.length, settings.model);
    const parts = [
      createPart('tools', toolsAt(history, prompt, at) ?? '(not in this copy)'),
      createPart('instructions', prompt?.instructions ?? '(not in this copy)'),
      ...messages.map(createMessagePart),
    ];
    return { seq: at, requestId: sent.requestId, model: settings.model, parts };
  }
  return null;
};

const encoder = new TextEncoder();
const countBytes = (text: string): number => encoder.encode(text).length;

const createPart = (title: string, text: string): RequestPart => ({
  title,
  text,
  bytes: countBytes(text),
});

/** Requests share their messages: each is written as JSON once. */
const messageParts = new WeakMap<Message, RequestPart>();

const createMessagePart = (message: Message): RequestPart => {
  const known = messageParts.get(message);
  if (known !== undefined) return known;
  const part = createPart(message.role, JSON.stringify(message, null, 2));
  messageParts.set(message, part);
  return part;
};

/** The tool declarations of the request at this entry. Tools join it before its reply comes. */
const toolsAt = (
  history: SessionHistory,
  prompt: InspectedSession['prompt'],
  at: number,
): string | undefined => {
  let last = at;
  while (history.stepAt(last + 1)?.state.name === 'CallingLlm') last++;
  const sha256 = history.stateAt(last).session.settings.tools;
  return sha256 === undefined ? prompt?.tools : prompt?.laterTools?.[sha256];
};

export type SharedPrefix = {
  /** Bytes from the beginning that are as in the request before, of all. */
  readonly sharedBytes: number;
  readonly bytes: number;
  /** Whole parts that are as before. */
  readonly parts: number;
  /** Characters of the first part that differs, up to the difference. */
  readonly characters: number;
};

const commonLength = (one: string, other: string): number => {
  let index = 0;
  while (index < one.length && index < other.length && one[index] === other[index]) index++;
  return index;
};

/** The beginning that a request shares with the earlier one: a provider could cache it. */
export const sharedPrefix = (earlier: SentRequest | null, request: SentRequest): SharedPrefix => {
  const bytes = request.parts.reduce((sum, part) => sum + part.bytes, 0);
  const before = earlier !== null && earlier.model === request.model ? earlier.parts : [];
  let sharedBytes = 0;
  for (const [index, { text, bytes: partBytes }] of request.parts.entries()) {
    const old = before[index]?.text ?? '';
    if (old === text) {
      sharedBytes += partBytes;
      continue;
    }
    const characters = commonLength(old, text);
    return {
      sharedBytes: sharedBytes + countBytes(text.slice(0, characters)),
      bytes,
      parts: index,
      characters,
    };
  }
  return { sharedBytes, bytes, parts: request.parts.length, characters: 0 };
};
