import assert from 'node:assert/strict';
import { test } from 'node:test';
import { highlightCode } from '../src/markdown.js';
import type { Look } from '../src/paint.js';
import { keepStyles, safe } from '../src/safe-text.js';

const look: Look = { colour: 'yes', columns: 80, depth: 'sixteen' };
const MARKS: Readonly<Record<string, string>> = {
  2: 'c',
  32: 's',
  33: 'n',
  35: 'k',
  31: 'r',
  36: 'h',
};

/** Colours as brackets: `k<const> a`. */
const marked = (code: string, language: string): string =>
  highlightCode(look, keepStyles(code), language)
    .join('\n')
    .replace(
      /\u001b\[(\d+)m([^\u001b]*)\u001b\[\d+m/g,
      (_, style: string, text: string) => `${MARKS[style]}<${text}>`,
    );

const rows: readonly (readonly [string, string, string])[] = [
  ['ts', 'const a = "x"; // b', 'k<const> a = s<"x">; c<// b>'],
  ['js', '`a $b` + 1.5e3', 's<`a $b`> + n<1.5e3>'],
  ['python', 'def f(): # x\n  return None', 'k<def> f(): c<# x>\n  k<return> k<None>'],
  ['py', '"""a\nb"""', 's<"""a>\ns<b""">'],
  ['rust', "fn f<'a>(x: &'a str) -> char { 'x' }", "k<fn> f<'a>(x: &'a str) -> k<char> { s<'x'> }"],
  ['sql', 'SELECT a FROM b -- c', 'k<SELECT> a k<FROM> b c<-- c>'],
  ['sh', 'echo "$#" # x', 'k<echo> s<"$#"> c<# x>'],
  ['c', '/* a\nb */ int x;', 'c</* a>\nc<b */> k<int> x;'],
  ['html', '<!-- a --><p class="b">', 'c<<!-- a -->><p k<class>=s<"b">>'],
  ['diff', '+a\n-b\n c\n@@ 1', 's<+a>\nr<-b>\n c\nh<@@ 1>'],
  ['text', 'const "a"', 'const "a"'],
  ['', 'const "a"', 'const "a"'],
  ['ts title=a', 'const', 'k<const>'],
  ['unheardof', 'if "a"', 'k<if> s<"a">'],
  ['ts', 'a1 = x2', 'a1 = x2'],
];

for (const [language, code, then] of rows) {
  test(`${language || 'no language'}: ${JSON.stringify(code)}`, () => {
    assert.equal(marked(code, language), then);
  });
}

test('without colours code stays as it is', () => {
  assert.deepEqual(highlightCode({ colour: 'no', columns: 80 }, safe`const a\n// b`, 'ts'), [
    'const a',
    '// b',
  ]);
});
