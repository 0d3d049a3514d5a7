import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import type { LanguageModelV3StreamPart } from '@ai-sdk/provider';
import { startAnthropicServer } from '../../../../test/servers/anthropic.js';
import { type AiSdkLanguageModel, aiSdkModel } from '../../src/models/ai-sdk-model.js';
import { ask, collect, endingOf, userSays } from './conversing.js';

const usage = {
  inputTokens: { total: 10, noCache: 7, cacheRead: 2, cacheWrite: 1 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

type Finish = Extract<LanguageModelV3StreamPart, { type: 'finish' }>['finishReason'];

const finish = (finishReason: Finish): LanguageModelV3StreamPart => ({
  type: 'finish',
  finishReason,
  usage,
});

/** A model of somebody's own, as the AI SDK describes one. */
const homemade = (parts: readonly LanguageModelV3StreamPart[]): AiSdkLanguageModel => ({
  specificationVersion: 'v3',
  provider: 'homemade.chat',
  modelId: 'one',
  doStream: async () => ({
    stream: new ReadableStream({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    }),
  }),
});

const text: readonly LanguageModelV3StreamPart[] = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'Hel' },
  { type: 'text-delta', id: 't', delta: 'lo' },
  { type: 'text-end', id: 't' },
];

const run = async (parts: readonly LanguageModelV3StreamPart[]) =>
  collect(aiSdkModel(homemade(parts)).stream(ask(userSays('hi')), new AbortController().signal));

test('a model of an AI SDK package answers as one of ours does', async (context) => {
  const server = await startAnthropicServer({
    replies: [{ type: 'message', parts: [{ type: 'text', text: 'Hello' }] }],
  });
  context.after(() => server.close());
  const anthropic = createAnthropic({ apiKey: 'key', baseURL: `${server.url}/v1` });
  const model = aiSdkModel(anthropic('claude-sonnet-5-5'));
  assert.equal(model.id, 'anthropic/claude-sonnet-5-5');
  assert.notEqual(model.facts.prices, null, 'the catalogue knows it');
  const ending = endingOf(
    await collect(model.stream(ask(userSays('hi')), new AbortController().signal)),
  );
  assert.deepEqual(
    ending.type === 'completed' && [
      ending.parts.map((part) => 'text' in part && part.text),
      ending.stopReason,
    ],
    [['Hello'], 'end'],
  );
  assert.deepEqual(
    server.requests.map(({ fault }) => fault),
    [null],
  );
});

const COUNTED = [
  ['that takes more for cached than there was takes nothing away', -90, 10],
  ['that does not say what was not cached counts that in the total', undefined, 10],
] as const;

for (const [title, noCache, uncached] of COUNTED)
  test(`a package ${title}`, async () => {
    const total = noCache === undefined ? 110 : 10;
    const counted = { total, noCache, cacheRead: 100, cacheWrite: 0 };
    const ending = endingOf(
      await run([
        ...text,
        {
          type: 'finish',
          finishReason: { unified: 'stop', raw: 'stop' },
          usage: { ...usage, inputTokens: counted },
        },
      ]),
    );
    assert.deepEqual(ending.usage, {
      inputTokens: uncached,
      outputTokens: 5,
      cacheReadTokens: 100,
      cacheWriteTokens: 0,
    });
  });

/** What a package of somebody's own may do, and what the reply then is: a failure that says so, and no exception. */
const broken: readonly (readonly [string, AiSdkLanguageModel['doStream'], RegExp])[] = [
  ['rejects with nothing', () => Promise.reject(), /./],
  ['rejects with a text', () => Promise.reject('no luck'), /no luck/],
  ['rejects with what can not be written', () => Promise.reject(Object.create(null)), /./],
  ['gives nothing', async () => undefined as never, /./],
  ['gives a stream that is none', async () => ({ stream: {} }), /./],
  ...[
    null,
    5,
    'text',
    {},
    { type: 'finish' },
    { type: 'tool-call' },
    { type: 'error', error: undefined },
  ].map(
    (part) =>
      [
        `streams ${JSON.stringify(part)}`,
        async () => ({
          stream: new ReadableStream({
            start(controller) {
              controller.enqueue(part);
              controller.close();
            },
          }),
        }),
        /./,
      ] as const,
  ),
];

for (const [what, doStream, why] of broken) {
  test(`a package that ${what} is a reply that failed`, async () => {
    const model = aiSdkModel({ ...homemade([]), doStream });
    const ending = endingOf(
      await collect(model.stream(ask(userSays('hi')), new AbortController().signal)),
    );
    assert.equal(ending.type, 'failed');
    assert.match(ending.type === 'failed' ? ending.error.message : '', why);
  });
}

const ends: readonly (readonly [Finish, string])[] = [
  [{ unified: 'stop', raw: 'stop' }, 'end'],
  [{ unified: 'length', raw: 'length' }, 'maxTokens'],
  [{ unified: 'tool-calls', raw: 'tool_calls' }, 'toolUse'],
  [{ unified: 'content-filter', raw: 'safety' }, 'contentFilter'],
  [{ unified: 'other', raw: 'paused' }, 'other'],
  [{ unified: 'other', raw: undefined }, 'failed unreachable'],
  [{ unified: 'toString' as 'other', raw: 'of a later version' }, 'other'],
  [{ unified: 'error', raw: 'error' }, 'failed unreachable'],
];

for (const [reason, then] of ends) {
  test(`a model of somebody's own that ends with ${reason.unified} (${reason.raw}): ${then}`, async () => {
    const ending = endingOf(await run([...text, finish(reason)]));
    assert.equal(
      ending.type === 'failed' ? `failed ${ending.error.kind}` : ending.stopReason,
      then,
    );
  });
}

test('a call has its name, also if its input is not streamed', async () => {
  const call = { type: 'tool-call', toolCallId: 'c', toolName: 'read', input: '{}' } as const;
  const ending = endingOf(await run([call, finish({ unified: 'tool-calls', raw: 'tool_calls' })]));
  assert.deepEqual(
    ending.type === 'completed' && ending.parts.map((part) => 'tool' in part && part.tool),
    ['read'],
  );
});

test('a stream that ends without its end is a reply that broke off', async () => {
  const ending = endingOf(await run(text));
  assert.equal(ending.type === 'failed' && ending.error.kind, 'unreachable');
});

test('an error that a provider reports in the stream is one of the provider, not of the connection', async () => {
  const reported = {
    message: 'Try later.',
    type: 'server_error',
    param: null,
    code: 'server_error',
  };
  const fail = async (error: object) => {
    const ending = endingOf(await run([...text, { type: 'error', error }]));
    return ending.type === 'failed' && ending.error;
  };
  const expected = {
    kind: 'unreachable',
    message: 'no whole reply from homemade at homemade.chat: Try later',
    retryable: true,
    retryAfterMs: null,
    answered: 'yes',
  };
  assert.deepEqual(await fail(reported), expected);
  const message = 'no whole reply from homemade at homemade.chat (500): Try later';
  assert.deepEqual(await fail({ ...reported, statusCode: 500 }), { ...expected, message });
});

test('facts are those that are given, else of the catalogue, else safe assumptions without a price', () => {
  const given = {
    windowTokens: 5_000,
    prices: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 },
  };
  const { facts } = aiSdkModel(homemade([]), given);
  assert.deepEqual([facts.windowTokens, facts.prices?.output, facts.tools], [5_000, 2, 'yes']);
  assert.equal(aiSdkModel(homemade([])).facts.prices, null);
});

test('a model of the specification v4: the data of a picture is tagged, a ping is nothing, and an interrupted stream has broken off', async () => {
  const prompts: unknown[] = [];
  const parts = [{ type: 'ping' }, ...text, finish({ unified: 'stop', raw: 'stop' })];
  const modern = (answer: readonly object[]): AiSdkLanguageModel => ({
    ...homemade(answer as readonly LanguageModelV3StreamPart[]), // parts that v3 lacks
    specificationVersion: 'v4',
    doStream: (options: { readonly prompt: unknown }) => {
      prompts.push(options.prompt);
      return homemade(answer as readonly LanguageModelV3StreamPart[]).doStream(options as never);
    },
  });
  const image = { mediaType: 'image/png', sha256: 'a', base64: 'AAAA' } as const;
  const request = ask({
    role: 'user',
    parts: [{ type: 'text', origin: 'user', text: 'see', images: [image] }],
  });
  const answer = async (model: AiSdkLanguageModel) =>
    endingOf(
      await collect(
        aiSdkModel(model, { images: 'yes' }).stream(request, new AbortController().signal),
      ),
    );
  const ending = await answer(modern(parts));
  assert.equal(ending.type, 'completed');
  assert.match(
    JSON.stringify(prompts),
    /"type":"file","mediaType":"image\/png","data":\{"type":"data","data":"AAAA"\}/,
  );
  const cut = { type: 'finish', finishReason: { unified: 'interrupted' }, usage };
  const broken = await answer(modern([...text, cut]));
  assert.equal(broken.type === 'failed' && broken.error.kind, 'unreachable');
});

test('a model of another generation is refused with what to install', () => {
  const old = { ...homemade([]), specificationVersion: 'v2' } as unknown as AiSdkLanguageModel;
  assert.throws(
    () => aiSdkModel(old),
    /homemade.chat\/one is a model of the specification v2: install/,
  );
});
