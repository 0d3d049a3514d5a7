import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '@pawl/agent/platform/clock';
import { createEmulator } from '../../../test/kit/terminal/screen.js';
import { keyOf } from '../../../test/kit/terminal/typing.js';
import { createLiveArea } from '../src/live-area.js';
import {
  openPointList,
  type PointList,
  pointListFrame,
  pressAtPoints,
} from '../src/rewind-list.js';
import { type Safe, safe } from '../src/safe-text.js';

const FOLDER = join(import.meta.dirname, 'frames');

const points = [
  { kind: 'calls', when: '', text: 'edit src/parser.ts', about: '+12 −3 src/parser.ts' },
  { kind: 'calls', when: '', text: 'bash npm run clean', about: '2 files deleted' },
  {
    kind: 'turn',
    when: '14:00',
    text: 'clean up the build folder and then make the parser faster',
    about: '+12 −3 src/parser.ts, 2 files deleted; 2 of them while commands ran',
  },
  { kind: 'calls', when: '', text: 'write tests/a.test.ts', about: 'tests/a.test.ts created' },
  {
    kind: 'turn',
    when: '13:40',
    text: '日本語のテスト\n日本語のテスト日本語のテスト',
    about: 'tests/a.test.ts created',
  },
  { kind: 'turn', when: '13:38', text: 'what is this?', about: '' },
  ...Array.from({ length: 30 }, (_, index) => ({
    kind: 'turn' as const,
    when: '12:00',
    text: `an earlier turn, ${index + 1}`,
    about: '+1 −1 src/a.ts',
  })),
] as const;

const press = (list: PointList, ...keys: readonly string[]): PointList | number => {
  let open = list;
  for (const key of keys) {
    const taken = pressAtPoints(open, { kind: 'key', key: keyOf(key) });
    if (taken.kind === 'taken') return taken.index;
    open = taken.list;
  }
  return open;
};

const list = openPointList('Take back this and everything since:', points, 2, {
  wide: 'Enter takes back files and conversation (undone by /redo) · Tab only one',
  narrow: 'Enter: files + conversation · Tab one',
});

const rows: readonly (readonly [title: string, keys: readonly string[], index: number])[] = [
  ['Enter takes the last turn', ['enter'], 2],
  ['up is later, down is earlier', ['up', 'up', 'down', 'enter'], 1],
  ['it ends at the newest', ['up', 'up', 'up', 'up', 'enter'], 0],
  ['a page down', ['pagedown', 'enter'], 10],
  ['the earliest, which no limit hides', ['end', 'enter'], 35],
  ['the newest', ['end', 'home', 'enter'], 0],
  ['an emoji is one letter', ["'👍🏽'", 'backspace', "'what is'", 'enter'], 5],
  ['letters filter', ["'what is'", 'enter'], 5],
  ['what changed is searched, too', ["'TESTS/A'", 'enter'], 3],
  ['the selected row stays while it fits', ["'clean'", 'enter'], 2],
  [
    'what was filtered away comes back',
    ["'what'", ...Array.from({ length: 4 }, () => 'backspace'), 'up', 'enter'],
    4,
  ],
];

for (const [title, keys, index] of rows)
  test(`the list of a rewind: ${title}`, () => assert.equal(press(list, ...keys), index));

test('the list of a rewind: its rows and its hints are wide in the same windows', () => {
  for (let columns = 60; columns < 80; columns++) {
    const shown = pointListFrame(list, { columns, rows: 40 }, (row) => row).rows.join('\n');
    const isWide = /clean up .* {2}\+12/.test(shown);
    assert.equal(shown.includes('type to filter'), isWide, `${columns} columns`);
  }
});

test('the list of a rewind: where nothing fits nothing is taken', () => {
  const open = press(list, "'xyz'", 'enter', 'down', 'enter');
  assert.ok(typeof open !== 'number');
  assert.match(
    pointListFrame(open, { columns: 80, rows: 24 }, (row) => row).rows.join('\n'),
    /nothing fits/,
  );
});

test('the list of a rewind: a filter does not move the bar to other rows', () => {
  const mixed = openPointList(
    'Take back:',
    [
      { kind: 'answer', when: '', text: 'both', about: '' },
      { kind: 'turn', when: '14:00', text: 'clean up', about: '' },
      { kind: 'turn', when: '13:40', text: 'clean again', about: '' },
    ],
    2,
  );
  const filtered = press(mixed, "'clean'");
  assert.ok(typeof filtered !== 'number');
  const { rows } = pointListFrame(filtered, { columns: 80, rows: 24 }, (row) => row);
  assert.deepEqual(rows.slice(1, 3), ['│ 14:00 clean up', '› 13:40 clean again']);
});

const answers = openPointList('Take back "clean up the build folder":', [
  {
    kind: 'answer',
    when: '',
    text: 'both',
    about:
      '4 messages; src/parser.ts as before, 2 files are back · left as it is: b.ts (somebody else changed it since)',
  },
  { kind: 'answer', when: '', text: 'conversation', about: '4 messages; files stay as they are' },
  {
    kind: 'answer',
    when: '',
    text: 'files',
    about: 'src/parser.ts as before, 2 files are back; the conversation stays',
  },
]);

/** Pictures of the list in a window. `UPDATE=1` draws them anew; look at the diff. */
for (const [columns, rows] of [
  [80, 24],
  [40, 15],
  [20, 10],
] as const)
  test(`the list of a rewind looks in ${columns}x${rows} as it did`, async () => {
    const pictures: string[] = [];
    const lists: readonly (readonly [title: string, list: PointList | number])[] = [
      ['the list', list],
      ['an earlier turn', press(list, 'down', 'down')],
      ['the earliest', press(list, 'end')],
      ['filtered', press(list, "'clean'")],
      ['the answers', answers],
    ];
    for (const [title, open] of lists) {
      assert.ok(typeof open !== 'number');
      const screen = createEmulator(columns, rows);
      const area = createLiveArea({
        write: screen.write,
        size: screen.size,
        clock: systemClock,
        reflow: 'byXterm',
      });
      const frame = pointListFrame(open, { columns, rows }, (row: Safe) => row);
      assert.ok(frame.rows.length <= rows / 2 + 1, `${frame.rows.length} rows`);
      area.draw({ rows: [safe`ready`, ...frame.rows], cursor: null });
      pictures.push(`=== ${title}\n${await screen.text()}\n`);
    }
    const file = join(FOLDER, `rewind.${columns}x${rows}.txt`);
    if (process.env.UPDATE === '1') {
      mkdirSync(FOLDER, { recursive: true });
      writeFileSync(file, pictures.join('\n'));
    }
    assert.equal(pictures.join('\n'), readFileSync(file, 'utf8'));
  });
