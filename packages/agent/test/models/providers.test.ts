/** Each provider of the table, at a server that speaks its wire. */

import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { startAnthropicServer } from '../../../../test/servers/anthropic.js';
import { startChatServer } from '../../../../test/servers/chat.js';
import { startGoogleServer } from '../../../../test/servers/google.js';
import { startOpenAiServer } from '../../../../test/servers/openai.js';
import type { WireReply } from '../../../../test/servers/reply.js';
import { catalogueFacts } from '../../src/models/catalogue.js';
import { chooseModel } from '../../src/models/choose-model.js';
import { findLocalModel } from '../../src/models/local-servers.js';
import {
  DEFAULT_MODEL,
  findEndpoint,
  findProvider,
  providers,
  usualModel,
} from '../../src/models/provider-table.js';
import type { ProcessEnvironment } from '../../src/platform/environment.js';
import type { ModelPiece, ModelRequest } from '../../src/ports/model.js';

const request: ModelRequest = {
  instructions: '',
  tools: [],
  messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text: 'hi' }] }],
};

let isRefused = false;
const SAID = { type: 'message', parts: [{ type: 'text', text: 'It works.' }] } as const;
const wireReply = (): WireReply => (isRefused ? { type: 'failure', failure: 'auth' } : SAID);
const BAD_KEY = { status: 401, errorType: 'authentication_error', message: 'invalid key' } as const;
let servers: Readonly<Record<string, { readonly url: string; close(): Promise<void> | void }>>;

before(async () => {
  servers = {
    'Anthropic Messages': await startAnthropicServer({
      replies: () => (isRefused ? { type: 'error', ...BAD_KEY } : SAID),
    }),
    'OpenAI Responses': await startOpenAiServer(wireReply),
    'Google Gemini API': await startGoogleServer(wireReply),
    'Chat Completions': await startChatServer(wireReply),
  };
});
after(async () => {
  for (const server of Object.values(servers)) await server.close();
});

/** Where the server of a wire is, as its provider's address is written. */
const addressOf = (wire: string): string =>
  `${servers[wire]?.url}${wire === 'Anthropic Messages' || wire === 'Google Gemini API' ? '' : '/v1'}`;

const lastPiece = async (
  id: string | undefined,
  environment: ProcessEnvironment,
): Promise<readonly [id: string, piece: ModelPiece]> => {
  const chosen = await chooseModel(id, environment);
  assert.ok(chosen.kind === 'ok', JSON.stringify(chosen));
  let last: ModelPiece | null = null;
  for await (const piece of chosen.model.stream(request, new AbortController().signal))
    last = piece;
  return [chosen.model.id, last ?? assert.fail('no piece')];
};

for (const provider of providers.filter(({ key }) => key !== 'unused')) {
  const { name, defaultModel, wire, keyVariables, urlVariable, address, key } = provider;
  const own = `${name}/${defaultModel}`;
  test(`${name}: its key alone chooses its model, which answers; a wrong key is told with its variable`, async () => {
    const environment = { [keyVariables[0]]: 'a-key', [urlVariable]: addressOf(wire) };
    // a server of one's own, and a resource of Azure, have no usual model
    const named = key === 'optional' || address === null ? own : undefined;
    isRefused = false;
    const [id, piece] = await lastPiece(named, environment);
    assert.equal(id, own);
    assert.ok(piece.type === 'completed', JSON.stringify(piece));
    assert.match(JSON.stringify(piece.parts), /It works\./);
    if (named === undefined)
      assert.deepEqual(usualModel(environment), { id: own, variable: keyVariables[0] });
    isRefused = true;
    const [, refused] = await lastPiece(named, environment);
    assert.ok(refused.type === 'failed');
    assert.equal(refused.error.kind, 'auth');
    assert.ok(refused.error.message.includes(keyVariables[0]), refused.error.message);
  });
}

test('of several keys the order of the table decides; shared variables decide nothing, and work', async () => {
  assert.deepEqual(usualModel({}), { id: DEFAULT_MODEL, variable: null });
  assert.equal(usualModel({ XAI_API_KEY: 'x', OPENAI_API_KEY: 'o' }).id, 'openai/gpt-6.2-sol');
  assert.equal(usualModel({ ANTHROPIC_API_KEY: 'a', OPENAI_API_KEY: 'o' }).id, DEFAULT_MODEL);
  assert.equal(
    usualModel({ ANTHROPIC_API_KEY: ' ', OPENAI_API_KEY: 'o' }).variable,
    'OPENAI_API_KEY',
  );
  for (const [name, variable] of [
    ['github', 'GITHUB_TOKEN'],
    ['huggingface', 'HF_TOKEN'],
  ] as const) {
    assert.equal(usualModel({ [variable]: 't' }).variable, null);
    const url = `${name === 'github' ? 'GITHUB_MODELS' : 'HUGGINGFACE'}_BASE_URL`;
    isRefused = false;
    const [, piece] = await lastPiece(`${name}/m`, {
      [variable]: 't',
      [url]: addressOf('Chat Completions'),
    });
    assert.equal(piece.type, 'completed');
  }
});

test('an error never repeats the key, whatever the server says of it', async (context) => {
  const key = 'a-key-that-a-server-repeats-51c7';
  const server = http.createServer((_, out) => {
    const error = { message: `Incorrect API key provided: ${key}`, type: 'invalid_request_error' };
    out.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens at a port
  for (const [name, variable, address] of [
    ['anthropic', 'ANTHROPIC', url],
    ['openai', 'OPENAI', `${url}/v1`],
    ['groq', 'GROQ', `${url}/v1`],
  ]) {
    const [, piece] = await lastPiece(`${name}/m`, {
      [`${variable}_API_KEY`]: key,
      [`${variable}_BASE_URL`]: address,
    });
    assert.ok(piece.type === 'failed');
    assert.match(piece.error.message, /Incorrect API key provided: …/);
    assert.ok(!JSON.stringify(piece).includes(key));
  }
});

test('a refused key is told with the variable that holds it', async () => {
  isRefused = true;
  const [, piece] = await lastPiece('github/m', {
    GITHUB_TOKEN: 't',
    GITHUB_MODELS_BASE_URL: addressOf('Chat Completions'),
  });
  assert.ok(piece.type === 'failed');
  assert.match(piece.error.message, /Set GITHUB_TOKEN to a key/);
});

test('a server on this machine is found with the model that it lists, and not if another person listens there', async (context) => {
  const local = await startChatServer(wireReply, {
    listed: [{ id: 'nomic-embed-text' }, { id: 'zeta' }, { id: 'qwen3-coder-30b' }],
  });
  context.after(local.close);
  // nothing listens at the other usual ports
  const none = 'http://127.0.0.1:1/v1';
  const environment = {
    OLLAMA_HOST: '127.0.0.1:1',
    LLAMACPP_BASE_URL: none,
    VLLM_BASE_URL: none,
    LMSTUDIO_BASE_URL: `${local.url}/v1`,
  };
  assert.equal((await findLocalModel(environment))?.id, 'lmstudio/qwen3-coder-30b');
  const port = Number(new URL(local.url).port).toString(16).toUpperCase().padStart(4, '0');
  const row = (userId: number): string =>
    `  0: 0100007F:${port} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 ${userId} 0 1 1 0 100 0`;
  const person = process.geteuid?.() === 1_500 ? 1_501 : 1_500;
  assert.equal(await findLocalModel(environment, [row(person)]), null);
  assert.equal(await findLocalModel(environment, [row(998), row(person)]), null);
  assert.notEqual(await findLocalModel(environment, [row(998)]), null); // a service of the system
  // an address of another machine is chosen by nobody but the user
  assert.equal(
    await findLocalModel({ ...environment, LMSTUDIO_BASE_URL: 'http://192.0.2.1:1234/v1' }),
    null,
  );
});

test('the address of a resource of Azure gets the path of its API, from a variable and from a flag', async () => {
  const key = { AZURE_OPENAI_API_KEY: 'k' };
  const azure = findProvider('azure') ?? assert.fail('no row');
  const resource = 'https://mine.openai.azure.com';
  for (const address of [resource, `${resource}/`, `${resource}/openai/`, `${resource}/openai/v1`])
    for (const found of [
      findEndpoint(azure, { AZURE_OPENAI_ENDPOINT: address }, undefined),
      findEndpoint(azure, {}, address),
    ])
      assert.ok(found.kind === 'ok' && found.url === `${resource}/openai/v1`, address);
  const missing = await chooseModel('azure/mine', key);
  assert.ok(missing.kind === 'noUrl');
  assert.match(missing.message, /NAME\.openai\.azure\.com.*AZURE_OPENAI_ENDPOINT/);
});

test('what a list does not tell of a known model is known from the catalogue', async () => {
  const chosen = await chooseModel('groq/openai/gpt-oss-120b', {
    GROQ_API_KEY: 'k',
    GROQ_BASE_URL: addressOf('Chat Completions'),
  });
  assert.ok(chosen.kind === 'ok');
  assert.deepEqual(chosen.model.facts, catalogueFacts('groq/openai/gpt-oss-120b'));
  assert.equal(chosen.model.facts.prices?.input, 0.15);
});
