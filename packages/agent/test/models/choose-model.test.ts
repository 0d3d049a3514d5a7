import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { startAnthropicServer } from '../../../../test/servers/anthropic.js';
import { startChatServer } from '../../../../test/servers/chat.js';
import { startGoogleServer } from '../../../../test/servers/google.js';
import { startOpenAiServer } from '../../../../test/servers/openai.js';
import type { WireReply } from '../../../../test/servers/reply.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { UNKNOWN } from '../../src/models/catalogue.js';
import { chooseModel } from '../../src/models/choose-model.js';
import { findProvider } from '../../src/models/provider-table.js';
import type { ProcessEnvironment } from '../../src/platform/environment.js';
import type { ModelRequest } from '../../src/ports/model.js';

const key = { ANTHROPIC_API_KEY: 'key' };
const request: ModelRequest = {
  instructions: '',
  tools: [],
  messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text: 'hi' }] }],
};

test('without a name the default model is chosen', async () => {
  const chosen = await chooseModel(undefined, key);
  assert.equal(chosen.kind === 'ok' && chosen.model.id, 'anthropic/claude-sonnet-5-5');
});

const problems: readonly (readonly [
  string | undefined,
  Readonly<Record<string, string>>,
  string,
  RegExp,
])[] = [
  [
    undefined,
    {},
    'noKey',
    /^No API key found for .*\n.*ANTHROPIC_API_KEY=…\n.*pawl models.*without a key: -m ollama\/NAME\n.*pawl demo$/,
  ],
  ['anthropic/claude-opus-5-5', { ANTHROPIC_API_KEY: ' ' }, 'noKey', /claude-opus-5-5/],
  [
    'openai/gpt-6.2-sol',
    key,
    'noKey',
    /OPENAI_API_KEY.*platform\.openai\.com.*\n.*There is one for anthropic: pawl -m anthropic\/\S+ .*\n.*pawl demo$/,
  ],
  // an address of azure is the user's own
  ['openai/gpt-6.2-sol', { AZURE_OPENAI_API_KEY: 'k' }, 'noKey', /without a key: -m ollama\/NAME/],
  [
    'qwen/qwen3-coder',
    { OPENROUTER_API_KEY: 'k' },
    'noKey',
    /There is one for openrouter: pawl -m openrouter\/openrouter\/auto\. pawl models openrouter /,
  ],
  ['google/gemini-3.8-flash', key, 'noKey', /GEMINI_API_KEY.*\n.*\n.*pawl demo$/],
  [
    'acme/large',
    key,
    'unknownProvider',
    /There is no provider "acme"\. There are anthropic, openai, .* and scripted\/FILE\.$/,
  ],
  ['gpt-6.2-sol', key, 'unknownProvider', /Did you mean openai\/gpt-6\.2-sol\?/],
  ['gemini-3.8-flash', key, 'unknownProvider', /Did you mean google\/gemini-3\.8-flash\?/],
  ['gemini-3.8-flahs', key, 'unknownProvider', /Did you mean google\/gemini-3\.8-flash\?/],
  [
    'sonnet',
    key,
    'unknownProvider',
    /^"sonnet" names no provider: .* Did you mean anthropic\/claude-sonnet-5-5, .*\?/,
  ],
  ['deepseek-v4-prp', key, 'unknownProvider', /Did you mean deepseek\/deepseek-v4-pro, /],
  ['anthropc/claude-opus-5-5', key, 'unknownProvider', /Did you mean anthropic\/claude-opus-5-5\?/],
  ['gpt-9', key, 'unknownProvider', /Did you mean openai\/gpt-9\?/],
  [
    'gpt-oss-120b',
    { GROQ_API_KEY: 'k' },
    'unknownProvider',
    /Did you mean groq\/openai\/gpt-oss-120b\?/,
  ],
  ['toString/x', key, 'unknownProvider', /There is no provider/],
  [
    'openai-compatible/qwen3',
    key,
    'noUrl',
    /--base-url http.*OPENAI_COMPATIBLE_BASE_URL.*\n.*pawl demo$/,
  ],
  ['openai-compatible/', key, 'noName', /openai-compatible\/NAME/],
  [
    'openai-compatible/qwen3',
    { OPENAI_COMPATIBLE_BASE_URL: 'localhost' },
    'badUrl',
    /OPENAI_COMPATIBLE_BASE_URL is no http/,
  ],
  ['ollama/qwen3', { OLLAMA_HOST: 'http://[' }, 'badUrl', /OLLAMA_HOST/],
  [
    'ollama/qwen3',
    { OLLAMA_HOST: '127.0.0.1:1' },
    'noServer',
    /^No Ollama server answers at http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\)\.\n.*ollama serve.*\n.*pawl demo$/,
  ],
  [
    'openai-compatible/qwen3',
    { OPENAI_COMPATIBLE_BASE_URL: 'http://127.0.0.1:1/v1' },
    'noServer',
    /^No server answers at http:\/\/127\.0\.0\.1:1\/v1 \(ECONNREFUSED\)\.\n.*\n.*pawl demo$/,
  ],
  ['claude-opus-5-5', key, 'unknownProvider', /Did you mean anthropic\/claude-opus-5-5\?/],
  ['anthropic', key, 'noName', /anthropic\/NAME/],
  ['scripted/', key, 'noName', /scripted\/FILE$/],
  [
    'anthropic/claude-opus-5-5',
    { ...key, ANTHROPIC_BASE_URL: 'localhost:80' },
    'badUrl',
    /ANTHROPIC_BASE_URL/,
  ],
  ['scripted/no-such-file.json', {}, 'badScript', /no-such-file\.json cannot be used: ENOENT/],
];

for (const [id, environment, kind, says] of problems) {
  test(`${id ?? 'the default model'} with ${JSON.stringify(environment)} is a problem: ${kind}`, async () => {
    const chosen = await chooseModel(id, environment);
    assert.ok(chosen.kind !== 'ok');
    assert.equal(chosen.kind, kind);
    assert.match(chosen.message, says);
  });
}

test('a script is found from its folder, and its model is named by its whole path', async (context) => {
  const folder = temporaryFolder(context, 'script');
  await writeFile(path.join(folder, 'good.json'), '{"replies":[{"text":"hello"}]}');
  await writeFile(path.join(folder, 'bad.json'), '{"replies":[{"txt":"hello"}]}');
  await writeFile(path.join(folder, 'worse.json'), '{"replies":');
  const chosen = await chooseModel('scripted/good.json', {}, { folder });
  assert.ok(chosen.kind === 'ok');
  assert.equal(chosen.model.id, `scripted/${folder}/good.json`);
  const again = await chooseModel(chosen.model.id, {}, { folder: '/' });
  assert.equal(again.kind === 'ok' && again.model.id, chosen.model.id);
  const bad = await chooseModel('scripted/bad.json', {}, { folder });
  assert.match(
    bad.kind === 'badScript' ? bad.message : '',
    /bad\.json cannot be used: replies\.0\.txt: is no field/,
  );
  const worse = await chooseModel('scripted/worse.json', {}, { folder });
  assert.match(worse.kind === 'badScript' ? worse.message : '', /JSON/);
});

test('the base URL of the options wins over the one of the environment', async (context) => {
  const server = await startAnthropicServer({
    replies: () => ({ type: 'message', parts: [{ type: 'text', text: 'ok' }] }),
  });
  context.after(server.close);
  const ask = async (
    environment: Readonly<Record<string, string>>,
    options: { baseUrl?: string },
  ) => {
    const chosen = await chooseModel(
      'anthropic/claude-sonnet-5-5',
      { ...key, ...environment },
      options,
    );
    assert.ok(chosen.kind === 'ok');
    for await (const piece of chosen.model.stream(request, new AbortController().signal)) {
      assert.notEqual(piece.type, 'failed', JSON.stringify(piece));
    }
  };
  await ask({ ANTHROPIC_BASE_URL: server.url }, {});
  await ask({ ANTHROPIC_BASE_URL: 'http://127.0.0.1:1' }, { baseUrl: `${server.url}/v1` });
  await ask({}, { baseUrl: `${server.url}/v1/messages/` });
  assert.equal(server.requests.length, 3);
  assert.match(server.requests[0]?.text ?? '', /"display":"summarized"/);
});

const said: WireReply = { type: 'message', parts: [{ type: 'text', text: 'ok' }] };

const hear = async (
  id: string,
  environment: ProcessEnvironment,
  baseUrl?: string,
): Promise<string> => {
  const chosen = await chooseModel(id, environment, baseUrl === undefined ? {} : { baseUrl });
  assert.ok(chosen.kind === 'ok', JSON.stringify(chosen));
  assert.equal(chosen.model.id, id);
  for await (const piece of chosen.model.stream(request, new AbortController().signal)) {
    if (piece.type === 'completed') return JSON.stringify(piece.parts);
    if (piece.type === 'failed') assert.fail(piece.error.message);
  }
  return '';
};

test('openai, google and their base URLs come from the environment, with or without a version', async (context) => {
  const [openai, google] = await Promise.all([
    startOpenAiServer(() => said),
    startGoogleServer(() => said),
  ]);
  context.after(() => Promise.all([openai.close(), google.close()]));
  const environment = {
    OPENAI_API_KEY: 'sk-one',
    OPENAI_BASE_URL: `${openai.url}/v1/`,
    GOOGLE_GENERATIVE_AI_API_KEY: 'g-one',
    GOOGLE_GEMINI_BASE_URL: google.url,
  };
  assert.match(await hear('openai/gpt-6.2-sol', environment), /ok/);
  assert.match(await hear('google/gemini-3.8-flash', environment), /ok/);
  assert.match(
    await hear(
      'google/gemini-3.8-flash',
      { ...environment, GEMINI_API_KEY: 'g-two' },
      `${google.url}/v1beta`,
    ),
    /ok/,
  );
  assert.equal(openai.requests[0]?.headers.authorization, 'Bearer sk-one');
  assert.deepEqual(
    google.requests.map(({ headers }) => headers['x-goog-api-key']),
    ['g-one', 'g-two'],
  );
});

test('a server that speaks like OpenAI never gets the key of OpenAI', async (context) => {
  const server = await startChatServer(() => said);
  context.after(server.close);
  const environment = { OPENAI_API_KEY: 'sk-secret' };
  assert.match(await hear('openai-compatible/qwen3', environment, `${server.url}/v1`), /ok/);
  const own = {
    ...environment,
    OPENAI_COMPATIBLE_API_KEY: 'own',
    OPENAI_COMPATIBLE_BASE_URL: `${server.url}/v1`,
  };
  assert.match(await hear('openai-compatible/org/qwen3', own), /ok/);
  assert.deepEqual(
    server.requests.map(({ headers }) => headers.authorization),
    [undefined, 'Bearer own'],
  );
});

test('choosing a model loads no provider package and no schemas', async () => {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL('../../src/models/choose-model.ts', import.meta.url))],
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    outdir: 'unwritten',
    write: false,
    metafile: true,
  });
  const entry = Object.values(metafile.outputs).find(({ entryPoint }) =>
    entryPoint?.endsWith('choose-model.ts'),
  );
  const atOnce = (entry?.imports ?? [])
    .filter(({ kind }) => kind === 'import-statement')
    .map((found) => found.path);
  const files = [entry, ...atOnce.map((file) => metafile.outputs[file])].flatMap((output) =>
    Object.keys(output?.inputs ?? {}),
  );
  assert.ok(files.some((file) => file.endsWith('scripted-model.ts')));
  assert.deepEqual(
    files.filter((file) => file.includes('node_modules')),
    [],
  );
});

test('an own provider with the name of one in the table changes nothing of that', async () => {
  const provider = findProvider('anthropic') ?? assert.fail('it is in the table');
  const chosen = await chooseModel('anthropic/claude-sonnet-5-5', key, {
    ownProviders: [
      { ...provider, headers: {}, keyFrom: 'KEY', models: { 'claude-sonnet-5-5': UNKNOWN } },
    ],
  });
  assert.ok(chosen.kind === 'ok');
  assert.notDeepEqual(chosen.model.facts, UNKNOWN);
});

test('an hour of cache by itself is for the own address of the provider', async () => {
  const lifetimeOf = async (
    cacheTtl: '5m' | '1h' | 'auto' | undefined,
    baseUrl?: string,
  ): Promise<number | undefined> => {
    const chosen = await chooseModel('anthropic/claude-sonnet-5-5', key, {
      ...(cacheTtl === undefined ? {} : { cacheTtl }),
      ...(baseUrl === undefined ? {} : { baseUrl }),
    });
    return chosen.kind === 'ok' ? chosen.model.facts.cacheLifetimeMs : assert.fail(chosen.message);
  };
  const elsewhere = 'http://127.0.0.1:1';
  assert.equal(await lifetimeOf('auto'), 3_600_000);
  assert.equal(await lifetimeOf('auto', elsewhere), 300_000);
  assert.equal(await lifetimeOf('1h', elsewhere), 3_600_000);
  assert.equal(await lifetimeOf('5m'), 300_000);
  assert.equal(await lifetimeOf(undefined), 300_000);
});
