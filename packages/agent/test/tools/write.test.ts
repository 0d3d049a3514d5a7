import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { hashBytes } from '../../src/platform/files.js';
import { replaceFile } from '../../src/tools/files.js';
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
/** 240 bytes of the 255 that a name may have. */
const LONG_NAME = '\u6f22'.repeat(80);
for (const row of rows) {
  test(`write: ${row.title}`, async (t) => {
    const place = await makePlace(t);
    await writeFile(place.path(LONG_NAME), row.old);
    await chmod(place.path(LONG_NAME), 0o640);
    await place.run('read', { path: LONG_NAME });
    const outcome = await place.run('write', { path: LONG_NAME, content: row.content });
    assert.equal(outcome.status, 'ok', outcome.text);
    assert.equal(await readFile(place.path(LONG_NAME), 'utf8'), row.becomes);
    assert.equal((await stat(place.path(LONG_NAME))).mode & 0o7777, 0o640);
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

type Refused = {
  readonly title: string;
  /** Default: a file of three lines. */
  readonly old?: string | Buffer;
  readonly content: string;
  readonly refused?: RegExp;
};
const LISTED = '1\ta\n2\tb\n3\tc\n';
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const refusedRows: readonly Refused[] = [
  {
    title: 'Latin-1 is not re-encoded, also where no line of it changes',
    old: latin1('caf\xe9 one\nport = 80\n'),
    content: 'caf\ufffd one\nport = 81\n',
    refused: /not valid UTF-8 \(byte 0xE9 in line 1\).*written without damage.*iconv -f ENCODING/,
  },
  {
    title: 'Shift_JIS is not re-encoded',
    old: Buffer.from([0x61, 0x0a, 0x93, 0xfa, 0x96, 0x7b, 0x0a]),
    content: 'a\nb\n',
    refused: /not valid UTF-8 \(byte 0x93 in line 2\)/,
  },
  {
    title: 'mixed bytes behind a late NUL are not re-encoded',
    old: Buffer.concat([Buffer.alloc(9_000, 'a'), Buffer.from([0x0a, 0, 0xff, 0x0a])]),
    content: 'b\n',
    refused: /not valid UTF-8 \(byte 0xFF in line 2\)/,
  },
  {
    title: 'a file that ends within a character is not re-encoded',
    old: Buffer.from([0xef, 0xbf, 0xbd, 0x0a, 0xef, 0xbf]),
    content: 'b\n',
    refused: /not valid UTF-8 \(byte 0xEF in line 2\)/,
  },
  {
    title: 'UTF-16 is not re-encoded',
    old: Buffer.from('\ufeffgr\xfcn\n', 'utf16le'),
    content: 'gelb\n',
    refused: /is UTF-16 and can't be edited or written without damage.*iconv -f UTF-16LE/,
  },
  {
    title: 'a binary file, which read does not show, is not replaced',
    old: Buffer.from([7, 0, 7]),
    content: 'text\n',
    refused: /is a binary file/,
  },
  {
    title: 'a line that was cut for the model is not replaced',
    old: `a\n${'x'.repeat(2_001)}\nb\n`,
    content: 'a\n',
    refused: /The conversation does not show line 2 of file/,
  },
  {
    title: 'the line numbers of read are no text',
    content: '1\ta\n2\tb\n3\tC\n',
    refused: /content has line numbers as read shows them/,
  },
  {
    title: 'arrows behind line numbers are no text',
    content: '1\u2192a\n2\u2192b\n3\u2192C\n',
    refused: /content has line numbers/,
  },
  {
    title: 'bars behind line numbers are no text',
    content: '1|a\n2|b\n3|C\n',
    refused: /content has line numbers/,
  },
  { title: 'a file of numbered lines may stay one', old: LISTED, content: `${LISTED}4\td\n` },
  { title: 'numbered lines of another content may be written', content: '1\tx\n2\ty\n' },
  {
    title: 'the mark of read where it stopped is no text',
    content: 'a\nb\n[lines 1-2000 of 3000; go on with offset 2001]\n',
    refused: /content has `\[lines 1-2000 of 3000/,
  },
  {
    title: 'a file that has such a mark may keep it',
    old: '[lines 1-2 of 3; go on with offset 3]\na\n',
    content: '[lines 1-2 of 3; go on with offset 3]\nb\n',
  },
  {
    title: 'a marker for lines that were left out is no text',
    content: 'a\n// ... rest of the file ...\n',
    refused: /content has `\/\/ ... rest of the file ...`/,
  },
  { title: 'half a character is no text', content: 'a\ud800\n', refused: /half a character/ },
];
for (const { title, old = 'a\nb\nc\n', content, refused } of refusedRows) {
  test(`write: ${title}`, async (t) => {
    const place = await makePlace(t);
    await writeFile(place.path('file'), old);
    await place.run('read', { path: 'file' });
    const outcome = await place.run('write', { path: 'file', content });
    const after = await readFile(place.path('file'));
    if (refused === undefined) assert.equal(after.toString(), content, outcome.text);
    else {
      assert.match(outcome.text, refused);
      assert.deepEqual(after, Buffer.from(old));
    }
    assert.equal(outcome.status, refused === undefined ? 'ok' : 'failed');
  });
}

test('writers of the same bytes at one moment disturb nobody', async (t) => {
  const folder = temporaryFolder(t, 'write');
  const file = path.join(folder, 'file');
  const bytes = Buffer.alloc(1_000_000, 'new');
  for (let round = 0; round < 5; round++) {
    await writeFile(file, 'old');
    const writers = [1, 2, 3].map(async () => {
      const outcome = await replaceFile(file, bytes, hashBytes('old'));
      if (outcome.kind === 'written') assert.ok(bytes.equals(await readFile(file)), 'a part of it');
      return outcome;
    });
    const outcomes = await Promise.all(writers);
    assert.ok(outcomes.some(({ kind }) => kind === 'written'));
    for (const outcome of outcomes)
      assert.match(outcome.kind, /^(written|changedMeanwhile)$/, JSON.stringify(outcome));
    assert.deepEqual(await readdir(folder), ['file']);
  }
});

test('what a killed writer of the same bytes left beside a file is removed', async (t) => {
  const folder = temporaryFolder(t, 'write');
  const file = path.join(folder, 'file');
  await writeFile(file, 'old');
  await writeFile(path.join(folder, `.file.${hashBytes('new').slice(0, 12)}.tmp`), 'n');
  const outcome = await replaceFile(file, Buffer.from('new'), hashBytes('old'));
  assert.deepEqual(outcome, { kind: 'written' });
  assert.deepEqual(await readdir(folder), ['file']);
  assert.equal(await readFile(file, 'utf8'), 'new');
});

// only root can make files of others
if (process.geteuid?.() === 0)
  test('a file of another user keeps its group, or gives the new one no rights', async (t) => {
    const folder = temporaryFolder(t, 'write');
    await chmod(folder, 0o777);
    const [ours, theirs] = [path.join(folder, 'ours'), path.join(folder, 'theirs')];
    for (const [file, group] of [
      [ours, 3_000],
      [theirs, 4_000],
    ] as const) {
      await writeFile(file, 'old');
      await chown(file, 2_000, group);
      await chmod(file, 0o666);
    }
    const groups = process.getgroups?.() ?? [];
    process.setgroups?.([3_000]);
    process.setegid?.(1_000);
    process.seteuid?.(1_000);
    try {
      for (const file of [ours, theirs])
        assert.deepEqual(await replaceFile(file, Buffer.from('new'), hashBytes('old')), {
          kind: 'written',
        });
    } finally {
      process.seteuid?.(0);
      process.setegid?.(0);
      process.setgroups?.(groups);
    }
    const [kept, lost] = await Promise.all([stat(ours), stat(theirs)]);
    assert.deepEqual([kept.uid, kept.gid, kept.mode & 0o777], [1_000, 3_000, 0o666]);
    assert.deepEqual([lost.uid, lost.gid, lost.mode & 0o777], [1_000, 1_000, 0o606]);
  });
