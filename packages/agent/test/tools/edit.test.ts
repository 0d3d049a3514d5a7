import assert from 'node:assert/strict';
import { chmod, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { makePlace, type Place } from './context.js';

type Row = {
  readonly title: string;
  readonly file: string | Buffer;
  readonly edits: readonly JsonObject[];
  readonly becomes: string | Buffer;
  readonly status: 'ok' | 'failed';
  readonly says: RegExp;
};

const bom = Buffer.from([0xef, 0xbb, 0xbf]);
const utf16 = Buffer.from('\ufeffeins\nzwei\n', 'utf16le');
const latin1 = Buffer.from('gr\xfcn\n', 'latin1');

const rows: readonly Row[] = [
  {
    title: 'a unique text is replaced',
    file: 'one\ntwo\nthree\n',
    edits: [{ oldText: 'two', newText: 'zwei' }],
    becomes: 'one\nzwei\nthree\n',
    status: 'ok',
    says: /^Edited file: 1 replacement\.$/,
  },
  {
    title: 'an edit that takes the last line break says so',
    file: 'one\ntwo\n',
    edits: [{ oldText: 'two\n', newText: 'TWO' }],
    becomes: 'one\nTWO',
    status: 'ok',
    says: /^Edited file: 1 replacement\. The file has no line break at its end now\.$/,
  },
  {
    title: 'several edits are matched against the file as it was',
    file: 'a b c\n',
    edits: [
      { oldText: 'c', newText: 'a' },
      { oldText: 'a', newText: 'b' },
    ],
    becomes: 'b b a\n',
    status: 'ok',
    says: /2 replacements/,
  },
  {
    title: 'if the second edit does not fit, the first is not made',
    file: 'one\ntwo\n',
    edits: [
      { oldText: 'one', newText: 'eins' },
      { oldText: 'three', newText: 'drei' },
    ],
    becomes: 'one\ntwo\n',
    status: 'failed',
    says: /edits\[1\]\.oldText is not in the file.*Nothing was changed/s,
  },
  {
    title: 'a text that stands twice is refused with its lines',
    file: 'x\ny\nx\n',
    edits: [{ oldText: 'x', newText: 'z' }],
    becomes: 'x\ny\nx\n',
    status: 'failed',
    says: /more than once \(lines 1, 3\)/,
  },
  {
    title: 'a text that overlaps itself is not unique',
    file: 'aaa\n',
    edits: [{ oldText: 'aa', newText: 'b' }],
    becomes: 'aaa\n',
    status: 'failed',
    says: /more than once/,
  },
  {
    title: 'replaceAll replaces every occurrence',
    file: 'x\ny\nx\n',
    edits: [{ oldText: 'x', newText: 'z', replaceAll: true }],
    becomes: 'z\ny\nz\n',
    status: 'ok',
    says: /2 replacements/,
  },
  {
    title: 'edits that overlap are refused',
    file: 'one two three\n',
    edits: [
      { oldText: 'one two', newText: '1 2' },
      { oldText: 'two three', newText: '2 3' },
    ],
    becomes: 'one two three\n',
    status: 'failed',
    says: /edits\[0\] and edits\[1\] overlap/,
  },
  {
    title: 'a dollar sign in the new text has no meaning',
    file: 'price\n',
    edits: [{ oldText: 'price', newText: '$& $1 $$' }],
    becomes: '$& $1 $$\n',
    status: 'ok',
    says: /Edited/,
  },
  {
    title: 'a CRLF file is edited with LF text and stays CRLF',
    file: 'one\r\ntwo\r\nthree\r\n',
    edits: [{ oldText: 'one\ntwo\n', newText: 'eins\nzwei\nzweieinhalb\n' }],
    becomes: 'eins\r\nzwei\r\nzweieinhalb\r\nthree\r\n',
    status: 'ok',
    says: /matched with other line endings/,
  },
  {
    title: 'an edit that begins with a line break does not tear CRLF apart',
    file: 'one\r\ntwo\r\n',
    edits: [{ oldText: '\ntwo', newText: '\nzwei' }],
    becomes: 'one\r\nzwei\r\n',
    status: 'ok',
    says: /Edited/,
  },
  {
    title: 'new lines in a CRLF file get CRLF even where the old text had none',
    file: 'one\r\ntwo\r\n',
    edits: [{ oldText: 'one', newText: 'one\none and a half' }],
    becomes: 'one\r\none and a half\r\ntwo\r\n',
    status: 'ok',
    says: /^edits\[0\]\.newText got the line endings of the file\.$/m,
  },
  {
    title: 'CRLF that is put into an LF file becomes LF, and the model is told',
    file: 'one\ntwo\n',
    edits: [
      { oldText: 'two', newText: 'zwei' },
      { oldText: 'one', newText: 'eins\r\nanderthalb' },
    ],
    becomes: 'eins\nanderthalb\nzwei\n',
    status: 'ok',
    says: /^Edited file: 2 replacements\.\nedits\[1\]\.newText got the line endings of the file\.$/,
  },
  {
    title: 'in a file of mixed endings each place keeps its own',
    file: 'a\r\nb\r\nc\nd\n',
    edits: [
      { oldText: 'a\nb', newText: '1\n2' },
      { oldText: 'c\nd', newText: '3\n4' },
    ],
    becomes: '1\r\n2\r\n3\n4\n',
    status: 'ok',
    says: /edits\[0\] matched with other line endings/,
  },
  {
    title: 'whole lines match in spite of trailing spaces, and the result says so',
    file: 'if (a) {  \n  b();\t\n}\n',
    edits: [{ oldText: 'if (a) {\n  b();\n', newText: 'if (c) {\n  d();\n' }],
    becomes: 'if (c) {\n  d();\n}\n',
    status: 'ok',
    says: /edits\[0\] matched lines that differ in blanks at their ends/,
  },
  {
    title: 'trailing white space is not overlooked where the place is ambiguous',
    file: 'a \nb\na  \nb\n',
    edits: [{ oldText: 'a\nb', newText: 'c' }],
    becomes: 'a \nb\na  \nb\n',
    status: 'failed',
    says: /more than once \(lines 1, 3\)/,
  },
  {
    title: 'replaceAll does not overlook trailing white space in several places',
    file: 'a \nb\na  \nb\n',
    edits: [{ oldText: 'a\nb', newText: 'c', replaceAll: true }],
    becomes: 'a \nb\na  \nb\n',
    status: 'failed',
    says: /more than once/,
  },
  {
    title: 'a byte order mark is kept',
    file: Buffer.concat([bom, Buffer.from('one\n')]),
    edits: [{ oldText: 'one', newText: 'eins' }],
    becomes: Buffer.concat([bom, Buffer.from('eins\n')]),
    status: 'ok',
    says: /Edited/,
  },
  {
    title: 'UTF-16 is refused with the reason',
    file: utf16,
    edits: [{ oldText: 'eins', newText: 'drei' }],
    becomes: utf16,
    status: 'failed',
    says: /is UTF-16 and can't be edited or written without damage/,
  },
  {
    title: 'text that is not UTF-8 is refused with the reason',
    file: latin1,
    edits: [{ oldText: 'gr', newText: 'GR' }],
    becomes: latin1,
    status: 'failed',
    says: /not valid UTF-8/,
  },
  {
    title: 'a binary file is refused',
    file: Buffer.from([1, 0, 2]),
    edits: [{ oldText: 'a', newText: 'b' }],
    becomes: Buffer.from([1, 0, 2]),
    status: 'failed',
    says: /binary/,
  },
];

for (const row of rows) {
  test(`edit: ${row.title}`, async (t) => {
    const place = await makePlace(t);
    await writeFile(place.path('file'), row.file);
    await place.run('read', { path: 'file' });
    const outcome = await place.run('edit', { path: 'file', edits: row.edits });
    assert.equal(outcome.status, row.status, outcome.text);
    assert.match(outcome.text, row.says);
    assert.deepEqual(await readFile(place.path('file')), Buffer.from(row.becomes));
    assert.equal(outcome.diff !== undefined, row.status === 'ok');
    assert.deepEqual(await readdir(place.workspace), ['file']);
  });
}

test('edit: a file that was not read is refused', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'one\n');
  const outcome = await place.run('edit', {
    path: 'file',
    edits: [{ oldText: 'one', newText: 'two' }],
  });
  assert.equal(outcome.status, 'failed');
  assert.match(outcome.text, /has not been read in this session/);
  assert.equal(await readFile(place.path('file'), 'utf8'), 'one\n');
});

test('edit: a file that changed since it was read is refused until it is read again', async (t) => {
  const place = await makePlace(t);
  const edit = { path: 'file', edits: [{ oldText: 'one', newText: 'two' }] };
  await writeFile(place.path('file'), 'one\n');
  await place.run('read', { path: 'file' });
  await writeFile(place.path('file'), 'one!\n');
  const stale = await place.run('edit', edit);
  assert.equal(stale.status, 'failed');
  assert.match(stale.text, /has changed since it was last read/);
  await place.run('read', { path: 'file' });
  assert.equal((await place.run('edit', edit)).status, 'ok');
  const again = await place.run('edit', {
    path: 'file',
    edits: [{ oldText: 'two', newText: 'three' }],
  });
  assert.equal(again.status, 'ok', 'what the tool itself wrote counts as read');
});

test('edit: the mode stays, and a reader that has the old file open keeps the old bytes', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'one\n');
  await chmod(place.path('file'), 0o755);
  const old = await stat(place.path('file'));
  await place.run('read', { path: 'file' });
  await place.run('edit', { path: 'file', edits: [{ oldText: 'one', newText: 'two' }] });
  const now = await stat(place.path('file'));
  assert.equal(now.mode & 0o7777, 0o755);
  assert.notEqual(now.ino, old.ino, 'the file was replaced, not written into');
});

test('edit: a symlink stays and its target is edited', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('real'), 'one\n');
  await symlink('real', place.path('link'));
  await place.run('read', { path: 'link' });
  const outcome = await place.run('edit', {
    path: 'link',
    edits: [{ oldText: 'one', newText: 'two' }],
  });
  assert.equal(outcome.status, 'ok');
  assert.equal(await readFile(place.path('real'), 'utf8'), 'two\n');
  assert.deepEqual(
    (await readdir(place.workspace, { withFileTypes: true }))
      .map((entry) => entry.isSymbolicLink())
      .sort(),
    [false, true],
  );
});

test('edit: the diff is unified and names the file', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'one\ntwo\n');
  await place.run('read', { path: 'file' });
  const { diff } = await place.run('edit', {
    path: 'file',
    edits: [{ oldText: 'two', newText: 'zwei' }],
  });
  assert.equal(diff, '--- file\n+++ file\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n');
});

test('write: the diff of a file with a line break in its name has none there', async (t) => {
  const place = await makePlace(t);
  const { diff } = await place.run('write', { path: 'a\n+b', content: 'x\n' });
  assert.equal(diff, '--- /dev/null\n+++ "a\\n+b"\n@@ -0,0 +1,1 @@\n+x\n');
  const lines = Array.from({ length: 4_000 }, (_, line) => `${line}\n`);
  await place.run('write', { path: 'a\n+b', content: lines.join('') });
  const reversed = { path: 'a\n+b', content: lines.toReversed().join('') };
  const large = await place.run('write', reversed);
  assert.match(large.diff ?? '', /^--- a\ufffd\+b\n\+\+\+ a\ufffd\+b\n\(the change is too large/);
});

test('edit: cancelled before the change, nothing is changed', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'one\n');
  await place.run('read', { path: 'file' });
  const edit = { path: 'file', edits: [{ oldText: 'one', newText: 'two' }] };
  const outcome = await place.run('edit', edit, { signal: AbortSignal.abort('cancelled') });
  assert.deepEqual([outcome.status, outcome.ran], ['cancelled', 'no']);
  assert.equal(await readFile(place.path('file'), 'utf8'), 'one\n');
});

/** The file as it was read, then as a command left it. */
const changed = async (t: TestContext, before: string, after: string): Promise<Place> => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), before);
  await place.run('read', { path: 'file' });
  await writeFile(place.path('file'), after);
  return place;
};
const LINES = Array.from({ length: 30 }, (_, index) => `line ${index + 1}\n`);
const edited = (from: string, to: string): JsonObject => ({
  path: 'file',
  edits: [{ oldText: from, newText: to }],
});

test('edit: a file that has changed elsewhere since it was read is edited, and that is said', async (t) => {
  const place = await changed(t, LINES.join(''), LINES.join('').replace('line 3\n', 'new\nnew\n'));
  const outcome = await place.run('edit', edited('line 20\n', 'twenty\n'));
  assert.equal(outcome.status, 'ok', outcome.text);
  assert.match(outcome.text, /file has changed since it was last read \(lines 3-4\), but not at/);
  assert.match(outcome.text, /\. Read it again before you rely on the rest\.$/);
  assert.match(await readFile(place.path('file'), 'utf8'), /^line 1\nline 2\nnew\nnew\nline 4\n/);
  const again = await place.run('edit', edited('twenty\n', 'XX\n'));
  assert.equal(again.status, 'ok', 'its own text is known');
  assert.match(await readFile(place.path('file'), 'utf8'), /line 19\nXX\nline 21/);
  const whole = await place.run('write', { path: 'file', content: 'gone\n' });
  assert.match(whole.text, /has changed since it was last read/, 'but the rest is not');
});

test('edit: a file whose change elsewhere is taken back shows the lines that were read', async (t) => {
  const place = await makePlace(t);
  const text = LINES.join('');
  await writeFile(place.path('file'), text);
  await place.run('read', { path: 'file', offset: 15, limit: 11 });
  await writeFile(place.path('file'), text.replace('line 3\n', 'new\nnew\n'));
  const outcome = await place.run('edit', edited('line 25\n', 'one\ntwo\n'));
  assert.equal(outcome.status, 'ok', outcome.text);
  await writeFile(place.path('file'), text.replace('line 25\n', 'one\ntwo\n'));
  const whole = await place.run('write', { path: 'file', content: 'gone\n' });
  assert.match(whole.text, /does not show lines 1-14, 27-31 of file/);
});

const elsewhere: readonly (readonly [
  title: string,
  before: string,
  after: string,
  from: string,
])[] = [
  ['the place itself has changed', 'a\nb\nc\n', 'a\nB\nc\n', 'b'],
  ['the text is unique now, but another one', 'x = 1\na\nb\nc\n', 'a\nb\nc\nx = 1\n', 'x = 1'],
  ['the text has become ambiguous', 'a\nb\nc\n', 'a\nb\nc\nb\n', 'b\n'],
  ['the text was ambiguous when it was read', 'b\na\nb\n', 'a\nb\n', 'b\n'],
  ['the text is new', 'a\nb\n', 'a\nb\nc\n', 'c'],
];
for (const [title, before, after, from] of elsewhere) {
  test(`edit: refused after a change, when ${title}`, async (t) => {
    const place = await changed(t, before, after);
    const outcome = await place.run('edit', edited(from, 'other'));
    assert.match(outcome.text, /^file has changed since it was last read \(line/);
    assert.match(outcome.text, /\)\. Read it again and adapt\. Nothing was changed\.$/);
    assert.equal(await readFile(place.path('file'), 'utf8'), after);
  });
}
