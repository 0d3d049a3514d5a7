import '../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import http, { type ServerResponse } from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import { MODEL_ID, storySettings } from '../../../test/contract/play-story.js';
import { temporaryFolder } from '../../../test/temporary-folder.js';
import { NodeMetrics } from '../src/metrics.js';
import type { NodeRuntime } from '../src/node-runtime.js';
import { defaultStreamLimits, EventStream, OpenSessions } from '../src/open-sessions.js';
import { makeLocalNode } from './local-node-runtime.js';

/** A node lets go of sessions that go on without it: a session that rests costs it nothing. */

const wishIn = (workspace: string) =>
  ({ workspace, key: 'one', preset: null, model: null, limits: {} }) as const;

const followed = (runtime: NodeRuntime): OpenSessions =>
  new OpenSessions({
    runtime,
    metrics: new NodeMetrics(),
    findKeyName: async () => 'one',
    report: (fault) => assert.fail(fault),
  });

const input = (text: string) => ({ type: 'UserInput', text, mode: 'steer' }) as const;

test('a session that rests and that nobody reads is left, and followed again when it is used', async (context) => {
  const folder = temporaryFolder(context, 'left');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const rules = [
    { when: '^wait', text: 'Waiting', stall: true },
    { when: '', text: 'Fine.' },
  ];
  const model = scriptedModel({ replies: [], rules }, { id: MODEL_ID });
  const made = await makeLocalNode(
    { model, tools: [], hooks: null, settingsFor: storySettings },
    folder,
  );
  const watching: string[] = [];
  const runtime: typeof made.runtime = {
    ...made.runtime,
    endsWithNode: false,
    open: async () => undefined, // none of them was closed
    watch(sessionId, watcher) {
      watching.push(sessionId);
      const unwatch = made.runtime.watch(sessionId, watcher);
      return () => {
        watching.splice(watching.indexOf(sessionId), 1);
        unwatch();
      };
    },
  };
  const open = followed(runtime);
  const [resting, running, read] = await Promise.all(
    Array.from({ length: 3 }, () => runtime.create(wishIn(workspace))),
  );
  assert.ok(resting !== undefined && running !== undefined && read !== undefined);
  for (const id of [resting, running, read]) await open.attend(id);
  const leave = open.feed(read)?.join({ offer: () => undefined, end: () => undefined });
  await runtime.send(running, input('wait'));
  open.sweep();
  assert.deepEqual(open.ids().toSorted(), [resting, running, read].toSorted());
  open.sweep();
  assert.deepEqual(open.ids().toSorted(), [running, read].toSorted());
  assert.deepEqual(watching.toSorted(), [running, read].toSorted());

  leave?.();
  open.sweep();
  await open.open(read, 'one'); // it is used, so it is not left with the next sweep
  open.sweep();
  assert.ok(open.ids().includes(read));
  open.sweep();
  assert.deepEqual(open.ids(), [running]);

  // a reader that has gone before its stream begins holds nothing
  const outgoing = { destroyed: true } as ServerResponse; // all that is asked of it
  const source = {
    feed: open.feed(running),
    lastSeq: 0,
    read: (from: number) => runtime.read(running, from),
  };
  assert.equal(await new EventStream(outgoing, source, 0, defaultStreamLimits).run(), 'gone');

  const again = await open.open(resting, 'one');
  await runtime.send(resting, input('hi'));
  await again.rest();
  assert.equal(again.status.state, 'WaitingForUserInput');
  for (const id of [resting, running, read]) await runtime.close(id);
});

test('a session of this process that rests is closed until it is used; one with a job, and one that is read, is not', async (context) => {
  const folder = temporaryFolder(context, 'rests');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const model = scriptedModel(
    { replies: [], rules: [{ when: '', text: 'Fine.' }] },
    { id: MODEL_ID },
  );
  const made = await makeLocalNode(
    { model, tools: [], hooks: null, settingsFor: storySettings },
    folder,
  );
  const working = new Set<string>();
  const runtime = { ...made.runtime, mayRest: (id: string) => !working.has(id) };
  const open = followed(runtime);
  const [resting, read, busy] = await Promise.all(
    Array.from({ length: 3 }, () => runtime.create(wishIn(workspace))),
  );
  assert.ok(resting !== undefined && read !== undefined && busy !== undefined);
  working.add(busy);
  const feeds = [];
  for (const id of [resting, read, busy]) feeds.push(await open.attend(id));
  open.feed(read)?.join({ offer: () => undefined, end: () => undefined });
  open.sweep();
  open.sweep();
  // an input that comes at this moment waits for the end, and opens it again
  await open.open(resting, 'one');
  assert.equal(await feeds[0]?.ended, null);
  await runtime.send(resting, input('hi'));
  await open.feed(resting)?.rest();
  assert.equal(open.feed(resting)?.status.state, 'WaitingForUserInput');
  for (const id of [resting, read, busy]) assert.ok(open.ids().includes(id));
  for (const id of [resting, read, busy]) await runtime.close(id);
});

test('a piece of a reply comes after the entry that it follows, however long that takes to be read', async (context) => {
  const folder = temporaryFolder(context, 'held');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const reply = 'a b c d e f g h';
  const model = scriptedModel(
    { replies: [], rules: [{ when: '', text: reply, delayMs: 1 }] },
    { id: MODEL_ID },
  );
  const made = await makeLocalNode(
    { model, tools: [], hooks: null, settingsFor: storySettings },
    folder,
  );
  let isReplied = (): void => undefined;
  const replied = new Promise<void>((resolve) => {
    isReplied = resolve;
  });
  const stepped: string[] = [];
  const runtime: typeof made.runtime = {
    ...made.runtime,
    watch: (sessionId, watcher) =>
      made.runtime.watch(sessionId, (step) => {
        stepped.push(step.seq === null ? 'delta' : String(step.seq));
        watcher(step);
        if (step.event.type === 'LlmCompleted') isReplied();
      }),
    // The reader of the entries gets none before the whole reply is there.
    async *read(sessionId, from) {
      for await (const entry of made.runtime.read(sessionId, from)) {
        await replied;
        yield entry;
      }
    },
  };
  const open = followed(runtime);
  const id = await runtime.create(wishIn(workspace));
  await open.attend(id);
  const feed = open.feed(id);
  assert.ok(feed !== null);
  const offered: string[] = [];
  let text = '';
  feed.join({
    offer({ seq, text: message }) {
      if (seq !== null) return void offered.push(String(seq));
      const [, data] = /^event: delta\ndata: (.*)\n/.exec(message) ?? [];
      if (data === undefined) return;
      offered.push('delta');
      text += JSON.parse(data).text;
    },
    end: () => undefined,
  });
  await runtime.send(id, input('hi'));
  await replied;
  assert.equal(feed.pending, null, 'what has no entry yet belongs after one that was not offered');
  await runtime.close(id);
  await feed.ended;
  assert.equal(text, reply);
  assert.deepEqual(offered, stepped);
});

test('a step that comes while a feed begins is in its state', async (context) => {
  const folder = temporaryFolder(context, 'begins');
  const workspace = path.join(folder, 'work');
  mkdirSync(workspace);
  const rules = [{ when: '', text: 'Waiting', stall: true }];
  const model = scriptedModel({ replies: [], rules }, { id: MODEL_ID });
  const made = await makeLocalNode(
    { model, tools: [], hooks: null, settingsFor: storySettings },
    folder,
  );
  const state: typeof made.runtime.state = async (sessionId) => {
    const now = await made.runtime.state(sessionId);
    await made.runtime.send(sessionId, input('hi'));
    return now;
  };
  const id = await made.runtime.create(wishIn(workspace));
  const feed = await followed({ ...made.runtime, state }).attend(id);
  assert.equal(feed.isBusy, true);
  await made.runtime.close(id);
});

test('a client that left before its stream begins is noticed', async (context) => {
  const outgoing = await new Promise<http.ServerResponse>((resolve) => {
    const server = http.createServer((_, response) => {
      response.once('close', () => resolve(response));
      client.destroy();
    });
    context.after(() => server.close());
    const client = new net.Socket();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo; // a server that listens at a port
      client.connect(port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'));
    });
  });
  const read = async function* () {
    yield* [];
  };
  const source = { feed: null, lastSeq: 0, read };
  assert.equal(await new EventStream(outgoing, source, 0, defaultStreamLimits).run(), 'gone');
});
