import type { AssistantMessage, Message } from '../../machine/message.js';
import { callIdOf, isAnswer, type ScriptedReply } from './script.js';

/**
 * Chooses the reply of a script that a request gets.
 *
 * 1. The messages alone tell a conversation's place in the script: a new process continues at the right place after a
 *    crash, a fork at its own, and messages of other models count for nothing.
 * 2. Replies that leave nothing in the conversation (failures, stalls, cuts, empty ones) come one after another for
 *    repeated requests at the same place. The model counts those requests; a new process starts to count anew.
 * 3. An answer that the conversation did not keep is given again.
 */

type Found = { readonly kind: 'found'; readonly reply: ScriptedReply; readonly number: number };
export type NextReply = (messages: readonly Message[]) => Found | { readonly kind: 'exhausted' };

const textOf = ({ parts }: AssistantMessage): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

const summaryOf = (message: Message): string => {
  if (message.role === 'assistant') return '';
  return message.parts
    .map((part) => (part.type === 'text' && part.origin === 'summary' ? part.text : ''))
    .join('');
};

const findFrom = (
  replies: readonly ScriptedReply[],
  start: number,
  fits: (reply: ScriptedReply) => boolean,
): number => {
  for (let index = start; index < replies.length; index++) {
    const reply = replies[index];
    if (reply !== undefined && fits(reply)) return index;
  }
  return -1;
};

/** The reply that a summary was made from: the one with the longest text in it; -1 if there is none. */
const longestWithin = (summary: string, replies: readonly ScriptedReply[]): number => {
  let best = -1;
  let longest = 0;
  for (const [index, { text = '' }] of replies.entries()) {
    if (text.length <= longest || !summary.includes(text)) continue;
    best = index;
    longest = text.length;
  }
  return best;
};

/** The replies of a script, and the first reply with each call id. */
type Indexed = { readonly replies: readonly ScriptedReply[]; readonly callers: ReadonlyMap<string, number> };

/** Indexes call ids, since each message of each request looks one up in scripts of thousands of calls. */
const indexed = (replies: readonly ScriptedReply[]): Indexed => {
  const callers = new Map<string, number>();
  for (const [index, { calls = [] }] of replies.entries()) {
    for (const [place, call] of calls.entries()) {
      const callId = callIdOf(call, index + 1, place);
      if (!callers.has(callId)) callers.set(callId, index);
    }
  }
  return { replies, callers };
};

/** The reply that a message of the conversation came from, or -1. */
const originOf = (message: Message, { replies, callers }: Indexed, start: number): number => {
  const summary = summaryOf(message);
  if (summary !== '') return longestWithin(summary, replies);
  if (message.role === 'user') return -1;
  const called = message.parts.find((part) => part.type === 'call');
  if (called !== undefined) return callers.get(called.callId) ?? -1;
  const text = textOf(message);
  if (!message.cut)
    return findFrom(replies, start, (reply) => isAnswer(reply) && (reply.text ?? '') === text);
  return text === '' ? -1 : findFrom(replies, start, (reply) => (reply.text ?? '').startsWith(text));
};

/** A function from a conversation to the index of the first reply that it has not used up. */
const createPlaces = (script: Indexed): ((messages: readonly Message[]) => number) => {
  /** The messages of the last request, and the place after each. */
  let known: readonly Message[] = [];
  let places: number[] = [];
  return (messages) => {
    // A conversation mostly grows: only new messages are looked up, or a long session takes quadratic time.
    let same = 0;
    while (same < messages.length && messages[same] === known[same]) same += 1;
    places = places.slice(0, same);
    for (const message of messages.slice(same)) {
      const place = places.at(-1) ?? 0;
      places.push(Math.max(place, originOf(message, script, place) + 1));
    }
    known = [...messages];
    return places.at(-1) ?? 0;
  };
};

export const createCursor = (replies: readonly ScriptedReply[]): NextReply => {
  const timesAt = new Map<number, number>();
  const placeOf = createPlaces(indexed(replies));
  return (messages) => {
    const place = placeOf(messages);
    const times = timesAt.get(place) ?? 0;
    timesAt.set(place, times + 1);
    const answer = findFrom(replies, place, isAnswer);
    const index = answer === -1 ? place + times : Math.min(place + times, answer);
    const reply = replies[index];
    return reply === undefined ? { kind: 'exhausted' } : { kind: 'found', reply, number: index + 1 };
  };
};
