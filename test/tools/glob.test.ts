import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readGlob } from '../../src/tools/glob.js';

const rows: readonly (readonly [glob: string, fits: string, doesNot: string])[] = [
  ['*.ts', 'a.ts src/a.ts src/deep/.a.ts', 'a.tsx a.ts/b ats'],
  ['a.ts', 'a.ts x/a.ts', 'ba.ts a.tsx axts'],
  ['src/*.ts', 'src/a.ts', 'a.ts src/b/a.ts x/src/a.ts'],
  ['./src/*.ts', 'src/a.ts', 'a.ts'],
  ['/src/*.ts', 'src/a.ts', 'x/src/a.ts'],
  ['src/**/*.ts', 'src/a.ts src/b/c/a.ts', 'src a.ts xsrc/a.ts'],
  ['**/test/*.js', 'test/a.js x/y/test/a.js', 'test/b/a.js'],
  ['src/**', 'src/a src/b/c', 'src srcs/a'],
  ['*.{ts,tsx}', 'a.ts b/a.tsx', 'a.js a.{ts,tsx}'],
  ['?.md', 'a.md x/b.md', 'ab.md /.md'],
  ['[a-c]*.md', 'abc.md x/c.md', 'd.md'],
  ['[!a-c]*.md', 'd.md', 'a.md'],
  ['a[b', 'a[b', 'ab'],
  ['a+(b)|c$', 'a+(b)|c$', 'aab c'],
  ['ä*', 'ähre', 'ahre'],
];

for (const [glob, fits, doesNot] of rows) {
  test(`${glob} fits ${fits} and not ${doesNot}`, () => {
    const matches = readGlob(glob);
    assert.ok(matches !== null);
    const tried = [...fits.split(' '), ...doesNot.split(' ')];
    assert.deepEqual(tried.filter(matches), fits.split(' '));
  });
}

test('a glob that can not be read is null', () => {
  assert.equal(readGlob('[z-a]'), null);
});
