import assert from 'node:assert/strict';
import http from 'node:http';
import { type TestContext, test } from 'node:test';
import { chooseModel } from '../../src/models/choose-model.js';
import { askModelList, askOllama } from '../../src/models/model-facts.js';
import { createFetch } from '../../src/platform/http.js';
import type { ModelFacts } from '../../src/ports/model.js';

const fetch = createFetch({});

type Asked = { readonly method: string; readonly url: string; readonly text: string };

/** A server that answers what stands under the path, and 404 elsewhere. */
const serve = async (context: TestContext, answers: Readonly<Record<string, unknown>>) => {
  const asked: Asked[] = [];
  const server = http.createServer((incoming, out) => {
    let text = '';
    incoming.on('data', (piece: Buffer) => {
      text += piece.toString();
    });
    incoming.on('end', () => {
      const { method = '', url = '' } = incoming;
      asked.push({ method, url, text });
      const found = answers[url];
      out.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
      out.end(typeof found === 'string' ? found : JSON.stringify(found ?? { error: 'not found' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { url: `http://127.0.0.1:${port}`, asked };
};

const show = (rest: object): object => ({
  capabilities: ['completion', 'tools'],
  model_info: { 'general.architecture': 'qwen3', 'qwen3.context_length': 262_144 },
  ...rest,
});

const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

const ollama: readonly {
  readonly title: string;
  readonly shown: object;
  readonly running?: readonly object[];
  readonly facts: Partial<ModelFacts>;
}[] = [
  {
    title: 'the window of a model that runs is the one it runs with',
    shown: show({ parameters: 'num_ctx 8192\nstop "x"' }),
    running: [
      { name: 'other:latest', context_length: 7 },
      { name: 'qwen3:latest', context_length: 65_536 },
    ],
    facts: { windowTokens: 65_536, prices: free, tools: 'yes', thinking: 'no' },
  },
  {
    title: 'else it is the one that its file sets',
    shown: show({ parameters: 'temperature 0.7\nnum_ctx 8192' }),
    facts: { windowTokens: 8_192, outputTokensMax: 4_096 },
  },
  {
    title: 'else it is assumed, and said to be, and never what the model could have',
    shown: show({}),
    facts: { windowTokens: 32_768, source: null, prices: free },
  },
  {
    title: 'a model that runs elsewhere has its whole window and a price of which nothing is said',
    shown: show({ remote_host: 'https://ollama.com' }),
    facts: { windowTokens: 262_144, prices: null },
  },
  {
    title: 'what a model can do is what Ollama says',
    shown: show({ capabilities: ['completion', 'thinking'], parameters: 'num_ctx 8192' }),
    facts: { tools: 'no', thinking: 'yes', images: 'no' },
  },
  {
    title: 'one that sees is shown pictures',
    shown: show({ capabilities: ['completion', 'vision'], parameters: 'num_ctx 8192' }),
    facts: { images: 'yes' },
  },
];

for (const { title, shown, running, facts } of ollama) {
  test(`ollama: ${title}`, async (context) => {
    const server = await serve(context, {
      '/api/show': shown,
      '/api/ps': { models: running ?? [] },
    });
    const asked = await askOllama({
      modelId: 'ollama/qwen3',
      name: 'qwen3',
      url: server.url,
      fetch,
    });
    assert.ok(asked.kind === 'ok');
    const expected = { source: `${server.url}/api, asked at the start`, ...facts };
    for (const [name, value] of Object.entries(expected)) {
      assert.deepEqual(asked.facts[name as keyof ModelFacts], value, name); // a name of the facts
    }
    assert.deepEqual(JSON.parse(server.asked[0]?.text ?? ''), { model: 'qwen3' });
  });
}

test('ollama without the model says which it has, and how to fetch it', async (context) => {
  const server = await serve(context, {
    '/api/tags': { models: [{ name: 'llama4:8b' }, { name: 'gemma4:latest' }] },
  });
  const chosen = await chooseModel('ollama/qwen3', { OLLAMA_HOST: server.url });
  assert.ok(chosen.kind === 'noModel', JSON.stringify(chosen));
  assert.match(
    chosen.message,
    /has no model "qwen3"\. It has: llama4:8b, gemma4:latest\.\n.*ollama pull qwen3\n.*demo$/,
  );
});

test('ollama is found where OLLAMA_HOST or --base-url says, with or without scheme and version', async (context) => {
  const server = await serve(context, { '/api/show': show({}), '/api/ps': {} });
  const bare = server.url.replace('http://', '');
  const places: readonly [Readonly<Record<string, string>>, string?][] = [
    [{ OLLAMA_HOST: bare }],
    [{ OLLAMA_HOST: bare.replace('127.0.0.1', '') }],
    [{ OLLAMA_HOST: bare.replace('127.0.0.1', '0.0.0.0') }],
    [{ OLLAMA_HOST: 'http://127.0.0.1:1' }, `${server.url}/v1/`],
  ];
  for (const [environment, baseUrl] of places) {
    const chosen = await chooseModel(
      'ollama/qwen3',
      environment,
      baseUrl === undefined ? {} : { baseUrl },
    );
    assert.equal(chosen.kind, 'ok', JSON.stringify([environment, chosen]));
  }
});

const listed: readonly {
  readonly title: string;
  readonly model: object;
  /** In the second list. */
  readonly beside?: object;
  readonly facts: { readonly [Name in keyof ModelFacts]?: ModelFacts[Name] | undefined };
}[] = [
  {
    title: 'vLLM names the window',
    model: { max_model_len: 40_960 },
    facts: { windowTokens: 40_960, prices: null },
  },
  {
    title: 'LM Studio names the window that is loaded, which counts, and the one that could be',
    model: { loaded_context_length: 8_192, max_context_length: 131_072, context_length: 131_072 },
    facts: { windowTokens: 8_192, outputTokensMax: 4_096 },
  },
  {
    title: 'llama.cpp names the window',
    model: { meta: { n_ctx: 16_384, n_ctx_train: 131_072 } },
    facts: { windowTokens: 16_384 },
  },
  {
    title: 'OpenRouter names window, output limit and prices',
    model: {
      context_length: 200_000,
      top_provider: { max_completion_tokens: 64_000 },
      pricing: { prompt: '0.000003', completion: '0.000015', input_cache_read: '0.0000003' },
    },
    facts: {
      windowTokens: 200_000,
      outputTokensMax: 64_000,
      prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3 },
    },
  },
  {
    title: 'OpenRouter names prices without a window',
    model: { pricing: { prompt: '0.000003', completion: '0.000015' } },
    facts: {
      windowTokens: 128_000,
      prices: { input: 3, output: 15, cacheRead: 3, cacheWrite: 3 },
    },
  },
  {
    title: 'OpenRouter: a fee for each request is no price of tokens',
    model: {
      context_length: 8_192,
      pricing: { prompt: '0.000003', completion: '0.000015', request: '0.01' },
    },
    facts: { windowTokens: 8_192, prices: null },
  },
  {
    // github.com/earendil-works/pi/issues/6378: with the model's own figures the first "Hi" failed.
    title: 'OpenRouter: the window is that of the provider that serves the model',
    model: {
      context_length: 1_048_576,
      top_provider: { context_length: 262_000, max_completion_tokens: 262_000 },
    },
    facts: { windowTokens: 262_000, outputTokensMax: 131_000 },
  },
  {
    title: 'OpenRouter names what goes in: pictures',
    model: { architecture: { input_modalities: ['text', 'image'] } },
    facts: { images: 'yes', windowTokens: 128_000 },
  },
  {
    title: 'or text alone',
    model: { architecture: { input_modalities: ['text'] }, context_length: 8_192 },
    facts: { images: 'no', windowTokens: 8_192 },
  },
  {
    title: 'llama.cpp says in a list beside it that the model takes pictures',
    model: { meta: { n_ctx: 16_384 } },
    beside: { model: 'org/m', capabilities: ['completion', 'multimodal'] },
    facts: { images: 'yes', windowTokens: 16_384 },
  },
  {
    title: 'or that it does not',
    model: {},
    beside: { name: 'org/m', capabilities: ['completion'] },
    facts: { images: 'no' },
  },
  {
    title: 'what is said beside of another model counts for nothing',
    model: {},
    beside: { name: 'other', capabilities: ['completion', 'multimodal'] },
    facts: { images: undefined },
  },
  {
    title: 'a server that says nothing leaves it unknown',
    model: {},
    facts: { windowTokens: 128_000, source: null, images: undefined },
  },
];

for (const { title, model, beside, facts } of listed) {
  test(`openai-compatible: ${title}`, async (context) => {
    const server = await serve(context, {
      '/v1/models': {
        data: [{ id: 'other' }, { id: 'org/m', ...model }],
        ...(beside === undefined ? {} : { models: [beside] }),
      },
    });
    const question = { modelId: 'openai-compatible/org/m', name: 'org/m', url: `${server.url}/v1` };
    const asked = await askModelList({ ...question, fetch, apiKey: 'key' });
    assert.ok(asked.kind === 'ok');
    for (const [name, value] of Object.entries(facts)) {
      assert.deepEqual(asked.facts[name as keyof ModelFacts], value, name); // a name of the facts
    }
  });
}

for (const [title, answers] of [
  ['has no list', {}],
  ['answers with a page', { '/v1/models': '<html>hi</html>' }],
  ['lists other models', { '/v1/models': { data: [{ id: 'other', max_model_len: 5 }] } }],
] as const) {
  test(`openai-compatible: a server that ${title} is used all the same`, async (context) => {
    const server = await serve(context, answers);
    const chosen = await chooseModel('openai-compatible/m', {}, { baseUrl: `${server.url}/v1` });
    assert.ok(chosen.kind === 'ok', JSON.stringify(chosen));
    assert.equal(chosen.model.facts.source, null);
    assert.equal(chosen.model.facts.prices, null);
  });
}
