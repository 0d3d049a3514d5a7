import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { watchCpu } from '../../../test/cpu-watch.js';
import * as width from '../src/paint.js';
import { keepStyles } from '../src/safe-text.js';

const { countColumns: columnsOf } = width;
const cutLine = (line: string, columns: number) => width.cutLine(keepStyles(line), columns);
const wrapText = (text: string, columns: number) => width.wrapText(keepStyles(text), columns);
const wrapWords = (text: string, columns: number) => width.wrapWords(keepStyles(text), columns);
const fitWords = (text: string, columns: number) => width.fitWords(keepStyles(text), columns);

const widths: readonly (readonly [string, number])[] = [
  ['', 0],
  ['abc', 3],
  ['日本', 4],
  ['e\u0301', 1],
  ['\u{1f389}', 2],
  ['\u{1f469}\u200d\u{1f4bb}', 2],
  ['\u{1f1e9}\u{1f1ea}', 2],
  ['⚠\ufe0f', 2],
  ['✓ · … ▸ ⠋', 9],
  ['\u001b[38;5;28mabc\u001b[39m', 3],
  ['\u001b]8;;http://x.y\u0007abc\u001b]8;;\u0007', 3],
];

for (const [text, columns] of widths) {
  test(`${JSON.stringify(text)} takes ${columns} columns`, () =>
    assert.equal(columnsOf(text), columns));
}

const cuts: readonly (readonly [string, number, string])[] = [
  ['abcdef', 6, 'abcdef'],
  ['abcdef', 5, 'abcd…'],
  ['日本語', 5, '日本…'],
  ['日本語', 4, '日…'],
  ['\u001b[31mabcdef\u001b[39m', 4, '\u001b[31mabc…\u001b[0m'],
  ['a\tb', 10, 'a    b'],
];

for (const [text, columns, then] of cuts) {
  test(`${JSON.stringify(text)} cut to ${columns} is ${JSON.stringify(then)}`, () => {
    assert.equal(cutLine(text, columns), then);
  });
}

const lines: readonly (readonly [string, number, string])[] = [
  ['one\n  two', 7, 'one two'],
  ['one\n  two', 5, 'one …'],
  ['日本語日本語', 6, '日本…'],
  ['日本語', 6, '日本語'],
  ['\u{1f389}\u{1f389}', 3, '\u{1f389}…'],
  ['\u{1f389}\u{1f389}', 2, '…'],
];

for (const [text, columns, then] of lines) {
  test(`${JSON.stringify(text)} as one line of ${columns} columns is ${JSON.stringify(then)}`, () => {
    assert.equal(width.oneLine(text, columns), then);
  });
}

test('a colour goes on in the next row, and is closed in each', () => {
  assert.deepEqual(wrapText('\u001b[1m\u001b[31mabcd\u001b[39mef\u001b[22mgh', 3), [
    '\u001b[1m\u001b[31mabc\u001b[0m',
    '\u001b[1m\u001b[31md\u001b[39mef\u001b[22m',
    'gh',
  ]);
});

test('a reset code ends all colours', () => {
  assert.deepEqual(wrapText('\u001b[1mab\u001b[0mcdef', 3), ['\u001b[1mab\u001b[0mc', 'def']);
});

test('words stay whole where they fit', () => {
  assert.deepEqual(wrapWords('one two three', 8), ['one two', 'three']);
  assert.deepEqual(fitWords('  abcdefghij k', 6), ['  abcd', 'efghij', 'k']);
  assert.deepEqual(wrapWords('  abcdefghij k', 6), ['  abcdefghij', 'k']);
  assert.deepEqual(wrapWords('日本語日本語 k', 6), ['日本語', '日本語', 'k']);
  assert.deepEqual(fitWords('\u001b[1mab cd\u001b[22m', 3), [
    '\u001b[1mab\u001b[0m',
    '\u001b[1mcd\u001b[22m',
  ]);
});

test('a long text has the same graphemes as in one piece, and takes time with its length only', () => {
  const units = [
    'a',
    '日',
    '\u{1f469}\u200d\u{1f4bb}',
    '\u{1f1e9}\u{1f1ea}',
    'e\u0301',
    '\u{1f389}',
  ];
  const whole = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  const anyLong = fc.string({ unit: fc.constantFrom(...units), minLength: 300, maxLength: 900 });
  const oneGrapheme = `a${'\u0301'.repeat(2_000)}\u{1f389}`;
  fc.assert(
    fc.property(fc.oneof(anyLong, fc.constant(oneGrapheme)), (text) => {
      const graphemes = Array.from(whole.segment(text), ({ segment }) => segment);
      assert.deepEqual(width.splitGraphemes(text), graphemes);
    }),
    { numRuns: 50 },
  );
  const long = '\u{1f469}\u200d\u{1f4bb}'.repeat(20_000); // ten seconds in one piece
  const cpuMs = watchCpu();
  assert.equal(columnsOf(long), 40_000);
  assert.ok(cpuMs() < 5_000);
});

const anyText = fc.string({
  unit: fc.constantFrom(
    'a',
    ' ',
    '日',
    '\n',
    '\u{1f469}\u200d\u{1f4bb}',
    '\u001b[31m',
    '\u001b[39m',
    'e\u0301',
  ),
  maxLength: 60,
});
const bare = (text: string): string => text.replace(/\u001b\[[\d;]*m/g, '');

test('no row is wider than it may be, and nothing is lost', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 2, max: 20 }), (text, columns) => {
      const rows = wrapText(text, columns);
      for (const row of rows) assert.ok(columnsOf(row) <= columns, JSON.stringify(row));
      assert.equal(bare(rows.join('')), bare(text.replaceAll('\n', '')));
      for (const row of fitWords(bare(text), columns)) assert.ok(columnsOf(row) <= columns, row);
      assert.ok(columnsOf(cutLine(text.replaceAll('\n', ''), columns)) <= columns);
    }),
  );
});
