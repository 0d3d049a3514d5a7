import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialState } from '@pawl/agent/machine/machine';
import { type Dimension, defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import {
  inputBox,
  isMoving,
  keyCard,
  SPINNER_MS,
  settingsRow,
  settingsRows,
  statusRow,
} from '../src/live-area.js';
import { countColumns } from '../src/paint.js';
import { safe } from '../src/safe-text.js';

const START = 1_000_000;
const limits = { ...defaultSettings.limits, usd: 0.5 };
const { session } = initialState({
  ...defaultSettings,
  model: 'scripted/x',
  workspace: '/w',
  limits,
  windowTokens: 200_000,
});
const usage = { ...session.usage, inputTokens: 12_000, outputTokens: 800, costUsd: 0.12 };
const turn = { ...session.turn, startedAt: START };
const queue = [
  {
    inputId: 'i-1',
    text: 'use 日本語 words\nin the second line, and more',
    mode: 'steer' as const,
  },
  { inputId: 'i-2', text: 'then', mode: 'followUp' as const },
];
const busy = { ...session, usage, turn, queue, contextTokens: 24_600 };
const ready: State = { name: 'Ready', session: { ...busy, queue: [] } };
const calling: State = {
  name: 'CallingLlm',
  session: busy,
  purpose: { kind: 'user' } as unknown as Extract<State, { name: 'CallingLlm' }>['purpose'], // not looked at
  requestId: 'req-1',
  attempt: 1,
  partial: '',
  call: { mode: 'open' },
};

test('the status names the price of a pause from a cent on', () => {
  const shown = (coldUsd: number | null, columns = 140): string =>
    statusRow(ready, columns, START, { streamed: 0, typing: false, coldUsd });
  assert.match(shown(0.41), / · cache may be cold: about \$0\.41 · /);
  assert.match(shown(0.41, 70), / · cache may be cold: about \$0\.41/);
  assert.doesNotMatch(shown(0.009), /cache/);
  assert.doesNotMatch(shown(null), /cache/);
});

const rows: readonly (readonly [State, number, string])[] = [
  [ready, 100, 'ready · ? for keys'],
  [ready, 30, 'ready · ? for keys'],
  [ready, 10, 'ready'],
  [ready, 3, 're…'],
  [calling, 100, '⠋ thinking · 4.2s · 12.8k tokens · Escape stops'],
  [calling, 34, '⠋ thinking · 4.2s · Escape stops'],
  [calling, 20, '⠋ thinking · 4.2s'],
];

/** A time at which the spinner shows its first picture. */
const now = START + 4_200 - ((START + 4_200) % (10 * SPINNER_MS));

for (const [state, columns, then] of rows) {
  test(`${state.name} at ${columns} columns: ${then}`, () => {
    assert.equal(statusRow(state, columns, now).replace(/\d\.\ds/, '4.2s'), then);
  });
}

test('streamed tokens are an estimate, and the keys are those of the current state', () => {
  const shown = (streamed: number, typing: boolean): string =>
    statusRow(calling, 200, now, { streamed, typing });
  assert.match(shown(4_000, false), /· ~13\.8k tokens · Escape stops$/);
  assert.match(
    shown(0, true),
    /· 12\.8k tokens · Enter: with the next step · Alt\+Enter: after the turn$/,
  );
});

test('it names the servers that the request waits for', () => {
  const shown = (...servers: string[]): string =>
    statusRow(calling, 200, now, { streamed: 0, typing: false, servers });
  assert.match(shown('docs'), /^⠋ waiting for MCP server docs · /);
  assert.match(shown('docs', 'web'), /^⠋ waiting for MCP servers docs, web · /);
});

test('it fits any window', () => {
  for (let columns = 1; columns <= 130; columns++) {
    for (const state of [ready, calling])
      assert.ok(countColumns(statusRow(state, columns, now)) <= columns);
  }
});

test('the spinner turns while something runs; nothing moves while the user is waited for', () => {
  assert.notEqual(statusRow(calling, 100, now)[0], statusRow(calling, 100, now + SPINNER_MS)[0]);
  assert.equal(isMoving(calling), true);
  assert.equal(isMoving(ready), false);
  assert.equal(statusRow(ready, 100, now), statusRow(ready, 100, now + 60_000));
});

const look = { colour: 'no', columns: 100 } as const;
const careful = { ...session.settings, preset: 'careful', sandbox: 'workspace' } as const;
const set: State = {
  name: 'Ready',
  session: { ...ready.session, settings: { ...careful, effort: 'high' } },
};

const settingsTable: readonly (readonly [number, string])[] = [
  [110, '  careful (Shift+Tab) · sandbox on · x · effort high · $0.12 of $0.50 · context 12%'],
  [80, '  careful · sandbox on · x · effort high · $0.12 of $0.50 · context 12%'],
  [60, '  careful · x · effort high · $0.12 of $0.50 · context 12%'],
  [52, '  careful · x · $0.12 of $0.50 · context 12%'],
  [40, '  careful · x · $0.12 · context 12%'],
  [27, '  careful · x · $0.12'],
  [20, '  careful · $0.12'],
  [10, '  careful'],
];

for (const [columns, then] of settingsTable) {
  test(`the settings at ${columns} columns: ${then}`, () => {
    assert.equal(settingsRow(set, look, columns), then);
  });
}

test('the key that changes the preset is named only where it does so', () => {
  const full: State = {
    ...set,
    session: { ...set.session, settings: { ...careful, preset: 'full' } },
  };
  assert.match(settingsRow(set, look, 110), /Shift\+Tab/);
  assert.doesNotMatch(settingsRow(set, look, 110, 'notNamed'), /Shift\+Tab/);
  assert.match(settingsRow(full, look, 110), /^ {2}full · /);
});

test('the settings fit any window, and the preset stays longest', () => {
  for (let columns = 3; columns <= 130; columns++)
    assert.ok(countColumns(settingsRow(set, look, columns)) <= columns);
});

test('a sandbox that is off or missing is said even in a narrow window', () => {
  const shown = (sandbox: 'off' | 'missing'): string =>
    settingsRow(
      { ...set, session: { ...set.session, settings: { ...careful, sandbox } } },
      look,
      40,
    );
  assert.match(shown('off'), /^ {2}careful · sandbox off · /);
  assert.match(shown('missing'), /^ {2}careful · no sandbox · /);
});

test('without a limit only what was spent is said; an unknown price is no zero', () => {
  const free: State = {
    name: 'Ready',
    session: {
      ...session,
      settings: { ...session.settings, limits: { ...limits, usd: 'unlimited' as const } },
    },
  };
  assert.match(settingsRow(free, look, 100), / · \$0\.00 · /);
  const unpriced: State = {
    name: 'Ready',
    session: { ...session, usage: { ...usage, unpriced: 1 } },
  };
  assert.match(settingsRow(unpriced, look, 100), /price unknown of \$0\.50/);
});

test('the edges and the settings give way in a low window; the cursor stays in the line', () => {
  const line = { rows: [safe`> `], cursor: { row: 0, column: 2 } };
  const heights = [
    [24, 4, 1],
    [15, 3, 1],
    [10, 2, 0],
    [7, 1, 0],
  ] as const;
  for (const [rows, count, cursor] of heights) {
    const size = { columns: 40, rows };
    const box = inputBox(line, look, size, settingsRows(set, look, size));
    assert.equal(box.rows.length, count);
    assert.equal(box.cursor?.row, cursor);
    assert.equal(box.rows[cursor], '> ');
  }
});

test('the card has eight keys, in two columns where they fit', () => {
  for (const columns of [40, 80, 120]) {
    const card = keyCard(look, { columns });
    for (const row of card) assert.ok(countColumns(row) < columns);
    for (const key of ['Enter', 'Alt+Enter', 'Escape', 'Shift+Tab', '@', '!', 'Ctrl-O', '/'])
      assert.ok(
        card.some((row) => ` ${row}`.includes(` ${key} `)),
        key,
      );
  }
  assert.ok(keyCard(look, { columns: 120 }).length < keyCard(look, { columns: 80 }).length);
});

type Waiting = Extract<State, { name: 'WaitingForUserInput' }>;

const reached: readonly (readonly [Partial<typeof limits>, Dimension, string])[] = [
  [{ usd: 0.5 }, 'usd', 'limit reached: $0.50 · /budget 1 and /retry go on'],
  [{ usd: 0.002 }, 'usd', 'limit reached: $0.002 · /budget 0.004 and /retry go on'],
  [{ usd: 0.4 }, 'usd', 'limit reached: $0.40 · /budget 0.80 and /retry go on'],
  [{ tokens: 200_000 }, 'tokens', 'limit reached: 200.0k tokens · /budget 400k and /retry go on'],
  [{ timeMs: 600_000 }, 'time', 'limit reached: 10 minutes · /budget 20 and /retry go on'],
  [{ timeMs: 30_000 }, 'time', 'limit reached: 30 seconds · /budget 1 and /retry go on'],
  [{ timeMs: 90_000 }, 'time', 'limit reached: 90 seconds · /budget 3 and /retry go on'],
  [
    { errors: 3 },
    'errors',
    'limit reached: calls that fail again and again · /budget 6 and /retry go on',
  ],
];

for (const [changed, dimension, then] of reached) {
  test(`a limit says how it is raised: ${then}`, () => {
    const settings = { ...session.settings, limits: { ...limits, ...changed } };
    const state: State = {
      name: 'WaitingForUserInput',
      reason: { kind: 'budget', dimension },
      next: { kind: 'none' } as unknown as Waiting['next'], // not looked at
      session: { ...busy, queue: [], settings },
    };
    assert.equal(statusRow(state, 120, now), then);
  });
}
