import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { findKey, readKeys } from '@pawl/serve/keys';
import { NodeMetrics } from '@pawl/serve/metrics';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { nodeKeys as readNodeKeys } from '../../src/commands/serve-keys.js';

/** The keys of a node, and the form of its metrics. */

const nodeKeys = (file: string | undefined, variables: NodeJS.ProcessEnv) =>
  readNodeKeys(file, variables, {
    places: { folders: [], repositories: new Map() },
    warn: (text) => assert.fail(text),
  });

const TOKEN = 'a-secret-token-of-a-key';
const keysWith = (...keys: readonly object[]): string => JSON.stringify({ keys });

test('a file of keys is read with its limits, and the token finds its key', () => {
  const read = readKeys(
    keysWith({ name: 'ci', token: TOKEN, sessions: 3 }, { name: 'web', token: `${TOKEN}2` }),
  );
  assert.equal(read.kind, 'ok');
  if (read.kind !== 'ok') return;
  assert.deepEqual(
    read.keys.map(({ name, limits }) => [name, limits.sessions, limits.requestsPerMinute]),
    [
      ['ci', 3, 600],
      ['web', 20, 600],
    ],
  );
  assert.equal(findKey(read.keys, `Bearer ${TOKEN}`)?.name, 'ci');
  assert.equal(findKey(read.keys, `bearer  ${TOKEN}2`)?.name, 'web');
  for (const wrong of [
    undefined,
    '',
    'Bearer ',
    `Basic ${TOKEN}`,
    `Bearer ${TOKEN} x`,
    `Bearer ${TOKEN.slice(1)}`,
  ])
    assert.equal(findKey(read.keys, wrong), null);
});

test('a faulty file of keys is refused with the place, and never with a token', () => {
  const key = { name: 'ci', token: TOKEN };
  const cases: readonly (readonly [string, RegExp])[] = [
    [`{"keys":[{"token":"${TOKEN}`, /it is not JSON/],
    [keysWith(), /keys: must have at least one key/],
    [keysWith({ ...key, token: `${TOKEN} x` }), /keys\.0\.token: must be printable ASCII/],
    [
      keysWith({ ...key, token: TOKEN.slice(0, 15) }),
      /keys\.0\.token: must have at least 16 characters/,
    ],
    [keysWith({ ...key, token: [TOKEN] }), /keys\.0\.token: /],
    [keysWith({ ...key, name: 'a/b' }), /keys\.0\.name: /],
    [keysWith({ ...key, sesions: 4 }), /sesions/],
    [keysWith({ ...key, inputBytes: 99_000_000 }), /inputBytes: must be at most/],
    [keysWith(key, { ...key, token: `${TOKEN}2` }), /two keys have the name ci/],
    [keysWith(key, { ...key, name: 'web' }), /has the token of another key/],
  ];
  for (const [text, why] of cases) {
    const read = readKeys(text);
    assert.match(read.kind === 'invalid' ? read.why : 'ok', why);
    assert.equal(JSON.stringify(read).includes(TOKEN.slice(0, 12)), false, JSON.stringify(read));
  }
});

test('keys come from a file of the user alone, or from a variable, or one is made', (context) => {
  const file = path.join(temporaryFolder(context, 'keys'), 'keys.json');
  writeFileSync(file, keysWith({ name: 'ci', token: TOKEN }), { mode: 0o600 });
  assert.deepEqual(
    nodeKeys(file, {})
      .source.now()
      .map(({ name }) => name),
    ['ci'],
  );
  assert.throws(() => nodeKeys(file, { PAWL_SERVE_TOKEN: TOKEN }), /Give one of them/);
  chmodSync(file, 0o640);
  assert.throws(() => nodeKeys(file, {}), /Others may read .* chmod 600/);
  assert.throws(() => nodeKeys(`${file}x`, {}), /There is no file of keys/);
  assert.throws(() => nodeKeys(path.dirname(file), {}), /not a regular file/);
  const given = nodeKeys(undefined, { PAWL_SERVE_TOKEN: TOKEN });
  assert.deepEqual(
    [given.newToken, findKey(given.source.now(), `Bearer ${TOKEN}`)?.name],
    [null, 'default'],
  );
  assert.throws(() => nodeKeys(undefined, { PAWL_SERVE_TOKEN: 'short' }), /at least 16 characters/);
  const made = nodeKeys(undefined, {});
  assert.equal(findKey(made.source.now(), `Bearer ${made.newToken}`)?.name, 'default');
});

test('metrics are OpenMetrics text: types before samples, escaped labels, growing buckets, an end', () => {
  const metrics = new NodeMetrics();
  metrics.requestEnded('GET', '/v1/sessions', 200, 0.02);
  metrics.requestEnded('GET', '/v1/sessions', 200, 20);
  metrics.streamEnded('a "reason"\nwith \\ more');
  const text = metrics.text({
    sessions: { open: 3, busy: 1 },
    streams: 2,
    bufferedBytes: 7,
    requests: 4,
    residentBytes: 5,
  });
  assert.match(text, /\n# EOF\n$/);
  assert.match(text, /reason="a \\"reason\\"\\nwith \\\\ more"\} 1\n/);
  const buckets = [...text.matchAll(/_bucket\{[^}]*le="([^"]+)"\} (\d+)/g)].map(([, , count]) =>
    Number(count),
  );
  assert.deepEqual(
    buckets,
    buckets.toSorted((a, b) => a - b),
  );
  assert.deepEqual([buckets.at(0), buckets.at(-2), buckets.at(-1)], [0, 1, 2]);
  const declared = new Set<string>();
  for (const line of text.split('\n').slice(0, -2)) {
    const [, type] = /^# TYPE (\S+)/.exec(line) ?? [];
    if (type !== undefined) declared.add(type);
    if (line.startsWith('#')) continue;
    const [, name = ''] = /^([a-z_]+)(\{.*\})? [\d.e+-]+$/.exec(line) ?? [];
    assert.ok(declared.has(name.replace(/_(total|bucket|count|sum)$/, '')), line);
  }
});
