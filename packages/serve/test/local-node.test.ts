import '../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { until } from '../../../test/until.js';
import { openRecords, type RecordStore } from '../src/node-runtime.js';
import { httpChecks } from './http-checks.js';
import { makeLocalNode } from './local-node-runtime.js';
import { keyNamed, type NodeUnderTest, startTestNode } from './node-under-test.js';
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

test('http: two nodes that share their sessions together keep the limit of a key', async (context) => {
  const records = await openRecords(temporaryFolder(context, 'records'), assert.fail);
  let waiting = Number.NEGATIVE_INFINITY;
  const shared: RecordStore = {
    get: (id) => records.get(id),
    put: (record) => records.put(record),
    ofKey: (...page) => records.ofKey(...page),
    inWorktree: (...place) => records.inWorktree(...place),
    createdBy: (...request) => records.createdBy(...request),
    async countOpen(key) {
      const open = await records.countOpen(key);
      waiting -= 1;
      await until('both nodes have counted', () => waiting <= 0);
      return open;
    },
  };
  const nodes = await Promise.all(
    [1, 2].map(() =>
      startTestNode(
        context,
        async (world, folder) => {
          const made = await makeLocalNode(world, folder);
          return { ...made, runtime: { ...made.runtime, records: shared } };
        },
        limited,
      ),
    ),
  );
  const closed: string[] = [];
  for (const { client, workspace } of nodes) {
    const id = await client.create(workspace);
    await client.ask('POST', `/v1/sessions/${id}/close`);
    closed.push(id);
  }
  const ask = {
    send: ({ client }: NodeUnderTest, index: number) =>
      client.ask('POST', `/v1/sessions/${closed[index]}/inputs`, { type: 'CancelTurn' }),
    create: ({ client, workspace }: NodeUnderTest) =>
      client.ask('POST', '/v1/sessions', { workspace: { folder: workspace } }),
  };
  for (const how of ['send', 'create'] as const) {
    waiting = 2;
    const answers = await Promise.all(nodes.map(ask[how]));
    const statuses = answers.map(({ status }) => status);
    assert.ok(statuses.includes(429), `${how}: ${statuses}`);
    assert.ok((await records.countOpen('one')) <= 1, how);
    for (const [index, { client }] of nodes.entries())
      await client.ask('POST', `/v1/sessions/${closed[index]}/close`);
  }
});
