import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countCases } from '../../../../test/tier.js';
import { estimateTokens } from '../../src/machine/conversation.js';
import type { AssistantPart, Message } from '../../src/machine/message.js';
import { fitMessages } from '../../src/session/compaction.js';

const user = (text: string): Message => ({
  role: 'user',
  parts: [{ type: 'text', origin: 'user', text }],
});
const reply = (...parts: readonly AssistantPart[]): Message => ({
  role: 'assistant',
  model: 'test/one',
  cut: false,
  parts,
});

type Exchange = {
  readonly input: string;
  readonly result: string;
  readonly said: string;
  readonly thought: string;
};

/** A conversation of exchanges, each a call with its result, and sometimes words of the user behind it. */
const talkOf = (first: string, exchanges: readonly Exchange[]): readonly Message[] => [
  user(first),
  ...exchanges.flatMap(({ input, result, said, thought }, index): readonly Message[] => [
    reply(
      ...(thought === ''
        ? []
        : [{ type: 'reasoning', text: thought, metadata: { signature: 's' } } as const]),
      {
        type: 'call',
        callId: `c${index}`,
        tool: 'write',
        input: { deep: [{ text: input }] },
        metadata: { id: 'i' },
      },
    ),
    {
      role: 'user',
      parts: [
        { type: 'result', callId: `c${index}`, tool: 'write', failed: false, text: result },
        ...(said === '' ? [] : [{ type: 'text', origin: 'user', text: said } as const]),
      ],
    },
  ]),
];

const assertWhole = (messages: readonly Message[]): void => {
  let open: readonly string[] = [];
  for (const [index, { role, parts }] of messages.entries()) {
    assert.equal(role, index % 2 === 0 ? 'user' : 'assistant');
    assert.ok(parts.length > 0);
    const answered = parts.flatMap((part) => (part.type === 'result' ? [part.callId] : []));
    assert.deepEqual(answered, open);
    open = parts.flatMap((part) => (part.type === 'call' ? [part.callId] : []));
  }
};

const long = (most: number) => fc.nat(most).map((length) => 'ä'.repeat(length));

test('whatever the conversation, it fits, pairs stay whole, and the first message stays', () => {
  const exchange = fc.record({
    input: long(6_000),
    result: long(20_000),
    said: long(3_000),
    thought: long(500),
  });
  fc.assert(
    fc.property(
      long(9_000),
      fc.array(exchange, { maxLength: 60 }),
      fc.integer({ min: 4_000, max: 40_000 }),
      (first, exchanges, room) => {
        const talk = talkOf(`task ${first}`, exchanges);
        const fitted = fitMessages(talk, room);
        assert.ok(estimateTokens(fitted) <= room, `${estimateTokens(fitted)} > ${room}`);
        assertWhole(fitted);
        assert.match(JSON.stringify(fitted[0]), /task /);
        assert.deepEqual(fitted.at(-1)?.role, talk.at(-1)?.role);
      },
    ),
    { numRuns: countCases(150) },
  );
});

test('what fits is the same object', () => {
  const talk = talkOf('task', [{ input: 'i', result: 'r', said: '', thought: 't' }]);
  assert.equal(fitMessages(talk, 1_000), talk);
});

test('long results are cut first, and words of the user stay', () => {
  const said = 'w'.repeat(5_000);
  const talk = talkOf(said, [{ input: 'i', result: 'r'.repeat(40_000), said, thought: 'sealed' }]);
  const fitted = fitMessages(talk, 5_000);
  assertWhole(fitted);
  assert.equal(fitted.length, talk.length);
  const text = JSON.stringify(fitted);
  assert.equal(text.split(said).length, 3);
  assert.match(text, /35904 bytes left out/);
  assert.doesNotMatch(text, /sealed|metadata/);
});

test('when exchanges are left out, what the user said in them is named', () => {
  const exchanges = Array.from({ length: 200 }, (_, index) => ({
    input: 'i'.repeat(300),
    result: 'r'.repeat(300),
    said: index % 20 === 0 ? `wish ${index}` : '',
    thought: '',
  }));
  const fitted = fitMessages(talkOf('task', exchanges), 4_000);
  const opening = JSON.stringify(fitted[0]);
  assert.match(opening, /task.*messages that came here are left out.*wish 0.*wish 20.*wish 100/s);
  assert.match(JSON.stringify(fitted.at(-1)), /c199/);
});

test('results are cut to the smallest size before a word of the user is', () => {
  const words = 'u'.repeat(3_000);
  const result = 'r'.repeat(3_000);
  const fitted = fitMessages(talkOf(words, [{ input: '', result, said: '', thought: '' }]), 900);
  assert.deepEqual(fitted[0], user(words));
  assert.ok(JSON.stringify(fitted[2]).length < 600);
});
