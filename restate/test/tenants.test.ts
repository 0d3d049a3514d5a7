import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { makeServed, uniqueSleep } from '../../packages/pawl/test/e2e/pawl.js';
import {
  attackEverywhere,
  makeTenants,
  type Tenants,
  tokenOf,
} from '../../packages/pawl/test/e2e/tenant-attacks.js';
import { call, done, message, text } from '../../packages/pawl/test/e2e/wire-words.js';
import { NodeClient } from '../../test/kit/serve/node-client.js';
import { atEnd, temporaryFolder } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import { findShard } from '../src/session-records.js';
import { SessionStore } from '../src/session-store.js';
import { startBalancer } from './cluster/balancer.js';
import { startTestEngine } from './engine-under-test.js';
import { freeFirstPort } from './free-first-port.js';
import { installPawl } from './installed-pawl.js';
import { type Ports, startServedNode } from './served-node.js';

/** Tenants of two nodes on the engine: one bill, one count, and nothing of the other one. */

const scope = { after: (hook: () => void) => after(hook) };
const { engine } = await startTestEngine(scope);
const program = await installPawl(temporaryFolder(scope, 'installed'));

/** A node of these tenants, and the clients of its keys. */
const startNode = async (
  { place, file }: Pick<Tenants, 'place' | 'file'>,
  index: 0 | 1,
  reached: Parameters<typeof startServedNode>[3],
  more: readonly string[] = [],
) => {
  const words = ['--keys', file, ...more];
  const parts = { place, program, engine };
  const { running, address } = await startServedNode(scope, parts, index, reached, words);
  return { running, clientOf: (name: string) => new NodeClient(address, tokenOf(name)) };
};

/** All figures of one name and key, over the nodes. */
const total = async (nodes: readonly NodeClient[], pattern: RegExp): Promise<number> => {
  const texts = await Promise.all(nodes.map((node) => node.ask('GET', '/metrics')));
  return texts
    .flatMap(({ text: figures }) => [...figures.matchAll(pattern)])
    .reduce((sum, [, value]) => sum + Number(value), 0);
};

test('tenants of two nodes see nothing of each other, and their money and figures count once', async (t) => {
  // ten cents an answer; the day has 21, and a request needs more than one set aside
  const usage = { input_tokens: 10, output_tokens: 10_000 };
  const answer = { type: 'message', parts: [text('Fine.')], usage } as const;
  const secret = { PAWL_NODE_TOKEN: 'the-secret-of-all-nodes' };
  const tenants = await makeTenants(t, answer, { usdPerDay: 0.21 }, secret);
  const ports: Ports = [await freeFirstPort(), await freeFirstPort()];
  const balancer = await startBalancer(ports);
  atEnd(scope, () => balancer.close());
  const reached = { ports, nodesPort: balancer.port };
  const [one, other] = [await startNode(tenants, 0, reached), await startNode(tenants, 1, reached)];

  // the first node has the session, and each of them is asked for it
  const attacked = await attackEverywhere(tenants, [one.clientOf, other.clientOf]);
  const [here, there] = [one.clientOf('first'), other.clientOf('first')];
  const second = await there.create(tenants.first.folder);
  // both nodes follow the session, and one takes inputs of the other one's
  const readers = [await here.events(second), await there.events(second)];
  const seq = await here.send(second, { text: 'hello' });
  for (const reader of readers) await reader.untilRestAfter(seq);
  const operators = [one.clientOf('operator'), other.clientOf('operator')];
  const output = /^gen_ai_client_token_usage_total\{pawl_key="first",.*"output"\} (\S+)$/gm;
  await until('both are counted', async () => (await total(operators, output)) >= 20_000);
  assert.equal(await total(operators, output), 20_000);
  assert.equal(await total(operators, /^pawl_turns_total\{pawl_key="first",.*\} (\S+)$/gm), 2);

  const spent = /could cost \$0\.\d+, and \$0\.2000 of its \$0\.2100 of this day is used/;
  for (const [client, id] of [
    [there, attacked.id],
    [here, second],
  ] as const) {
    const refused = await client.ask('POST', `/v1/sessions/${id}/inputs`, { text: 'more' });
    assert.equal(refused.status, 429, refused.text);
    assert.match(refused.text, spent);
  }
  assert.equal(tenants.place.server.requests.length, 4); // two of them by who looks around
  const log = readFileSync(path.join(tenants.place.state, 'pawl', 'serve', 'audit.jsonl'), 'utf8');
  assert.match(log, new RegExp(`"key":"second","action":"fork","sessionId":"${attacked.id}"`));
});

/** Puts other values into the engine in place of records of sessions; undefined removes one. */
const forgeRecords = async (forged: Readonly<Record<string, unknown>>): Promise<void> => {
  for (const [sessionId, record] of Object.entries(forged)) {
    const shard = findShard(sessionId);
    const query = `select key, value_utf8 from state where service_name = 'SessionMetadata' and service_key = '${shard}'`;
    const rows = await engine.query(query);
    const others = rows.filter(({ key }) => key !== sessionId);
    const values = others.map((row) => [String(row.key), String(row.value_utf8)] as const);
    if (record !== undefined) values.push([sessionId, JSON.stringify(record)]);
    const new_state = Object.fromEntries(
      values.map(([key, value]) => [key, [...Buffer.from(value)]]),
    );
    const response = await fetch(`${engine.adminUrl}/services/SessionMetadata/state`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ object_key: shard, new_state }),
    });
    assert.ok(response.ok, await response.text());
  }
};

test('a session of which nobody knows whose it is does nothing more, also what it had begun', async (t) => {
  const sleep = uniqueSleep(t);
  const place = await makeServed(
    t,
    (body) =>
      JSON.stringify(body).includes('begin the long command')
        ? message(call('c1', 'bash', { command: `touch begun; sleep ${sleep}` }))
        : done,
    { PAWL_NODE_TOKEN: 'the-secret-of-all-nodes' },
  );
  const work = path.join(place.folder, 'work-of-all');
  mkdirSync(work);
  const file = path.join(place.folder, 'keys.json');
  const write = (...names: readonly string[]): void => {
    const keys = names.map((name) => ({ name, token: tokenOf(name) }));
    writeFileSync(file, JSON.stringify({ keys }), { mode: 0o600 });
  };
  write('kept', 'before', 'gone');
  const ports: Ports = [await freeFirstPort(), await freeFirstPort()];
  const balancer = await startBalancer(ports);
  atEnd(scope, () => balancer.close());
  const reached = { ports, nodesPort: balancer.port };
  const serve = () => startNode({ place, file }, 0, reached, ['--folder', work]);
  const first = await serve();
  const kept = first.clientOf('kept');
  const control = await kept.create(work);
  const [removed, half, foreign] = [
    await kept.create(work),
    await kept.create(work),
    await kept.create(work),
  ];
  const [renamed, gone] = [
    await first.clientOf('before').create(work),
    await first.clientOf('gone').create(work),
  ];
  await kept.send(removed, { text: 'begin the long command' });
  await until('the command runs', () => existsSync(path.join(work, 'begun')));
  first.running.child.kill('SIGKILL');
  await first.running.ended;
  write('kept', 'after');
  await forgeRecords({
    [removed]: undefined,
    [half]: { version: 1, sessionId: half, key: 'kept' },
    [foreign]: { version: 1, sessionId: foreign, key: 7, workspace: 'x', isOpen: true, notice: '' },
  });
  const requests = place.server.requests.length;
  const second = await serve();
  const store = new SessionStore(engine.ingressUrl);
  const input = { type: 'UserInput', text: 'hello', mode: 'steer' } as const;
  const failures = async (sessionId: string): Promise<string> => {
    let failed = '';
    for await (const { event } of store.entries(sessionId, 1)) {
      if (event.type === 'ToolCompleted')
        failed += `${event.outcome.status}: ${event.outcome.text}`;
      if (event.type === 'LlmFailed') failed += event.error.message;
    }
    return failed;
  };
  for (const [sessionId, why] of [
    [removed, /^lost: it may have been begun.*nobody knows whose session.*nobody knows whose/s],
    [half, /nobody knows whose session/],
    [foreign, /nobody knows whose session/],
    [renamed, /The key before of the session is not among those of this node/],
    [gone, /The key gone of the session is not among those of this node/],
  ] as const) {
    if (sessionId !== removed) await store.input(sessionId, [input]);
    await until('the request is refused', async () => why.test(await failures(sessionId)));
  }
  assert.equal(place.server.requests.length, requests);
  const client = second.clientOf('kept');
  const reader = await client.events(control);
  await reader.untilRestAfter(await client.send(control, { text: 'hello' }));
  assert.equal(place.server.requests.length, requests + 1);
});
