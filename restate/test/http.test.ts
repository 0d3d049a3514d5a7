import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { httpChecks } from '../../test/serve/http-checks.js';
import { streamChecks } from '../../test/serve/stream-checks.js';
import { engineUnderTest } from './engine-under-test.js';

/** The HTTP API of a node, over the engine: the same checks as over the runtime inside one process. */

const engine = await engineUnderTest({ after: (hook) => after(hook) });

for (const check of [...httpChecks, ...streamChecks])
  test(`http: ${check.name}`, (context) => check.run(context, engine.makeNode));

test('no call of the engine was tried again and again', async () => {
  assert.deepEqual(await engine.stuck(), []);
});
