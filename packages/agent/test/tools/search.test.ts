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
    text: '.hidden/one.txt:1:needle hidden\nsrc/a.ts:2:needle a\nsrc/c.ts:1:needle c\nsrc/c.ts:2:needle c again',
  },
  {
    title: 'a path narrows it',
    input: { pattern: 'needle', path: 'src/a.ts' },
    text: 'src/a.ts:2:needle a',
  },
  {
    title: 'a glob narrows it',
    input: { pattern: 'needle', path: 'src', glob: '*.ts', filesOnly: true },
    text: 'src/a.ts\nsrc/c.ts',
  },
  {
    title: 'case can be ignored',
    input: { pattern: 'needle b', ignoreCase: true },
    text: 'src/b.js:1:Needle B',
  },
  {
    title: 'lines around a match are shown',
    input: { pattern: 'needle a', context: 1 },
    text: 'src/a.ts-1-before\nsrc/a.ts:2:needle a\nsrc/a.ts-3-after',
  },
  {
    title: 'a pattern may look like a flag',
    input: { pattern: '--needle' },
    text: 'src/-x:1:--needle',
  },
  { title: 'no match is an answer', input: { pattern: 'nothing like it' }, text: 'No matches.' },
  {
    title: 'a limit cuts and says so',
    input: { pattern: '^needle', limit: 2 },
    text: '.hidden/one.txt:1:needle hidden\nsrc/a.ts:2:needle a\n[only the first 2 lines; narrow the search or raise limit]',
  },
  {
    title: 'exactly as many lines as the limit are all',
    input: { pattern: 'needle c', limit: 2 },
    text: 'src/c.ts:1:needle c\nsrc/c.ts:2:needle c again',
  },
  {
    title: 'a wrong pattern fails with what is wrong with it',
    input: { pattern: '(' },
    text: /^The search failed: [\s\S]*unclosed group/,
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
