/** Providers that a user names, the model that a key chooses, and `pawl models`. */

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ModelFacts } from '@pawl/agent/ports/model';
import { parse } from 'smol-toml';
import { startChatServer } from '../../../../test/servers/chat.js';
import { parseConfig } from '../../src/settings/configuration.js';
import { warnOfUnknown } from '../../src/settings/connect-model.js';
import { readOwnProviders } from '../../src/settings/own-providers.js';
import { runInProcess } from './in-process.js';
import { expectCode, makePlace, type Place, runPawl, sessionOf } from './pawl.js';
import { openWindow } from './window.js';

const KEY = 'a-key-of-nobody-else-7f3a9c';

const write = (file: string, text: string): void => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};
const mine = (place: Place, text: string): void =>
  write(path.join(place.home, '.config', 'pawl', 'config.toml'), text);

/** A place without the keys that tests usually have, and two servers. */
const makeTwo = async (context: TestContext, variables: NodeJS.ProcessEnv = {}) => {
  const replies = (text: string) => () =>
    ({ type: 'message', parts: [{ type: 'text', text }] }) as const;
  const [one, two] = await Promise.all([
    startChatServer(replies('I am one.')),
    startChatServer(replies('I am two.'), { listed: [{ id: 'small' }, { id: 'big' }] }),
  ]);
  context.after(async () => {
    await one.close();
    await two.close();
  });
  const place = makePlace(context, { ANTHROPIC_API_KEY: '', ...variables });
  return { place, one, two };
};

const tables = (one: string, two: string): string => `
[providers.one]
base_url = "${one}/v1"
key_env = "ONE_KEY"
headers = { X-Team = "tools" }
[providers.one.models."big-1"]
window = 200_000
output = 16_000
input_price = 1
output_price = 2

[providers.two]
base_url = "${two}/v1"
key_command = "printf %s '${KEY}'"
`;

test('two endpoints in one session, each with its key and headers; a resumed session finds both', async (context) => {
  const { place, one, two } = await makeTwo(context, { ONE_KEY: `${KEY}-1` });
  mine(place, tables(one.url, two.url));
  const first = await runInProcess(place, ['-p', 'Who?', '-m', 'one/big-1']);
  expectCode(first, 0);
  assert.equal(first.stdout, 'I am one.\n');
  assert.equal(one.requests[0]?.headers.authorization, `Bearer ${KEY}-1`);
  assert.equal(one.requests[0]?.headers['x-team'], 'tools');
  const id = sessionOf(place);
  const second = await runInProcess(place, ['-p', 'And you?', '-r', id, '-m', 'two/small']);
  expectCode(second, 0);
  assert.equal(second.stdout, 'I am two.\n');
  assert.equal(two.requests[0]?.headers.authorization, `Bearer ${KEY}`);
  assert.equal(two.requests[0]?.headers['x-team'], undefined);
  const third = await runInProcess(place, ['-p', 'Again?', '-r', id, '-m', 'one/big-1']);
  assert.equal(third.stdout, 'I am one.\n');
  // what its price comes to: the servers count 10 tokens of input and 5 of output, or so
  const shown = await runInProcess(place, ['show', id, '--time', '--json']);
  assert.match(shown.stdout, /"costUsd":0\.0000/);
  const stored = readdirSync(place.state, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'latin1'));
  assert.ok(stored.some((text) => text.includes('I am two.')));
  assert.ok(!stored.some((text) => text.includes(KEY)), 'a key is stored');
});

test('a key that a file holds must be the user’s alone; a command that gives no key is told', async (context) => {
  const { place, one } = await makeTwo(context);
  const keyFile = path.join(place.home, 'key');
  write(keyFile, `${KEY}\n`);
  chmodSync(keyFile, 0o644);
  const run = async (source: string) => {
    mine(place, `[providers.one]\nbase_url = "${one.url}/v1"\n${source}\n`);
    return runInProcess(place, ['-p', 'x', '-m', 'one/m']);
  };
  const open = await run('api_key_file = "~/key"');
  expectCode(open, 78);
  assert.match(open.stderr, /others may read it.*chmod 600/);
  chmodSync(keyFile, 0o600);
  expectCode(await run('api_key_file = "~/key"'), 0);
  assert.equal(one.requests.at(-1)?.headers.authorization, `Bearer ${KEY}`);
  for (const [command, why] of [
    [`echo ${KEY}; exit 3`, 'it ended with exit code 3'],
    ['true', 'it printed nothing, or more than one word'],
    [`echo my ${KEY}`, 'it printed nothing, or more than one word'],
  ] as const) {
    const ended = await run(`key_command = "${command}"`);
    expectCode(ended, 78);
    assert.ok(ended.stderr.includes(`providers.one.key_command gave no key: ${why}`), ended.stderr);
    assert.ok(!ended.stderr.includes(KEY));
  }
  const missing = await run('key_env = "NOT_THERE_KEY"');
  expectCode(missing, 78);
  assert.match(missing.stderr, /No API key found for one\/m\.\n.*export NOT_THERE_KEY=/);
  expectCode(await run(''), 0); // it wants no key
  assert.equal(one.requests.at(-1)?.headers.authorization, undefined);
});

test('what a table does not say of a model is guessed so that no limit is passed', () => {
  const prices = { window: 8_191, input_price: 1, output_price: 2 };
  const factsAt = (api: string): ModelFacts | undefined =>
    readOwnProviders({ one: { api, base_url: 'https://a.example', models: { m: prices } } })
      .ownProviders[0]?.models.m;
  assert.equal(factsAt('chat-completions')?.outputTokensMax, 4_095);
  assert.deepEqual(
    ['chat-completions', 'messages'].map((api) => factsAt(api)?.prices?.cacheWrite),
    [1, 2],
  );
});

test('only a provider whose models can be listed is named as a place to look them up', () => {
  const prices = { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 };
  const facts: ModelFacts = {
    windowTokens: 9,
    outputTokensMax: 9,
    thinking: 'yes',
    tools: 'yes',
    prices,
    source: null,
  };
  const advises = (id: string): boolean => {
    const told: string[] = [];
    warnOfUnknown({ id, facts }, (text) => told.push(text));
    assert.equal(told.length, 1, id);
    return /pawl models (\w+) lists/.exec(told[0] ?? '')?.[1] === id.split('/')[0];
  };
  const named = [
    'anthropic/new',
    'openrouter/openrouter/auto',
    'bedrock/x',
    'vertex/x',
    'lab/echo',
  ];
  assert.deepEqual(named.filter(advises), ['anthropic/new']);
});

test('a package for models is loaded from the user’s folder, and never from the project', async (context) => {
  const place = makePlace(context, { AWS_REGION: 'eu-1', AWS_BEARER_TOKEN_BEDROCK: KEY });
  const install = (folder: string, text: string): void => {
    const package_ = path.join(folder, 'node_modules', '@ai-sdk', 'amazon-bedrock');
    write(
      path.join(package_, 'package.json'),
      '{ "type": "module", "exports": { ".": "./a.js" } }',
    );
    write(path.join(package_, 'a.js'), text);
  };
  const marker = path.join(place.workspace, 'loaded');
  const loads = `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(marker)}, '');\n`;
  for (const folder of [place.workspace, path.join(place.workspace, '.pawl')])
    install(folder, loads);
  const without = await runPawl(place, ['-p', 'x', '-m', 'bedrock/m']);
  expectCode(without, 78);
  assert.match(without.stderr, /npm install --prefix \S+\.config\/pawl @ai-sdk\/amazon-bedrock/);
  const environment = { ...place.environment, PAWL_MODEL: 'bedrock/m' };
  const checked = await runInProcess({ ...place, environment }, ['doctor']);
  assert.match(checked.stdout, /bedrock\/m is reached through @ai-sdk\/amazon-bedrock/);
  assert.ok(!existsSync(marker), 'a file of the project was loaded');
  // control: in the user's folder the same is loaded, also by the bundled program
  install(path.join(place.home, '.config', 'pawl'), loads);
  const faulty = await runPawl(place, ['-p', 'x', '-m', 'bedrock/m']);
  expectCode(faulty, 78);
  assert.match(faulty.stderr, /can't be used: it has no createAmazonBedrock/);
  assert.ok(existsSync(marker));
  assert.ok(!faulty.stderr.includes('Warning'), faulty.stderr);
});

test('a project can name no provider', async (context) => {
  const { place, one } = await makeTwo(context, { ONE_KEY: KEY });
  write(
    path.join(place.workspace, '.pawl', 'config.toml'),
    `[providers.one]\nbase_url = "${one.url}/v1"\nkey_env = "ONE_KEY"\nkey_command = "touch ran"\n`.replace(
      'key_env = "ONE_KEY"\n',
      '',
    ),
  );
  const ended = await runInProcess(place, ['-p', 'x', '-m', 'one/m']);
  expectCode(ended, 2);
  assert.match(ended.stderr, /\[providers\] is ignored: a project names no provider/);
  assert.match(ended.stderr, /There is no provider "one"/);
  assert.equal(one.requests.length, 0);
});

/** What is wrong with a table, and how it is said. */
const faults: readonly (readonly [table: string, says: RegExp])[] = [
  ['[providers.antropic]\napi_key_file = "x"', /Did you mean providers\.anthropic\?.*says its api/],
  ['[providers.mine]\nkey_env = "A_KEY"', /so it needs base_url/],
  ['[providers.Mine]\nbase_url = "https://x.example"', /providers\.Mine needs a name of/],
  ['[providers.mine]\nbase_url = "x"', /base_url is an http or https URL/],
  ['[providers.mine]\nbase_url = "https://x.example"\nkey = "sk-1"', /key is not read: .*key_env/],
  ['[providers.mine]\nbase_url = "https://x.example"\napi = "chat"', /api is one of chat-compl/],
  [
    '[providers.mine]\nbase_url = "https://x.example"\nbas_url = 1',
    /no setting of a provider\. Did you mean/,
  ],
  [
    '[providers.mine]\nbase_url = "https://x.example"\nkey_env = "A_KEY"\nkey_command = "b"',
    /key_command can't stand beside key_env/,
  ],
  [
    '[providers.mine]\nbase_url = "https://x.example"\n[providers.mine.models.m]\ninput_price = 1',
    /models\.m needs both/,
  ],
  [
    '[providers.mine]\nbase_url = "https://x.example"\n[providers.mine.models.m]\nwindow = "1"',
    /window is a whole number/,
  ],
  ['[providers]\nmine = 1', /providers\.mine is a table/],
  ['[providers.scripted]\nbase_url = "https://x.example"', /answer from a script/],
  [
    '[providers.mine]\nbase_url = "https://x.example"\nheaders = { a = 1 }',
    /headers is a table of texts/,
  ],
  [
    '[providers.mine]\nbase_url = "https://x.example"\nkey_env = "HOME"',
    /key_env is the name .* KEY or TOKEN/,
  ],
];
for (const [table, says] of faults)
  test(`a table is told its fault: ${JSON.stringify(table)}`, () => {
    const read = parseConfig(table, (text) => parse(text));
    assert.equal(read.faults.length, 1, JSON.stringify(read.faults));
    assert.match(read.faults[0]?.text ?? '', says);
    assert.deepEqual(read.ownProviders, []);
    assert.ok(!JSON.stringify(read.faults).includes('sk-1'));
  });

test('the only key that is there chooses the model, which is said in one line; a named model wins', async (context) => {
  const { place, one } = await makeTwo(context, { GROQ_API_KEY: KEY });
  place.environment.GROQ_BASE_URL = `${one.url}/v1`;
  const ended = await runInProcess(place, ['-p', 'Who?']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'I am one.\n');
  assert.match(
    ended.stderr,
    /The model is groq\/openai\/gpt-oss-120b, since GROQ_API_KEY is set\. -m chooses another one\./,
  );
  const config = await runInProcess(place, ['config']);
  assert.match(config.stdout, /^model +groq\/openai\/gpt-oss-120b/m);
  mine(place, 'model = "groq/other"\n');
  const named = await runInProcess(place, ['-p', 'Who?']);
  expectCode(named, 0);
  assert.doesNotMatch(named.stderr, /GROQ_API_KEY is set/);
  assert.match(one.requests.at(-1)?.text ?? '', /"model":"other"/);
});

/** So that no server of the machine that runs the tests is asked. */
const NO_LOCAL = {
  OLLAMA_HOST: '127.0.0.1:1',
  LMSTUDIO_BASE_URL: 'http://127.0.0.1:1/v1',
  LLAMACPP_BASE_URL: 'http://127.0.0.1:1/v1',
  VLLM_BASE_URL: 'http://127.0.0.1:1/v1',
};

test('without a key the server on this machine answers, and a line says so; without one there is no dead end', async (context) => {
  const { place, two } = await makeTwo(context, NO_LOCAL);
  place.environment.LLAMACPP_BASE_URL = `${two.url}/v1`;
  const ended = await runInProcess(place, ['-p', 'Who?']);
  expectCode(ended, 0);
  assert.equal(ended.stdout, 'I am two.\n');
  assert.match(
    ended.stderr,
    /The model is llamacpp\/big, since no key is set and llama\.cpp answers/,
  );
  place.environment.LLAMACPP_BASE_URL = NO_LOCAL.LLAMACPP_BASE_URL;
  const without = await runInProcess(place, ['-p', 'Who?']);
  expectCode(without, 78);
  assert.match(without.stderr, /No API key found for anthropic/);
});

test('a start in a terminal without a key asks for one, tries it, and keeps it where only the user reads it', async (context) => {
  const server = await startChatServer(
    () => ({ type: 'message', parts: [{ type: 'text', text: 'Now I can answer.' }] }),
    { key: `gsk_${KEY}`, listed: [{ id: 'openai/gpt-oss-120b' }] },
  );
  context.after(server.close);
  const place = makePlace(context, { ...NO_LOCAL, GROQ_BASE_URL: `${server.url}/v1` });
  const window = openWindow(context, place);
  await window.sees(/1 {2}paste a key\n +2 {2}watch the demo/);
  await window.sees('1 or 2?');
  window.press('yes\r');
  await window.sees('Type 1 or 2. Enter alone leaves.');
  window.press('1\r');
  await window.sees('Paste the key, then Enter');
  window.press('gsk_wrong\r');
  await window.sees('Groq refuses the key (401).');
  window.press(`gsk_${KEY}\r`);
  await window.sees('readable by you alone');
  await window.sees('The model is groq/openai/gpt-oss-120b');
  window.press('Who?\r');
  await window.sees('Now I can answer.');
  assert.ok(!window.raw().includes(KEY), 'the key was shown');
  const file = path.join(place.home, '.config', 'pawl', 'keys', 'groq');
  assert.equal(readFileSync(file, 'utf8'), `gsk_${KEY}\n`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  window.press('/quit\r');
  assert.equal(await window.ended, 0);
  // the next start asks nothing
  const again = openWindow(context, place);
  await again.sees('Give a task');
  assert.ok(!(await again.text()).includes('paste a key'));
  again.press('/quit\r');
  assert.equal(await again.ended, 0);
});

test('a key that a server calls invalid with 400 is asked for again; one that a public list can not try is not called tried', async (context) => {
  const server = createServer((incoming, outgoing) => {
    outgoing.statusCode = incoming.headers.authorization === 'Bearer xai-wrong' ? 400 : 200;
    outgoing.end(JSON.stringify({ data: [{ id: 'grok' }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => void server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const place = makePlace(context, { ...NO_LOCAL, XAI_BASE_URL: `http://127.0.0.1:${port}/v1` });
  const window = openWindow(context, place);
  await window.sees('1 or 2?');
  window.press('1\r');
  await window.sees('Paste the key, then Enter');
  window.press('xai-wrong\r');
  await window.sees('xAI refuses the key (400).');
  window.press(`xai-${KEY}\r`);
  await window.sees('xAI lists its models without a key, too.');
  await window.sees('So the key could not be tried.');
  await window.sees('readable by you alone');
  await window.sees('Give a task');
  window.press('\u0004');
  assert.equal(await window.ended, 0);
});

test('Enter alone at the question for the key leaves', async (context) => {
  const window = openWindow(context, makePlace(context, NO_LOCAL));
  await window.sees('1 or 2?');
  window.press('1\r');
  await window.sees('Paste the key, then Enter');
  window.press('\r');
  assert.equal(await window.ended, 78);
});

test('doctor finds no fault where a model of this machine or of a user’s provider can be used', async (context) => {
  const { place, one, two } = await makeTwo(context, { ...NO_LOCAL, PAWL_MODEL: '' });
  const noKey = async (): Promise<boolean> =>
    /No API key found/.test((await runInProcess(place, ['doctor'])).stdout);
  assert.equal(await noKey(), true, 'control: nothing can answer');
  place.environment.VLLM_BASE_URL = `${two.url}/v1`;
  assert.equal(await noKey(), false);
  place.environment.VLLM_BASE_URL = NO_LOCAL.VLLM_BASE_URL;
  mine(place, `model = "two/big"\n${tables(one.url, two.url)}`);
  assert.equal(await noKey(), false); // its command is not run without --online
  mine(place, `model = "one/big-1"\n${tables(one.url, two.url)}`);
  assert.equal(await noKey(), true);
  place.environment.ONE_KEY = KEY;
  assert.equal(await noKey(), false);
  place.environment.PAWL_MODEL = 'groq/x';
  assert.equal(await noKey(), true);
});

test('a pasted key breaks no config.toml, and what is written there stays', async (context) => {
  const place = makePlace(context, NO_LOCAL);
  const config = path.join(place.home, '.config', 'pawl', 'config.toml');
  const text = 'preset = "auto"\nproviders = {}\n';
  mine(place, text);
  const window = openWindow(context, place, {
    environment: { GROQ_BASE_URL: 'http://127.0.0.1:1/v1' },
    columns: 400,
  });
  await window.sees('1 or 2?');
  window.press('1\r');
  await window.sees('Paste the key, then Enter');
  window.press('gsk_a\u007fb\r'); // Backspace
  await window.sees('one word of plain characters');
  window.press(`gsk_${KEY}\r`);
  await window.sees('So the key could not be tried.');
  await window.sees(/stays as it was: write there for the provider groq: api_key_file/);
  assert.equal(await window.ended, 78);
  assert.equal(readFileSync(config, 'utf8'), text);
});

test('pawl models lists providers with their keys, and the models of one as its server names them', async (context) => {
  const { place, one, two } = await makeTwo(context, { ONE_KEY: KEY, XAI_API_KEY: KEY });
  mine(place, tables(one.url, two.url));
  const all = await runInProcess(place, ['models']);
  expectCode(all, 0);
  assert.match(all.stdout, /^one +ONE_KEY is set$/m);
  assert.match(all.stdout, /^xai +xAI: XAI_API_KEY is set$/m);
  assert.match(all.stdout, /^mistral +Mistral: set MISTRAL_API_KEY$/m);
  assert.match(all.stdout, /^ollama +Ollama: needs no key$/m);
  assert.ok(!all.stdout.includes(KEY));
  const unknown = await runInProcess(place, ['models', 'acme']);
  expectCode(unknown, 2);
  const silent = await runInProcess(place, ['models', 'one']); // this server lists nothing
  expectCode(silent, 69);
  assert.match(silent.stderr, /lists no models \(status 404\)/);
  const listed = await runInProcess(place, ['models', 'two']);
  expectCode(listed, 0);
  assert.equal(listed.stdout, 'two/big\ntwo/small\n');
  const asked = one.requests.length;
  assert.equal(asked, 0, 'a list is no call of a model');
});
