import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialState } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { isMoving, SPINNER_MS, statusRow } from '../src/live-area.js';
import { countColumns } from '../src/paint.js';

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
  [ready, 100, 'ready · scripted/x · 12.8k tokens · $0.12 of $0.50 · 12% of context · /help'],
  [ready, 60, 'ready · 12.8k tokens · $0.12 of $0.50 · 12% of context'],
  [ready, 45, 'ready · $0.12 of $0.50 · 12% of context'],
  [ready, 30, 'ready · $0.12 of $0.50'],
  [ready, 10, 'ready'],
  [ready, 3, 're…'],
  [
    calling,
    140,
    '⠋ thinking · 4.2s · 2 waiting: use 日本語 words in the… · scripted/x · 12.8k tokens · $0.12 of $0.50 · 12% of context · Escape stops',
  ],
  [
    calling,
    120,
    '⠋ thinking · 4.2s · 2 waiting: use 日本語 words in the… · 12.8k tokens · $0.12 of $0.50 · 12% of context · Escape stops',
  ],
  [
    calling,
    90,
    '⠋ thinking · 4.2s · 2 waiting: use 日本語 words in the… · $0.12 of $0.50 · 12% of context',
  ],
  [calling, 60, '⠋ thinking · 4.2s · 2 waiting · $0.12 of $0.50'],
  [calling, 34, '⠋ thinking · 4.2s · 2 waiting'],
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
  assert.match(shown(4_000, false), /· ~13\.8k tokens ·.*· Escape stops$/);
  assert.match(
    shown(0, true),
    /· 12\.8k tokens ·.*· Enter: with the next step · Alt\+Enter: after the turn$/,
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

test('without a limit only what was spent is said; an unknown price is no zero', () => {
  const free: State = {
    name: 'Ready',
    session: {
      ...session,
      settings: { ...session.settings, limits: { ...limits, usd: 'unlimited' as const } },
    },
  };
  assert.match(statusRow(free, 100, now), / · \$0\.00 · /);
  const unpriced: State = {
    name: 'Ready',
    session: { ...session, usage: { ...usage, unpriced: 1 } },
  };
  assert.match(statusRow(unpriced, 100, now), /price unknown of \$0\.50/);
});
