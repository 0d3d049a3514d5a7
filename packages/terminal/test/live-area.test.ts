import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fakeClock } from '../../../test/fake-clock.js';
import { createEmulator } from '../../../test/kit/terminal/screen.js';
import { countCases } from '../../../test/tier.js';
import { createLiveArea, detectReflow, type Frame, type Reflow } from '../src/live-area.js';
import { countColumns, wrapText } from '../src/paint.js';
import { keepStyles } from '../src/safe-text.js';

/** The live area against a real terminal emulator: what counts is what the screen shows. */

const FRAME_MS = 33;
/** What wipes what somebody else wrote: the screen, scroll-back, another screen, the terminal itself. */
const WIPES = /\u001b\[[123]J|\u001b\[\?(?:1049|1047|47)[hl]|\u001bc/;

type Drawn = { readonly rows: readonly string[]; readonly cursor: Frame['cursor'] };

const shown = ({ rows, cursor }: Drawn): Frame => ({ rows: rows.map(keepStyles), cursor });

const stage = (columns: number, rows: number, reflow: Reflow = 'byXterm') => {
  const clock = fakeClock();
  const screen = createEmulator(columns, rows);
  const live = createLiveArea({ write: screen.write, size: screen.size, clock, reflow });
  const area = {
    print: (text: string) => live.print(keepStyles(text)),
    draw: (drawn: Drawn | (() => Drawn)) =>
      live.draw(typeof drawn === 'function' ? () => shown(drawn()) : shown(drawn)),
    clear: () => live.clear(),
  };
  /** Lets what is coalesced be drawn. */
  const pass = (): void => clock.advance(FRAME_MS);
  return { clock, screen, area, pass };
};

/** The frame with its cursor behind the last row. */
const frame = (...rows: readonly string[]): Frame => ({
  rows: rows.map(keepStyles),
  cursor: { row: rows.length - 1, column: countColumns(rows.at(-1) ?? '') },
});

test('printed lines stand above the frame, and the cursor is in its place', async () => {
  const { screen, area, pass } = stage(40, 10);
  area.print('one');
  area.draw({ rows: ['ready', '> abc'], cursor: { row: 1, column: 3 } });
  area.print('two\nthree');
  area.draw({ rows: ['thinking', '> abc'], cursor: { row: 1, column: 4 } });
  pass();
  assert.equal(await screen.text(), 'one\ntwo\nthree\nthinking\n> abc');
  assert.deepEqual(await screen.cursor(), { row: 4, column: 4 });
});

test('rows that do not differ are not written, and nothing is written where none differs', () => {
  const { screen, area, pass } = stage(40, 10);
  area.draw(frame('first row', 'second row', '> '));
  pass();
  area.draw(frame('first row', 'changed row', '> '));
  pass();
  assert.match(screen.writes()[1] ?? '', /changed row/);
  assert.doesNotMatch(screen.writes()[1] ?? '', /first row|>/);
  area.draw(frame('first row', 'changed row', '> '));
  pass();
  assert.equal(screen.writes().length, 2);
});

test('rows below what is printed or left out move, and are not written again', async () => {
  const { screen, area, pass } = stage(40, 10);
  const below = ['> x', 'an edge', 'settings'];
  const draw = (...rows: readonly string[]): void => {
    area.draw({ rows: [...rows, ...below], cursor: { row: rows.length, column: 3 } });
    pass();
  };
  draw('a tail', 'status');
  area.print('a finished line\nanother');
  draw('status');
  draw('a tail', 'of two', 'status');
  draw('status');
  assert.equal(screen.writes().join('').split('an edge').length, 2);
  assert.equal(await screen.text(), ['a finished line', 'another', 'status', ...below].join('\n'));
  assert.deepEqual(await screen.cursor(), { row: 3, column: 3 });
});

test('rows that become scroll-back as they stand are not written again', async () => {
  const { screen, area, pass } = stage(40, 10);
  area.draw(frame('a block that', 'is finished', 'status', '> '));
  pass();
  area.print('a block that\nis finished');
  area.draw(frame('status', '> '));
  pass();
  assert.equal(screen.writes().length, 1);
  area.draw(frame('status', '> x'));
  pass();
  assert.equal(await screen.text(), 'a block that\nis finished\nstatus\n> x');
});

test('each change is one write in a synchronized update', () => {
  const { screen, area, pass } = stage(40, 10);
  for (let step = 0; step < 5; step++) {
    area.print(`line ${step}`);
    area.draw(frame(`status ${step}`, '> '));
    pass();
  }
  assert.equal(screen.writes().length, 5);
  for (const text of screen.writes()) assert.match(text, /^\u001b\[\?2026h[\s\S]*\u001b\[\?2026l$/);
});

test('draws within one picture are one write, with the last state and all that was printed', async () => {
  const { clock, screen, area } = stage(40, 10);
  area.draw(frame('0'));
  for (let step = 1; step <= 20; step++) {
    clock.advance(1);
    area.print(`line ${step}`);
    area.draw(() => frame(String(step)));
  }
  assert.equal(screen.writes().length, 1);
  clock.advance(FRAME_MS);
  assert.equal(screen.writes().length, 2);
  const lines = (await screen.text()).split('\n');
  assert.equal(lines.length, 21);
  assert.equal(lines.at(-1), '20');
  assert.equal(clock.waiting(), 0);
});

test('a frame that is never drawn is never laid out', () => {
  const { clock, area } = stage(40, 10);
  let asked = 0;
  area.draw(frame('x'));
  for (let step = 0; step < 100; step++) {
    area.draw(() => {
      asked += 1;
      return frame(String(step));
    });
  }
  clock.advance(FRAME_MS);
  assert.equal(asked, 1);
});

test('an area higher than the screen shows its end, and leaves no trace when it shrinks', async () => {
  const { screen, area, pass } = stage(40, 6);
  area.print('above');
  const high = Array.from({ length: 30 }, (_, row) => `row ${row}`);
  area.draw(frame(...high));
  pass();
  assert.equal(
    (await screen.text()).split('\n').slice(1).join(' '),
    'row 25 row 26 row 27 row 28 row 29',
  );
  area.draw(frame('ready', '> '));
  pass();
  assert.equal(await screen.text(), 'above\nready\n>');
});

test('rows around the cursor are never cut off', async () => {
  const { screen, area, pass } = stage(40, 6);
  area.draw({
    rows: Array.from({ length: 30 }, (_, row) => `row ${row}`),
    cursor: { row: 3, column: 2 },
  });
  pass();
  assert.match(await screen.text(), /^row 3\n/);
  assert.deepEqual(await screen.cursor(), { row: 0, column: 2 });
});

test('a hidden cursor is shown again when the area is removed', () => {
  const { screen, area, pass } = stage(40, 6);
  area.draw({ rows: ['working'], cursor: null });
  pass();
  assert.match(screen.written(), /\u001b\[\?25l/);
  area.clear();
  assert.match(screen.writes().at(-1) ?? '', /\u001b\[\?25h/);
});

test('removing the area prints what waits and leaves an empty line', async () => {
  const { screen, area } = stage(40, 6);
  area.print('before');
  area.draw(frame('status', '> typed'));
  area.print('last words');
  area.clear();
  assert.equal(await screen.text(), 'before\nlast words');
  assert.deepEqual(await screen.cursor(), { row: 2, column: 0 });
});

test('a row that is wider than it was thought takes one row all the same', async () => {
  const { screen, area, pass } = stage(10, 6);
  area.draw(frame('ready', 'x'.repeat(25), '> '));
  pass();
  area.draw(frame('done', '> '));
  pass();
  assert.equal(await screen.text(), 'done\n>');
});

test('a cursor at the end of a long row is found again in a narrower window', async () => {
  const { screen, area, pass } = stage(80, 12);
  area.print('earlier');
  area.draw(frame('status', `> ${'x'.repeat(70)}`));
  pass();
  await screen.resize(40, 12);
  area.draw(frame('status', '> short'));
  pass();
  assert.equal(await screen.text(), 'earlier\nstatus\n> short');
});

const sizes: readonly (readonly [string, readonly (readonly [number, number])[]])[] = [
  ['narrower', [[40, 12]]],
  ['wider', [[120, 12]]],
  ['lower', [[80, 8]]],
  ['higher', [[80, 30]]],
  [
    'narrower and wider, again and again',
    [
      [70, 12],
      [100, 12],
      [50, 12],
      [110, 12],
      [33, 12],
      [90, 12],
    ],
  ],
];

for (const [title, windows] of sizes) {
  test(`a window that gets ${title} keeps scroll-back whole, and shows one status`, async () => {
    const { screen, area, pass } = stage(80, 12);
    const printed = Array.from({ length: 10 }, (_, row) => `earlier line ${row}`);
    area.print(printed.join('\n'));
    const status = (): string => `status ${'.'.repeat(screen.size().columns - 8)}`;
    const draw = (): void => area.draw(frame(status(), '> typed'));
    draw();
    pass();
    for (const [columns, rows] of windows) {
      await screen.resize(columns, rows);
      draw();
      pass();
      const lines = (await screen.text()).split('\n');
      assert.deepEqual(lines.slice(0, 10), printed);
      assert.deepEqual(lines.slice(10), [status(), '> typed']);
    }
    assert.doesNotMatch(screen.written(), WIPES);
  });
}

/** As a terminal shows it: no colours, no spaces at the end. */
const seen = (row: string): string => row.replaceAll('\u001b[1m', '').trimEnd();

const anyLine = fc.string({ unit: fc.constantFrom('a', 'b ', '日'), maxLength: 45 });
const anyWindows = fc.array(fc.integer({ min: 20, max: 110 }), { minLength: 1, maxLength: 3 });

test('however often the window changes, the area is found again wherever its cursor is', async () => {
  const run = async (
    changes: readonly { rows: readonly string[]; cursorAt: number; windows: readonly number[] }[],
  ) => {
    const { screen, area, pass } = stage(80, 40);
    // the second line is wrapped by the terminal
    const printed = ['earlier', 'x'.repeat(150)];
    area.print(printed.join('\n'));
    for (const { rows, cursorAt, windows } of changes) {
      const draw = (): readonly string[] => {
        const { columns } = screen.size();
        const edge = '─'.repeat(columns - 1);
        const drawn = [edge, ...rows.flatMap((row) => wrapText(keepStyles(row), columns)), edge];
        const row = cursorAt % drawn.length;
        area.draw({ rows: drawn, cursor: { row, column: countColumns(drawn[row] ?? '') } });
        pass();
        return drawn;
      };
      draw();
      for (const columns of windows) {
        await screen.resize(columns, 40);
        const last = draw();
        const above = printed.flatMap((line) => wrapText(keepStyles(line), columns));
        assert.equal(await screen.text(), [...above, ...last].map(seen).join('\n').trimEnd());
      }
    }
  };
  const anyChange = fc.record({
    rows: fc.array(anyLine, { minLength: 1, maxLength: 4 }),
    cursorAt: fc.nat(20),
    windows: anyWindows,
  });
  await fc.assert(fc.asyncProperty(fc.array(anyChange, { maxLength: 4 }), run), {
    numRuns: countCases(200),
  });
});

test('variables tell how a terminal rewraps long rows', () => {
  assert.equal(detectReflow({ TERM: 'xterm-256color', XTERM_VERSION: 'XTerm(390)' }), 'none');
  assert.equal(detectReflow({ TERM: 'linux' }), 'none');
  assert.equal(detectReflow({ TERM: 'screen', STY: '1.pts' }), 'none');
  assert.equal(detectReflow({ TERM: 'xterm-256color', TERM_PROGRAM: 'vscode' }), 'byXterm');
  assert.equal(detectReflow({ TERM: 'xterm-kitty' }), 'all');
});

const anyRow = fc.string({
  unit: fc.constantFrom('a', 'b', ' ', '日', 'é', '\u001b[1m'),
  maxLength: 30,
});
const anyStep = fc.oneof(
  fc.record({
    kind: fc.constant('print' as const),
    rows: fc.array(anyRow, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    kind: fc.constant('draw' as const),
    rows: fc.array(anyRow, { minLength: 1, maxLength: 12 }),
  }),
  fc.record({ kind: fc.constant('pass' as const), rows: fc.constant([]) }),
);

test('after random output the screen shows all printed lines in order, then the last frame', async () => {
  const run = async (
    steps: readonly { kind: 'print' | 'draw' | 'pass'; rows: readonly string[] }[],
  ) => {
    const { screen, area, pass } = stage(40, 8);
    const printed: string[] = [];
    let last: readonly string[] = [];
    for (const step of steps) {
      if (step.kind === 'pass') pass();
      if (step.kind === 'print') {
        area.print(step.rows.join('\n'));
        printed.push(...step.rows.flatMap((row) => row.split('\n')));
      }
      if (step.kind !== 'draw') continue;
      last = step.rows.flatMap((row) => wrapText(keepStyles(row), 40));
      area.draw(frame(...last));
    }
    pass();
    const shown = [...printed, ...last.slice(-7)].map(seen).join('\n').trimEnd();
    assert.equal(await screen.text(), shown);
    assert.doesNotMatch(screen.written(), WIPES);
  };
  await fc.assert(fc.asyncProperty(fc.array(anyStep, { maxLength: 25 }), run), {
    numRuns: countCases(200),
  });
});
