import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { after, test } from 'node:test';
import * as restate from '@restatedev/restate-sdk';
import type { NodeSessionRecord, RecordStore } from 'pawl/engine';
import { scriptedModel } from '../../packages/agent/src/models/scripted-model.js';
import { openRecords } from '../../packages/serve/src/node-runtime.js';
import { httpChecks } from '../../packages/serve/test/http-checks.js';
import { keyNamed, startTestNode } from '../../packages/serve/test/node-under-test.js';
import { streamChecks } from '../../packages/serve/test/stream-checks.js';
import { MODEL_ID, storySettings } from '../../test/contract/play-story.js';
import { atEnd, type TestScope, temporaryFolder } from '../../test/temporary-folder.js';
import { register } from '../src/registration.js';
import { allShards, findShard } from '../src/session-records.js';
import { SessionStore, StoredRecords } from '../src/session-store.js';
import { engineUnderTest } from './engine-under-test.js';

/** The HTTP API of a node, over the engine: the same checks as over the runtime inside one process. */

const engine = await engineUnderTest({ after: (hook) => after(hook) });

/** The value of each session in its shard: all that an engine of an earlier version has of a record. */
const storeAsBefore = async (records: readonly NodeSessionRecord[]): Promise<void> => {
  for (const object_key of allShards) {
    const own = records.filter(({ sessionId }) => findShard(sessionId) === object_key);
    const values = own.map((record) => [record.sessionId, JSON.stringify(record)] as const);
    const new_state = Object.fromEntries(
      [...values, ['of-another-program', '7'] as const].map(([name, value]) => [
        name,
        [...Buffer.from(value)],
      ]),
    );
    const response = await fetch(`${engine.engine.adminUrl}/services/SessionMetadata/state`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ object_key, new_state }),
    });
    assert.ok(response.ok, await response.text());
  }
};

/** A version that sorts no records by key is in charge, and puts these. */
const putByEarlierVersion = async (
  scope: TestScope,
  records: readonly NodeSessionRecord[],
): Promise<void> => {
  const put = async (ctx: restate.ObjectContext, { sessionId, value }: Put): Promise<void> =>
    ctx.set(sessionId, value);
  const services = [
    restate.object({ name: 'SessionMetadata', handlers: { put } }),
    restate.object({ name: 'Session', handlers: { session: async () => null } }),
  ];
  const server = createServer(restate.createEndpointHandler({ services }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(scope, () => void server.close());
  const { port } = server.address() as AddressInfo; // it listens on a port
  await register(engine.engine.adminUrl, `http://127.0.0.1:${port}/earlier`, true);
  const store = new SessionStore(engine.engine.ingressUrl);
  for (const value of records) {
    const { sessionId } = value;
    const call = { service: 'SessionMetadata', handler: 'put', key: findShard(sessionId) };
    await store.call({ ...call, parameter: { sessionId, value }, once: true });
  }
};
type Put = { readonly sessionId: string; readonly value: unknown };

const recordOf = (number: number, more: Partial<NodeSessionRecord> = {}): NodeSessionRecord => ({
  version: 1,
  sessionId: `20260101-000000-${String(number).padStart(8, '0')}`,
  key: number % 3 === 0 ? 'other' : 'one',
  workspace:
    number % 10 === 0
      ? { kind: 'folder', path: '/srv' }
      : {
          kind: 'worktree',
          path: `/tree-${number % 7}`,
          repository: 'r',
          commit: 'c',
          state: 'present',
        },
  isOpen: number % 5 === 0,
  notice: '',
  ...(number % 4 === 0 ? { requestId: `request-${number}` } : {}),
  ...more,
});

/** The answers to the questions of a node, of one key. */
const answersOf = async (records: RecordStore, key: string): Promise<object> => {
  const pages: (readonly string[])[] = [];
  for (let before: string | null = null; pages.at(-1)?.length !== 0; ) {
    const page: readonly NodeSessionRecord[] = await records.ofKey(key, before, 25);
    pages.push(page.map(({ sessionId }) => sessionId));
    before = page.at(-1)?.sessionId ?? before;
  }
  const trees = await records.inWorktree(key, '/tree-4');
  return {
    pages,
    below: (await records.ofKey(key, '20260101-000000-00000050x', 3)).map(
      ({ sessionId }) => sessionId,
    ),
    open: await records.countOpen(key),
    trees: trees.map(({ sessionId }) => sessionId).sort(),
    created: [
      (await records.createdBy(key, 'request-4'))?.sessionId,
      await records.createdBy(key, 'request-5'),
      await records.createdBy(key, 'request-16'),
    ],
    changed: await records.get(recordOf(8).sessionId),
  };
};

test('records by key answer as those on files, also of an engine that had them by session only', async (context) => {
  const before = Array.from({ length: 130 }, (_, number) => recordOf(number + 1));
  await storeAsBefore(before);
  const onEngine = new StoredRecords(new SessionStore(engine.engine.ingressUrl));
  const onFiles = await openRecords(temporaryFolder(context, 'records'), assert.fail);
  for (const record of before) await onFiles.put(record);
  const later = Array.from({ length: 40 }, (_, number) => recordOf(number + 131));
  const { requestId: _, ...unnamed } = recordOf(16);
  const others = [recordOf(8, { isOpen: true, notice: 'moved' }), recordOf(10, { isOpen: false })];
  const changed = [...others, unnamed];
  for (const store of [onEngine, onFiles])
    for (const record of [...later, ...changed]) await store.put(record);
  for (const key of ['one', 'other', 'nobody'])
    assert.deepEqual(await answersOf(onEngine, key), await answersOf(onFiles, key));
  assert.equal((await onEngine.ofKey('one', null, 200)).length, 114);
  // another process sorts nothing again
  const other = new StoredRecords(new SessionStore(engine.engine.ingressUrl));
  assert.deepEqual(await answersOf(other, 'one'), await answersOf(onFiles, 'one'));

  // after a roll back and an update the lists have what the earlier version made and changed
  const meanwhile = [recordOf(200), recordOf(202), recordOf(170, { isOpen: false })];
  await putByEarlierVersion(context, meanwhile);
  for (const record of meanwhile) await onFiles.put(record);
  await engine.takeCharge();
  const updated = new StoredRecords(new SessionStore(engine.engine.ingressUrl));
  for (const key of ['one', 'other'])
    assert.deepEqual(await answersOf(updated, key), await answersOf(onFiles, key));
});

for (const check of [...httpChecks, ...streamChecks])
  test(`http: ${check.name}`, (context) => check.run(context, engine.makeNode));

test('whose session it is is durable before the engine has the session', async (context) => {
  const recorded: string[] = [];
  const { client, workspace } = await startTestNode(context, async (world, folder) => {
    const { runtime, stop } = await engine.makeNode(world, folder);
    const create: typeof runtime.create = (wish, record) =>
      runtime.create(wish, async (id) => {
        await assert.rejects(runtime.state(id), /there is no session/);
        await record?.(id);
        if (record !== undefined) recorded.push(id);
      });
    return { runtime: { ...runtime, create }, stop };
  });
  assert.deepEqual([await client.create(workspace)], recorded);
});

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
