import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import {
  attackEverywhere,
  makeTenants,
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
import { type Ports, startServedNode } from './served-node.js';

/** Tenants of two nodes on the engine: one bill, one count, and nothing of the other one. */

const scope = { after: (hook: () => void) => after(hook) };
const { engine } = await startTestEngine(scope);
const program = await installPawl(temporaryFolder(scope, 'installed'));

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
  const startNode = async (index: 0 | 1) => {
    const parts = { place: tenants.place, program, engine };
    const reached = { ports, nodesPort: balancer.port };
    const keys = ['--keys', tenants.file];
    const { address } = await startServedNode(scope, parts, index, reached, keys);
    return (name: string) => new NodeClient(address, tokenOf(name));
  };
  const [one, other] = [await startNode(0), await startNode(1)];

  // the first node has the session, and each of them is asked for it
  const attacked = await attackEverywhere(tenants, [one, other]);
  const [here, there] = [one('first'), other('first')];
  const second = await there.create(tenants.first.folder);
  // both nodes follow the session, and one takes inputs of the other one's
  const readers = [await here.events(second), await there.events(second)];
  const seq = await here.send(second, { text: 'hello' });
  for (const reader of readers) await reader.untilRestAfter(seq);
  const operators = [one('operator'), other('operator')];
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
