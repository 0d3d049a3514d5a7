import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { runRipgrep, withFolder } from '../../src/tools/file-search.js';
import { makePlace, type Place } from './context.js';

/** Files by name, the first the oldest. */
const FILES = ['src/a.ts', 'src/deep/b.ts', 'c.ts', '.hidden/d.ts', 'notes.md'] as const;

const fill = async (place: Place): Promise<void> => {
  const write = async (name: string, second: number): Promise<void> => {
    await mkdir(path.dirname(place.path(name)), { recursive: true });
    await writeFile(place.path(name), '');
    await utimes(place.path(name), 1_000 + second, 1_000 + second);
  };
  for (const [second, name] of FILES.entries()) await write(name, second);
  for (const name of ['ignored/e.ts', 'f.log', '.git/g.ts', 'node_modules/x/h.ts'])
    await write(name, 90);
  await writeFile(place.path('.gitignore'), 'ignored/\n*.log\nnode_modules/\n');
};

const rows: readonly {
  readonly title: string;
  readonly input: JsonObject;
  readonly text: string | RegExp;
  readonly status?: 'failed';
}[] = [
  {
    title:
      'files are found in every folder, the newest first; hidden ones count, ignored ones do not',
    input: { glob: '*.ts' },
    text: '.hidden/d.ts\nc.ts\nsrc/deep/b.ts\nsrc/a.ts',
  },
  { title: 'a glob can name folders', input: { glob: 'src/*.ts' }, text: 'src/a.ts' },
  {
    title: 'a path narrows it and stands before what is found',
    input: { glob: '*.ts', path: 'src' },
    text: 'src/deep/b.ts\nsrc/a.ts',
  },
  {
    title: 'a limit says what it leaves out',
    input: { glob: '*.ts', limit: 2 },
    text: '.hidden/d.ts\nc.ts\n[the newest 2 of 4; narrow the glob or raise limit]',
  },
  {
    title: 'a glob that names an ignored file does not bring it back',
    input: { glob: '*.log' },
    text: 'No files.',
  },
  {
    title: 'a glob for everything does not enter ignored folders',
    input: { glob: '**/*' },
    text: /^\.gitignore\nnotes\.md\n\.hidden\/d\.ts\nc\.ts\nsrc\/deep\/b\.ts\nsrc\/a\.ts$/,
  },
  {
    title: 'a folder that is none is an error',
    input: { glob: '*', path: 'c.ts' },
    text: /c\.ts is no folder/,
    status: 'failed',
  },
  {
    title: 'a glob that can not be read is an error',
    input: { glob: '[z-a]' },
    text: /can't be read as a glob/,
    status: 'failed',
  },
];

for (const { title, input, text, status = 'ok' } of rows) {
  test(title, async (t) => {
    const place = await makePlace(t);
    await fill(place);
    const outcome = await place.run('find', input);
    assert.equal(outcome.status, status);
    if (typeof text === 'string') assert.equal(outcome.text, text);
    else assert.match(outcome.text, text);
  });
}

test('found files are in the allowed folder, not behind a link that came later', async (t) => {
  const place = await makePlace(t);
  await mkdir(place.path('inside'));
  const outcome = await place.runAfter('find', { glob: '*', path: 'later' }, () =>
    symlink('/etc', place.path('later')),
  );
  assert.equal(outcome.status, 'failed');
  assert.match(outcome.text, /leads elsewhere/);
});

test('a search that is cancelled says so', async (t) => {
  const place = await makePlace(t);
  const outcome = await place.run(
    'find',
    { glob: '*' },
    { signal: AbortSignal.abort('cancelled') },
  );
  assert.equal(outcome.status, 'cancelled');
});

test('what a search finds is not all if something else ends ripgrep', async (t) => {
  const place = await makePlace(t);
  const run = (take: () => 'more') =>
    withFolder(place.workspace, (folder) =>
      runRipgrep({
        words: ['line', '-'],
        folder,
        signal: new AbortController().signal,
        end: '\n',
        input: 'a line\n'.repeat(500_000),
        take,
      }),
    );
  const whole = await run(() => 'more');
  assert.deepEqual(whole, { more: false, isPartial: false, fault: null }, 'control');
  let isKilled = false;
  const killed = await run(() => {
    if (isKilled) return 'more';
    isKilled = true;
    const found = spawnSync('pgrep', ['-P', String(process.pid), '-x', 'rg'], { encoding: 'utf8' });
    for (const pid of found.stdout.trim().split('\n')) process.kill(Number(pid), 'SIGKILL');
    return 'more';
  });
  assert.equal(killed?.isPartial, true);
  assert.match(killed.fault?.text ?? '', /was ended from outside/);
});
