import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { start } from '../../packages/pawl/test/e2e/pawl.js';
import {
  attackEverywhere,
  makeTenants,
  type Tenants,
  tokenOf,
} from '../../packages/pawl/test/e2e/tenant-attacks.js';
import { text } from '../../packages/pawl/test/e2e/wire-words.js';
import { NodeClient } from '../../test/kit/serve/node-client.js';
import { atEnd, temporaryFolder } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import { startBalancer } from './cluster/balancer.js';
import { startTestEngine } from './engine-under-test.js';
import { freeFirstPort } from './free-first-port.js';
import { installPawl } from './installed-pawl.js';

/** Tenants of two nodes on the engine: one bill, one count, and nothing of the other one. */

const scope = { after: (hook: () => void) => after(hook) };
const { engine } = await startTestEngine(scope);
const program = await installPawl(temporaryFolder(scope, 'installed'));

type Ports = readonly [number, number];

const startNode = async (
  { place, file }: Tenants,
  index: 0 | 1,
  ports: Ports,
  nodesPort: number,
) => {
  const peer = ports[1 - index] ?? 0;
  const words = [
    ...['--engine', engine.ingressUrl.replace('http:', 'restate:')],
    ...['--engine-admin', engine.adminUrl, '--node', `n${index}`],
    ...['--node-ports', String(ports[index]), '--nodes', `http://127.0.0.1:${nodesPort}`],
    ...['--peer', `http://127.0.0.1:${peer + 2}`, '--port', '0'],
    ...['--keys', file],
  ];
  const running = start(place, process.execPath, [program, 'serve', ...words], null);
  atEnd(scope, () => void running.child.kill('SIGKILL'));
  const address = await until(
    () => `the address: ${running.stderr()}`,
    () => /at (\S+)\. Every/.exec(running.stderr())?.[1],
  );
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
  const [one, other] = [
    await startNode(tenants, 0, ports, balancer.port),
    await startNode(tenants, 1, ports, balancer.port),
  ];

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
    const reader = await client.events(id);
    await reader.untilRestAfter(await client.send(id, { text: 'more' }));
    assert.match(JSON.stringify(await client.describe(id)), spent);
  }
  assert.equal(tenants.place.server.requests.length, 4); // two of them by who looks around
  const log = readFileSync(path.join(tenants.place.state, 'pawl', 'serve', 'audit.jsonl'), 'utf8');
  assert.match(log, new RegExp(`"key":"second","action":"fork","sessionId":"${attacked.id}"`));
});
