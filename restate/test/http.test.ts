import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { scriptedModel } from '../../packages/agent/src/models/scripted-model.js';
import { httpChecks } from '../../packages/serve/test/http-checks.js';
import { keyNamed, startTestNode } from '../../packages/serve/test/node-under-test.js';
import { streamChecks } from '../../packages/serve/test/stream-checks.js';
import { MODEL_ID, storySettings } from '../../test/contract/play-story.js';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { engineUnderTest } from './engine-under-test.js';

/** The HTTP API of a node, over the engine: the same checks as over the runtime inside one process. */

const engine = await engineUnderTest({ after: (hook) => after(hook) });

for (const check of [...httpChecks, ...streamChecks])
  test(`http: ${check.name}`, (context) => check.run(context, engine.makeNode));

test('an input that is larger than the engine takes is refused with words, and the session goes on', async (context) => {
  const keys = [keyNamed('one', { inputBytes: 48 * 1024 * 1024 })];
  const { client, workspace } = await startTestNode(context, engine.makeNode, { keys });
  const id = await client.create(workspace);
  const path = `/v1/sessions/${id}/inputs`;
  const large = await client.ask('POST', path, { text: 'x'.repeat(40 * 1024 * 1024) });
  assert.deepEqual([large.status, large.body.error?.code], [413, 'tooLarge']);
  assert.equal(await client.send(id, { text: 'hi' }), 1);
});

test('a reader that leaves while it waits for the next entry ends at once', {
  timeout: 60_000,
}, async (context) => {
  const folder = temporaryFolder(context, 'read');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const world = {
    model: scriptedModel({ replies: [{ text: 'Fine.' }] }, { id: MODEL_ID }),
    tools: [],
    hooks: null,
    settingsFor: storySettings,
  };
  const { runtime, stop } = await engine.makeNode(world, folder);
  const id = await runtime.create({ workspace, key: 'one', preset: null, model: null, limits: {} });
  await runtime.send(id, { type: 'UserInput', text: 'hi', mode: 'steer' });
  const reader = runtime.read(id)[Symbol.asyncIterator]();
  assert.equal((await reader.next()).value.seq, 1);
  const { seq } = await runtime.send(id, { type: 'CancelTurn' });
  while ((await reader.next()).value.seq < seq);
  const waiting = reader.next();
  await reader.return?.();
  assert.equal((await waiting).done, true);
  await stop();
});

test('no call of the engine was tried again and again', async () => {
  assert.deepEqual(await engine.stuck(), []);
});
