import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ServerReply, startAnthropicServer } from '../../../../test/servers/anthropic.js';
import {
  ask,
  type Completed,
  call,
  collect,
  converse,
  message,
  modelAt,
  noTokens,
  placeless,
  text,
  userSays,
} from './conversing.js';

const whole: readonly {
  readonly title: string;
  readonly given: ServerReply;
  readonly parts: Completed['parts'];
  readonly stopReason: Completed['stopReason'];
}[] = [
  {
    title: 'text in many pieces is one part',
    given: message([text('a reply that is long enough for several pieces, with é and 😀 in it')]),
    parts: [text('a reply that is long enough for several pieces, with é and 😀 in it')],
    stopReason: 'end',
  },
  {
    title: 'calls keep their order and their input as it was written, spaces included',
    given: message([
      text('I read.'),
      call('a', { rawInput: '{ "path" : "one" }' }),
      call('b', { input: { path: 'two' } }),
    ]),
    parts: [
      text('I read.'),
      { type: 'call', callId: 'a', tool: 'read', rawInput: '{ "path" : "one" }' },
      { type: 'call', callId: 'b', tool: 'read', rawInput: '{"path":"two"}' },
    ],
    stopReason: 'toolUse',
  },
  {
    title: 'input that is no JSON is handed on untouched',
    given: message([call('a', { rawInput: '{"path": one}}' })]),
    parts: [{ type: 'call', callId: 'a', tool: 'read', rawInput: '{"path": one}}' }],
    stopReason: 'toolUse',
  },
  {
    title: 'input that is JSON but no object is handed on untouched',
    given: message([call('a', { rawInput: '["path"]' })]),
    parts: [{ type: 'call', callId: 'a', tool: 'read', rawInput: '["path"]' }],
    stopReason: 'toolUse',
  },
  {
    title: 'a call without input has an empty object',
    given: message([call('a', { rawInput: '' })]),
    parts: [{ type: 'call', callId: 'a', tool: 'read', rawInput: '{}' }],
    stopReason: 'toolUse',
  },
  {
    title: 'an empty reply has no parts',
    given: message([]),
    parts: [],
    stopReason: 'end',
  },
  {
    title: 'blank text is no part, since it could not be sent back',
    given: message([text('\n\n'), call('a')]),
    parts: [{ type: 'call', callId: 'a', tool: 'read', rawInput: '{}' }],
    stopReason: 'toolUse',
  },
  {
    title: 'max_tokens in a half call whose block ends hands on the half input',
    given: message([call('a', { rawInput: '{"path": "on' })], { stopReason: 'max_tokens' }),
    parts: [{ type: 'call', callId: 'a', tool: 'read', rawInput: '{"path": "on' }],
    stopReason: 'maxTokens',
  },
  {
    title: 'max_tokens in a half call whose block does not end hands on the half input',
    given: message([call('a', { rawInput: '{"path": "on', half: true })], {
      stopReason: 'max_tokens',
    }),
    parts: [{ type: 'call', callId: 'a', tool: 'read', rawInput: '{"path": "on' }],
    stopReason: 'maxTokens',
  },
  {
    title: 'a refusal keeps what was said before it',
    given: message([text('No.')], { stopReason: 'refusal' }),
    parts: [text('No.')],
    stopReason: 'refusal',
  },
  {
    title: 'a pause is another reason',
    given: message([text('wait')], { stopReason: 'pause_turn' }),
    parts: [text('wait')],
    stopReason: 'other',
  },
  {
    title: 'a reason that nobody knows yet is another reason',
    given: message([text('wait')], { stopReason: 'moon_phase' }),
    parts: [text('wait')],
    stopReason: 'other',
  },
  {
    title: 'a reason that is called like a field of every object is another reason',
    given: message([text('wait')], { stopReason: 'constructor' }),
    parts: [text('wait')],
    stopReason: 'other',
  },
  {
    title: 'events, blocks and deltas that nobody knows yet are passed over',
    given: message([
      { type: 'events', events: [{ type: 'moon_phase', phase: 'full' }] },
      {
        type: 'events',
        events: [
          { type: 'content_block_start', index: 1, content_block: { type: 'moon', text: '' } },
          {
            type: 'content_block_delta',
            index: 1,
            delta: { type: 'text_delta', text: 'of the new block' },
          },
          { type: 'content_block_delta', index: 1, delta: { type: 'moon_delta', text: 'x' } },
          { type: 'content_block_stop', index: 1 },
        ],
      },
      text('hi'),
      {
        type: 'events',
        events: [{ type: 'content_block_delta', index: 2, delta: { type: 'moon_delta' } }],
      },
      call('a'),
    ]),
    parts: [text('hi'), { type: 'call', callId: 'a', tool: 'read', rawInput: '{}' }],
    stopReason: 'toolUse',
  },
  {
    title: 'reasoning keeps its signature',
    given: message([{ type: 'thinking', text: 'Let me see.', signature: 'sig' }, text('Yes.')]),
    parts: [
      { type: 'reasoning', text: 'Let me see.', metadata: { anthropic: { signature: 'sig' } } },
      text('Yes.'),
    ],
    stopReason: 'end',
  },
];

for (const { title, given, parts, stopReason } of whole) {
  test(`whole reply: ${title}`, async () => {
    const ending = await converse(given);
    assert.ok(ending.type === 'completed', JSON.stringify(ending));
    assert.deepEqual(placeless(ending), parts);
    assert.equal(ending.stopReason, stopReason);
  });
}

test('pieces stream in order, and pings are signs of life without content', async (context) => {
  const parts = [
    { type: 'thinking' as const, text: 'Hm.', signature: 's' },
    text('I shall read a file for you.'),
    call('a', { input: { path: 'x' } }),
  ];
  const server = await startAnthropicServer({ replies: [message(parts, { pings: 2 })] });
  context.after(server.close);
  const pieces = await collect(
    modelAt(server.url).stream(ask(userSays('hi')), new AbortController().signal),
  );
  assert.deepEqual(pieces.slice(0, -1), [
    { type: 'reasoning', text: '' },
    { type: 'reasoning', text: '' },
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'I shall read a file ' },
    { type: 'text', text: 'for you.' },
    { type: 'toolCall', tool: 'read', text: '' },
    { type: 'toolCall', tool: 'read', text: '{"path":"x"}' },
  ]);
});

test('tokens are counted without what went through the cache', async () => {
  const usage = {
    input_tokens: 11,
    output_tokens: 22,
    cache_read_input_tokens: 33,
    cache_creation_input_tokens: 44,
  };
  const ending = await converse(message([text('yes')], { usage }));
  assert.deepEqual(ending.usage, {
    inputTokens: 11,
    outputTokens: 22,
    cacheReadTokens: 33,
    cacheWriteTokens: 44,
  });
});

test('a reply that breaks off still names the tokens that were charged', async () => {
  const ending = await converse(
    message([text('yes')], { end: 'clean', usage: { input_tokens: 11, output_tokens: 5 } }),
  );
  assert.deepEqual(ending.usage, { ...noTokens, inputTokens: 11, outputTokens: 1 });
});
