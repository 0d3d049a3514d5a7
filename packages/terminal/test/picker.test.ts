import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keyOf } from '../../../test/kit/terminal/typing.js';
import { openPicker, type Picker, pick, pickerFrame } from '../src/choices.js';
import { countColumns } from '../src/paint.js';
import { safe } from '../src/safe-text.js';

const choices = ['apple', 'pear', 'plum', 'pineapple'].map((text) => ({ text, about: 'fruit' }));

const press = (...keys: readonly string[]): Picker | number => {
  let picker = openPicker('Fruit:', choices);
  for (const key of keys) {
    const picked = pick(picker, { kind: 'key', key: keyOf(key) });
    if (picked.kind === 'taken') return picked.index;
    picker = picked.picker;
  }
  return picker;
};

const rows: readonly (readonly [title: string, keys: readonly string[], index: number])[] = [
  ['Enter takes the first', ['enter'], 0],
  ['arrows move, and go round', ['down', 'down', 'enter'], 2],
  ['up from the first is the last', ['up', 'enter'], 3],
  ['an emoji is one letter', ["'👍🏽'", 'backspace', "'pl'", 'enter'], 2],
  ['letters narrow it', ["'pl'", 'enter'], 2],
  ['what was narrowed away comes back', ["'plz'", 'backspace', 'enter'], 2],
];

for (const [title, keys, index] of rows)
  test(`a list: ${title}`, () => assert.equal(press(...keys), index));

test('a list: where nothing fits nothing is taken', () => {
  const picker = press("'xyz'", 'enter', 'down');
  assert.ok(typeof picker !== 'number');
  assert.deepEqual(pickerFrame(picker, 40, (row) => row).rows.slice(0, 2), [
    'Fruit: xyz',
    '  nothing fits',
  ]);
});

test('a list: what it shows', () => {
  const picker = press('down');
  assert.ok(typeof picker !== 'number');
  assert.deepEqual(pickerFrame(picker, 60, (row) => safe`*${row}`).rows, [
    'Fruit: ',
    '  apple      fruit',
    '*› pear       fruit',
    '  plum       fruit',
    '  pineapple  fruit',
    '  ↑ ↓ move · type to filter · Enter selects · Escape closes',
  ]);
});

test('a list: one long name cuts its own beginning, not what is said about the others', () => {
  const long = { text: `scripted//tmp/${'folder/'.repeat(12)}model`, about: 'current · $3 in' };
  const frame = (columns: number) =>
    pickerFrame(openPicker('Model:', [long, ...choices]), columns, (row) => row).rows;
  for (const columns of [40, 80]) {
    assert.match(frame(columns)[1] ?? '', /^› ….*folder\/model {2}current · \$3 in$/);
    assert.match(frame(columns)[2] ?? '', /^ {2}apple +fruit$/);
  }
});

test('a list: the cursor stands on the present choice, and Enter at once keeps it', () => {
  const at = (current: number, all = choices) =>
    pick(openPicker('Fruit:', all, current), { kind: 'key', key: keyOf('enter') });
  assert.deepEqual(at(2), { kind: 'taken', index: 2 });
  assert.deepEqual(at(-1), { kind: 'taken', index: 0 });
  assert.deepEqual(at(9), { kind: 'taken', index: 3 });
  const many = Array.from({ length: 90 }, (_, index) => ({ text: `fruit ${index}`, about: '' }));
  assert.deepEqual(at(80, many), { kind: 'taken', index: 80 });
});

test('a list: wide letters keep the columns, and are not cut in half', () => {
  const wide = { text: `${'果'.repeat(30)}👍🏽`, about: 'fruit' };
  const { rows: lines, cursor } = pickerFrame(
    openPicker('果:', [wide, ...choices]),
    40,
    (row) => row,
  );
  assert.deepEqual(
    lines.slice(1, 3).map((line) => countColumns(line.slice(0, line.indexOf('fruit')))),
    [34, 34],
  );
  assert.match(lines[1] ?? '', /^› …果+👍🏽/);
  assert.deepEqual(cursor, { row: 0, column: 4 });
});
