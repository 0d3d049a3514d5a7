import { action, event, oneTurn, type Story } from '../story.js';

/** Replies of the model: answers, failures and retries. */

const TINY = { windowTokens: 1_000 };

export const replyStories: readonly Story[] = [
  oneTurn('an answer', [{ text: 'Done.' }]),
  oneTurn('an answer with reasoning', [{ reasoning: 'It is easy.', text: 'Done.' }]),
  oneTurn('a long answer in many pieces', [{ text: 'word '.repeat(200) }]),
  {
    name: 'three turns',
    replies: [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }],
    async play(session) {
      for (const text of ['first', 'second', 'third']) await session.ask(text);
    },
  },
  oneTurn('an empty reply ends the turn', [{}]),
  oneTurn('an empty reply is asked for again', [{}, { text: 'Now.' }], { emptyRetries: 1 }),
  oneTurn('a reply cut by its length goes on', [
    { text: 'Once upon', stopReason: 'maxTokens' },
    { text: ' a time.' },
  ]),
  oneTurn('a refusal', [{ text: 'I would rather not.', stopReason: 'refusal' }]),
  oneTurn('a reply stopped by a filter', [{ text: 'Half', stopReason: 'contentFilter' }]),
  oneTurn('a retry after an overload', [{ fail: { kind: 'overloaded' } }, { text: 'Done.' }]),
  oneTurn('a retry after the wait that the provider asks for', [
    { fail: { kind: 'rateLimited', retryAfterMs: 20 } },
    { text: 'Done.' },
  ]),
  oneTurn('a wait that is too long fails', [
    { fail: { kind: 'rateLimited', retryAfterMs: 3_600_000 } },
  ]),
  oneTurn('three retries, then the answer', [
    { fail: { kind: 'unreachable' } },
    { fail: { kind: 'timeout' } },
    { fail: { kind: 'overloaded' } },
    { text: 'Done.' },
  ]),
  oneTurn('retries run out', [{ fail: { kind: 'overloaded' } }, { fail: { kind: 'overloaded' } }], {
    maxRetries: 1,
  }),
  oneTurn('a stream that breaks off', [
    { text: 'Let me see', cut: true },
    { text: 'Let me see. Done.' },
  ]),
  oneTurn('a failure after a part of the text', [
    { text: 'Let me', fail: { kind: 'overloaded' } },
    { text: 'Done.' },
  ]),
  oneTurn('a wrong key', [{ fail: { kind: 'auth', message: 'the key is wrong' } }]),
  oneTurn('a bad request', [{ fail: { kind: 'badRequest' } }]),
  oneTurn('no money left at the provider', [{ fail: { kind: 'quotaExhausted' } }]),
  {
    name: 'the user does not wait for a retry',
    replies: [{ fail: { kind: 'overloaded' } }, { text: 'Done.' }],
    settings: { retrySchedule: { kind: 'list', delaysMs: [600_000] } },
    async play(session) {
      await session.say('go');
      await session.until(action('ScheduleTimer'));
      await session.send({ type: 'RetryNow' });
      await session.rest();
    },
  },
  {
    name: 'the last message is sent again after a failure',
    replies: [{ fail: { kind: 'badRequest' } }, { text: 'Done.' }],
    async play(session) {
      await session.ask('go');
      await session.send({ type: 'RetryLast' });
      await session.rest();
    },
  },
  {
    name: 'a model that falls silent is asked again',
    replies: [{ text: 'Hm', stall: true }, { text: 'Done.' }],
    settings: { silenceMs: 50 },
    async play(session) {
      await session.say('go');
      await session.until(event('LlmFailed'));
      await session.rest();
    },
  },
  {
    name: 'a model that does not begin is asked again',
    replies: [{ stall: true }, { text: 'Done.' }],
    settings: { firstByteMs: 50 },
    play: async (session) => void (await session.ask('go')),
  },
  {
    name: 'a summary before a turn',
    replies: [
      { text: 'One.', usage: { inputTokens: 900, outputTokens: 10 } },
      { text: 'A summary of one.' },
      { text: 'Two.' },
    ],
    facts: TINY,
    settings: TINY,
    async play(session) {
      await session.ask('first');
      await session.ask('second');
    },
  },
  {
    name: 'a summary that the user asks for',
    replies: [{ text: 'One.' }, { text: 'Two.' }, { text: 'The summary.' }],
    async play(session) {
      await session.ask('first');
      await session.ask('second');
      await session.send({ type: 'CompactRequested', instructions: 'keep the names' });
      await session.until(
        ({ event: { type } }) => type === 'CompactionCompleted' || type === 'CompactionFailed',
      );
      await session.rest();
    },
  },
  {
    name: 'a summary that fails',
    replies: [{ text: 'One.' }, { text: 'Two.' }, { fail: { kind: 'badRequest' } }],
    async play(session) {
      await session.ask('first');
      await session.ask('second');
      await session.send({ type: 'CompactRequested' });
      await session.until(event('CompactionFailed'));
      await session.rest();
    },
  },
  oneTurn('a conversation that the provider finds too long', [
    { fail: { kind: 'contextOverflow' } },
  ]),
];
