import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { httpChecks } from '../../test/serve/http-checks.js';
import { keyNamed, startTestNode } from '../../test/serve/node-under-test.js';
import { streamChecks } from '../../test/serve/stream-checks.js';
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

test('no call of the engine was tried again and again', async () => {
  assert.deepEqual(await engine.stuck(), []);
});
