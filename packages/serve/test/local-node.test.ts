import '../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { httpChecks } from './http-checks.js';
import { makeLocalNode } from './local-node-runtime.js';
import { startTestNode } from './node-under-test.js';
import { streamChecks } from './stream-checks.js';

/** The HTTP API over the runtime inside one process, with journals on disk. */

for (const check of [...httpChecks, ...streamChecks])
  test(`http: ${check.name}`, (context) => check.run(context, makeLocalNode));

test('http: a request with a body that fails on the node is in its log', async (context) => {
  const folder = temporaryFolder(context, 'no-repository');
  const { client, faults } = await startTestNode(context, makeLocalNode, {
    workspaces: {
      folders: [],
      repositories: new Map([['api', folder]]),
      dataFolder: temporaryFolder(context, 'data'),
      environment: process.env,
      signal: new AbortController().signal,
    },
  });
  const workspace = { repository: 'api', commit: 'HEAD' };
  const { status } = await client.ask('POST', '/v1/sessions', { workspace });
  assert.equal(status, 500);
  assert.match(faults.join(), /is not the working tree of a git repository/);
});
