import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { chooseModel } from '../../src/models/choose-model.js';
import { ask, collect, endingOf, userSays } from './conversing.js';

// Packages that a user has installed. The real ones are large: these stand in for them, with their names and their form.

/** A module that makes models of the specification; each answers with what it was made with. */
const moduleText = (create: string, version = 'v4'): string => `
export const ${create} = (settings) => (modelId) => ({
  specificationVersion: '${version}',
  provider: 'packaged.chat',
  modelId,
  doStream: async () => ({
    stream: new ReadableStream({
      start(controller) {
        controller.enqueue({ type: 'text-start', id: 't' });
        controller.enqueue({ type: 'text-delta', id: 't', delta: \`${create} \${modelId} \${settings.baseURL}\` });
        controller.enqueue({
          type: 'finish',
          finishReason: { unified: 'stop', raw: 'stop' },
          usage: { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 1 } },
        });
        controller.close();
      },
    }),
  }),
});
`;

const install = (folder: string, npm: string, files: Readonly<Record<string, string>>): void => {
  const place = path.join(folder, 'node_modules', npm);
  mkdirSync(place, { recursive: true });
  const exports = Object.fromEntries(
    Object.keys(files).map((subpath) => [
      subpath,
      { types: './none.d.ts', import: `./${path.basename(subpath)}_.js`, default: './none.js' },
    ]),
  );
  writeFileSync(path.join(place, 'package.json'), JSON.stringify({ type: 'module', exports }));
  for (const [subpath, text] of Object.entries(files))
    writeFileSync(path.join(place, `${path.basename(subpath)}_.js`), text);
};

const AWS = { AWS_REGION: 'eu-1', AWS_BEARER_TOKEN_BEDROCK: 'key' };
const VERTEX = { GOOGLE_VERTEX_PROJECT: 'p', GOOGLE_VERTEX_LOCATION: 'l' };

const folders = (context: TestContext) => {
  const [first, second] = [
    temporaryFolder(context, 'packages'),
    temporaryFolder(context, 'packages'),
  ];
  install(second, '@ai-sdk/amazon-bedrock', { '.': moduleText('createAmazonBedrock') });
  install(second, '@ai-sdk/google-vertex', {
    '.': moduleText('createVertex', 'v3'),
    './anthropic': moduleText('createVertexAnthropic'),
  });
  return { first, packageFolders: () => [first, second] };
};

for (const [id, environment, said] of [
  ['bedrock/anthropic.claude-x:0', AWS, 'createAmazonBedrock anthropic.claude-x:0 http://here'],
  ['vertex/gemini-x', VERTEX, 'createVertex gemini-x http://here'],
  ['vertex/claude-x', VERTEX, 'createVertexAnthropic claude-x http://here'],
] as const)
  test(`${id} answers through its package`, async (context) => {
    const { packageFolders } = folders(context);
    const chosen = await chooseModel(id, environment, {
      packageFolders,
      baseUrl: 'http://here',
    });
    assert.ok(chosen.kind === 'ok', JSON.stringify(chosen));
    assert.equal(chosen.model.id, id);
    const pieces = await collect(
      chosen.model.stream(ask(userSays('hi')), new AbortController().signal),
    );
    const ending = endingOf(pieces);
    assert.deepEqual(ending.type === 'completed' && ending.parts, [{ type: 'text', text: said }]);
  });

test('what is missing, or can’t be used, is named with what helps', async (context) => {
  const { first, packageFolders } = folders(context);
  const problem = async (
    environment: NodeJS.ProcessEnv,
    id = 'bedrock/x',
    more: () => string[] = packageFolders,
  ) => {
    const chosen = await chooseModel(id, environment, { packageFolders: more });
    return chosen.kind === 'ok' ? 'ok' : `${chosen.kind}: ${chosen.message}`;
  };
  assert.match(await problem({}), /^noKey: bedrock\/x needs AWS_REGION: export AWS_REGION=…/);
  const { AWS_REGION } = AWS;
  assert.match(
    await problem({ AWS_REGION }),
    /needs AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID/,
  );
  assert.match(await problem(AWS, 'bedrock'), /^noName: .*write it as bedrock\/NAME, https:/);
  assert.equal(
    await problem(AWS, 'bedrock/x', () => [first]),
    `noPackage: bedrock/x is reached through @ai-sdk/amazon-bedrock.\nInstall it: npm install --prefix ${first} @ai-sdk/amazon-bedrock`,
  );
  assert.match(await problem(AWS, 'bedrock/x', () => []), /\nGive its model to aiSdkModel\.$/);
  for (const [text, why] of [
    [moduleText('somethingElse'), 'it has no createAmazonBedrock'],
    [moduleText('createAmazonBedrock', 'v2'), 'specification v2'],
    ['throw new Error("too old a Node");', 'too old a Node'],
  ] as const) {
    const folder = temporaryFolder(context, 'packages');
    install(folder, '@ai-sdk/amazon-bedrock', { '.': text });
    const said = await problem(AWS, 'bedrock/x', () => [folder]);
    assert.match(said, /^noPackage: @ai-sdk\/amazon-bedrock in .* can't be used: /);
    assert.ok(said.includes(why), said);
  }
});
