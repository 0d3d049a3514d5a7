import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { makeServed } from '../../packages/pawl/test/e2e/pawl.js';
import { call, last, message, text } from '../../packages/pawl/test/e2e/wire-words.js';
import { isEntry, NodeClient, type StreamedMessage } from '../../test/kit/serve/node-client.js';
import { atEnd, temporaryFolder } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import { SessionStore, StoredRecords } from '../src/session-store.js';
import { startBalancer } from './cluster/balancer.js';
import { startTestEngine } from './engine-under-test.js';
import { freeFirstPort } from './free-first-port.js';
import { installPawl } from './installed-pawl.js';
import { type Ports, startServedNode } from './served-node.js';

/** Several nodes by the command `pawl serve`: the real program, the real engine, SIGKILL. */

const scope = { after: (hook: () => void) => after(hook) };
const TOKEN = 'the-token-of-this-test';
const { engine } = await startTestEngine(scope);
const program = installPawl(temporaryFolder(scope, 'installed'));

const git = (folder: string, ...words: readonly string[]): void => {
  const own = [
    '-c',
    'user.name=Test',
    '-c',
    'user.email=test@example.com',
    '-c',
    'init.defaultBranch=main',
  ];
  const { status, stderr } = spawnSync('git', [...own, ...words], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
};

const makeRepository = (folder: string): string => {
  const repository = path.join(folder, 'api');
  mkdirSync(repository);
  git(repository, 'init', '--quiet');
  writeFileSync(path.join(repository, 'a.txt'), 'one\n');
  git(repository, 'add', '.');
  git(repository, 'commit', '--quiet', '-m', 'first');
  return repository;
};

type Approval = { readonly batchId: string; readonly callId: string };

const waitsForAnswer = ({ event, content }: StreamedMessage): boolean =>
  event === 'state' && Array.isArray(content.approvals) && content.approvals.length > 0;

/** Resolves when a node has nothing to do any more. */
const untilDone = (service: string): Promise<boolean> => {
  const query = `select target from sys_invocation where target_service_name = '${service}' and status <> 'completed'`;
  return until('nothing is left', async () => (await engine.query(query)).length === 0);
};

test('before all nodes have this version, records are unavailable in words', async () => {
  const records = new StoredRecords(new SessionStore(engine.ingressUrl));
  await assert.rejects(records.countOpen('one'), { status: 503, message: /Update the others/ });
});

test('a session whose node was killed says so on another node, is moved there, and goes on', async (t) => {
  const place = await makeServed(
    t,
    [
      message(call('c1', 'write', { path: 'notes.txt', content: 'not committed\n' })),
      message(call('c2', 'bash', { command: 'touch ../ran', needs: 'outside' })),
      message(call('c3', 'bash', { command: 'ls; cat a.txt' })),
      message(text('I am on the other node.')),
    ],
    { PAWL_SERVE_TOKEN: TOKEN, PAWL_NODE_TOKEN: 'the-secret-of-all-nodes' },
  );
  makeRepository(place.folder);
  const ports: Ports = [await freeFirstPort(), await freeFirstPort()];
  const nodes = await startBalancer(ports);
  atEnd(scope, () => nodes.close());
  const startNode = async (index: 0 | 1) => {
    const repository = ['--repository', `api=${path.join(place.folder, 'api')}`];
    const reached = { ports, nodesPort: nodes.port };
    const parts = { place, program, engine };
    const { running, address } = await startServedNode(scope, parts, index, reached, repository);
    return { running, client: new NodeClient(address, TOKEN) };
  };
  const first = await startNode(0);
  const second = await startNode(1);

  const workspace = { repository: 'api', commit: 'main' };
  const created = await first.client.ask('POST', '/v1/sessions', { workspace });
  assert.equal(created.status, 201, created.text);
  const id = created.body.sessionId ?? '';
  const worktree = String(created.body.workspace?.path);

  // Another node has the session too: its list, its events, its inputs.
  const listed = await second.client.ask('GET', '/v1/sessions');
  assert.deepEqual(
    listed.body.sessions?.map(({ sessionId }) => sessionId),
    [id],
  );
  const reader = await second.client.events(id);
  await second.client.send(id, { text: 'work' });
  const { content } = await reader.until('the question', waitsForAnswer);
  const [approval] = content.approvals as readonly Approval[]; // as the node writes it
  assert.ok(approval);
  const early = await second.client.ask('POST', `/v1/sessions/${id}/move`);
  assert.deepEqual([early.status, early.body.error?.code], [409, 'conflict'], early.text);
  assert.match(early.body.error?.message ?? '', /is on the node n0, which answers/);
  assert.deepEqual([(await second.client.describe(id)).workspace?.isPresent], [true]);

  first.running.child.kill('SIGKILL');
  await first.running.ended;
  const { batchId, callId } = approval;
  const answer = {
    type: 'ApprovalAnswered',
    batchId,
    callId,
    answer: { kind: 'allow' },
    scope: 'once',
  };
  await second.client.send(id, answer);
  await reader.until(
    'word that the node is gone',
    ({ event, content }) =>
      event === 'delta' && /node n0 .* does not answer/.test(JSON.stringify(content)),
  );
  const { workspace: gone } = await second.client.describe(id);
  assert.deepEqual([gone?.node, gone?.isPresent], ['n0', false]);
  rmSync(worktree, { recursive: true }); // as on another computer

  const moved = await second.client.ask('POST', `/v1/sessions/${id}/move`);
  assert.equal(moved.status, 200, moved.text);
  assert.deepEqual(moved.body.lost, ['notes.txt']);
  assert.match(moved.body.notice ?? '', /- notes\.txt\n.*these commands.*\n- touch \.\.\/ran /);
  assert.equal(readFileSync(path.join(worktree, 'a.txt'), 'utf8'), 'one\n');
  const seq = await second.client.send(id, { text: 'go on' });
  const going = await second.client.events(id, seq - 1);
  await going.untilRestAfter(seq);
  assert.match(
    JSON.stringify(last(place.server.requests[2]?.body)),
    /The workspace was lost.*notes\.txt.*go on/,
  );
  const outcomes = going.entries.flatMap(({ event }) =>
    event.type === 'ToolCompleted' ? [event.outcome.text] : [],
  );
  assert.equal(outcomes.length, 1);
  assert.match(outcomes[0] ?? '', /^a\.txt\none\n/);

  // The node that comes back does nothing of what was left to it.
  const third = await startNode(0);
  const { workspace: here } = await third.client.describe(id);
  assert.deepEqual([here?.node, here?.isPresent], ['n1', true]);
  await untilDone('Tools-n0');
  assert.equal(existsSync(path.join(worktree, '..', 'ran')), false);
  const entries = await third.client.events(id);
  await entries.until(
    'the last entry',
    (one) => isEntry('LlmCompleted')(one) && JSON.stringify(one).includes('other node'),
  );
  const calls = entries.entries.filter(({ event }) => event.type === 'ToolStarted').length;
  assert.equal(calls, 3);
  assert.equal(place.server.requests.length, 4);
  for (const { running, client } of [second, third]) {
    if (client === second.client)
      assert.equal((await client.ask('POST', `/v1/sessions/${id}/close`)).status, 200);
    running.child.kill('SIGTERM');
    assert.equal((await running.ended).code, 0, running.stderr());
  }
});
