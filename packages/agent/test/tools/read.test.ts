import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { makePlace } from './context.js';

type Row = {
  readonly title: string;
  readonly file: string | Buffer;
  readonly input?: JsonObject;
  readonly status: 'ok' | 'failed';
  readonly text: string | RegExp;
};

const utf16 = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');

const rows: readonly Row[] = [
  { title: 'lines have numbers', file: 'a\n\nb\n', status: 'ok', text: '1\ta\n2\t\n3\tb' },
  {
    title: 'a last line without a line break counts, and is said to have none',
    file: 'a\nb',
    status: 'ok',
    text: '[the file has no line break at the end]\n1\ta\n2\tb',
  },
  {
    title: 'CRLF is said, not shown',
    file: 'a\r\nb\r\n',
    status: 'ok',
    text: '[the file has CRLF line endings]\n1\ta\n2\tb',
  },
  {
    title: 'all of it stands in one note',
    file: '\ufeffa\r\nb\nc',
    status: 'ok',
    text: '[the file has mixed line endings: LF and CRLF, a byte order mark, no line break at the end]\n1\ta\n2\tb\n3\tc',
  },
  {
    title: 'a byte order mark is said, not shown',
    file: '\ufeffa\n',
    status: 'ok',
    text: '[the file has a byte order mark]\n1\ta',
  },
  { title: 'an empty file says so', file: '', status: 'ok', text: '[the file is empty]' },
  {
    title: 'a part says where it goes on',
    file: 'a\nb\nc\nd\n',
    input: { offset: 2, limit: 2 },
    status: 'ok',
    text: '2\tb\n3\tc\n[lines 2-3 of 4; go on with offset 4]',
  },
  {
    title: 'the last part says nothing more',
    file: 'a\nb\n',
    input: { offset: 2 },
    status: 'ok',
    text: '2\tb',
  },
  {
    title: 'an offset past the end is a failure with the count',
    file: 'a\nb\n',
    input: { offset: 3 },
    status: 'failed',
    text: 'Line 3 is past the end: there are 2 lines.',
  },
  {
    title: 'a long line is cut with a count',
    file: `${'x'.repeat(2_005)}\nb\n`,
    status: 'ok',
    text: `1\t${'x'.repeat(2_000)} … 5 more characters in this line\n2\tb`,
  },
  {
    title: 'a long file is shown in parts that are as large as a call may show',
    file: `${'y'.repeat(99)}\n`.repeat(1_000),
    status: 'ok',
    text: /^1\ty[\s\S]{49000,50000}\[lines 1-\d+ of 1000; go on with offset \d+\]$/,
  },
  {
    title: 'UTF-16 is decoded and said to be',
    file: utf16('grün\nblau\n'),
    status: 'ok',
    text: '[UTF-16 text, decoded; it can be read, but not edited]\n1\tgrün\n2\tblau',
  },
  {
    title: 'big-endian UTF-16 is decoded as well',
    file: utf16('grün\n').swap16(),
    status: 'ok',
    text: '[UTF-16 text, decoded; it can be read, but not edited]\n1\tgrün',
  },
  {
    title: 'other encodings are shown with a remark',
    file: Buffer.from('gr\xfcn', 'latin1'),
    status: 'ok',
    text: /^\[not valid UTF-8.*\n1\tgr\ufffdn$/,
  },
  {
    title: 'a binary file is not shown',
    file: Buffer.from([7, 0, 7]),
    status: 'failed',
    text: 'file is a binary file of 3 bytes and is not shown.',
  },
  {
    title: 'a PDF is not shown, also without binary bytes',
    file: Buffer.from('%PDF-1.4\n1 0 obj\n'),
    status: 'failed',
    text: /^file is a PDF of 17 bytes and is not shown\. .*pdftotext/,
  },
];

const NOTEBOOK = {
  nbformat: 4,
  cells: [
    { cell_type: 'markdown', source: ['# Sums\n', 'of two'] },
    {
      cell_type: 'code',
      source: 'print(1)\n1 / 0',
      outputs: [
        { output_type: 'stream', text: ['1\n', 'x'.repeat(1_200)] },
        {
          output_type: 'display_data',
          data: { 'image/png': 'iVBORw0', 'text/plain': ['<Figure>'] },
        },
        { output_type: 'error', ename: 'E', evalue: 'no', traceback: ['\u001b[31mE\u001b[0m: no'] },
      ],
    },
    null,
  ],
};

test('read: a notebook is shown by its cells, outputs are cut, and pictures are left out', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('a.ipynb'), JSON.stringify(NOTEBOOK, null, 1));
  const { text } = await place.run('read', { path: 'a.ipynb' });
  const [remark, ...shown] = text.split('\n');
  assert.match(remark ?? '', /^\[a notebook, 2 cells as text; .*bash\]$/);
  assert.deepEqual(
    shown.map((line) => line.replace(/^\d+\t/, '').replace(/x{3,}/, 'xxx')),
    [
      ...['--- cell 1, markdown ---', '# Sums', 'of two', ''],
      ...['--- cell 2, code ---', 'print(1)', '1 / 0'],
      ...['--- output ---', '1', 'xxx', '[202 more characters of output]'],
      ...['--- output ---', '<Figure>', '[left out: image/png]', '--- output ---', 'E: no'],
    ],
  );
  const edits = [{ oldText: '1 / 0', newText: '1 / 2' }];
  assert.equal((await place.run('edit', { path: 'a.ipynb', edits })).status, 'ok');
  const whole = await place.run('write', { path: 'a.ipynb', content: '{}' });
  assert.equal(whole.status, 'failed', 'its lines were not shown');
  // control: text that is no notebook
  await writeFile(place.path('b.ipynb'), '{"cells": 1}');
  assert.match((await place.run('read', { path: 'b.ipynb' })).text, /^1\t\{"cells": 1\}$/m);
});

for (const row of rows) {
  test(`read: ${row.title}`, async (t) => {
    const place = await makePlace(t);
    await writeFile(place.path('file'), row.file);
    const outcome = await place.run('read', { path: 'file', ...row.input });
    if (typeof row.text === 'string') assert.equal(outcome.text, row.text);
    else assert.match(outcome.text, row.text);
    assert.equal(outcome.status, row.status);
    // only what was shown counts as read
    const isKnown = place.files.get(place.path('file')) !== undefined;
    assert.equal(isKnown, row.status === 'ok');
  });
}

test('read: a folder is listed, folders with a slash', async (t) => {
  const place = await makePlace(t);
  await mkdir(place.path('b'));
  await writeFile(place.path('a'), '');
  const list = async (more: object) => (await place.run('read', { path: '.', ...more })).text;
  assert.equal(await list({}), '[folder ., 2 entries]\na\nb/');
  assert.equal(await list({ limit: 1 }), '[folder ., 2 entries]\na\n[1 more; go on with offset 2]');
  assert.equal(await list({ offset: 2 }), '[folder ., 2 entries]\nb/');
  assert.equal(await list({ offset: 3 }), 'Entry 3 is past the end: . has 2 entries.');
  assert.equal(await list({ path: 'b' }), '[folder b, 0 entries]');
});

test('read: what is missing, and what is no file, is a failure', async (t) => {
  const place = await makePlace(t);
  execFileSync('mkfifo', [place.path('pipe')]);
  assert.equal((await place.run('read', { path: 'none' })).text, 'none does not exist.');
  const pipe = await place.run('read', { path: 'pipe' });
  assert.equal(pipe.status, 'failed');
  // No advice to use the shell, whose programs would wait for the pipe.
  assert.equal(pipe.text, "pipe can't be read: it is not a regular file.");
  await writeFile(place.path('large'), '');
  await truncate(place.path('large'), 65 * 1024 * 1024);
  assert.match(
    (await place.run('read', { path: 'large' })).text,
    /Look at parts of it with a shell command\.$/,
  );
});

test('read: output that was cut is read by its hash', async (t) => {
  const place = await makePlace(t);
  const hash = 'ab'.repeat(32);
  place.blobs.set(hash, 'one\ntwo\n');
  const judgement = await place.judge('read', { path: `blob:${hash}` });
  assert.equal(judgement.kind, 'ok');
  assert.deepEqual(judgement.facts.paths, []);
  assert.equal((await place.run('read', { path: `blob:${hash}`, offset: 2 })).text, '2\ttwo');
  assert.equal((await place.run('read', { path: `blob:${'00'.repeat(32)}` })).status, 'failed');
});

test('read: a link is read under its real path', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('file'), 'a');
  await symlink('file', place.path('link'));
  await place.run('read', { path: 'link' });
  assert.equal(place.files.get(place.path('link')), undefined);
  assert.notEqual(place.files.get(place.path('file')), undefined);
});
