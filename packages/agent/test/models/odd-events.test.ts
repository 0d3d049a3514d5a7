import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adapterOptions } from '../../../../test/kit/models/adapter-options.js';
import { anthropicModel } from '../../src/models/anthropic.js';
import { googleModel } from '../../src/models/google.js';
import type { Model, ModelPiece } from '../../src/ports/model.js';
import {
  chatModel,
  delta,
  events,
  facts,
  hello,
  type Loose,
  openAi,
  RESPONSES_OK,
  serve,
  streamed,
} from './answering.js';
import { ask, collect, type endingOf, userSays } from './conversing.js';

/** Events and endings that only some servers send, each as it was recorded, with a control beside it. */

type Context = Parameters<typeof serve>[0];
type Ending = ReturnType<typeof endingOf>;

const google = (url: string): Model =>
  googleModel(adapterOptions('google/gemini-3.8-flash', url.replace('/v1', ''), { facts }));
const anthropic = (url: string): Model =>
  anthropicModel(adapterOptions('anthropic/claude-sonnet-5-5', url.replace('/v1', ''), { facts }));
const models = { chat: chatModel, google, anthropic, openai: openAi } as const;

const reply = async (
  context: Context,
  wire: keyof typeof models,
  ...list: readonly (object | string)[]
): Promise<{ readonly ending: Ending; readonly pieces: readonly ModelPiece[] }> => {
  const { url } = await serve(context, streamed(events(...list)));
  return hello(models[wire](url));
};

/** The ending in a few words. */
const brief = (ending: Ending): unknown =>
  ending.type === 'failed'
    ? [ending.error.kind, ending.error.retryable]
    : [
        ending.stopReason,
        ...ending.parts.map((part) =>
          part.type === 'call' ? `${part.tool} ${part.rawInput}` : `${part.type} ${part.text}`,
        ),
      ];

const part = (content: object, rest: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts: [content] }, ...rest }],
  usageMetadata: { trafficType: 'ON_DEMAND' },
});
const last = (finishReason: string, rest: object = {}, usage: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason, ...rest }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, ...usage },
});

const message = (...blocks: readonly object[]): readonly object[] => [
  { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 1 } } },
  ...blocks,
];
const block = (index: number, content: object, ...deltas: readonly object[]): readonly object[] => [
  { type: 'content_block_start', index, content_block: content },
  ...deltas.map((each) => ({ type: 'content_block_delta', index, delta: each })),
  { type: 'content_block_stop', index },
];
const stopped = (reason: string): readonly object[] => [
  { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
];
const said = (index: number): readonly object[] =>
  block(index, { type: 'text', text: '' }, { type: 'text_delta', text: 'found' });

const call = (content: object): object =>
  delta({ tool_calls: [{ index: 0, id: 'a', function: content }] });

const failed = (code: string): object => ({
  type: 'response.failed',
  response: { status: 'failed', error: { code, message: 'No.' } },
});
const half: readonly object[] = [
  { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'm' } },
  { type: 'response.output_text.delta', output_index: 0, item_id: 'm', delta: 'half' },
];
const ended = (type: string, rest: object = {}): object => ({
  type: `response.${type}`,
  response: { usage: { input_tokens: 3, output_tokens: 2 }, ...rest },
});
const ITEMS = [
  { type: 'reasoning', id: 'r', encrypted_content: 'E', summary: [{ text: 'hm' }] },
  { type: 'message', id: 'm', content: [{ type: 'output_text', text: 'Hi' }] },
  { type: 'function_call', id: 'f', call_id: 'c', name: 'read', arguments: '{}' },
];
const ITEMS_READ = ['toolUse', 'reasoning hm', 'text Hi', 'read {}'];

type Row = readonly [
  title: string,
  wire: keyof typeof models,
  list: readonly (object | string)[],
  unknown,
];

const rows: readonly Row[] = [
  [
    'DeepSeek without resources is overloaded',
    'chat',
    [delta({ content: 'h' }), delta({}, 'insufficient_system_resource'), '[DONE]'],
    ['overloaded', true],
  ],
  [
    "Mistral's model_length is the end of the window",
    'chat',
    [delta({ content: 'h' }), delta({}, 'model_length'), '[DONE]'],
    ['maxTokens', 'text h'],
  ],
  [
    "z.ai's full window is an overflow",
    'chat',
    [delta({ content: 'h' }), delta({}, 'model_context_window_exceeded'), '[DONE]'],
    ['contextOverflow', false],
  ],
  [
    "Gemini's MALFORMED_RESPONSE is asked for again",
    'google',
    [part({ text: 'h' }), last('MALFORMED_RESPONSE')],
    ['malformed', true],
  ],
  [
    "Gemini's MISSING_THOUGHT_SIGNATURE is asked for again",
    'google',
    [part({ text: 'h' }), last('MISSING_THOUGHT_SIGNATURE')],
    ['malformed', true],
  ],
  ['control: Gemini ends', 'google', [part({ text: 'h' }), last('STOP')], ['end', 'text h']],
  [
    "Anthropic's full window is an overflow",
    'anthropic',
    message(...said(0), ...stopped('model_context_window_exceeded')),
    ['contextOverflow', false],
  ],
  [
    'arguments that are a JSON object are read',
    'chat',
    [call({ name: 'read', arguments: { path: 'a' } }), delta({}, 'tool_calls'), '[DONE]'],
    ['toolUse', 'read {"path":"a"}'],
  ],
  [
    'a call with an empty name is left to the gateway that ran it',
    'chat',
    [
      call({ name: '', arguments: '' }),
      delta({ tool_calls: [{ index: 0, function: { arguments: '{"q":1}' } }] }),
      delta({ tool_calls: [{ index: 1, id: 'b', function: { name: 'read', arguments: '{}' } }] }),
      delta({}, 'tool_calls'),
      '[DONE]',
    ],
    ['toolUse', 'read {}'],
  ],
  [
    'control: a call whose later pieces have an empty name',
    'chat',
    [
      call({ name: 'read', arguments: '{"path"' }),
      call({ name: '', arguments: ':"a"}' }),
      delta({}, 'tool_calls'),
      '[DONE]',
    ],
    ['toolUse', 'read {"path":"a"}'],
  ],
  [
    'a tool that Google ran itself is no call',
    'google',
    [
      part({ toolCall: { toolType: 'GOOGLE_SEARCH', args: {}, id: 's1' } }),
      part({ toolResponse: { toolType: 'GOOGLE_SEARCH', response: {}, id: 's1' } }),
      part({ text: 'found' }),
      last('STOP'),
    ],
    ['end', 'text found'],
  ],
  [
    'a tool that Anthropic ran itself is no call',
    'anthropic',
    message(
      ...block(
        0,
        { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} },
        { type: 'input_json_delta', partial_json: '{"query":"x"}' },
      ),
      ...block(1, { type: 'web_search_tool_result', tool_use_id: 's1', content: [] }),
      ...said(2),
      ...stopped('end_turn'),
    ),
    ['end', 'text found'],
  ],
  [
    'a tool that OpenAI ran itself is no call',
    'openai',
    [
      {
        type: 'response.output_item.added',
        output_index: 9,
        item: { type: 'web_search_call', id: 'w1', status: 'in_progress' },
      },
      {
        type: 'response.output_item.done',
        output_index: 9,
        item: {
          type: 'web_search_call',
          id: 'w1',
          status: 'completed',
          action: { type: 'search', query: 'x' },
        },
      },
      ...RESPONSES_OK.split('\n\n').flatMap((line) => line.slice('data: '.length) || []),
    ],
    ['end', 'text ok'],
  ],
  [
    "Vertex AI's grounding with fields missing is read over",
    'google',
    [
      part({ text: 'h' }, { safetyRatings: [{ category: 7 }] }),
      last('STOP', {
        groundingMetadata: {
          searchEntryPoint: {},
          groundingChunks: [{ web: { title: 'x', domain: 'y' } }],
        },
        urlContextMetadata: { urlMetadata: [{ retrievedUrl: 'x' }] },
      }),
    ],
    ['end', 'text h'],
  ],
  [
    "Vertex AI's token details without a count are read over",
    'google',
    [part({ text: 'h' }), last('STOP', {}, { promptTokensDetails: [{ modality: 'TEXT' }] })],
    ['end', 'text h'],
  ],
  [
    "Vertex AI's end without content is read",
    'google',
    [part({ text: 'h' }), { candidates: [{ finishReason: 'STOP' }] }],
    ['end', 'text h'],
  ],
  [
    "a call that comes in Vertex AI's pieces is read",
    'google',
    [
      part({ functionCall: { name: 'read', willContinue: true }, thoughtSignature: 'AA' }),
      part({
        functionCall: {
          partialArgs: [{ jsonPath: '$.path', stringValue: 'a', willContinue: true }],
          willContinue: true,
        },
      }),
      part({
        functionCall: {
          partialArgs: [{ jsonPath: '$.path', stringValue: '' }],
          willContinue: true,
        },
      }),
      part({ functionCall: {} }),
      last('STOP'),
    ],
    ['toolUse', 'read {"path":"a"}'],
  ],
  [
    'thoughts in the content are reasoning',
    'chat',
    [
      ...['\n<th', 'ink>\nhm', ' so</thi', 'nk>\n', '\nHello <think> there'].map((content) =>
        delta({ content }),
      ),
      delta({}, 'stop'),
      '[DONE]',
    ],
    ['end', 'reasoning \nhm so', 'text Hello <think> there'],
  ],
  [
    'thoughts without an end are reasoning',
    'chat',
    [delta({ content: '<think>hm </' }), delta({ content: '' }, 'stop'), '[DONE]'],
    ['end', 'reasoning hm </'],
  ],
  [
    'control: a text that begins like a thought is text',
    'chat',
    [delta({ content: '<thi' }), delta({}, 'stop'), '[DONE]'],
    ['end', 'text <thi'],
  ],
  [
    'control: thoughts that are quoted later are text',
    'chat',
    [
      delta({ content: 'Use <think>' }),
      delta({ content: 'x</think>' }),
      delta({}, 'stop'),
      '[DONE]',
    ],
    ['end', 'text Use <think>x</think>'],
  ],
  ...['bio_policy', 'misalignment_policy_violation', 'moderation_blocked'].map(
    (code): Row => [`${code} is a refusal`, 'openai', [failed(code)], ['refused', false]],
  ),
  ['a picture is too large', 'openai', [failed('image_too_large')], ['badRequest', false]],
  ['control: a failure of the server', 'openai', [failed('server_error')], ['unreachable', true]],
  ['a failure that nobody knows', 'openai', [failed('moon_phase')], ['unreachable', true]],
  [
    'an incomplete reply without a reason is no answer',
    'openai',
    [...half, ended('incomplete')],
    ['other', 'text half'],
  ],
  ['control: a completed reply', 'openai', [...half, ended('completed')], ['end', 'text half']],
  [
    'items that come only with the end of the reply are read',
    'openai',
    [ended('completed', { output: ITEMS })],
    ITEMS_READ,
  ],
  [
    'items that come whole are read once',
    'openai',
    [
      ...ITEMS.map((item, output_index) => ({
        type: 'response.output_item.done',
        output_index,
        item,
      })),
      ended('completed', { output: ITEMS }),
    ],
    ITEMS_READ,
  ],
  [
    'items that come in pieces are read once',
    'openai',
    [
      ...half,
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { type: 'message', id: 'm', content: [{ type: 'output_text', text: 'half' }] },
      },
      ended('completed', { output: [{ ...ITEMS[1], content: [{ text: 'half' }] }] }),
    ],
    ['end', 'text half'],
  ],
  [
    'a second message and a second call that come whole, or only with the end, are read',
    'openai',
    [
      ...half,
      {
        type: 'response.output_item.done',
        output_index: 1,
        item: { ...ITEMS[1], id: 'n' },
      },
      { type: 'response.output_item.done', output_index: 2, item: ITEMS[2] },
      ended('completed', {
        output: [
          { ...ITEMS[1], content: [] },
          { ...ITEMS[1], id: 'n' },
          ITEMS[2],
          { ...ITEMS[2], id: 'g', call_id: 'd', name: 'edit' },
        ],
      }),
    ],
    ['toolUse', 'text half', 'text Hi', 'read {}', 'edit {}'],
  ],
  [
    'usage behind the reason for stopping does not undo it',
    'anthropic',
    message(
      ...said(0),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
      { type: 'message_delta', delta: {}, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ),
    ['end', 'text found'],
  ],
  ...(
    [
      ['invalid_request_error', 'badRequest', false],
      ['request_too_large', 'contextOverflow', false],
      ['timeout_error', 'timeout', true],
      ['api_error', 'unreachable', true],
    ] as const
  ).map(
    ([type, kind, isRetried]): Row => [
      `an error event in place of a reply is what its type says: ${type}`,
      'anthropic',
      [{ type: 'error', error: { type, message: 'No.' } }],
      [kind, isRetried],
    ],
  ),
  [
    'a call that is cut between its pieces is cut, and a quoted name is one key',
    'google',
    [
      part({
        functionCall: {
          name: 'read',
          partialArgs: [{ jsonPath: "$['a.b']", stringValue: 'c', willContinue: true }],
          willContinue: true,
        },
      }),
      last('MAX_TOKENS'),
    ],
    ['maxTokens', 'read {"a.b":"c"'],
  ],
  [
    'a place far behind the end of a list makes no sense',
    'google',
    [
      part({
        functionCall: {
          name: 'read',
          partialArgs: [{ jsonPath: '$.a[4000000000]', stringValue: 'c' }],
        },
      }),
      last('STOP'),
    ],
    ['malformed', false],
  ],
  [
    'the same continuation again is not asked for',
    'google',
    [part({ text: 'h' }), last('CONTINUATION', { continuationToken: 't' })],
    ['maxTokens', 'text hh'],
  ],
  [
    'blocks that are whole at their beginning are read',
    'anthropic',
    message(
      ...block(0, { type: 'thinking', thinking: 'hm', signature: 'S' }),
      ...block(1, { type: 'text', text: 'Hi' }),
      ...block(2, { type: 'tool_use', id: 'c', name: 'read', input: { path: 'a' } }),
      ...stopped('tool_use'),
    ),
    ['toolUse', 'reasoning hm', 'text Hi', 'read {"path":"a"}'],
  ],
  [
    'input in pieces stands for the one at the beginning of the block',
    'anthropic',
    message(
      ...block(
        0,
        { type: 'tool_use', id: 'c', name: 'read', input: { path: 'a' } },
        { type: 'input_json_delta', partial_json: '{"path":"b"}' },
      ),
      ...stopped('tool_use'),
    ),
    ['toolUse', 'read {"path":"b"}'],
  ],
  [
    'a whole message in place of pieces is read',
    'chat',
    [{ choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] }, '[DONE]'],
    ['end', 'text Hi'],
  ],
  [
    'a call in the form before lists of calls is read',
    'chat',
    [
      delta({ function_call: { name: 'read', arguments: '' } }),
      delta({ function_call: { arguments: '{"path"' } }),
      delta({ function_call: { arguments: ':"a"}' } }),
      delta({}, 'function_call'),
      '[DONE]',
    ],
    ['toolUse', 'read {"path":"a"}'],
  ],
  [
    "DashScope's filter is a refusal",
    'chat',
    [delta({ content: 'h' }), { error: { code: 'data_inspection_failed', message: 'No.' } }],
    ['refused', false],
  ],
  ...['The model has crashed.', { message: 'The model has crashed.' }].map(
    (error): Row => [
      `an error in words alone is one of the server: ${typeof error}`,
      'chat',
      [delta({ content: 'h' }), { error }],
      ['unreachable', true],
    ],
  ),
  [
    'an error of Anthropic in words alone',
    'anthropic',
    [{ type: 'error', error: 'No.' }],
    ['unreachable', true],
  ],
  [
    'an error of Google in words alone',
    'google',
    [part({ text: 'h' }), { error: 'No.' }],
    ['unreachable', true],
  ],
  [
    'control: no error',
    'chat',
    [delta({ content: 'h' }, 'stop', { error: null }), '[DONE]'],
    ['end', 'text h'],
  ],
];

for (const [title, wire, list, expected] of rows) {
  test(title, async (context) => {
    assert.deepEqual(brief((await reply(context, wire, ...list)).ending), expected);
  });
}

test('thoughts in the content are neither shown as text nor sent back', async (context) => {
  const first = events(
    delta({ content: '<think>a secret plan</think>Hello' }),
    delta({}, 'stop'),
    '[DONE]',
  );
  const { url, seen } = await serve(context, streamed(first));
  const model = chatModel(url);
  const { ending, pieces } = await hello(model);
  assert.ok(ending.type === 'completed');
  assert.deepEqual(pieces.slice(0, -1), [
    { type: 'reasoning', text: 'a secret plan' },
    { type: 'text', text: 'Hello' },
  ]);
  const answer = { role: 'assistant', model: model.id, cut: false, parts: ending.parts } as never; // without calls
  await collect(
    model.stream(ask(userSays('hello'), answer, userSays('go on')), new AbortController().signal),
  );
  const sent = JSON.stringify(seen[1]?.body satisfies Loose | undefined);
  assert.ok(sent.includes('Hello'));
  assert.ok(!sent.includes('secret plan'), sent);
});

test("Copilot's ids, another one in each event, are one item", async (context) => {
  let count = 0;
  const item_id = (): string => `opaque-${count++}`;
  const place = (): object => ({ item_id: item_id(), output_index: 0, summary_index: 0 });
  const body = [
    { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { type: 'reasoning', id: item_id(), summary: [] },
    },
    { type: 'response.reasoning_summary_part.added', ...place() },
    { type: 'response.reasoning_summary_text.delta', ...place(), delta: 'I look.' },
    { type: 'response.reasoning_summary_part.done', ...place() },
    {
      type: 'response.output_item.done',
      output_index: 0,
      item: { type: 'reasoning', id: item_id(), summary: [], encrypted_content: 'ZW5j' },
    },
    {
      type: 'response.output_item.added',
      output_index: 1,
      item: { type: 'message', id: item_id() },
    },
    { type: 'response.output_text.delta', item_id: item_id(), output_index: 1, delta: 'Hel' },
    { type: 'response.output_text.delta', item_id: item_id(), output_index: 1, delta: 'lo' },
    {
      type: 'response.output_item.done',
      output_index: 1,
      item: { type: 'message', id: item_id() },
    },
    { type: 'response.completed', response: { usage: { input_tokens: 3, output_tokens: 2 } } },
  ];
  const { ending } = await reply(context, 'openai', ...body);
  assert.deepEqual(brief(ending), ['end', 'reasoning I look.', 'text Hello']);
  assert.ok(ending.type === 'completed');
  const [thought] = ending.parts;
  assert.deepEqual(thought?.type === 'reasoning' && thought.metadata?.openai, {
    itemId: 'opaque-0',
    reasoningEncryptedContent: 'ZW5j',
  });
});

test('definitions in the schema of a tool go to the providers that take them, and are inlined for others', async (context) => {
  const { url, seen } = await serve(context, (out) => out.writeHead(503).end());
  const inputSchema = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/A' } },
    $defs: { A: { type: 'integer' } },
  };
  const tools = [{ name: 'custom', description: 'Does.', inputSchema }];
  for (const model of Object.values(models)) await hello(model(url), { tools });
  assert.deepEqual(
    Object.fromEntries(
      Object.keys(models).map((wire, at) => [
        wire,
        JSON.stringify(seen[at]?.body).includes('$defs'),
      ]),
    ),
    { chat: false, google: false, anthropic: true, openai: true },
  );
});
