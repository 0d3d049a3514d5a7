import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startAnthropicServer } from './anthropic.js';
import { findFault } from './anthropic-strict.js';

const text = (words: string) => ({ type: 'text', text: words });
const call = (id: string, rest: object = {}) => ({
  type: 'tool_use',
  id,
  name: 'read',
  input: {},
  ...rest,
});
const result = (id: string, rest: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'x',
  ...rest,
});
const user = (...content: readonly object[]) => ({ role: 'user', content });
const assistant = (...content: readonly object[]) => ({ role: 'assistant', content });
const hi = user(text('hi'));
const tool = (name: string) => ({ name, input_schema: { type: 'object' } });
const asked = (...messages: readonly object[]) => ({
  model: 'm',
  max_tokens: 10,
  stream: true,
  messages,
  tools: [tool('read')],
});
const withoutTools = (...messages: readonly object[]) => ({
  ...asked(...messages),
  tools: undefined,
});
const marked = (words: string) => ({ ...text(words), cache_control: { type: 'ephemeral' } });

const good: Readonly<Record<string, object>> = {
  'a single user message': asked(hi),
  'content as a text': asked({ role: 'user', content: 'hi' }),
  'results in any order, then text': asked(
    hi,
    assistant(text('I look'), call('a'), call('b')),
    user(result('b', { is_error: true }), result('a'), text('go on')),
  ),
  'text without tools': withoutTools(hi, assistant(text('a')), hi),
  'tools that may not be called': { ...asked(hi), tool_choice: { type: 'none' } },
  'tools and instructions': { ...asked(hi), system: [marked('be brief')], tools: [tool('read')] },
  'thoughts that the server gave': asked(
    hi,
    assistant({ type: 'thinking', thinking: 'Hm', signature: 's' }, text('a')),
    hi,
  ),
};

for (const [title, body] of Object.entries(good)) {
  test(`the strict server takes ${title}`, () => {
    assert.equal(findFault(body, new Map([['s', 'Hm']])), null);
  });
}

const bad: readonly (readonly [string, object, RegExp])[] = [
  [
    'a call without its result',
    asked(hi, assistant(call('a')), user(text('go on'))),
    /without `tool_result`.*: a$/,
  ],
  [
    'one of two results',
    asked(hi, assistant(call('a'), call('b')), user(result('a'))),
    /without `tool_result`.*: b$/,
  ],
  [
    'calls without tools',
    withoutTools(hi, assistant(call('a')), user(result('a'))),
    /must define tools/,
  ],
  [
    'a choice among no tools',
    { ...withoutTools(hi), tool_choice: { type: 'none' } },
    /only be specified while providing tools/,
  ],
  [
    'text before results',
    asked(hi, assistant(call('a')), user(text('go'), result('a'))),
    /before text/,
  ],
  [
    'a result of an unknown call',
    asked(hi, assistant(call('a')), user(result('a'), result('z'))),
    /unexpected.*: z$/,
  ],
  [
    'two results of one call',
    asked(hi, assistant(call('a')), user(result('a'), result('a'))),
    /single result/,
  ],
  [
    'one id for two calls',
    asked(hi, assistant(call('a')), user(result('a')), assistant(call('a')), user(result('a'))),
    /unique: a/,
  ],
  ['an id that is no id', asked(hi, assistant(call('a b')), user(result('a b'))), /pattern/],
  [
    'a tool name that is no name',
    asked(hi, assistant(call('a', { name: 'a b' })), user(result('a'))),
    /name: .*pattern/,
  ],
  [
    'input that is a text',
    asked(hi, assistant(call('a', { input: '{}' })), user(result('a'))),
    /input: .*dictionary/,
  ],
  ['empty content', asked(user()), /non-empty content/],
  ['an empty text', asked(user(text(''))), /non-empty/],
  [
    'an error without content',
    asked(hi, assistant(call('a')), user(result('a', { content: '', is_error: true }))),
    /is_error/,
  ],
  ['two user messages', asked(hi, hi), /alternate/],
  ['an assistant message at the beginning', asked(assistant(text('a')), hi), /alternate/],
  ['an assistant message at the end', asked(hi, assistant(text('a'))), /end with a user/],
  ['no messages', asked(), /at least one/],
  ['a role that is none', asked({ role: 'system', content: 'x' }), /role/],
  [
    'a result in an assistant message',
    asked(hi, assistant(result('a')), hi),
    /tool_result in assistant/,
  ],
  ['a call in a user message', asked(user(call('a'))), /tool_use in user/],
  [
    'a thought that it never gave',
    asked(hi, assistant({ type: 'thinking', thinking: 'Hm', signature: 'x' }, text('a')), hi),
    /signature/,
  ],
  ['a body without max_tokens', { model: 'm', stream: true, messages: [hi] }, /max_tokens/],
  ['a request for no stream', { ...asked(hi), stream: false }, /stream/],
  ['a field that it does not know', { ...asked(hi), callId: 1 }, /body\.callId: Extra/],
  [
    'a field of a block that it does not know',
    asked(user({ ...text('a'), origin: 'user' })),
    /origin: Extra/,
  ],
  ['two tools of one name', { ...asked(hi), tools: [tool('a'), tool('a')] }, /unique/],
  ['a tool without a schema', { ...asked(hi), tools: [{ name: 'a' }] }, /input_schema/],
  ['five cache markers', asked(user(...['a', 'b', 'c', 'd', 'e'].map(marked))), /maximum of 4/],
];

for (const [title, body, says] of bad) {
  test(`the strict server rejects ${title}`, () => {
    assert.match(findFault(body, new Map([['s', 'Hm']])) ?? 'taken', says);
  });
}

test('a request with a fault is answered with 400, one without a key with 401, one at another place with 404', async (context) => {
  const server = await startAnthropicServer({ replies: [] });
  context.after(server.close);
  const wrong = await fetch(`${server.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': 'key', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(asked()),
  });
  assert.equal(wrong.status, 400);
  assert.match(await wrong.text(), /"type":"invalid_request_error"/);
  assert.match(server.requests[0]?.fault ?? '', /at least one/);
  const body = JSON.stringify(asked(hi));
  const keyless = await fetch(`${server.url}/v1/messages`, { method: 'POST', body });
  const elsewhere = await fetch(`${server.url}/messages`, { method: 'POST', body });
  await Promise.all([keyless.text(), elsewhere.text()]);
  assert.deepEqual([keyless.status, elsewhere.status], [401, 404]);
});
