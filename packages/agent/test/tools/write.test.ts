import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { makePlace } from './context.js';

test('write: a new file is made with its folders and shown as a diff', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run('write', { path: 'a/b/c.txt', content: 'one\ntwo\n' });
  assert.equal(outcome.status, 'ok');
  assert.equal(outcome.text, 'Created a/b/c.txt (2 lines).');
  assert.equal(outcome.diff, '--- /dev/null\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n');
  assert.equal(await readFile(place.path('a/b/c.txt'), 'utf8'), 'one\ntwo\n');
});

type Row = {
  readonly title: string;
  readonly old: string;
  readonly content: string;
  readonly becomes: string;
};
const rows: readonly Row[] = [
  { title: 'a file that was read is replaced', old: 'one\n', content: 'two\n', becomes: 'two\n' },
  {
    title: 'a byte order mark is kept',
    old: '\ufeffone\n',
    content: 'two\n',
    becomes: '\ufefftwo\n',
  },
  { title: 'CRLF is kept', old: 'one\r\ntwo\r\n', content: 'a\nb\n', becomes: 'a\r\nb\r\n' },
  { title: 'an emptied file is empty', old: 'one\n', content: '', becomes: '' },
];
for (const row of rows) {
  test(`write: ${row.title}`, async (t) => {
    const place = await makePlace(t);
    await writeFile(place.path('file'), row.old);
    await chmod(place.path('file'), 0o640);
    await place.run('read', { path: 'file' });
    const outcome = await place.run('write', { path: 'file', content: row.content });
    assert.equal(outcome.status, 'ok', outcome.text);
    assert.equal(await readFile(place.path('file'), 'utf8'), row.becomes);
    assert.equal((await stat(place.path('file'))).mode & 0o7777, 0o640);
  });
}

test('write: an existing file that was not read is refused', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'precious\n');
  const outcome = await place.run('write', { path: 'file', content: 'x' });
  assert.equal(outcome.status, 'failed');
  assert.match(outcome.text, /has not been read/);
  assert.equal(await readFile(place.path('file'), 'utf8'), 'precious\n');
});

test('write: a file that changed since it was read is refused', async (t) => {
  const place = await makePlace(t);
  await place.run('write', { path: 'file', content: 'mine\n' });
  await writeFile(place.path('file'), 'theirs\n');
  const outcome = await place.run('write', { path: 'file', content: 'mine again\n' });
  assert.equal(outcome.status, 'failed');
  assert.match(outcome.text, /has changed since it was last read/);
  assert.equal(await readFile(place.path('file'), 'utf8'), 'theirs\n');
});

test('write: a folder, and a path below a file, are refused and leave nothing behind', async (t) => {
  const place = await makePlace(t);
  await mkdir(place.path('folder'));
  await writeFile(place.path('file'), 'x');
  assert.match((await place.run('write', { path: 'folder', content: '' })).text, /is a folder/);
  const below = await place.run('write', { path: 'file/below', content: '' });
  assert.equal(below.status, 'failed');
  assert.match(below.text, /can't be written.*Nothing was changed/);
});

test('write: a dangling symlink is reported as the file that it would make', async (t) => {
  const place = await makePlace(t);
  await symlink('/nowhere/else', place.path('link'));
  const judgement = await place.judge('write', { path: 'link', content: '' });
  assert.equal(judgement.kind, 'ok');
  assert.deepEqual(judgement.facts.paths, ['/nowhere/else']);
});
