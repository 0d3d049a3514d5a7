import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { ripgrepProgram } from '../../src/platform/find-program.js';
import { type RipgrepFault, readFault } from '../../src/tools/file-search.js';
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
    'src/d.py': 'call(needle)\n',
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
    title: 'a file is named once before its lines, hidden files count, ignored ones do not',
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
    title: 'a limit cuts and says of how many',
    input: { pattern: '^needle', limit: 2 },
    text:
      '.hidden/one.txt\n1:needle hidden\n\nsrc/a.ts\n2:needle a\n' +
      '[2 of 4 lines in 2 of 3 files: narrow the search or raise limit]',
  },
  {
    title: 'a limit is shared out among the files',
    input: { pattern: 'needle', path: 'src', glob: '*.ts', limit: 2 },
    text:
      'src/a.ts\n2:needle a\n\nsrc/c.ts\n1:needle c\n[1 more in this file]\n' +
      '[2 of 3 lines in 2 files: narrow the search or raise limit]',
  },
  {
    title: 'a limit cuts the lines of one file',
    input: { pattern: 'needle', path: 'src/c.ts', limit: 1 },
    text: 'src/c.ts\n1:needle c\n[1 of 2 lines: narrow the search or raise limit]',
  },
  {
    title: 'a limit cuts files and says of how many',
    input: { pattern: 'needle', path: 'src', filesOnly: true, limit: 2 },
    text: 'src/-x\nsrc/a.ts\n[2 of 4 files: narrow the search or raise limit]',
  },
  {
    title: 'lines around a match do not count for the limit',
    input: { pattern: 'needle a', path: 'src/a.ts', context: 1, limit: 1 },
    text: 'src/a.ts\n1-before\n2:needle a\n3-after',
  },
  {
    title: 'exactly as many lines as the limit are all',
    input: { pattern: 'needle c', limit: 2 },
    text: 'src/c.ts\n1:needle c\n2:needle c again',
  },
  {
    title: 'what is no regular expression is searched as text, and the result says so',
    input: { pattern: 'call(' },
    text:
      'src/d.py\n1:call(needle)\n' +
      "[pattern can't be read as a regular expression (unclosed group): it was searched as plain text]",
  },
  {
    title: 'what is no regular expression and no text of a file says both',
    input: { pattern: 'x(?=y)' },
    text: /^No matches\.\n\[pattern can't be read as a regular expression \(look-around, [^\n]*\): it was searched as plain text\]$/,
  },
  {
    title: 'a pattern that is neither fails with what is wrong with it',
    input: { pattern: 'a\nb' },
    text: /^The search failed: [\s\S]*"\\n" is not allowed/,
    status: 'failed',
  },
  {
    title: 'a folder that is missing fails with its name',
    input: { pattern: 'x', path: 'none' },
    text: /^none can.t be searched: it does not exist/,
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
  assert.equal(
    all.text,
    '1:ok 1\n2:ok 2\n3:ok 3\n[3 of 5,000 lines: narrow the search or raise limit]',
  );
  place.blobs.set('cd'.repeat(32), `${'x'.repeat(9_000)} failed( ${'y'.repeat(9_000)}\n`);
  const long = await place.run('search', { pattern: 'failed(', path: `blob:${'cd'.repeat(32)}` });
  assert.match(long.text, /^1:\[\.\.\.\] x{149} failed\( y+ \[\.\.\.\]\n\[pattern can.t be/);
  const none = await place.run('search', { pattern: 'x', path: `blob:${'00'.repeat(32)}` });
  assert.deepEqual(none, {
    status: 'failed',
    text: `There is no blob:${'00'.repeat(32)} in this session.`,
  });
});

/** Patterns that ripgrep can't use, and what it says against them. */
const wrongPatterns: readonly (readonly [pattern: string, fault: RegExp])[] = [
  ['call(', /^unclosed group$/],
  ['(?x)\na(', /^unclosed group$/],
  ['\\w{1000}{1000}', /^compiled regex exceeds size limit of \d+$/],
  ['a\nb', /^the literal "\\n" is not allowed in a regex$/],
];

test('search: of messages of ripgrep only those about the pattern are shown', async (t) => {
  const place = await makePlace(t);
  await symlink('loop', place.path('loop'));
  const program = await ripgrepProgram();
  // without the options that turn messages about files off
  const faultOf = (...words: readonly string[]): RipgrepFault | null => {
    const { stderr } = spawnSync(program, words, { cwd: place.workspace, encoding: 'utf8' });
    return readFault(stderr.trim());
  };
  for (const [pattern, text] of wrongPatterns) {
    const fault = faultOf(`--regexp=${pattern}`, '--', '.');
    assert.equal(fault?.isOfPattern, true, pattern);
    assert.match(fault.text, text);
  }
  for (const words of [
    ['x', 'gone'],
    ['x', 'loop'],
    ['x', '--file=gone'],
  ])
    assert.deepEqual(faultOf(...words), {
      isOfPattern: false,
      text: 'ripgrep ended with an error',
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
  assert.deepEqual(outcome, { status: 'timedOut', text: '[there may be more]' });
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

/** A folder whose files have so many lines `needle 1`, `needle 2` and so on. */
const fillNeedles = async (place: Place, counts: readonly number[]): Promise<void> => {
  for (const [index, count] of counts.entries()) {
    const lines = Array.from({ length: count }, (_, at) => `needle ${at + 1}\n`);
    await writeFile(place.path(`f${String(index).padStart(3, '0')}`), lines.join(''));
  }
};

const lineOf = (number: number): string => `${number}:needle ${number}`;
const linesTo = (count: number): string =>
  Array.from({ length: count }, (_, index) => lineOf(index + 1)).join('\n');

test('search: of one file at most 20 lines are shown, and the others counted', async (t) => {
  const place = await makePlace(t);
  await fillNeedles(place, [1_032, 2, 21, 20]);
  const found = await place.run('search', { pattern: 'needle' });
  assert.equal(
    found.text,
    [
      `f000\n${linesTo(20)}\n[1,012 more in this file]`,
      `f001\n${linesTo(2)}`,
      `f002\n${linesTo(20)}\n[1 more in this file]`,
      `f003\n${linesTo(20)}`,
    ].join('\n\n') + '\n[62 of 1,075 lines in 4 files: for all lines of one file give it as path]',
  );
  assert.equal(found.summary, '62 of 1,075 lines');
  const one = await place.run('search', { pattern: 'needle', path: 'f000' });
  assert.equal(
    one.text,
    `f000\n${linesTo(200)}\n[200 of 1,032 lines: narrow the search or raise limit]`,
  );
  const most = await place.run('search', { pattern: 'needle', path: 'f000', limit: 2_000 });
  assert.equal(most.text, `f000\n${linesTo(1_032)}`);
});

test('search: the lines are shared out among 50 files, and small files leave room', async (t) => {
  const place = await makePlace(t);
  await fillNeedles(place, [...Array.from({ length: 49 }, () => 30), 2]);
  const { text, status } = await place.run('search', { pattern: 'needle' });
  assert.equal(status, 'ok');
  const blocks = text.split('\n\n');
  assert.equal(blocks.length, 50);
  const shown = blocks.map((block) => block.match(/^\d+:/gm)?.length ?? 0);
  assert.deepEqual(shown, [5, 5, ...Array.from({ length: 47 }, () => 4), 2]);
  assert.match(blocks[0] ?? '', /\n5:needle 5\n\[25 more in this file\]$/);
  assert.match(text, /\n\[200 of 1,472 lines in 50 files: narrow the search or raise limit\]$/);
});

test('search: more files than lines are counted, and what is shown stays below 30 kB', async (t) => {
  const place = await makePlace(t);
  await fillNeedles(
    place,
    Array.from({ length: 230 }, () => 2),
  );
  const { text } = await place.run('search', { pattern: 'needle' });
  assert.match(
    text,
    /\n\[200 of 460 lines in 200 of 230 files: narrow the search or raise limit\]$/,
  );
  for (let index = 0; index < 90; index++)
    await writeFile(place.path(`w${index}`), `${'ä'.repeat(180)} wide\n`.repeat(5));
  const wide = await place.run('search', { pattern: 'wide', limit: 2_000 });
  assert.ok(Buffer.byteLength(wide.text) < 30_000);
  assert.match(wide.text, /\n\[\d+ of 450 lines in \d+ of 90 files: narrow the search\]$/);
  const names = await place.run('search', { pattern: 'wide', limit: 2_000, filesOnly: true });
  assert.equal(names.text.split('\n').length, 90, 'a name costs no more than itself');
});

test('search: a long line is shown around its match', async (t) => {
  const place = await makePlace(t);
  const [before, after] = ['ä'.repeat(50_000), '😀'.repeat(9_000)];
  await writeFile(
    place.path('a.js'),
    `short\n${before}fetch(1)${after};fetch(2);fetch(3)\nend\r\n`,
  );
  const { text } = await place.run('search', { pattern: 'fetch\\(1', context: 1 });
  assert.match(
    text,
    /^a\.js\n1-short\n2:\[\.\.\.\] ä{150}fetch\(1\)(?:😀){121} \[\.\.\.\]\n3-end$/u,
  );
  const last = await place.run('search', { pattern: 'fetch\\(3' });
  assert.match(last.text, /^a\.js\n2:\[\.\.\.\] (?:😀)+;fetch\(2\);fetch\(3\)$/u);
  const first = await place.run('search', { pattern: 'fetch', path: 'a.js' });
  assert.match(first.text, / \[\.\.\. more matches in this line\]$/);
  const around = await place.run('search', { pattern: 'short', context: 1 });
  assert.match(around.text, /^a\.js\n1:short\n2-ä{400} \[\.\.\.\]$/);
});

test('search: a pattern that is everywhere is counted up to 100,000 lines', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('a'), 'e\n'.repeat(70_000));
  await writeFile(place.path('b'), 'e\n'.repeat(70_000));
  await writeFile(place.path('c'), 'e\n');
  const setLater = globalThis.setTimeout;
  // on a busy machine 2 s may not be enough to count so far
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) =>
    setLater(run, ms === 2_000 ? 600_000 : ms),
  );
  const { text, status, summary } = await place.run('search', { pattern: 'e' });
  assert.equal(status, 'ok');
  assert.match(text, /\n20:e\n\[69,980 more in this file\]\n\nb\n/);
  assert.match(text, /\n20:e\n\[at least 29,980 more in this file\]\n/);
  assert.match(
    text,
    /\n\[40 of at least 100,000 lines in at least 2 files; the rest was not counted: for all lines of one file give it as path\]$/,
  );
  assert.equal(summary, '40 of at least 100,000 lines');
});

test('search: it does not count on for long when it has enough to show', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('a'), `${'x'.repeat(200)}e\n`.repeat(90_000));
  const setLater = globalThis.setTimeout;
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) =>
    setLater(run, ms === 2_000 ? 0 : ms),
  );
  const { text, status } = await place.run('search', { pattern: 'e' });
  assert.equal(status, 'ok');
  assert.match(
    text.split('\n').at(-1) ?? '',
    /^\[20 of at least [\d,]+ lines in at least 1 file; the rest was not counted: /,
  );
});

test('a file that is too large to be shown is named with its size, and what can search it', async (t) => {
  const place = await makePlace(t);
  const size = 64 * 1024 * 1024 + 1;
  await writeFile(place.path('large.log'), Buffer.alloc(size, 'x\n').fill('needle\n', 0, 7));
  await writeFile(place.path('small.log'), 'needle\n');
  const { text } = await place.run('search', { pattern: 'needle' });
  const alone = await place.run('search', { pattern: 'needle', path: 'large.log' });
  assert.deepEqual([alone.status, alone.status === 'ok' && alone.summary], ['ok', '0 of 1 line']);
  assert.match(text, /^small\.log\n1:needle\n\[large\.log: 1 line not shown: /);
  assert.match(text, new RegExp(`it has ${size} bytes, at most .* are read; a command can`));
});
