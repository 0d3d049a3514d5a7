import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { chmod, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '@pawl/machine/kernel/shape';
import { makePlace, type Place } from './context.js';

const fill = async (place: Place): Promise<void> => {
  const names = [
    'b.md',
    'src/a.ts',
    'src/deep/c.ts',
    'src/deep/er/d.ts',
    'node_modules/x/y.js',
    'e.log',
    '.git/HEAD',
  ];
  for (const name of names) {
    await mkdir(path.dirname(place.path(name)), { recursive: true });
    await writeFile(place.path(name), '');
  }
  await mkdir(place.path('empty'));
  await symlink('src', place.path('zlink'));
  await writeFile(place.path('.gitignore'), 'node_modules\n*.log\n');
};

const rows: readonly {
  readonly title: string;
  readonly input: JsonObject;
  readonly lines: readonly string[];
}[] = [
  {
    title:
      'a tree: folders first, ignored ones marked and not entered, links not followed, .git left out',
    input: {},
    lines: [
      './',
      'empty/ [empty or ignored]',
      'node_modules/ [empty or ignored]',
      'src/',
      '  deep/',
      '    er/ [1 files]',
      '    c.ts',
      '  a.ts',
      '.gitignore',
      'b.md',
      'e.log [ignored]',
      'zlink [link]',
    ],
  },
  {
    title: 'a folder deeper than wanted says how many files are in it',
    input: { depth: 1, path: 'src' },
    lines: ['src/', 'deep/ [2 files]', 'a.ts'],
  },
  {
    title: 'a limit fills the near folders first and counts what it leaves out',
    input: { limit: 4 },
    lines: [
      './',
      'empty/ [empty or ignored]',
      'node_modules/ [empty or ignored]',
      'src/',
      '  [2 more]',
      '.gitignore',
      '[3 more]',
    ],
  },
];

for (const { title, input, lines } of rows) {
  test(title, async (t) => {
    const place = await makePlace(t);
    await fill(place);
    const outcome = await place.run('list', input);
    assert.equal(outcome.status, 'ok');
    assert.deepEqual(outcome.text.split('\n'), lines);
  });
}

test('a folder of many files leaves room for its neighbours', async (t) => {
  const place = await makePlace(t);
  await mkdir(place.path('many'));
  await mkdir(place.path('other'));
  await writeFile(place.path('other/x'), '');
  await Promise.all(
    Array.from({ length: 150 }, (_, index) => writeFile(place.path(`many/${index}`), '')),
  );
  await writeFile(place.path('many/z.js'), '');
  const { text } = await place.run('list', {});
  assert.match(
    text,
    /^\.\/\nmany\/\n {2}0\n( {2}\d+\n){4} {2}z\.js\n {2}\[145 more\]\nother\/\n {2}x$/,
  );
  // control: the folder itself shows more of them
  const folder = await place.run('list', { path: 'many' });
  assert.match(folder.text, /^many\/\n(\d+\n){100}\[51 more\]$/);
  assert.equal(folder.status === 'ok' ? folder.summary : '', '100 entries');
  const whole = await place.run('list', { path: 'many', limit: 1_000 });
  assert.match(whole.text, /^many\/\n(\d+\n){150}z\.js$/);
});

test('a file is no folder', async (t) => {
  const place = await makePlace(t);
  await writeFile(place.path('a'), '');
  assert.deepEqual(await place.run('list', { path: 'a' }), {
    status: 'failed',
    text: 'a is no folder. Read it, or list the folder that it is in.',
  });
});

test('a folder that is closed to Pawl is not called empty, and what else was not seen is not either', async (t) => {
  const user = process.geteuid?.();
  t.after(() => user === undefined || process.seteuid?.(user)); // before the folder goes
  const place = await makePlace(t);
  await fill(place);
  await mkdir(place.path('outer/closed'), { recursive: true });
  await mkdir(place.path('closed'), { mode: 0 });
  await chmod(place.path('outer/closed'), 0);
  // another user passes the folders above
  for (const name of ['', '..'])
    await chmod(place.path(name), (await stat(place.path(name))).mode | 0o055);
  if (user === 0) process.seteuid?.(65_534); // root is held up by no mode
  const { text } = await place.run('list', { depth: 1 });
  const lines = text.split('\n').slice(0, 5);
  assert.deepEqual(lines, [
    './',
    "closed/ [can't be read]",
    'empty/ [not counted]',
    'node_modules/ [not counted]',
    'outer/ [not counted]',
  ]);
});
