import type { AssistantMessage, Message } from '../agent/message.js';
import { callIdOf, isAnswer, type Reply } from './script.js';

/**
 * Which reply of a script a request gets.
 *
 * 1. Where a conversation stands in the script is read off its messages alone: a new process goes on at the right
 *    place after a crash, a fork at its own, and messages of other models count for nothing.
 * 2. Replies that leave nothing in the conversation (failures, stalls, cuts, empty ones) are met one after another by
 *    repeated requests at the same place; how often that was, the model remembers, a new process does not.
 * 3. An answer that was given and not kept is given again.
 */

type Found = { readonly kind: 'found'; readonly reply: Reply; readonly number: number };
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
  replies: readonly Reply[],
  start: number,
  fits: (reply: Reply, number: number) => boolean,
): number => replies.findIndex((reply, index) => index >= start && fits(reply, index + 1));

/** The reply with the longest text that stands in a summary, or -1: the one that the summary was made from. */
const longestWithin = (summary: string, replies: readonly Reply[]): number => {
  let best = -1;
  let longest = 0;
  for (const [index, { text = '' }] of replies.entries()) {
    if (text.length <= longest || !summary.includes(text)) continue;
    best = index;
    longest = text.length;
  }
  return best;
};

/** The reply that a message of the conversation came from, or -1. */
const originOf = (message: Message, replies: readonly Reply[], start: number): number => {
  const summary = summaryOf(message);
  if (summary !== '') return longestWithin(summary, replies);
  if (message.role === 'user') return -1;
  const called = message.parts.find((part) => part.type === 'call');
  if (called !== undefined) {
    return findFrom(replies, 0, ({ calls = [] }, number) =>
      calls.some((call, index) => callIdOf(call, number, index) === called.callId),
    );
  }
  const text = textOf(message);
  if (!message.cut)
    return findFrom(replies, start, (reply) => isAnswer(reply) && (reply.text ?? '') === text);
  return text === '' ? -1 : findFrom(replies, start, (reply) => (reply.text ?? '').startsWith(text));
};

/** The index of the first reply that the conversation has not used up. */
const placeOf = (messages: readonly Message[], replies: readonly Reply[]): number => {
  let place = 0;
  for (const message of messages) place = Math.max(place, originOf(message, replies, place) + 1);
  return place;
};

export const createCursor = (replies: readonly Reply[]): NextReply => {
  const timesAt = new Map<number, number>();
  return (messages) => {
    const place = placeOf(messages, replies);
    const times = timesAt.get(place) ?? 0;
    timesAt.set(place, times + 1);
    const answer = findFrom(replies, place, isAnswer);
    const index = answer === -1 ? place + times : Math.min(place + times, answer);
    const reply = replies[index];
    return reply === undefined ? { kind: 'exhausted' } : { kind: 'found', reply, number: index + 1 };
  };
};
