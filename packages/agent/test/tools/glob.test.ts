import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { countCases } from '../../../../test/tier.js';
import { plainNames, readGlob } from '../../src/tools/file-search.js';
import { makePlace } from './context.js';

const rows: readonly (readonly [glob: string, fits: string, doesNot: string])[] = [
  ['*.ts', 'a.ts src/a.ts src/deep/.a.ts', 'a.tsx a.ts/b ats'],
  ['a.ts', 'a.ts x/a.ts', 'ba.ts a.tsx axts'],
  ['src/*.ts', 'src/a.ts', 'a.ts src/b/a.ts x/src/a.ts'],
  ['./src/*.ts', 'src/a.ts', 'a.ts'],
  ['/src/*.ts', 'src/a.ts', 'x/src/a.ts'],
  ['/a.ts', 'a.ts', 'x/a.ts'],
  ['src/**/*.ts', 'src/a.ts src/b/c/a.ts', 'src a.ts xsrc/a.ts'],
  ['**/test/*.js', 'test/a.js x/y/test/a.js', 'test/b/a.js'],
  ['src/**', 'src/a src/b/c src/.x', 'src srcs/a'],
  ['src/', 'src/a src/b/c x/src/a', 'src srcs/a'],
  ['a/src/', 'a/src/b', 'src/b x/a/src/b'],
  ['*', 'a .a x/y', ''],
  ['/*', 'a .a', 'x/y'],
  ['*.{ts,tsx}', 'a.ts b/a.tsx', 'a.js a.{ts,tsx}'],
  ['{src,test/{a,b}}/*.ts', 'src/x.ts test/a/x.ts', 'test/x.ts test/c/x.ts'],
  ['x{1..3}', 'x1 x3', 'x4'],
  ['x{c..a}', 'xa xc', 'xd'],
  ['x{8..12}.ts', 'x8.ts x10.ts x12.ts', 'x1.ts x2.ts x13.ts'],
  ['x{08..10}', 'x08 x10', 'x8'],
  ['?.md', 'a.md x/b.md', 'ab.md .md'],
  ['[a-c]*.md', 'abc.md x/c.md', 'd.md'],
  ['[!a-c]*.md', 'd.md', 'a.md'],
  ['[^a-c]*.md', 'd.md', 'a.md'],
  ['x[!a]y', 'xby', 'xay x/y'],
  ['x[/a]y', 'xay', 'x/y'],
  ['x[+-9]y', 'x+y x.y x0y', 'x/y x:y'],
  ['[]a]', '] a', 'b'],
  ['!*.ts', 'a.js x/a.tsx', 'a.ts x/a.ts'],
  ['!test/**', 'a src/test/a', 'test/a test/b/c'],
  ['a[b', 'a[b', 'ab'],
  ['a{b', 'a{b', 'ab'],
  ['a}b', 'a}b', 'ab'],
  ['a\\*b', 'a*b', 'axb'],
  ['a+(b)|c$', 'a+(b)|c$', 'aab c'],
  ['app/(group)/*.tsx', 'app/(group)/x.tsx', 'app/group/x.tsx'],
  ['@(a|b)', '@(a|b)', 'a'],
  ['"a"', '"a"', 'a'],
  ['ä*', 'ähre', 'ahre'],
];

for (const [glob, fits, doesNot] of rows) {
  test(`${glob} fits ${fits} and not ${doesNot}`, async () => {
    const read = await readGlob(glob);
    assert.ok(read.kind === 'glob');
    const tried = [...fits.split(' '), ...doesNot.split(' ').filter((one) => one !== '')];
    assert.deepEqual(tried.filter(read.fits), fits.split(' '));
  });
}

test('a glob that can not be read says why, and one that would take for ever is refused', async () => {
  const backwards = await readGlob('[z-a]');
  assert.ok(backwards.kind === 'invalid' && /out of order/.test(backwards.why));
  for (const glob of ['x{1..1001}', 'x{a..bc}', 'x{1..9..2}']) {
    const range = await readGlob(glob);
    assert.ok(range.kind === 'invalid' && /a range has two/.test(range.why), glob);
  }
  for (const glob of ['*a*a*a*a*b', '**/a/**/a/**/a/**/a/**/a']) {
    const many = await readGlob(glob);
    assert.ok(many.kind === 'invalid' && /more than 4/.test(many.why), glob);
  }
});

test('plain names are those of every file that fits', () => {
  assert.deepEqual(plainNames('*.ts'), ['*.ts']);
  assert.deepEqual(plainNames('src/**/*.{ts,tsx}'), ['*.ts', '*.tsx']);
  for (const glob of [
    '!*.ts',
    '[ab].ts',
    'src/**',
    'src/',
    '?.ts',
    '{a/b,c}',
    'a\\*',
    '{a..c}.ts',
    '*',
  ]) {
    assert.equal(plainNames(glob), null, glob);
  }
});

/** Parts of which globs and names are made. */
const FILES = [
  ...[
    'a.ts',
    'b.tsx',
    '.hidden.ts',
    'c.md',
    'ab',
    'a-b.ts',
    'x[1].ts',
    'x1.ts',
    '(g).ts',
    'ä.ts',
    'b',
    'src/b.ts',
  ],
  ...[
    'src/a.ts',
    'src/deep/a.ts',
    'src/deep/er/c.md',
    'test/a.ts',
    'test/src/b.tsx',
    '.dot/a.ts',
    'src/(g)/a.ts',
  ],
];
const HEADS = [
  '',
  '/',
  './',
  '!',
  '**/',
  'src/',
  'src/**/',
  '{src,test}/',
  '*/',
  '**/src/',
  '[st]*/',
  '!src/',
  '.*/',
];
const TAILS = [
  ...[
    '*',
    '*.ts',
    'a*',
    '?.ts',
    '[ab].*',
    '[!a].ts',
    '[a-c]*',
    '*.{ts,tsx}',
    '{a,b}.ts',
    '{a,b/c}*',
    '**',
    'deep/',
  ],
  ...[
    '.*',
    'x[[]1].ts',
    'x\\[1\\].ts',
    '(g)*',
    '*.md',
    'ä.ts',
    'a.ts',
    '*b*',
    '{a..c}.*',
    'src/',
    '[^.]*',
  ],
];

test('find and search mean the same files by a glob', async (t) => {
  const place = await makePlace(t);
  for (const name of [...FILES, 'ignored/a.ts', 'ignored.ts']) {
    await mkdir(path.dirname(place.path(name)), { recursive: true });
    await writeFile(place.path(name), 'needle\n');
  }
  await writeFile(place.path('.gitignore'), 'ignored/\nignored.ts\n');
  const wanted = countCases(30);
  const all = HEADS.flatMap((head) => TAILS.map((tail) => head + tail));
  const globs = all.filter((_, index) => (index * 7) % all.length < wanted);
  let found = 0;
  for (const glob of globs) {
    for (const input of [{ glob }, { glob, path: 'src' }]) {
      const byName = await place.run('find', { ...input, limit: 1_000 });
      const byText = await place.run('search', { ...input, pattern: 'needle', filesOnly: true });
      const names = byName.text === 'No files.' ? [] : byName.text.split('\n');
      const texts = byText.text === 'No matches.' ? [] : byText.text.split('\n');
      assert.deepEqual(
        texts.sort(),
        names.filter((name) => name !== '.gitignore').sort(),
        JSON.stringify(input),
      );
      assert.ok(!names.some((name) => name.startsWith('ignored')), glob);
      found += names.length;
    }
  }
  assert.ok(found > globs.length, 'the globs find something');
});

test('lines around a match are shown, and of files that the glob leaves out none', async (t) => {
  const place = await makePlace(t);
  const text = 'one\nneedle\ntwo\nthree\nfour\nneedle\n';
  for (const name of ['a.ts', 'b.md', 'c.ts']) await writeFile(place.path(name), text);
  const input = { pattern: 'needle', glob: '[ac].ts', context: 1 };
  const { text: shown } = await place.run('search', input);
  const lines = (name: string): string => `${name}\n1-one\n2:needle\n3-two\n--\n5-four\n6:needle`;
  assert.equal(shown, `${lines('a.ts')}\n\n${lines('c.ts')}`);
});
