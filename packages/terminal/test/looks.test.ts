import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diffRows, finishedDiff, loadWordMarks, markWords } from '../src/diff-rows.js';
import {
  type Background,
  backdropCode,
  countColumns,
  type Depth,
  depthIn,
  detectLook,
  type Look,
  paintTyped,
  shortened,
  styleCode,
  windowSize,
} from '../src/paint.js';
import { makeSafe } from '../src/safe-text.js';

/** Backdrops, marks inside changed lines, and where there are none. */

const look = (background: Background, depth: Depth, columns = 60): Look => ({
  colour: 'yes',
  columns,
  background,
  depth,
});

const DIFF = `--- a/x
+++ b/x
@@ -1,3 +1,4 @@
 const one = 1;
-const sum = (a, b) => a - b;
+const zero = 0;
+const sum = (a, b) => a + b;
`;

const bare = (rows: readonly string[]): string => rows.join('\n').replace(/\u001b\[[\d;]*m/g, '');

test('before the library is there nothing is marked', () => {
  assert.equal(markWords('const a = 1;', 'const a = 2;'), null);
});

test('colours of a terminal are known by its variables', () => {
  const rows: readonly (readonly [NodeJS.ProcessEnv, Depth])[] = [
    [{ COLORTERM: 'truecolor', TERM: 'xterm' }, 'true'],
    [{ COLORTERM: '24bit' }, 'true'],
    [{ TERM: 'xterm-256color' }, 'indexed'],
    [{ TERM: 'xterm', COLORTERM: 'yes' }, 'sixteen'],
    [{}, 'sixteen'],
  ];
  for (const [environment, depth] of rows) assert.equal(depthIn(environment), depth);
});

test('a terminal of sixteen colours gets codes of those alone', () => {
  const styles = ['green', 'yellow', 'heading', 'link', 'blue', 'code', 'dim'] as const;
  for (const background of ['dark', 'light', 'unknown'] as const)
    for (const style of styles) assert.match(styleCode(style, background, 'sixteen'), /^\d+$/);
  // control: one of 256 gets darker ones on white
  assert.match(styleCode('green', 'light', 'indexed'), /^38;5;/);
});

test('a window without a size gets the usual one', () => {
  assert.deepEqual(windowSize(0, 0), { columns: 80, rows: 24 });
  assert.deepEqual(windowSize(undefined, undefined), { columns: 80, rows: 24 });
  assert.deepEqual(windowSize(100, 30), { columns: 100, rows: 30 });
  assert.equal(detectLook({ isTTY: true, columns: 0 } as NodeJS.WriteStream, {}).columns, 80); // all that is looked at
});

test('there are no backdrops where they could make text unreadable', () => {
  assert.equal(backdropCode('added', 'unknown', 'true'), null);
  assert.equal(backdropCode('added', 'dark', 'sixteen'), null);
  for (const background of ['dark', 'light'] as const)
    assert.match(backdropCode('added', background, 'indexed') ?? '', /^48;5;\d+$/);
});

test('long texts of a resumed session are shown without their middle', () => {
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`);
  assert.match(
    shortened(lines.join('\n')),
    /^line 1\n[\s\S]*line 8\n… 18 more lines\nline 27\n[\s\S]*line 30$/,
  );
  assert.equal(shortened(lines.slice(0, 13).join('\n')), lines.slice(0, 13).join('\n'));
});

test('the user’s text breaks between words and is never wider than the window', () => {
  for (const columns of [20, 60]) {
    const typed = paintTyped(
      look('dark', 'true', columns),
      `${'many words of a long text '.repeat(4)}\nand 日本語`,
    );
    for (const row of typed.split('\n')) assert.ok(countColumns(row) < columns, row);
    assert.match(bare(typed.split('\n')), /^\n> many words/);
  }
  assert.match(paintTyped(look('unknown', 'true'), 'go'), /^\n\u001b\[1m> go\u001b\[22m$/);
});

test('where as many lines go as come, each stands above the one that replaces it', () => {
  const signs = (...lines: readonly string[]): string =>
    diffRows({ colour: 'no', columns: 60 }, `@@ -1 +1 @@\n${lines.join('\n')}\n`, finishedDiff(24))
      .rows.map((row) => row.trim().slice(2))
      .join(' ');
  assert.equal(signs('-a', '-b', '+A', '+B', ' c'), '- a + A - b + B   c');
  // control: another number of lines, and lines of two places
  assert.equal(signs('-a', '-b', '+A'), '- a - b + A');
  assert.equal(signs('-a', ' c', '+A'), '- a   c + A');
});

test('rows of a diff, with the library', async (context) => {
  await loadWordMarks();
  await context.test('the words that differ stand on a backdrop of their own', () => {
    const { rows } = diffRows(look('dark', 'true'), DIFF, finishedDiff(24));
    const removed = rows[1] ?? '';
    const added = rows[3] ?? '';
    assert.ok(
      removed.includes(`\u001b[${backdropCode('removedWord', 'dark', 'true')}m-\u001b[49m`),
      removed,
    );
    assert.ok(
      added.includes(`\u001b[${backdropCode('addedWord', 'dark', 'true')}m+\u001b[49m`),
      added,
    );
    // control: a line without a counterpart has no such words
    assert.ok(!rows[2]?.includes(backdropCode('addedWord', 'dark', 'true') ?? '?'), rows[2]);
  });
  await context.test(
    'changed lines end at the same column, unchanged ones have no backdrop',
    () => {
      const { rows } = diffRows(look('light', 'indexed'), DIFF, finishedDiff(24));
      assert.equal(new Set(rows.slice(1).map(countColumns)).size, 1);
      assert.doesNotMatch(rows[0] ?? '', /48;/);
    },
  );
  await context.test('text, numbers and signs are the same however it is coloured', () => {
    const plain = diffRows({ colour: 'no', columns: 60 }, DIFF, finishedDiff(24)).rows.join('\n');
    for (const background of ['dark', 'light', 'unknown'] as const) {
      for (const depth of ['sixteen', 'indexed', 'true'] as const) {
        const { rows } = diffRows(look(background, depth), DIFF, finishedDiff(24));
        assert.equal(bare(rows.map((row) => row)).replace(/ +$/gm, ''), plain);
      }
    }
  });
  await context.test(
    'where there are no backdrops, the words are underlined in their colour',
    () => {
      const { rows } = diffRows(look('unknown', 'true'), DIFF, finishedDiff(24));
      assert.match(rows[1] ?? '', /\u001b\[4m\u001b\[31m-\u001b\[39m\u001b\[24m/);
      assert.doesNotMatch(rows.join(''), /48;/);
    },
  );
  await context.test('rows stay within narrow windows', () => {
    for (const columns of [24, 30, 40])
      for (const row of diffRows(look('dark', 'true', columns), DIFF, finishedDiff(24)).rows)
        assert.ok(countColumns(row) <= columns, `${countColumns(row)} of ${columns}: ${row}`);
  });
  await context.test('lines with little in common are not marked', () => {
    assert.equal(markWords('one two three', 'completely other words'), null);
    assert.notEqual(markWords('one two three', 'one two four'), null);
    assert.equal(markWords('x '.repeat(300), 'x '.repeat(301)), null);
  });
  await context.test('escapes in a diff come to nothing', () => {
    const hostile = DIFF.replace('zero', 'ze\u001b[2Jro');
    assert.ok(
      !diffRows(look('dark', 'true'), hostile, finishedDiff(24))
        .rows.join('')
        .includes('\u001b[2J'),
    );
    assert.ok(makeSafe('\u001b[2J') !== '\u001b[2J');
  });
});
