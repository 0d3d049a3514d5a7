import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '../../src/machine/message.js';
import {
  createCursor,
  type ScriptedReply,
  scriptedModel,
} from '../../src/models/scripted-model.js';
import { ask, called, endingOf, results, said, summary, user, wordFor } from './scripting.js';

type Place = {
  readonly title: string;
  readonly replies: readonly ScriptedReply[];
  /** Requests of one process, one after another, each with the word for its reply. */
  readonly when: readonly (readonly [readonly Message[], string])[];
};

const hi = user('hi');
const overloaded: ScriptedReply = { fail: { kind: 'overloaded', retryAfterMs: 5 } };
const call = { tool: 'read' };

const places: readonly Place[] = [
  {
    title: 'replies follow one another as the conversation grows',
    replies: [{ text: 'one' }, { calls: [call] }, { text: 'three' }],
    when: [
      [[hi], 'one'],
      [[hi, said('one'), hi], 'call-2-1'],
      [[hi, said('one'), hi, called('call-2-1'), results('call-2-1')], 'three'],
    ],
  },
  {
    title: 'a new process goes on where the conversation stands',
    replies: [{ text: 'one' }, { calls: [call] }, { text: 'three' }],
    when: [[[hi, said('one'), hi, called('call-2-1'), results('call-2-1')], 'three']],
  },
  {
    title:
      'a repeated request meets the next failure, then the answer, which is given as often as it is asked for',
    replies: [overloaded, { cut: true, text: 'on' }, { text: 'one' }, { text: 'two' }],
    when: [
      [[hi], 'overloaded'],
      [[hi], 'unreachable'],
      [[hi], 'one'],
      [[hi], 'one'],
      [[hi, said('one'), hi], 'two'],
    ],
  },
  {
    title: 'a new process meets the failures of its place again',
    replies: [{ text: 'one' }, overloaded, { text: 'two' }],
    when: [
      [[hi, said('one'), hi], 'overloaded'],
      [[hi, said('one'), hi], 'two'],
    ],
  },
  {
    title: 'an empty reply is passed by the next request',
    replies: [{}, { text: 'two' }],
    when: [
      [[hi], 'empty'],
      [[hi], 'two'],
    ],
  },
  {
    title: 'a fork goes on at its own place',
    replies: [{ text: 'one' }, { text: 'two' }, { text: 'three' }],
    when: [
      [[hi], 'one'],
      [[hi, said('one'), hi], 'two'],
      [[hi, said('one'), hi, said('two'), hi], 'three'],
      [[hi, said('one'), user('otherwise')], 'two'],
    ],
  },
  {
    title: 'the same text twice is two replies',
    replies: [{ text: 'ok' }, { text: 'ok' }, { text: 'end' }],
    when: [[[hi, said('ok'), hi, said('ok'), hi], 'end']],
  },
  {
    title: 'a reply of which the user kept only the beginning is used up',
    replies: [{ text: 'a long reply' }, { text: 'two' }],
    when: [[[hi, said('a lon', { cut: true }), hi], 'two']],
  },
  {
    title: 'a stall of which the beginning was kept is used up',
    replies: [{ text: 'Let me th', stall: true }, { text: 'two' }],
    when: [[[hi, said('Let me', { cut: true }), hi], 'two']],
  },
  {
    title: 'messages of another model count for nothing',
    replies: [{ text: 'one' }, { text: 'two' }],
    when: [[[hi, said('bonjour'), hi, called('toolu_1'), results('toolu_1')], 'one']],
  },
  {
    title: 'a conversation that was compacted goes on after the reply that summed it up',
    replies: [{ text: 'one' }, { calls: [call] }, { text: 'one and a call' }, { text: 'four' }],
    when: [
      [[summary('Summary: one and a call.'), called('call-2-1'), results('call-2-1')], 'four'],
      [[summary('Summary: one and a call.'), said('four'), hi], 'badRequest'],
    ],
  },
  {
    title: 'of several replies that a summary holds the longest is the one that summed up',
    replies: [{ text: 'so far all went well' }, { text: 'well' }],
    when: [[[summary('Summary: so far all went well.'), hi], 'well']],
  },
  {
    title: 'after the last reply it fails',
    replies: [{ text: 'one' }],
    when: [[[hi, said('one'), hi], 'badRequest']],
  },
  {
    title: 'after failures at the end it fails for good',
    replies: [overloaded],
    when: [
      [[hi], 'overloaded'],
      [[hi], 'badRequest'],
    ],
  },
];

for (const { title, replies, when } of places) {
  test(`place: ${title}`, async () => {
    const model = scriptedModel({ replies });
    const words: string[] = [];
    for (const [messages] of when) words.push(wordFor(await endingOf(model, ask(messages))));
    assert.deepEqual(
      words,
      when.map(([, word]) => word),
    );
  });
}

test('a script of many calls is not read through for each message of each request', () => {
  const COUNT = 150;
  let looks = 0;
  const calls = (number: number) => [{ tool: 'read', callId: `call-${number}`, input: {} }];
  const replies = Array.from({ length: COUNT }, (_, index) => ({
    get calls() {
      looks += 1;
      return calls(index);
    },
  }));
  const next = createCursor(replies);
  const messages: Message[] = [];
  for (let index = 0; index < COUNT; index++) {
    const found = next(messages);
    assert.equal(found.kind === 'found' && found.number, index + 1);
    const callId = `call-${index}`;
    const call = { type: 'call', callId, tool: 'read', input: {} } as const;
    messages.push({ role: 'assistant', model: 'test/one', cut: false, parts: [call] });
  }
  assert.ok(looks < COUNT * 10, `${looks} looks at ${COUNT} replies`);
});

test('a conversation that grows is looked up once: work is linear', () => {
  let reads = 0;
  const counted = (message: Message): Message =>
    Object.defineProperty({ ...message }, 'parts', {
      enumerable: true,
      get: () => {
        reads += 1;
        return message.parts;
      },
    });
  const replies = Array.from(
    { length: 200 },
    (_, index): ScriptedReply => ({ text: `reply ${index}` }),
  );
  const next = createCursor(replies);
  const messages: Message[] = [counted(hi)];
  for (const [index, { text = '' }] of replies.entries()) {
    const found = next([...messages]);
    assert.ok(found.kind === 'found' && found.number === index + 1);
    messages.push(counted(said(text)), counted(hi));
  }
  assert.ok(reads < 10 * messages.length, `${reads} reads of ${messages.length} messages`);
});

test('a conversation that was replaced is looked up anew', () => {
  const next = createCursor([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
  const [first, second] = [said('one'), said('two')];
  const numberOf = (...messages: readonly Message[]): number => {
    const found = next(messages);
    return found.kind === 'found' ? found.number : 0;
  };
  assert.equal(numberOf(hi, first, hi, second, hi), 3);
  assert.equal(numberOf(hi, first, hi), 2);
  assert.equal(numberOf(hi, second, hi), 3);
});
