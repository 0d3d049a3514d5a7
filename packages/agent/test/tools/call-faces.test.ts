import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { makePlace } from './context.js';

/** What people see of a call: its title when it is judged, its summary when it has ended well. */

type Row = {
  readonly tool: string;
  readonly input: JsonObject;
  readonly title: string;
  /** `undefined`: the screen counts lines, or shows the diff. */
  readonly summary: string | undefined;
};

const items = [
  { text: 'look', status: 'done' },
  { text: 'repair it', status: 'inProgress' },
];

const rows: readonly Row[] = [
  { tool: 'read', input: { path: 'src/a.ts' }, title: 'src/a.ts', summary: '3 lines' },
  { tool: 'read', input: { path: './src/../src/a.ts' }, title: 'src/a.ts', summary: '3 lines' },
  {
    tool: 'read',
    input: { path: 'src/a.ts', limit: 1 },
    title: 'src/a.ts',
    summary: 'lines 1-1 of 3',
  },
  { tool: 'read', input: { path: 'empty' }, title: 'empty', summary: 'empty' },
  { tool: 'read', input: { path: 'src' }, title: 'src', summary: '2 entries' },
  { tool: 'list', input: {}, title: '.', summary: '4 entries' },
  { tool: 'find', input: { glob: '*.ts' }, title: '*.ts', summary: '2 files' },
  {
    tool: 'find',
    input: { glob: '*.ts', path: 'src', limit: 1 },
    title: '*.ts in src',
    summary: '1 of 2 files',
  },
  { tool: 'find', input: { glob: '*.py' }, title: '*.py', summary: 'no files' },
  { tool: 'search', input: { pattern: 'two' }, title: 'two', summary: '1 line' },
  {
    tool: 'search',
    input: { pattern: 't', path: 'src', filesOnly: true },
    title: 't in src',
    summary: '1 file',
  },
  { tool: 'search', input: { pattern: 't', limit: 1 }, title: 't', summary: '1 of 2 lines' },
  { tool: 'search', input: { pattern: 'nowhere' }, title: 'nowhere', summary: 'no matches' },
  { tool: 'write', input: { path: 'new.ts', content: 'x\n' }, title: 'new.ts', summary: undefined },
  { tool: 'bash', input: { command: 'echo a b' }, title: 'echo a b', summary: undefined },
  { tool: 'bash', input: { command: 'true' }, title: 'true', summary: '' },
  { tool: 'bash', input: { jobAction: 'list' }, title: 'list jobs', summary: undefined },
  { tool: 'todo', input: { items }, title: 'repair it', summary: '1 of 2 done' },
  { tool: 'todo', input: { items: [] }, title: '', summary: 'empty' },
];

for (const { tool, input, title, summary } of rows) {
  test(`${tool} ${JSON.stringify(input)}: "${title}", ${summary ?? 'no summary'}`, async (t) => {
    const place = await makePlace(t);
    await mkdir(place.path('src'));
    await writeFile(place.path('src/a.ts'), 'one\ntwo\nthree\n');
    await writeFile(place.path('src/b.ts'), '');
    await writeFile(place.path('empty'), '');
    const judged = await place.judge(tool, input);
    assert.ok(judged.kind === 'ok');
    const outcome = await place.run(tool, input);
    assert.deepEqual([judged.title, outcome.status, outcome.summary], [title, 'ok', summary]);
  });
}

test('the page to fetch is its title', async (t) => {
  const place = await makePlace(t);
  const judged = await place.judge('fetch', { url: 'https://example.org/a#b' });
  assert.equal(judged.kind === 'ok' && judged.title, 'https://example.org/a#b');
});
