import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adapterOptions } from '../../../../test/kit/models/adapter-options.js';
import { type SeenRequest, startAnthropicServer } from '../../../../test/servers/anthropic.js';
import type { AssistantPart, Message } from '../../src/machine/message.js';
import { anthropicModel } from '../../src/models/anthropic.js';
import { catalogueFacts } from '../../src/models/catalogue.js';
import type { ModelRequest } from '../../src/ports/model.js';

const MARKER = /,"cache_control":\{"type":"ephemeral"\}/g;

const user = (...parts: Extract<Message, { role: 'user' }>['parts']): Message => ({
  role: 'user',
  parts,
});
const says = (text: string) => ({ type: 'text' as const, origin: 'user' as const, text });
const result = (callId: string, text: string, failed = false) => ({
  type: 'result' as const,
  callId,
  tool: 'read',
  failed,
  text,
});
const assistant = (...parts: readonly AssistantPart[]): Message => ({
  role: 'assistant',
  model: 'anthropic/claude-sonnet-5-5',
  cut: false,
  parts,
});
const called = (callId: string, rest = {}): AssistantPart => ({
  type: 'call',
  callId,
  tool: 'read',
  input: {},
  ...rest,
});

const thought: AssistantPart = {
  type: 'reasoning',
  text: 'Hm.',
  metadata: { anthropic: { signature: 'sig' } },
};

/** Sends requests one after another; every one of them must be valid. */
const send = async (
  requests: readonly Partial<ModelRequest>[],
  rest: { thinksByItself?: boolean; cacheTtl?: '5m' | '1h' } = {},
): Promise<readonly SeenRequest[]> => {
  const server = await startAnthropicServer({
    replies: () => ({
      type: 'message',
      parts: [
        { type: 'thinking', text: 'Hm.', signature: 'sig' },
        { type: 'text', text: 'ok' },
      ],
    }),
  });
  const { cacheTtl, ...others } = rest;
  const facts = catalogueFacts('anthropic/claude-sonnet-5-5', Date.now(), cacheTtl);
  const options = adapterOptions('anthropic/claude-sonnet-5-5', `${server.url}/v1/`, {
    facts,
    ...others,
  });
  const model = anthropicModel(options);
  const tool = (name: string) => ({
    name,
    description: `Does ${name}.`,
    inputSchema: { type: 'object', properties: {} },
  });
  try {
    for (const request of requests) {
      const full = {
        instructions: 'Be brief.',
        tools: [tool('read'), tool('edit')],
        messages: [],
        ...request,
      };
      for await (const piece of model.stream(full, new AbortController().signal)) {
        if (piece.type === 'failed') assert.fail(piece.error.message);
      }
    }
    return server.requests;
  } finally {
    await server.close();
  }
};

const story: readonly Message[] = [
  user(says('find the bug')),
  assistant(
    thought,
    { type: 'text', text: 'I look.' },
    called('a'),
    called('b', { rawInput: '{"path":' }),
  ),
  user(result('a', 'text of a'), result('b', 'the input was no JSON', true)),
  assistant(called('c', { input: { path: 'x', more: [1, { deep: null }] } })),
  user(result('c', ''), says('and quickly')),
  assistant({ type: 'text', text: 'Done.' }),
  user(says('thanks')),
];

test('messages become what the wire wants', async () => {
  const [request] = await send([{ messages: [user(says('hi'))] }, { messages: story }]).then(
    (all) => all.slice(1),
  );
  const bare = JSON.parse((request?.text ?? '').replace(MARKER, ''));
  assert.deepEqual(bare.messages, [
    { role: 'user', content: [{ type: 'text', text: 'find the bug' }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'a', name: 'read', input: {} },
        { type: 'tool_use', id: 'b', name: 'read', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: 'text of a' },
        { type: 'tool_result', tool_use_id: 'b', content: 'the input was no JSON', is_error: true },
      ],
    },
    {
      role: 'assistant',
      content: [
        {
          type: 'tool_use',
          id: 'c',
          name: 'read',
          input: { path: 'x', more: [1, { deep: null }] },
        },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c', content: '(no output)' },
        { type: 'text', text: 'and quickly' },
      ],
    },
    { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] },
    { role: 'user', content: [{ type: 'text', text: 'thanks' }] },
  ]);
  assert.deepEqual(bare.system, [{ type: 'text', text: 'Be brief.' }]);
  assert.deepEqual(
    bare.tools.map(({ name }: { name: string }) => name),
    ['read', 'edit'],
  );
  assert.equal(bare.max_tokens, 128_000);
});

test('what was sent before is sent again byte for byte, apart from cache markers', async () => {
  const lengths = [1, 3, 5, 7];
  const requests = await send(lengths.map((length) => ({ messages: story.slice(0, length) })));
  const bare = requests.map(({ text }) => text.replace(MARKER, ''));
  for (const [index, text] of bare.slice(0, -1).entries()) {
    const end = text.lastIndexOf('],"tools"');
    assert.ok(end > 0, text);
    assert.equal(bare[index + 1]?.slice(0, end), text.slice(0, end));
    assert.equal(
      bare[index + 1]?.slice(bare[index + 1]?.lastIndexOf('],"tools"')),
      text.slice(end),
    );
  }
});

test('the instructions and the last two user messages are marked for the cache, at their ends', async () => {
  const [, request] = await send([
    { messages: story.slice(0, 1) },
    { messages: story.slice(0, 5) },
  ]);
  assert.ok(request);
  const marked = (blocks: readonly object[]) => blocks.map((block) => 'cache_control' in block);
  assert.deepEqual(marked(request.body.system ?? []), [true]);
  assert.deepEqual(
    request.body.messages.map(({ content }) => marked(content)),
    [[false], [false, false, false, false], [false, true], [false], [false, true]],
  );
});

test('without instructions the last tool is marked, and without tools there are none', async () => {
  const messages = [user(says('hi'))];
  const requests = await send([
    { messages, instructions: '' },
    { messages, tools: [] },
  ]);
  assert.deepEqual(
    requests[0]?.body.tools?.map((tool) => 'cache_control' in tool),
    [false, true],
  );
  assert.equal(requests[0]?.body.system, undefined);
  assert.equal('tools' in (requests[1]?.body ?? {}), false);
});

test('reasoning without a signature and blank text are left out', async () => {
  const [request] = await send([
    {
      messages: [
        user(says('hi')),
        assistant({ type: 'reasoning', text: 'Hm.' }, { type: 'text', text: ' \n' }, called('a')),
        user(result('a', 'x'), says(' ')),
      ],
    },
  ]);
  assert.deepEqual(
    request?.body.messages.map(({ content }) => content.map(({ type }) => type)),
    [['text'], ['tool_use'], ['tool_result']],
  );
});

test('a reply of which nothing can be sent back is left out, and what the user said stays together', async () => {
  const unsigned = assistant({ type: 'reasoning', text: 'Hm.' });
  const [request] = await send([{ messages: [user(says('hi')), unsigned, user(says('go on'))] }]);
  assert.deepEqual(
    request?.body.messages.map(({ content }) => content.map(({ text }) => text)),
    [['hi', 'go on']],
  );
});

test('a summary of thoughts is asked for only where it is wanted', async () => {
  const messages = [user(says('hi'))];
  const [plain] = await send([{ messages }]);
  const [thinking] = await send([{ messages }], { thinksByItself: true });
  assert.equal(plain?.text.includes('"thinking"'), false);
  assert.match(thinking?.text ?? '', /"thinking":\{"type":"adaptive","display":"summarized"\}/);
});

test('tools that may not be called are sent all the same, and are nothing of a request without tools', async () => {
  const [, told, bare] = await send([
    { messages: story.slice(0, 1) },
    { messages: story, toolChoice: 'none' },
    { messages: story.slice(0, 1), tools: [], toolChoice: 'none' },
  ]);
  assert.match(told?.text ?? '', /"tool_choice":\{"type":"none"\}/);
  assert.equal(told?.body.tools?.length, 2);
  assert.equal(bare?.text.includes('tool_choice'), false);
});

test('half a character in a result is replaced, since the provider would refuse the request', async () => {
  const kept = 'a \u{1f600} \\ud83d stays';
  const [seen] = await send([
    {
      messages: [
        user(says('Go.')),
        assistant(called('c1', { input: { path: 'x\udc00' } })),
        user(result('c1', `${kept}, \\\ud83d and \ud83d\ud83d go`)),
      ],
    },
  ]);
  const sent = JSON.stringify(seen);
  assert.doesNotMatch(sent, /(?<!\\)(\\\\)*\\ud/);
  assert.ok(sent.includes(JSON.stringify(`${kept}, \\\ufffd and \ufffd\ufffd go`).slice(1, -1)));
  assert.ok(sent.includes('x\ufffd'));
});

test('a cache of an hour is asked for in every mark, one of five minutes in none', async () => {
  const marks = async (cacheTtl: '5m' | '1h'): Promise<readonly string[]> => {
    const requests = [{ messages: [user(says('hi'))] }, { messages: story }];
    const [, request] = await send(requests, { cacheTtl });
    return request?.text.match(/"cache_control":\{[^}]*\}/g) ?? [];
  };
  const [short, long] = [await marks('5m'), await marks('1h')];
  assert.deepEqual(new Set(short), new Set(['"cache_control":{"type":"ephemeral"}']));
  assert.deepEqual(new Set(long), new Set(['"cache_control":{"type":"ephemeral","ttl":"1h"}']));
  assert.equal(long.length, short.length);
});
