import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import { findKey, readKeys } from '@pawl/serve/keys';
import { NodeMetrics } from '@pawl/serve/metrics';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { clientKeyFlags, nodeKeys as readNodeKeys } from '../../src/commands/serve-keys.js';

/** The keys of a node, and the form of its metrics. */

const nodePlaces = { folders: [], repositories: new Map<string, string>() };
const noSpending = { charge: () => assert.fail('nothing is asked') };
const nodeKeys = (
  file: string | undefined,
  variables: NodeJS.ProcessEnv,
  warn: (text: string) => void = assert.fail,
  check: Parameters<typeof readNodeKeys>[2]['check'] = () => undefined,
) =>
  readNodeKeys(file, variables, {
    places: nodePlaces,
    check,
    warn,
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
    [keysWith({ ...key, sesions: 4 }), /keys\.0\.sesions: is no field here: remove it/],
    [keysWith({ ...key, inputBytes: 99_000_000 }), /inputBytes: must be at most/],
    [keysWith({ ...key, folders: '/srv/a' }), /keys\.0\.folders: must be Array/],
    [keysWith({ ...key, folders: ['work'] }), /keys\.0\.folders\.0: must be an absolute path/],
    [keysWith({ ...key, repositories: { 'a/b': '/srv' } }), /is no name of a repository/],
    [keysWith({ ...key, preset: 'free' }), /keys\.0\.preset: must be one of plan, careful/],
    [keysWith({ ...key, usdPerDay: 0 }), /keys\.0\.usdPerDay: must be above 0/],
    [keysWith({ ...key, labels: { team: 'a,b' } }), /keys\.0\.labels\.team: must have 1 to 100/],
    [keysWith({ ...key, operator: 'yes' }), /keys\.0\.operator: must be boolean/],
    [keysWith({ ...key, folders: [], preset: 'auto' }), /choose ci or plan/],
    [`{"keys":[{"name":"ci","name":"web","token":"${TOKEN}"}]}`, /the field name stands twice/],
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

test('a change of the file that can not be used leaves the keys as they were', (context) => {
  const folder = temporaryFolder(context, 'changed-keys');
  const file = path.join(folder, 'keys.json');
  const write = (...keys: readonly object[]): void =>
    writeFileSync(file, keysWith(...keys), { mode: 0o600 });
  const warnings: string[] = [];
  write({ name: 'ci', token: TOKEN });
  const { source } = nodeKeys(
    file,
    {},
    (text) => void warnings.push(text),
    (keys) => {
      if (keys.some(({ places }) => places !== undefined)) throw new Error('there is no sandbox');
    },
  );
  const names = () => source.now().map(({ name }) => name);
  write({ name: 'tenant', token: TOKEN, folders: [folder] });
  assert.deepEqual(names(), ['ci']);
  assert.match(warnings.join(), /^The keys stay as they were: there is no sandbox$/);
  rmSync(file);
  symlinkSync(file, file); // a circle: not even its status can be read
  assert.deepEqual([names(), names()], [['ci'], ['ci']]);
  assert.equal(warnings.length, 2, 'one word a change');
  rmSync(file);
  write({ name: 'web', token: TOKEN });
  assert.deepEqual(names(), ['web']);
});

test('an open session asks no model once another key has a place that its fence lacks', async (context) => {
  const folder = temporaryFolder(context, 'new-places');
  const file = path.join(folder, 'keys.json');
  for (const name of ['one', 'two']) mkdirSync(path.join(folder, name));
  const keyAt = (name: string) => ({
    name,
    token: TOKEN + name,
    folders: [path.join(folder, name)],
  });
  writeFileSync(file, keysWith(keyAt('one')), { mode: 0o600 });
  const { source } = nodeKeys(file, {}, () => undefined);
  const open = () => {
    const { forKey } = clientKeyFlags(source, nodePlaces, noSpending)('one');
    const model = forKey.meter(scriptedModel({ replies: [{ text: 'a' }, { text: 'b' }] }));
    return async (): Promise<string> => {
      const asking = { instructions: '', tools: [], messages: [] };
      const pieces = [];
      for await (const piece of model.stream(asking, new AbortController().signal))
        pieces.push(piece.type === 'failed' ? piece.error.message : piece.type);
      return pieces.at(-1) ?? '';
    };
  };
  const ask = open();
  assert.equal(await ask(), 'completed');
  writeFileSync(file, keysWith(keyAt('one'), keyAt('two')), { mode: 0o600 });
  assert.match(await ask(), /^another key has got a place since this session was opened/);
  assert.equal(await open()(), 'completed', 'a session that is opened now is fenced off');
});

/** Makes a folder, and a repository in it with a commit. */
const makeRepository = (folder: string): string => {
  mkdirSync(folder, { recursive: true });
  git(folder, 'init', '--quiet', '-b', 'main');
  git(folder, 'commit', '--quiet', '--allow-empty', '-m', 'first');
  return folder;
};
const git = (folder: string, ...words: readonly string[]): void => {
  const author = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com'];
  const { status, stderr } = spawnSync('git', [...author, ...words], { cwd: folder });
  assert.equal(status, 0, String(stderr));
};

test('no two keys get places of which one shows what the other has', (context) => {
  const folder = temporaryFolder(context, 'places');
  const at = (name: string): string => path.join(folder, name);
  const api = makeRepository(at('first/api'));
  makeRepository(at('second/api'));
  for (const name of ['first/work', 'second/work']) mkdirSync(at(name));
  git(api, 'worktree', 'add', '--quiet', '--detach', at('worktree'));
  git(folder, 'clone', '--quiet', '--shared', api, at('shared'));
  git(folder, 'clone', '--quiet', '--no-local', api, at('cloned'));
  symlinkSync(at('first/work'), at('link'));
  symlinkSync(at('first/work'), at('second/link'));
  makeRepository(at('linked'));
  rmSync(at('linked/.git/objects'), { recursive: true });
  symlinkSync(path.join(api, '.git/objects'), at('linked/.git/objects'));
  const first = { folders: [at('first/work')], repositories: { api } };
  const rows: readonly (readonly [string, object, RegExp | null])[] = [
    ['beside it', { folders: [at('second/work')] }, null],
    ['a clone', { repositories: { api: at('cloned') } }, null],
    ['the same folder', { folders: [at('first/work')] }, /of the key first lies in/],
    ['a folder around it', { folders: [at('first')] }, /first\/work of the key first lies in/],
    ['a link to it', { folders: [at('link')] }, /of the key first lies in/],
    ['the same repository', { repositories: { mine: api } }, /of the key first lies in/],
  ];
  const file = at('keys.json');
  for (const [name, second, why] of rows) {
    const keys = keysWith(
      { name: 'first', token: TOKEN, ...first },
      { name: 'second', token: `${TOKEN}2`, ...second },
    );
    writeFileSync(file, keys, { mode: 0o600 });
    if (why === null) assert.equal(nodeKeys(file, {}).source.now().length, 2, name);
    else assert.throws(() => nodeKeys(file, {}), why, name);
  }
  // what stands at a place takes it from that key alone: the file, and a change of it, count
  const faulty: readonly (readonly [string, string, object, RegExp])[] = [
    [
      'its worktree',
      'worktree',
      { repositories: { api: at('worktree') } },
      /no git folder with objects/,
    ],
    ['a shared clone', 'shared', { repositories: { api: at('shared') } }, /lends it the objects/],
    [
      'linked objects',
      'linked',
      { repositories: { api: at('linked') } },
      /no git folder with objects/,
    ],
    [
      'a link in a folder of its own',
      'second',
      { folders: [at('second')], repositories: { mine: at('second/link') } },
      /a link leads out of/,
    ],
    [
      'a folder that is not there',
      'none',
      { folders: [at('none')] },
      /the key second .*can't be opened/,
    ],
  ];
  for (const [name, place, second, why] of faulty) {
    const keys = keysWith(
      { name: 'first', token: TOKEN, ...first },
      { name: 'second', token: `${TOKEN}2`, ...second },
    );
    writeFileSync(file, keys, { mode: 0o600 });
    const warnings: string[] = [];
    const { source } = nodeKeys(file, {}, (text) => void warnings.push(text));
    const [one, other] = source.now();
    // the place is hidden from the other key all the same
    const { forKey } = clientKeyFlags(source, nodePlaces, noSpending)('first');
    assert.deepEqual(forKey.hidden, [at(place)], name);
    assert.throws(
      () => clientKeyFlags(source, nodePlaces, noSpending)('third'),
      /key third .* not among/,
    );
    assert.equal(one?.places?.repositories.get('api'), api, name);
    assert.equal(other?.places?.repositories.size, 0, name);
    assert.equal(other.places.folders.includes(at('none')), false, name);
    assert.match(warnings.join('\n'), why, name);
  }
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
