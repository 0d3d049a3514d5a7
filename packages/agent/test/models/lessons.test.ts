import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adapterOptions } from '../../../../test/kit/models/adapter-options.js';
import { anthropicModel } from '../../src/models/anthropic.js';
import type { AdapterOptions } from '../../src/models/wire-model.js';
import type { ModelRequest } from '../../src/ports/model.js';
import {
  chatModel,
  delta,
  events,
  facts,
  hello,
  type Loose,
  OK,
  openAi,
  RESPONSES_OK,
  serve,
  streamed,
  textOf,
} from './answering.js';
import { userSays } from './conversing.js';

/** What refusals teach: each row is the words of a server, and how the request is sent once more. */

const MOST = 8_192;
/** Long enough that its tokens count: 40,000 characters. */
const LONG = userSays('word '.repeat(8_000));

type Row = {
  readonly title: string;
  /** Where the words were seen. */
  readonly source: string;
  readonly status?: number;
  readonly error: object | string;
  /** Default: Chat Completions. */
  readonly wire?: 'anthropic' | 'openai';
  /** The fields of the second request that differ; undefined: left out. */
  readonly then: Loose;
};

const inWords = (message: string): object => ({ error: { message, param: null } });

const ANTHROPIC_OK = [
  { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
  { type: 'message_stop' },
]
  .map((event) => `data: ${JSON.stringify(event)}\n\n`)
  .join('');

const rows: readonly Row[] = [
  {
    title: 'a field in the words of a validator',
    source: 'Databricks, needs no stream_options',
    error: { error_code: 'BAD_REQUEST', message: 'stream_options: Extra inputs are not permitted' },
    then: { stream_options: undefined },
  },
  {
    title: 'a field as FastAPI lists it',
    source: 'api.mistral.ai, extra_forbidden',
    status: 422,
    error: {
      object: 'error',
      message: {
        detail: [
          {
            type: 'extra_forbidden',
            loc: ['body', 'stream_options'],
            msg: 'Extra inputs are not permitted',
          },
        ],
      },
    },
    then: { stream_options: undefined },
  },
  {
    title: 'a field of Go',
    source: 'json.Decoder.DisallowUnknownFields',
    error: { error: 'json: unknown field "stream_options"' },
    then: { stream_options: undefined },
  },
  {
    title: 'a field of LiteLLM',
    source: 'litellm.UnsupportedParamsError',
    error: inWords(
      "litellm.UnsupportedParamsError: databricks does not support parameters: ['reasoning_effort'], for model=dbrx.",
    ),
    then: { reasoning_effort: undefined },
  },
  {
    title: 'a field apart from the words',
    source: 'api.openai.com, unsupported_parameter',
    error: {
      error: {
        message: "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
        param: 'reasoning_effort',
        code: 'unsupported_parameter',
      },
    },
    then: { reasoning_effort: undefined },
  },
  {
    title: 'a level of effort that is none here',
    source: 'github.com/router-for-me/CLIProxyAPI/issues/1307',
    error: { error: { message: 'expected one of low, medium', param: 'reasoning_effort' } },
    then: { reasoning_effort: undefined },
  },
  {
    title: 'a field with another name',
    source: 'gpt-5 behind gateways',
    error: inWords(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ),
    then: { max_tokens: undefined, max_completion_tokens: MOST },
  },
  {
    title: 'a part of a field',
    source: 'github.com/BoundaryML/baml/pull/2708',
    wire: 'openai',
    error: {
      error: {
        message: "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        param: 'reasoning.effort',
      },
    },
    then: { reasoning: { summary: 'auto' } },
  },
  {
    title: 'a field of each tool',
    source: 'gateways in front of Anthropic',
    wire: 'anthropic',
    error: inWords('tools.0.eager_input_streaming: Extra inputs are not permitted'),
    then: {
      tools: [
        {
          name: 'read',
          description: 'Reads a file.',
          input_schema: { type: 'object', properties: {} },
        },
      ],
    },
  },
  {
    title: 'prompt and answer together, with their parts',
    source: 'github.com/vllm-project/vllm/issues/20409',
    error: inWords(
      "This model's maximum context length is 16384 tokens. However, you requested 18192 tokens (10000 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
    ),
    then: { max_tokens: 6_128 },
  },
  {
    title: 'prompt and answer together, in later words',
    source: 'vLLM 0.11',
    error: inWords(
      "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 16384 tokens and your request has 10000 input tokens (8192 > 16384 - 10000).",
    ),
    then: { max_tokens: 6_128 },
  },
  {
    title: 'prompt and answer together, with the prompt in parts',
    source: 'openrouter.ai',
    error: inWords(
      "This endpoint's maximum context length is 16384 tokens. However, you requested about 18192 tokens (9000 of text input, 1000 of tool input, 8192 in the output).",
    ),
    then: { max_tokens: 6_128 },
  },
  {
    title: 'prompt and answer together, where the answer may fill the window',
    source: 'github.com/earendil-works/pi/issues/6378',
    error: inWords(
      "This endpoint's maximum context length is 8192 tokens. However, you requested about 9582 tokens (658 of text input, 732 of tool input, 8192 in the output).",
    ),
    then: { max_tokens: 6_674 },
  },
  {
    title: 'prompt and answer together, in words of TGI',
    source: 'text-generation-inference, validation.rs',
    status: 422,
    error: {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 16384. Given: 10000 `inputs` tokens and 8192 `max_new_tokens`',
    },
    then: { max_tokens: 6_128 },
  },
  {
    title: 'prompt and answer together, as a sum',
    source: 'api.anthropic.com',
    wire: 'anthropic',
    error: inWords(
      'input length and `max_tokens` exceed context limit: 10000 + 8192 > 16384, decrease input length or `max_tokens` and try again',
    ),
    then: { max_tokens: 6_128 },
  },
  {
    title: 'the longest answer',
    source: 'api.openai.com',
    error: inWords(
      'max_tokens is too large: 8192. This model supports at most 4,096 completion tokens, whereas you provided 8192.',
    ),
    then: { max_tokens: 4_096 },
  },
  {
    title: 'the longest answer, behind the status of the refusal',
    source: 'LiteLLM',
    error: inWords(
      'Error code: 400 - max_tokens is too large: 8192. This model supports at most 4096 completion tokens.',
    ),
    then: { max_tokens: 4_096 },
  },
  {
    title: 'the longest answer of a model with a number in its name',
    source: 'api.anthropic.com',
    wire: 'anthropic',
    error: inWords(
      'max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-opus-20240229',
    ),
    then: { max_tokens: 4_096 },
  },
];

const models = {
  chat: (url: string, rest: Partial<AdapterOptions>) => chatModel(url, rest.facts),
  openai: (url: string) => openAi(url),
  anthropic: (url: string, rest: Partial<AdapterOptions>) =>
    anthropicModel(adapterOptions('anthropic/claude-opus-4', url, rest)),
};

const replies = { chat: OK, openai: RESPONSES_OK, anthropic: ANTHROPIC_OK };

const refuse = (
  context: Parameters<typeof serve>[0],
  row: Pick<Row, 'status' | 'error' | 'wire'>,
) =>
  serve(context, (out, number) => {
    if (number > 1) return streamed(replies[row.wire ?? 'chat'])(out, number);
    out.writeHead(row.status ?? 400, { 'content-type': 'application/json' });
    out.end(JSON.stringify(row.error));
  });

for (const row of rows) {
  test(`a refusal teaches: ${row.title}`, async (context) => {
    const { url, seen } = await refuse(context, row);
    const model = models[row.wire ?? 'chat'](url, { facts: { ...facts, outputTokensMax: MOST } });
    const request = { messages: [LONG], effort: 'high' } as const;
    const { ending } = await hello(model, request);
    assert.equal(ending.type, 'completed', JSON.stringify(ending));
    const [first, second] = seen.map(({ body }) => body);
    const isEffort = /effort/.test(JSON.stringify([Object.keys(row.then), row.error]));
    assert.equal('effort' in ending, isEffort, 'it is said');
    const expected: Record<string, unknown> = { ...first, ...row.then };
    for (const [name, value] of Object.entries(row.then))
      if (value === undefined) delete expected[name];
    assert.deepEqual(second, expected);
    await hello(model, request);
    assert.deepEqual(seen[2]?.body, second, 'it is remembered');
  });
}

const finals: readonly Pick<Row, 'title' | 'status' | 'error'>[] = [
  { title: 'a field that is essential', error: inWords("Invalid 'messages[0].content'") },
  { title: 'a model that is unknown', error: inWords('The model m is not supported') },
  {
    title: 'a prompt that is too long by itself',
    error: inWords(
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    ),
  },
  {
    title: 'no room for an answer',
    error: inWords(
      "This model's maximum context length is 10500 tokens. However, you requested 18192 tokens (10000 in the messages, 8192 in the completion).",
    ),
  },
  { title: 'a key', status: 401, error: inWords('max_tokens is not supported') },
  { title: 'nothing at all', error: {} },
];

for (const row of finals) {
  test(`a refusal is final: ${row.title}`, async (context) => {
    const { url, seen } = await refuse(context, row);
    const model = chatModel(url, { outputTokensMax: MOST });
    const { ending } = await hello(model, { messages: [LONG] });
    assert.equal(ending.type, 'failed', JSON.stringify(ending));
    assert.equal(seen.length, 1);
  });
}

test('a server that refuses whatever is left out is asked no more than it has taught', async (context) => {
  const names = ['stream_options', 'max_tokens', 'stream_options'];
  const { url, seen } = await serve(context, (out, number) => {
    out.writeHead(400).end(JSON.stringify(inWords(`${names[number - 1]} is not supported`)));
  });
  const { ending } = await hello(chatModel(url));
  assert.equal(ending.type, 'failed');
  assert.equal(seen.length, 3);
});

test('a field whose new name is refused, too, is left out', async (context) => {
  const words = [
    "'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
    'max_completion_tokens is not supported',
  ];
  const { url, seen } = await serve(context, (out, number) => {
    const refusal = words[number - 1];
    if (refusal === undefined) return streamed(OK)(out, number);
    out.writeHead(400).end(JSON.stringify(inWords(refusal)));
  });
  const { ending } = await hello(chatModel(url, { outputTokensMax: MOST }));
  assert.equal(ending.type, 'completed', JSON.stringify(ending));
  assert.doesNotMatch(JSON.stringify(seen[2]?.body), /max_\w*tokens/);
});

test('a bound of the answer that is paid for is never left out', async (context) => {
  const { url, seen } = await serve(context, (out, number) => {
    const { max_completion_tokens: renamed, max_tokens: most } = seen[number - 1]?.body ?? {};
    if (renamed !== undefined || most === undefined) return streamed(OK)(out, number);
    const instead = number === 4 ? ' Use max_completion_tokens instead.' : '';
    out.writeHead(400).end(JSON.stringify(inWords(`max_tokens is not supported.${instead}`)));
  });
  const model = chatModel(url, { outputTokensMax: MOST });
  const paid = { outputTokensMax: 99, isBoundPaid: true } as const;
  const end = async (request: Partial<ModelRequest>) => (await hello(model, request)).ending.type;
  assert.equal(await end(paid), 'failed');
  assert.equal(seen.length, 1);
  assert.equal(await end({}), 'completed');
  assert.equal(await end(paid), 'completed', 'under its new name');
  assert.deepEqual(
    seen.map(({ body }) => body.max_tokens ?? body.max_completion_tokens),
    [99, MOST, undefined, 99, 99],
  );
});

test('a refusal within a reply that has begun is final, and teaches the next request', async (context) => {
  const error = { message: 'stream_options is not supported', type: 'invalid_request_error' };
  const cut = events(delta({ content: 'Hel' }), { error });
  const { url, seen } = await serve(context, (out, number) =>
    streamed(number === 1 ? cut : OK)(out, number),
  );
  const model = chatModel(url);
  const first = await hello(model);
  assert.deepEqual([first.ending.type, textOf(first.pieces)], ['failed', 'Hel']);
  assert.equal(seen.length, 1);
  assert.equal((await hello(model)).ending.type, 'completed');
  assert.equal('stream_options' in (seen[1]?.body ?? {}), false);
});

test('a field of a tool with the name of a refused one stays', async (context) => {
  const { url, seen } = await refuse(context, { error: inWords('max_tokens is not supported') });
  const inputSchema = { type: 'object', properties: { max_tokens: { type: 'number' } } };
  await hello(chatModel(url), { tools: [{ name: 'ask', description: 'Asks.', inputSchema }] });
  assert.deepEqual(seen[1]?.body.tools, seen[0]?.body.tools);
  assert.equal('max_tokens' in (seen[1]?.body ?? {}), false);
});
