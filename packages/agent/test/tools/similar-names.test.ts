import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { makePlace } from './context.js';

/** The name in a folder, and what a model writes for it. */
const ALIKE: readonly (readonly [is: string, given: string])[] = [
  ['v 13.05.txt', 'v 13.05.txt'],
  ['Screenshot at 9.22.20\u202fPM.txt', 'Screenshot at 9.22.20 PM.txt'],
  ['cafe\u0301.txt', 'caf\u00e9.txt'],
  ['caf\u00e9.txt', 'cafe\u0301.txt'],
  ['Bob\u2019s notes.txt', "Bob's notes.txt"],
  ['2020\u20132024.txt', '2020-2024.txt'],
  ['zero\u200bwidth.txt', 'zerowidth.txt'],
  ['\uff21.txt', 'A.txt'],
  ['\ufb01le.txt', 'file.txt'],
  ['co\u00adop.txt', 'coop.txt'],
].map(([is = '', given = '']) => [is.replace('v 13', 'v\u00a013'), given]);

for (const [is, given] of ALIKE)
  test(`${JSON.stringify(is)} is read by the name ${JSON.stringify(given)}, and not made twice`, async (t) => {
    const place = await makePlace(t);
    writeFileSync(place.path(is), 'one\n');
    const read = await place.run('read', { path: given });
    assert.equal(read.status, 'ok');
    assert.ok(read.text.startsWith(`[there is no "${given}"; this is "${is}"`), read.text);
    assert.ok(read.text.endsWith('1\tone'), read.text);
    const written = await place.run('write', { path: given, content: 'two\n' });
    assert.equal(written.status, 'failed');
    assert.ok(written.text.includes(`would look like "${is}"`), written.text);
    assert.deepEqual(readdirSync(place.path('.')), [is]);
    const edits = [{ oldText: 'one', newText: 'two' }];
    assert.equal((await place.run('edit', { path: given, edits })).status, 'ok');
    assert.equal((await place.run('write', { path: is, content: 'three\n' })).status, 'ok');
  });

test('a folder in the path may look like another one too, and symlinks are followed', async (t) => {
  const place = await makePlace(t);
  mkdirSync(place.path('my\u00a0app/SRC'), { recursive: true });
  writeFileSync(place.path('my\u00a0app/SRC/Main.ts'), 'here\n');
  const read = await place.run('read', { path: 'my app/src/main.ts' });
  assert.match(
    read.text,
    /this is "my\u00a0app\/SRC\/Main\.ts" \(its name has U\+00A0\)\]\n1\there/,
  );
  assert.match((await place.run('list', { path: 'my app' })).text, /Main\.ts/);
  assert.match((await place.run('search', { path: 'my app', pattern: 'here' })).text, /here/);
  assert.match((await place.run('find', { path: 'my app', glob: '**/*.ts' })).text, /Main\.ts/);
});

test('where several names look alike none is taken, and all are named', async (t) => {
  const place = await makePlace(t);
  for (const name of ['a\u00a0b', 'a\u202fb']) writeFileSync(place.path(name), '');
  const read = await place.run('read', { path: 'a b' });
  assert.equal(read.status, 'failed');
  assert.match(
    read.text,
    /^a b does not exist\. Its folder has "a\u00a0b" \(its name has U\+00A0\), "a\u202fb"/,
  );
});

test('capitals: the one name is read, and a file that differs in them alone is made', async (t) => {
  const place = await makePlace(t);
  writeFileSync(place.path('Big.txt'), 'one\n');
  assert.match(
    (await place.run('read', { path: 'big.txt' })).text,
    /^\[there is no "big.txt"; this is "Big.txt"\]/,
  );
  const made = await place.run('write', { path: 'big.txt', content: '' });
  assert.match(made.text, /^Created big\.txt \(0 lines\)\. Its folder also has "Big\.txt"\.$/);
  assert.match(
    (await place.run('read', { path: 'big.txt' })).text,
    /^\[the file is empty\]/,
    'the exact name wins',
  );
});

test('a name that is nearly right is answered with the nearest ones; another one with nothing', async (t) => {
  const place = await makePlace(t);
  mkdirSync(place.path('utils'));
  for (const name of ['config.json', 'configs.json', 'other']) writeFileSync(place.path(name), '');
  const read = async (path: string): Promise<string> => (await place.run('read', { path })).text;
  assert.equal(
    await read('confg.json'),
    'confg.json does not exist. Its folder has "config.json", "configs.json".',
  );
  assert.equal(
    await read('uitls/deep/a.ts'),
    'uitls/deep/a.ts does not exist. "uitls" is missing; beside it: "utils".',
  );
  assert.equal(await read('nothing-like-it'), 'nothing-like-it does not exist.');
  const edit = { path: 'confg.json', edits: [{ oldText: 'a', newText: 'b' }] };
  assert.match(
    (await place.run('edit', edit)).text,
    /To create a file, write it\. Its folder has "config\.json"/,
  );
  assert.match(
    (await place.run('list', { path: 'utlis' })).text,
    /^utlis does not exist\. Its folder has "utils"\.$/,
  );
});
