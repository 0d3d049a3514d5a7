import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import type { FallbackModel, Settings } from '../../src/machine/settings.js';
import { resumedChanges } from '../../src/session/session-settings.js';

// A session that was stopped while `b/second` answered in place of `a/first`.

const second: FallbackModel = {
  model: 'b/second',
  windowTokens: 9_000,
  prices: { input: 1, output: 5, cacheRead: 0, cacheWrite: 0 },
};
const unpriced: FallbackModel = { ...second, prices: null };
const primary = { model: 'a/first', windowTokens: 200_000, cancelMode: 'abort' as const };
const LIMITED = { usd: 1 };

const rows: readonly (readonly [
  title: string,
  list: readonly FallbackModel[],
  more: { model?: string; origin?: 'foreign'; limits?: object },
  changes: Partial<Settings>,
])[] = [
  ['goes on with it', [second], {}, {}],
  ['under a limit too', [second], { limits: LIMITED }, {}],
  ['without a price, where there is no limit', [unpriced], {}, { fallback: [unpriced] }],
  [
    'not without a price under a limit',
    [unpriced],
    { limits: LIMITED },
    { fallback: [unpriced], model: 'a/first', windowTokens: 200_000 },
  ],
  [
    'unless the user allows it',
    [{ ...unpriced, unpriced: 'countAsNothing' }],
    { limits: LIMITED },
    { fallback: [{ ...unpriced, unpriced: 'countAsNothing' }] },
  ],
  [
    'not if it is in no list any more',
    [],
    {},
    { fallback: [], model: 'a/first', windowTokens: 200_000 },
  ],
  [
    'not if another model is named',
    [second],
    { model: 'c/mine' },
    { model: 'c/mine', windowTokens: 200_000 },
  ],
  [
    'nor if the very one is named',
    [second],
    { model: 'b/second' },
    { model: 'b/second', windowTokens: 200_000 },
  ],
  [
    'not if the session came from elsewhere',
    [second],
    { origin: 'foreign' },
    { model: 'a/first', windowTokens: 200_000 },
  ],
];
for (const [title, list, { model = 'a/first', origin = 'own', limits = {} }, changes] of rows)
  test(`a resumed turn: ${title}`, () => {
    const { model: current, windowTokens } = second;
    const before = settingsOf({
      model: current,
      windowTokens,
      primary,
      fallback: [second],
      limits,
    });
    const fresh = { ...before, model, windowTokens: 200_000 };
    assert.deepEqual(resumedChanges({ settings: before, origin }, fresh, list), changes);
  });
