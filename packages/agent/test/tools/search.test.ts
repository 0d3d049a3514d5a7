import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { makePlace, type Place } from './context.js';

const fill = async (place: Place): Promise<void> => {
  const files: Readonly<Record<string, string>> = {
    '.gitignore': 'ignored/\n',
    '.hidden/one.txt': 'needle hidden\n',
    '.git/config': 'needle in git\n',
    'ignored/one.txt': 'needle ignored\n',
    'src/a.ts': 'before\nneedle a\nafter\n',
    'src/b.js': 'Needle B\n',
    'src/c.ts': 'needle c\nneedle c again\n',
    'src/-x': '--needle\n',
  };
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(place.path(name)), { recursive: true });
    await writeFile(place.path(name), text);
  }
};

type Row = {
  readonly title: string;
  readonly input: JsonObject;
  readonly text: string | RegExp;
  readonly status?: 'failed';
};

const rows: readonly Row[] = [
  {
    title: 'matches have file and line, hidden files count, ignored ones do not',
    input: { pattern: '^needle' },
    text: '.hidden/one.txt\n1:needle hidden\n\nsrc/a.ts\n2:needle a\n\nsrc/c.ts\n1:needle c\n2:needle c again',
  },
  {
    title: 'a path narrows it',
    input: { pattern: 'needle', path: 'src/a.ts' },
    text: 'src/a.ts\n2:needle a',
  },
  {
    title: 'a glob narrows it',
    input: { pattern: 'needle', path: 'src', glob: '*.ts', filesOnly: true },
    text: 'src/a.ts\nsrc/c.ts',
  },
  {
    title: 'case can be ignored',
    input: { pattern: 'needle b', ignoreCase: true },
    text: 'src/b.js\n1:Needle B',
  },
  {
    title: 'lines around a match are shown',
    input: { pattern: 'needle a', context: 1 },
    text: 'src/a.ts\n1-before\n2:needle a\n3-after',
  },
  {
    title: 'a pattern may look like a flag',
    input: { pattern: '--needle' },
    text: 'src/-x\n1:--needle',
  },
  { title: 'no match is an answer', input: { pattern: 'nothing like it' }, text: 'No matches.' },
  {
    title: 'a limit cuts and says so',
    input: { pattern: '^needle', limit: 2 },
    text: '.hidden/one.txt\n1:needle hidden\n\nsrc/a.ts\n2:needle a\n[2 of 4 matching lines, from 2 of 3 files; narrow the search, or raise limit]',
  },
  {
    title: 'exactly as many lines as the limit are all',
    input: { pattern: 'needle c', limit: 2 },
    text: 'src/c.ts\n1:needle c\n2:needle c again',
  },
  {
    title: 'a pattern that is no regular expression is searched as plain text, and that is said',
    input: { pattern: 'needle(' },
    text: '[needle( is no regular expression (unclosed group): searched as plain text]\nNo matches.',
  },
  {
    title: 'a regular expression that can not be searched fails with what is wrong with it',
    input: { pattern: 'needle(?= a)' },
    text: /^The search failed: [\s\S]*look-around/,
    status: 'failed',
  },
  {
    title: 'a folder that is missing fails with its name',
    input: { pattern: 'x', path: 'none' },
    text: /^none can.t be searched: there is no such file or folder/,
    status: 'failed',
  },
];

for (const row of rows) {
  test(`search: ${row.title}`, async (t) => {
    const place = await makePlace(t);
    await fill(place);
    const outcome = await place.run('search', row.input);
    if (typeof row.text === 'string') assert.equal(outcome.text, row.text);
    else assert.match(outcome.text, row.text);
    assert.equal(outcome.status, row.status ?? 'ok');
  });
}

test('search: output that was cut is searched by its hash, with the numbers that read gives its lines', async (t) => {
  const place = await makePlace(t);
  const blob = `blob:${'ab'.repeat(32)}`;
  const lines = Array.from({ length: 5_000 }, (_, index) => `ok ${index + 1}`);
  lines[3_000] = 'not ok 3001 \0';
  place.blobs.set('ab'.repeat(32), `${lines.join('\n')}\n`);
  const judgement = await place.judge('search', { pattern: 'x', path: blob });
  assert.equal(judgement.kind, 'ok');
  assert.deepEqual(judgement.facts.paths, []);
  const found = await place.run('search', { pattern: '^NOT', path: blob, ignoreCase: true });
  assert.equal(found.text, '3001:not ok 3001 \0');
  const around = await place.run('search', { pattern: '^not', path: blob, context: 1 });
  assert.equal(around.text, '3000-ok 3000\n3001:not ok 3001 \0\n3002-ok 3002');
  assert.equal(
    (await place.run('read', { path: blob, offset: 3_001, limit: 1 })).text.split('\n')[0],
    '3001\tnot ok 3001 \0',
  );
  assert.equal((await place.run('search', { pattern: 'x', path: blob })).text, 'No matches.');
  const all = await place.run('search', { pattern: 'ok', path: blob, limit: 3 });
  assert.match(all.text, /^1:ok 1\n2:ok 2\n3:ok 3\n\[/);
  const none = await place.run('search', { pattern: 'x', path: `blob:${'00'.repeat(32)}` });
  assert.deepEqual(none, {
    status: 'failed',
    text: `There is no blob:${'00'.repeat(32)} in this session.`,
  });
});

test('search: symlinks are not followed out of the workspace', async (t) => {
  const place = await makePlace(t);
  const outside = await makePlace(t);
  await writeFile(outside.path('secret.txt'), 'needle\n');
  await symlink(outside.workspace, place.path('link'));
  assert.equal((await place.run('search', { pattern: 'needle' })).text, 'No matches.');
  const judgement = await place.judge('search', { pattern: 'needle', path: 'link' });
  assert.equal(judgement.kind, 'ok');
  assert.deepEqual(judgement.facts.paths, [outside.workspace], 'policy is told where it leads');
});

test('search: a call that is cancelled says that there may be more', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run(
    'search',
    { pattern: 'x' },
    { signal: AbortSignal.abort('timedOut') },
  );
  assert.deepEqual(outcome, { status: 'timedOut', text: '[timed out; there may be more]' });
});

test('search: a pipe is refused, not waited for', async (t) => {
  const place = await makePlace(t);
  await promisify(execFile)('mkfifo', [place.path('pipe')]);
  const outcome = await place.run(
    'search',
    { pattern: 'x', path: 'pipe' },
    { signal: AbortSignal.timeout(5_000) },
  );
  assert.deepEqual(outcome, {
    status: 'failed',
    text: "pipe can't be searched: it is not a regular file.",
  });
});

test('search: of many lines each file shows some, with the totals', async (t) => {
  const place = await makePlace(t);
  for (let file = 10; file < 60; file++)
    await writeFile(place.path(`f${file}.txt`), `needle ${file}\n`.repeat(200));
  const outcome = await place.run('search', { pattern: 'needle' });
  const lines = outcome.text.split('\n');
  assert.equal(
    lines.at(-1),
    '[200 of 10,000 matching lines, from 50 of 50 files; narrow the search, or raise limit]',
  );
  assert.equal(lines.filter((line) => line === '1:needle 59').length, 1, 'the last file, too');
  assert.equal(outcome.summary, '200 of 10,000 lines');

  await writeFile(place.path('f10.txt'), 'needle 10\n'.repeat(5_000));
  for (let file = 11; file < 60; file++) await writeFile(place.path(`f${file}.txt`), 'other\n');
  await writeFile(place.path('f11.txt'), 'needle 11\n');
  const uneven = await place.run('search', { pattern: 'needle' });
  const shown = uneven.text.split('\n').filter((line) => line.includes('needle 10'));
  assert.equal(shown.length, 20, 'of one file beside others');
  assert.match(uneven.text, /\n1:needle 11\n\[21 of 5,001 matching lines, from 2 of 2 files/);
  const one = await place.run('search', { pattern: 'needle', path: 'f10.txt' });
  assert.match(one.text, /\n\[200 of 5,000 matching lines, from 1 of 1 files/);
});

test('search: of a long line the part around the match is shown', async (t) => {
  const place = await makePlace(t);
  const line = `${'ä'.repeat(3_000)}needle${'b'.repeat(3_000)} needle`;
  await writeFile(place.path('min.js'), `${line}\nneedle\n`);
  const { text } = await place.run('search', { pattern: 'needle' });
  const [file, long = '', short] = text.split('\n');
  assert.equal(file, 'min.js');
  assert.match(long, /^1:…ä{120}needleb{274}… \[characters 2881-3280 of 6013; 1 more match/);
  assert.equal(short, '2:needle');
});

test('search: lines that were shown count as read for an edit, not for a new content', async (t) => {
  const place = await makePlace(t);
  await fill(place);
  await place.run('search', { pattern: 'needle a' });
  const edit = { oldText: 'needle a', newText: 'pin a' };
  const written = await place.run('write', { path: 'src/a.ts', content: 'gone\n' });
  assert.match(written.text, /has not been read in this session/);
  const edited = await place.run('edit', { path: 'src/a.ts', edits: [edit] });
  assert.equal(edited.status, 'ok', edited.text);
  const again = await place.run('edit', {
    path: 'src/a.ts',
    edits: [{ oldText: 'pin a', newText: 'nail a' }],
  });
  assert.equal(again.status, 'ok', again.text);
  const stillUnread = await place.run('write', { path: 'src/a.ts', content: 'gone\n' });
  assert.match(stillUnread.text, /has not been read in this session/);
  await place.run('search', { pattern: 'Needle B', filesOnly: true });
  const unseen = { path: 'src/b.js', edits: [{ oldText: 'Needle B', newText: 'x' }] };
  assert.match((await place.run('edit', unseen)).text, /has not been read/, 'a name shows no line');
});
