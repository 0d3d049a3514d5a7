import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { NodeClient } from '../../../../test/kit/serve/node-client.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { runInProcess } from './in-process.js';
import { expectCode, startPawl } from './pawl.js';
import { attackEverywhere, makeTenants, tokenOf } from './tenant-attacks.js';

/** Two tenants of a node attack each other; what is theirs works. With the real program, git and sandbox. */

test("two tenants can do nothing with what is the other one's, and everything with their own", async (t) => {
  const tenants = await makeTenants(t);
  const { place, keys, file, writeKeys } = tenants;
  const running = startPawl(place, ['serve', '--port', '0', '--keys', file], null);
  atEnd(t, () => void running.child.kill('SIGKILL'));
  const address = await until(
    () => `the address: ${running.stderr()}`,
    () => /at (\S+)\. Every/.exec(running.stderr())?.[1],
  );
  const clientOf = (name: string): NodeClient => new NodeClient(address, tokenOf(name));
  const { victim, attacker, id, before, ownId, inside } = await attackEverywhere(tenants, [
    clientOf,
  ]);
  const journal = join(place.state, 'pawl', 'sessions', `${ownId}.jsonl`);
  const header = JSON.parse(readFileSync(journal, 'utf8').split('\n')[0] ?? '');
  assert.equal(header.settings.limits.usd, 2);

  const { text: figures } = await clientOf('operator').ask('GET', '/metrics');
  assert.match(figures, /gen_ai_client_token_usage_total\{pawl_key="first",.*"output"\} 5\n/);
  assert.match(figures, /pawl_tool_calls_total\{pawl_key="second",status="ok"\} 1\n/);

  const log = join(place.state, 'pawl', 'serve', 'audit.jsonl');
  assert.equal(statSync(log).mode & 0o777, 0o600);
  const lines = readFileSync(log, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const actions = (key: string): readonly string[] => [
    ...new Set(lines.filter((line) => line.key === key).map(({ action }) => action)),
  ];
  assert.deepEqual(actions('first'), ['create', 'input']);
  assert.deepEqual(actions('second').toSorted(), [
    ...['approval', 'close', 'create', 'fork', 'input', 'move', 'own', 'settings'],
  ]);
  const asked = lines.filter(({ action }) => action !== undefined);
  const answers = new Map(lines.flatMap((line) => (line.status ? [[line.id, line.status]] : [])));
  assert.equal(
    asked.every((line) => answers.has(line.id)),
    true,
    'each has its answer',
  );
  assert.doesNotMatch(readFileSync(log, 'utf8'), /look around|the-token-of/);

  // a file that can't be used changes nothing; without the key its access ends at once
  writeKeys('{ "keys": [');
  await until('the node says so', () => /The keys stay as they were/.test(running.stderr()));
  assert.equal((await attacker.describe(inside)).isOpen, true);
  const open = await attacker.events(inside);
  await open.until('that it has caught up', ({ event }) => event === 'state');
  writeKeys(JSON.stringify({ keys: keys.filter(({ name }) => name !== 'second') }));
  await open.over();
  assert.equal(open.messages.at(-1)?.content.reason, 'revoked');
  assert.equal((await attacker.ask('GET', '/v1/sessions')).status, 401);
  assert.equal((await victim.describe(id)).isOpen, true);
  await until('the log tells of the keys', () => /"action":"keys"/.test(readFileSync(log, 'utf8')));
  // nothing is done that the log can't tell
  rmSync(log);
  mkdirSync(log);
  const silent = await victim.ask('POST', `/v1/sessions/${id}/inputs`, { text: 'more' });
  assert.deepEqual([silent.status, silent.body.error?.code], [503, 'unavailable']);
  assert.deepEqual((await victim.describe(id)).seq, before.seq);
  running.child.kill('SIGTERM');
  assert.equal((await running.ended).code, 0, running.stderr());
  const words = ['serve', '--keys', file, '--sandbox', 'off'];
  const unfenced = await runInProcess(place, words);
  expectCode(unfenced, 78);
  assert.match(unfenced.stderr, /without a sandbox commands see all of them/);
});
