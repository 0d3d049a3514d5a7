import '../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { until } from '../../../test/until.js';
import { httpChecks } from './http-checks.js';
import { makeLocalNode } from './local-node-runtime.js';
import { keyNamed, startTestNode } from './node-under-test.js';
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

const limited = { keys: [keyNamed('one', { sessions: 1 })] };

test('http: a session whose creation failed is closed, and its request makes another one', async (context) => {
  let isBroken = true;
  const { client, workspace } = await startTestNode(
    context,
    async (world, folder) => {
      const made = await makeLocalNode(world, folder);
      const state: typeof made.runtime.state = async (sessionId) => {
        if (!isBroken) return made.runtime.state(sessionId);
        isBroken = false;
        throw new Error('the state can not be read');
      };
      return { ...made, runtime: { ...made.runtime, state } };
    },
    limited,
  );
  const create = async (): Promise<number> => {
    const request = { workspace: { folder: workspace } };
    const once = { 'idempotency-key': 'a' };
    return (await client.ask('POST', '/v1/sessions', request, once)).status;
  };
  assert.deepEqual([await create(), await create()], [500, 201]);
  const { sessions = [] } = (await client.ask('GET', '/v1/sessions')).body;
  assert.deepEqual(sessions.map(({ isOpen }) => isOpen).toSorted(), [false, true]);
});

test('http: a session that an input opens again right after its close counts for the limit', async (context) => {
  const gates = new Map<string, () => void>();
  const pass = (name: string): Promise<void> => new Promise((resolve) => gates.set(name, resolve));
  const reach = (name: string): Promise<boolean> => until(name, () => gates.has(name));
  const { client, workspace } = await startTestNode(
    context,
    async (world, folder) => {
      const made = await makeLocalNode(world, folder);
      const close: typeof made.runtime.close = async (sessionId) => {
        if (!gates.has('close')) await pass('close');
        await made.runtime.close(sessionId);
      };
      const open: typeof made.runtime.open = async (...session) => {
        await pass('open');
        await made.runtime.open(...session);
      };
      return { ...made, runtime: { ...made.runtime, close, open } };
    },
    limited,
  );
  const id = await client.create(workspace);
  const closing = client.ask('POST', `/v1/sessions/${id}/close`);
  await reach('close');
  const sending = client.send(id, { text: 'hi' });
  assert.equal((await client.describe(id)).isOpen, true); // the input, which came before, waits
  gates.get('close')?.();
  assert.equal((await closing).status, 200);
  await reach('open');
  const other = await client.ask('POST', '/v1/sessions', { workspace: { folder: workspace } });
  assert.deepEqual([other.status, other.body.error?.code], [429, 'tooManySessions']);
  gates.get('open')?.();
  await sending;
});
