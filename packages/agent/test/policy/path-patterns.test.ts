import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchCpu } from '../../../../test/cpu-watch.js';
import { matchesPath, patternFault } from '../../src/policy/patterns.js';

const rows: readonly (readonly [pattern: string, path: string, fits: boolean])[] = [
  ['*.pem', '/w/key.pem', true],
  ['*.pem', '/w/deep/key.pem', true],
  ['*.pem', '/elsewhere/key.pem', false],
  ['.env*', '/w/.env.local', true],
  ['docs', '/w/docs/a/b.md', true],
  ['docs/', '/w/docs/a.md', true],
  ['docs', '/w/documents/a.md', false],
  ['docs/**', '/w/docs/a/b.md', true],
  ['docs/**', '/w/docs', true],
  ['docs/*.md', '/w/docs/a.md', true],
  ['./docs/./*.md', '/w/docs/a.md', true],
  ['docs/*', '/w/docs', false],
  ['docs/*.md', '/w/docs/deep/a.md', false],
  ['docs/*.md', '/w/sub/docs/a.md', false],
  ['**/docs/*.md', '/w/sub/docs/a.md', true],
  ['src/**/test', '/w/src/a/b/test/x.ts', true],
  ['a?c', '/w/abc', true],
  ['a?c', '/w/a/c', false],
  ['*.{ts,tsx}', '/w/x.tsx', true],
  ['*.{ts,tsx}', '/w/x.js', false],
  ['{.env,secrets/{a,b}}', '/w/secrets/b/key', true],
  ['{.env,secrets/{a,b}}', '/w/deep/.env', true],
  ['{{name}}/**', '/w/{{name}}/a', true],
  ['/etc/hosts', '/etc/hosts', true],
  ['/etc', '/etc/ssl/key', true],
  ['/etc/*', '/etcetera/x', false],
  ['**', '/w/x', true],
  ['**', '/v/x', false],
  ['/**', '/v/x', true],
];

for (const [pattern, path, fits] of rows)
  test(`${pattern} ${fits ? 'means' : 'does not mean'} ${path}`, () =>
    assert.equal(matchesPath(pattern, path, '/w'), fits));

test('a pattern that would take a backtracking matcher forever is matched at once', () => {
  const spentMs = watchCpu();
  assert.equal(matchesPath(`${'**/a*'.repeat(30)}b`, `/w/${'a/'.repeat(500)}c`, '/w'), false);
  assert.equal(matchesPath(`${'*a'.repeat(500)}b`, `/w/${'a'.repeat(5_000)}`, '/w'), false);
  assert.ok(spentMs() < 2_000);
});

test('an invalid pattern is refused with its reason', () => {
  for (const pattern of ['docs/**', 'a{b}', 'a,b', '{a,b}'])
    assert.equal(patternFault(pattern), null, pattern);
  for (const pattern of ['', ' ', '../x', '!x', '{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}', '{.env,a'])
    assert.match(patternFault(pattern) ?? '', /^(is empty|may not|stands for|has braces)/);
});
