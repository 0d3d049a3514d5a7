import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chooseModel } from '../../src/models/choose.js';
import type { ModelRequest } from '../../src/needs.js';
import { startAnthropicServer } from '../servers/anthropic.js';

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

const problems: readonly (readonly [string | undefined, Readonly<Record<string, string>>, string, RegExp])[] =
  [
    [undefined, {}, 'noKey', /^There is no key for .*\n.*ANTHROPIC_API_KEY.*\n.*pawl demo$/],
    ['anthropic/claude-opus-5-5', { ANTHROPIC_API_KEY: ' ' }, 'noKey', /claude-opus-5-5/],
    [
      'openai/gpt',
      key,
      'unknownProvider',
      /There is no provider "openai"\. There are anthropic\/NAME and scripted\/FILE/,
    ],
    ['claude-opus-5-5', key, 'unknownProvider', /Did you mean anthropic\/claude-opus-5-5\?/],
    ['anthropic', key, 'noName', /anthropic\/NAME/],
    ['scripted/', key, 'noName', /scripted\/NAME/],
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
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pawl-script-'));
  context.after(() => rm(folder, { recursive: true }));
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
  const ask = async (environment: Readonly<Record<string, string>>, options: { baseUrl?: string }) => {
    const chosen = await chooseModel('anthropic/claude-sonnet-5-5', { ...key, ...environment }, options);
    assert.ok(chosen.kind === 'ok');
    for await (const piece of chosen.model.stream(request, new AbortController().signal)) {
      assert.notEqual(piece.type, 'failed', JSON.stringify(piece));
    }
  };
  await ask({ ANTHROPIC_BASE_URL: server.url }, {});
  await ask({ ANTHROPIC_BASE_URL: 'http://127.0.0.1:1' }, { baseUrl: `${server.url}/v1` });
  assert.equal(server.requests.length, 2);
  assert.match(server.requests[0]?.text ?? '', /"display":"summarized"/);
});

test('choosing a model loads no provider package and no schemas', async () => {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL('../../src/models/choose.ts', import.meta.url))],
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    outdir: 'unwritten',
    write: false,
    metafile: true,
  });
  const entry = Object.values(metafile.outputs).find(({ entryPoint }) => entryPoint?.endsWith('choose.ts'));
  const atOnce = (entry?.imports ?? [])
    .filter(({ kind }) => kind === 'import-statement')
    .map((found) => found.path);
  const files = [entry, ...atOnce.map((file) => metafile.outputs[file])].flatMap((output) =>
    Object.keys(output?.inputs ?? {}),
  );
  assert.ok(files.some((file) => file.endsWith('scripted.ts')));
  assert.deepEqual(
    files.filter((file) => file.includes('node_modules')),
    [],
  );
});
