import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findFault as findChatFault } from './chat-strict.js';
import { findFault as findGoogleFault } from './google-strict.js';
import { findFault as findOpenAiFault } from './openai-strict.js';

/** The strict servers of the three wires without Anthropic's (which has its own test): what they take and what they reject. */

type Bad = readonly (readonly [string, object, RegExp])[];

// ---- Chat Completions ----

const user = { role: 'user', content: 'hi' };
const chatCall = (id: string, rest = {}) => ({
  id,
  type: 'function',
  function: { name: 'read', arguments: '{}', ...rest },
});
const calling = (...ids: readonly string[]) => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => chatCall(id)),
});
const toolSays = (id: string, content = 'x') => ({ role: 'tool', tool_call_id: id, content });
const chat = (messages: readonly object[], rest = {}) => ({
  model: 'm',
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: 10,
  tools: [{ type: 'function', function: { name: 'read', parameters: { type: 'object' } } }],
  messages,
  ...rest,
});

test('chat: a whole conversation is taken', () => {
  const thought = { ...calling('a', 'b'), reasoning_content: 'Hm' };
  const messages = [
    { role: 'system', content: 'be brief' },
    user,
    thought,
    toolSays('b'),
    toolSays('a'),
    { role: 'assistant', content: 'so' },
    user,
  ];
  const said = { thoughts: new Set(['Hm']), secrets: new Map() };
  assert.equal(findChatFault(chat(messages), said), null);
});

const badChat: Bad = [
  ['a call without its answer', chat([user, calling('a'), user]), /without an answer.*: a/],
  ['one of two answers', chat([user, calling('a', 'b'), toolSays('a')]), /without an answer: b/],
  ['an answer to nothing', chat([user, toolSays('a')]), /answers no call: a/],
  [
    'two answers to one call',
    chat([user, calling('a'), toolSays('a'), toolSays('a')]),
    /answers no call/,
  ],
  ['an answer that is empty', chat([user, calling('a'), toolSays('a', '')]), /content: is missing/],
  [
    'arguments that are no JSON',
    chat([
      user,
      { ...calling('a'), tool_calls: [chatCall('a', { arguments: '{"a' })] },
      toolSays('a'),
    ]),
    /arguments: should be JSON/,
  ],
  [
    'one id for two calls',
    chat([user, calling('a'), toolSays('a'), calling('a'), toolSays('a')]),
    /another call/,
  ],
  ['two user messages', chat([user, user]), /in a row/],
  [
    'an assistant at the beginning',
    chat([{ role: 'assistant', content: 'a' }, user]),
    /without a question/,
  ],
  ['an assistant at the end', chat([user, { role: 'assistant', content: 'a' }]), /last message/],
  ['the user behind a result', chat([user, calling('a'), toolSays('a'), user]), /'user' after/],
  ['empty text', chat([{ role: 'user', content: ' ' }]), /not empty/],
  [
    'an assistant that says nothing',
    chat([user, { role: 'assistant', content: '' }, user]),
    /not empty/,
  ],
  ['a late system message', chat([user, { role: 'system', content: 'x' }]), /comes first/],
  [
    'a thought of another model',
    chat([user, { role: 'assistant', content: 'a', reasoning_content: 'No' }, user]),
    /not a thought of this model/,
  ],
  ['a field that nobody knows', chat([user], { origin: 1 }), /origin: unknown/],
  ['a choice without tools', chat([user], { tools: undefined, tool_choice: 'none' }), /no tools/],
  ['no count of tokens', chat([user], { stream_options: {} }), /counts tokens/],
];

// ---- Responses ----

const said = (role: string, text: string) => ({
  role,
  content: [{ type: role === 'user' ? 'input_text' : 'output_text', text }],
});
const openAiCall = (id: string, rest = {}) => ({
  type: 'function_call',
  call_id: id,
  name: 'read',
  arguments: '{}',
  ...rest,
});
const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'x' });
const thought = (secret: string) => ({
  type: 'reasoning',
  id: 'rs_1',
  encrypted_content: secret,
  summary: [],
});
const hi = said('user', 'hi');
const responses = (input: readonly object[], rest = {}) => ({
  model: 'm',
  stream: true,
  store: false,
  include: ['reasoning.encrypted_content'],
  max_output_tokens: 10,
  tools: [{ type: 'function', name: 'read', parameters: {}, strict: false }],
  input,
  ...rest,
});

test('openai: a whole conversation is taken', () => {
  const input = [
    { role: 'developer', content: 'be brief' },
    hi,
    thought('s'),
    said('assistant', 'so'),
    openAiCall('a'),
    openAiCall('b'),
    output('b'),
    output('a'),
    hi,
  ];
  assert.equal(findOpenAiFault(responses(input), new Set(['s'])), null);
});

const badResponses: Bad = [
  ['a call without its output', responses([hi, openAiCall('a'), hi]), /No tool output found.*a/],
  [
    'a call without its output at the end',
    responses([hi, openAiCall('a')]),
    /No tool output found/,
  ],
  ['an output of no call', responses([hi, output('a')]), /No tool call found.*a/],
  [
    'two outputs of one call',
    responses([hi, openAiCall('a'), output('a'), output('a')]),
    /No tool call found/,
  ],
  [
    'thoughts of another model',
    responses([hi, thought('x'), said('assistant', 'a'), hi]),
    /could not be verified/,
  ],
  ['thoughts that lead to nothing', responses([hi, thought('s'), hi]), /without what it led to/],
  [
    'a reference to what is stored',
    responses([hi, { type: 'item_reference', id: 'msg_1' }]),
    /nothing is stored/,
  ],
  [
    'arguments that are no object',
    responses([hi, openAiCall('a', { arguments: '[]' }), output('a')]),
    /arguments/,
  ],
  [
    'one id for two calls',
    responses([hi, openAiCall('a'), output('a'), openAiCall('a'), output('a')]),
    /another call/,
  ],
  [
    'an id that is too long',
    responses([hi, openAiCall('a'.repeat(65)), output('a'.repeat(65))]),
    /too long/,
  ],
  ['a conversation that is to be kept', responses([hi], { store: true }), /keeps nothing/],
  ['thoughts that are not asked for', responses([hi], { include: [] }), /not asked for/],
  [
    'tools that are taken for strict',
    responses([hi], { tools: [{ type: 'function', name: 'a', parameters: {} }] }),
    /strict/,
  ],
  [
    'text of the user in an answer',
    responses([{ role: 'assistant', content: hi.content }, hi]),
    /input_text of assistant/,
  ],
  ['an assistant at the end', responses([hi, said('assistant', 'a')]), /last word/],
  ['a field that nobody knows', responses([hi], { origin: 1 }), /origin: unknown/],
];

// ---- Google ----

const turn = (role: string, ...parts: readonly object[]) => ({ role, parts });
const googleCall = (name: string, thoughtSignature?: string) => ({
  functionCall: { id: name, name, args: {} },
  ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
});
const response = (name: string) => ({
  functionResponse: { id: name, name, response: { content: 'x' } },
});
const asks = turn('user', { text: 'hi' });
const google = (contents: readonly object[], rest = {}) => ({
  contents,
  generationConfig: {},
  ...rest,
});

test('google: a whole conversation is taken', () => {
  const contents = [
    asks,
    turn('model', googleCall('old')),
    turn('user', response('old')),
    asks,
    turn('model', { text: 'so', thoughtSignature: 's' }, googleCall('a', 's'), googleCall('b')),
    turn('user', response('a'), response('b')),
    turn('model', googleCall('c', 'skip_thought_signature_validator')),
    turn('user', response('c')),
  ];
  assert.equal(findGoogleFault(google(contents), new Set(['s'])), null);
});

const called = turn('model', googleCall('a', 's'));
const badGoogle: Bad = [
  ['a call without its response', google([asks, called, asks]), /equal to the number/],
  [
    'one of two responses',
    google([
      asks,
      turn('model', googleCall('a', 's'), googleCall('b')),
      turn('user', response('a')),
    ]),
    /equal/,
  ],
  ['a response of no call', google([asks, turn('user', response('a'))]), /equal to the number/],
  ['a call at the end', google([asks, called]), /last word/],
  [
    'a call without its signature',
    google([asks, turn('model', googleCall('a')), turn('user', response('a'))]),
    /missing a thought_signature/,
  ],
  [
    'a signature of another model',
    google([asks, turn('model', googleCall('a', 'x')), turn('user', response('a'))]),
    /not valid/,
  ],
  ['a role that is none', google([asks, turn('assistant', { text: 'a' }), asks]), /valid role/],
  ['empty text', google([turn('user', { text: '' })]), /not empty/],
  ['no parts', google([turn('user')]), /not empty/],
  ['the model at the beginning', google([turn('model', { text: 'a' }), asks]), /the user begins/],
  ['a field that nobody knows', google([asks], { origin: 1 }), /origin: unknown/],
];

for (const [wire, find, bad] of [
  ['chat', (body: object) => findChatFault(body), badChat],
  ['openai', (body: object) => findOpenAiFault(body, new Set(['s'])), badResponses],
  ['google', (body: object) => findGoogleFault(body, new Set(['s'])), badGoogle],
] as const) {
  for (const [title, body, says] of bad) {
    test(`${wire}: ${title} is rejected`, () => {
      assert.match(find(body) ?? 'taken', says);
    });
  }
}
