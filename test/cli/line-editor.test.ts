import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  emptyLine,
  type Key,
  type Line,
  pasted,
  submitted,
  typed,
  withText,
} from '../../src/cli/line-editor.js';

const key = (name: string, text = ''): Key => ({ name, text, control: false, alt: false });
const letter = (text: string): Key => key(text, text);
const control = (name: string): Key => ({ name, text: '\u0001', control: true, alt: false });
const shown = ({ text, cursor }: Line): string => `${text.slice(0, cursor)}|${text.slice(cursor)}`;

const rows: readonly (readonly [string, string, readonly Key[], string])[] = [
  ['letters go in at the cursor', 'ac', [key('left'), letter('b')], 'ab|c'],
  ['backspace takes the letter before', 'abc', [key('left'), key('backspace')], 'a|c'],
  ['backspace at the beginning does nothing', 'a', [key('home'), key('backspace')], '|a'],
  ['delete takes the letter after', 'abc', [key('home'), key('delete')], '|bc'],
  ['backspace takes a whole emoji', 'a😀', [key('backspace')], 'a|'],
  ['left steps over a whole emoji', 'a😀', [key('left'), letter('b')], 'ab|😀'],
  ['Ctrl-A and Ctrl-E go to the ends', 'ab', [control('a'), letter('x'), control('e'), letter('y')], 'xaby|'],
  ['Ctrl-U cuts to the beginning', 'ab cd', [key('left'), control('u')], '|d'],
  ['Ctrl-K cuts to the end', 'ab cd', [control('a'), key('right'), control('k')], 'a|'],
  ['Ctrl-W cuts a word', 'ab cd ', [control('w')], 'ab |'],
  ['Ctrl-J makes a new line', 'a', [control('j'), letter('b')], 'a\nb|'],
  ['a control character is no text', 'a', [key('', '\u0007')], 'a|'],
  ['an unknown key does nothing', 'a', [key('f5'), control('q')], 'a|'],
];

for (const [title, given, keys, then] of rows) {
  test(title, () => {
    assert.equal(shown(keys.reduce(typed, withText(emptyLine(), given))), then);
  });
}

test('older lines are looked at, and the draft is still there', () => {
  let line = submitted(withText(emptyLine(), 'first'));
  line = submitted(withText(line, 'second'));
  line = withText(line, 'draft');
  line = typed(typed(line, key('up')), key('up'));
  assert.equal(line.text, 'first');
  assert.equal(typed(line, key('up')).text, 'first');
  line = typed(typed(line, key('down')), key('down'));
  assert.equal(line.text, 'draft');
});

test('a blank line and a repeated one are not remembered', () => {
  const once = submitted(withText(emptyLine(), 'one'));
  assert.deepEqual(submitted(withText(once, 'one')).past, ['one']);
  assert.deepEqual(submitted(withText(once, '  ')).past, ['one']);
});

test('a paste keeps its lines and loses its escapes', () => {
  assert.equal(shown(pasted(withText(emptyLine(), 'x'), 'a\r\nb\u001b[31m\tc')), 'xa\nb[31m\tc|');
});
