import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { hashBytes } from '../../src/platform/files.js';
import { createRedactor } from '../../src/secrets/redactor.js';
import { collectCarried, keepCarried } from '../../src/workspace/checkpoints/carried-files.js';
import type { Manifest } from '../../src/workspace/checkpoints/manifest.js';
import { CheckpointStore } from '../../src/workspace/checkpoints/store.js';

/** Checkpoints that come with an imported session: anybody may have written them. */

const contents = [Buffer.from('a content\n')];
const sha256 = hashBytes(Buffer.from('a content\n'));
const absent = { kind: 'absent' };
const file = { kind: 'file', sha256, bytes: 10, mode: 0o644 };

const manifest = (change: object, more: object = {}): object => ({
  version: 1,
  by: 'agent',
  changes: [{ path: 'src/a.txt', before: file, after: absent, ...change }],
  ...more,
});

const refs = (change: object): object => ({
  refs: [{ path: 'HEAD', before: absent, after: absent, ...change }],
});

const rows: readonly (readonly [what: string, manifest: unknown, isSound: boolean])[] = [
  ['a file in a folder', manifest({}), true],
  ['a name that begins like a git folder', manifest({ path: '.github/a' }), true],
  ['a link', manifest({ before: { kind: 'link', target: '/somewhere' } }), true],
  ['a folder of a group', manifest({ before: { kind: 'folder', mode: 0o2775 } }), true],
  ['a branch', manifest({}, refs({ after: { kind: 'ref', value: 'ref: refs/heads/a/b' } })), true],
  ['a place above', manifest({ path: '../a.txt' }), false],
  ['a place above, further in', manifest({ path: 'src/../../a.txt' }), false],
  ['an absolute place', manifest({ path: '/etc/passwd' }), false],
  ['a hook', manifest({ path: '.git/hooks/pre-commit' }), false],
  ['a hook below a folder', manifest({ path: 'deep/.GIT/hooks/pre-commit' }), false],
  ['a hook by a short name', manifest({ path: 'git~1/hooks/pre-commit' }), false],
  ['a program of its owner', manifest({ before: { ...file, mode: 0o4755 } }), false],
  ['a content without a hash', manifest({ before: { ...file, sha256: '../../key' } }), false],
  ['a path that is a number', manifest({ path: 1 }), false],
  ['an option of git', manifest({}, refs({ after: { kind: 'ref', value: '--exec=x' } })), false],
  ['a ref that is no branch', manifest({}, refs({ path: 'refs/../config' })), false],
  ['no list', { version: 1, by: 'agent', changes: 'none' }, false],
  ['nobody', { ...manifest({}), by: 'somebody' }, false],
  ['null', null, false],
];

for (const [what, value, isSound] of rows)
  test(`an imported checkpoint with ${what} is ${isSound ? 'kept' : 'refused'}`, async (context) => {
    const store = new CheckpointStore(temporaryFolder(context, 'carried'));
    const good = Buffer.from(JSON.stringify(manifest({})));
    const checkpoints = [good, Buffer.from(JSON.stringify(value))];
    const fault = await keepCarried(store, 'one', { checkpoints, contents }, []);
    assert.equal(fault === null, isSound, String(fault));
    assert.equal((await store.listed('one')).length, isSound ? 2 : 0);
    assert.equal(await store.has(sha256), isSound);
  });

test('what an import has stored is exported again, byte for byte', async (context) => {
  const store = new CheckpointStore(temporaryFolder(context, 'carried'));
  const checkpoints = [Buffer.from(JSON.stringify(manifest({})))];
  await keepCarried(store, 'one', { checkpoints, contents }, []);
  const carried = await collectCarried(store, 'one', createRedactor([]));
  assert.deepEqual(carried, { checkpoints, contents, left: [] });
});

test('a checkpoint that no import would take is left out of an export, and named', async (context) => {
  const store = new CheckpointStore(temporaryFolder(context, 'carried'));
  const small = { version: 1, by: 'agent', changes: [{ path: 'a', before: file, after: absent }] };
  const change = (_: unknown, index: number) => ({
    path: `f/${index}`,
    before: absent,
    after: absent,
  });
  const large = { version: 1, by: 'agent', changes: Array.from({ length: 20_001 }, change) };
  store.putMany(contents[0] ?? Buffer.alloc(0));
  for (const one of [large, small]) await store.addManifest('one', one as Manifest);
  const { checkpoints, left } = await collectCarried(store, 'one', createRedactor([]));
  assert.deepEqual(checkpoints.map(String), [JSON.stringify(small)]);
  const why = 'a checkpoint names 20001 paths, and an import takes at most 20000';
  assert.deepEqual(left, [{ path: '.', why }]);
});
