import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { keyOf } from '../../../test/kit/terminal/typing.js';
import {
  afterSend,
  applyKey,
  breakLine,
  type Editor,
  editorFrame,
  emptyEditor,
  insertPaste,
  movedByRow,
  shownText,
  wholeText,
  withText,
} from '../src/composer.js';
import { countColumns } from '../src/paint.js';

/** An editor of a text with `|` where the cursor stands. */
const at = (marked: string): Editor => {
  const cursor = marked.indexOf('|');
  return { ...emptyEditor, text: marked.replace('|', ''), cursor };
};
const show = ({ text, cursor }: Editor): string => `${text.slice(0, cursor)}|${text.slice(cursor)}`;
const press = (editor: Editor, ...keys: readonly string[]): Editor =>
  keys.reduce((now, key) => applyKey(now, keyOf(key)), editor);

const rows: readonly (readonly [
  title: string,
  given: string,
  keys: readonly string[],
  then: string,
])[] = [
  ['letters go in where the cursor stands', 'a|c', ["'b'"], 'ab|c'],
  ['left and right, over composed signs as one', 'a👨‍👩‍👧|é', ['left', "'x'"], 'ax|👨‍👩‍👧é'],
  ['backspace takes a whole sign', 'a👨‍👩‍👧|', ['backspace'], 'a|'],
  ['delete takes a whole sign', '|e\u0301x', ['delete'], '|x'],
  ['backspace at the start of a line joins it', 'a\n|b', ['backspace'], 'a|b'],
  ['Ctrl-A and Ctrl-E stay in the line', 'a\nb|c\nd', ['C-a', "'x'", 'C-e', "'y'"], 'a\nxbcy|\nd'],
  [
    'Ctrl-Home and Ctrl-End go to the ends of the text',
    'a\nb|\nc',
    ['C-home', "'x'", 'C-end', "'y'"],
    'xa\nb\ncy|',
  ],
  [
    'word left and right',
    'one two| three',
    ['A-left', "'x'", 'C-right', 'C-right', "'y'"],
    'one xtwo threey|',
  ],
  ['Ctrl-W cuts a word, Ctrl-Y puts it back', 'one two|', ['C-w', 'C-y', 'C-y'], 'one twotwo|'],
  ['Ctrl-U cuts to the start of the line', 'a\nbc|d', ['C-u'], 'a\n|d'],
  ['Ctrl-U goes on with the line above', 'a\nbc|d', ['C-u', 'C-u', 'C-u'], '|d'],
  ['Ctrl-U at the start of the text', '|a', ['C-u'], '|a'],
  ['Ctrl-K cuts to the end of the line, then the break', 'a|b\nc', ['C-k', 'C-k'], 'a|c'],
  ['Alt+D cuts the next word', '|one two', ['A-d'], '| two'],
  ['Ctrl-J makes a new line', 'a|b', ['C-j'], 'a\n|b'],
  [
    'undo takes back words, and what was cut',
    '|',
    ["'on'", "'e'", "' '", "'two'", 'C-w', 'C-_'],
    'one two|',
  ],
  [
    'undo again takes back what was typed, a word at a time',
    '|',
    ["'on'", "'e'", "' '", "'two'", 'C-_'],
    'one|',
  ],
  ['undo with nothing to undo', '|', ['C-_'], '|'],
  [
    'a key that means nothing changes nothing',
    'a|b',
    ['f1', 'C-q', 'A-x', 'C-A-a', 'escape', 'tab'],
    'a|b',
  ],
  ['control characters do not get into the text', '|', ["'a\u0007\u001bb'"], 'ab|'],
];

for (const [title, given, keys, then] of rows) {
  test(title, () => assert.equal(show(press(at(given), ...keys)), then));
}

test('a new line takes the backslash before it', () => {
  assert.equal(show(breakLine(at('a\\|b'))), 'a\n|b');
  assert.equal(show(breakLine(at('a|b'))), 'a\n|b');
});

test('a short paste goes in as it is, tabs and line breaks too', () => {
  assert.equal(show(insertPaste(at('a|c'), 'x\r\n\ty\u001b[0m')), 'ax\n\ty[0m|c');
});

test('a long paste stands as one mark, is one sign to the cursor, and is whole when it is sent', () => {
  const long = Array.from({ length: 20 }, (_, index) => `\tline ${index}`).join('\n');
  const editor = press(insertPaste(at('see |!'), long), "' and'");
  assert.equal(shownText(editor), 'see [paste #1 +20 lines] and!');
  assert.equal(wholeText(editor), `see ${long} and!`);
  const without = press(editor, 'A-b', 'left', 'backspace');
  assert.equal(wholeText(without), 'see  and!');
  assert.equal(wholeText(press(without, 'C-_')), `see ${long} and!`);
  assert.equal(afterSend(editor).text, '');
});

test('a character that looks like the mark of a paste is text', () => {
  const editor = insertPaste(at('[paste #1 +20 lines] \ufdd0|'), 'x\n'.repeat(30));
  assert.match(wholeText(editor), /^\[paste #1 \+20 lines\] /);
  const twice = insertPaste(editor, 'y'.repeat(2_000));
  assert.match(shownText(twice), /\[paste #2 2000 characters\]$/);
});

test('more long pastes than there are marks go in unfolded', () => {
  let editor = emptyEditor;
  const each = Array.from({ length: 40 }, (_, index) => `${index}\n`.repeat(15));
  for (const text of each) editor = insertPaste(editor, text);
  assert.equal(wholeText(editor), each.join(''));
});

const frame = (editor: Editor, columns: number, rowsMax = 20) => {
  const { rows: drawn, cursor } = editorFrame(editor, columns, rowsMax);
  return [...drawn, `${cursor.row},${cursor.column}`];
};

test('words stay whole where a row is broken; a word longer than a row is broken', () => {
  assert.deepEqual(frame(at('one two three|'), 12), ['> one two ', '  three', '1,7']);
  assert.deepEqual(frame(at('abcdefghijkl|'), 11), ['> abcdefgh', '  ijkl', '1,6']);
});

test('a row that is broken twice at once is not too wide either', () => {
  const two = insertPaste(
    insertPaste(applyKey(emptyEditor, keyOf("' '")), 'p\n'.repeat(12)),
    'p\n'.repeat(12),
  );
  assert.deepEqual(frame(two, 24), [
    '>  ',
    '  [paste #1 +13 lines]',
    '  [paste #2 +13 lines]',
    '2,22',
  ]);
});

test('wide signs take two columns and are never cut in half', () => {
  assert.deepEqual(frame(at('日本語日|本語'), 12), ['> 日本語日', '  本語', '1,2']);
});

test('a cursor at the end of a full row has a column to stand in', () => {
  assert.deepEqual(frame(at('abcdefgh|'), 11), ['> abcdefgh', '0,10']);
});

test('a long text shows the rows around the cursor, and that there are more', () => {
  const text = Array.from({ length: 9 }, (_, index) => `line ${index}`).join('\n');
  assert.deepEqual(frame(at(`|${text}`), 20, 3), ['> line 0', '  line 1', '↓ line 2', '0,2']);
  assert.deepEqual(frame(at(`${text}|`), 20, 3), ['↑ line 6', '  line 7', '  line 8', '2,8']);
});

test('up and down keep the column, over rows of one line and over lines', () => {
  const editor = at('one two three\nx\nabc|');
  const up = movedByRow(editor, -1, 12);
  assert.ok(up !== null);
  assert.equal(show(up), 'one two three\nx|\nabc');
  const upper = movedByRow(up, -1, 12);
  assert.equal(upper === null ? '' : show(upper), 'one two t|hree\nx\nabc');
  assert.equal(movedByRow(at('one| two'), -1, 80), null);
  assert.equal(movedByRow(at('one| two'), 1, 80), null);
});

const anyKey = fc.constantFrom(
  ...[
    "'a'",
    "' '",
    "'日'",
    "'👨‍👩‍👧'",
    "'e\u0301'",
    'left',
    'right',
    'home',
    'end',
    'backspace',
    'delete',
    'C-w',
    'C-k',
    'C-u',
  ],
  ...['C-y', 'C-j', 'C-_', 'A-b', 'A-f', 'A-d', 'up', 'down', 'paste'],
);

test('after random keys the cursor is inside the text, and no row is wider than the screen', () => {
  fc.assert(
    fc.property(
      fc.array(anyKey, { maxLength: 60 }),
      fc.integer({ min: 12, max: 30 }),
      (keys, columns) => {
        let editor = emptyEditor;
        for (const key of keys) {
          if (key === 'paste') editor = insertPaste(editor, 'p\n'.repeat(12));
          else if (key === 'up' || key === 'down')
            editor = movedByRow(editor, key === 'up' ? -1 : 1, columns) ?? editor;
          else editor = applyKey(editor, keyOf(key));
          assert.ok(editor.cursor >= 0 && editor.cursor <= editor.text.length);
          const drawn = editorFrame(editor, columns, 5);
          for (const row of drawn.rows)
            assert.ok(countColumns(row) < columns, `${row} in ${columns}`);
          assert.ok(drawn.rows.length <= 5);
          assert.ok(drawn.cursor.row < drawn.rows.length && drawn.cursor.column < columns);
        }
      },
    ),
  );
});

test('undo as often as there was a change leads back to where it began', () => {
  fc.assert(
    fc.property(fc.array(anyKey, { maxLength: 40 }), (keys) => {
      let editor = withText(emptyEditor, 'begin');
      editor = { ...editor, past: [] };
      for (const key of keys)
        if (!['paste', 'up', 'down'].includes(key)) editor = applyKey(editor, keyOf(key));
      for (let count = 0; count <= 200; count += 1) editor = applyKey(editor, keyOf('C-_'));
      assert.equal(editor.text, 'begin');
    }),
  );
});
