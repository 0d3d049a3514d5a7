import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialState } from '@pawl/agent/machine/machine';
import type { Dimension } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { budgetEvent, readBudget } from '../../src/interactive/slash-commands.js';

const words: readonly (readonly [string, string | null])[] = [
  ['5', '5 null'],
  ['$5', '5 usd'],
  ['0.50 dollars', '0.5 usd'],
  ['200k tokens', '200000 tokens'],
  ['1.5M tokens', '1500000 tokens'],
  ['30 rounds', '30 rounds'],
  ['10 minutes', '10 time'],
  ['0', '0 null'],
  ['much', null],
  ['-5', null],
  ['5 apples', null],
];

for (const [given, then] of words) {
  test(`/budget ${given} is ${then ?? 'no limit'}`, () => {
    const read = readBudget(given);
    assert.equal(read === null ? null : `${read.amount} ${read.unit}`, then);
  });
}

const state = initialState(settingsOf({}));
const stopped = (dimension: Dimension): State => ({
  name: 'WaitingForUserInput',
  session: state.session,
  reason: { kind: 'budget', dimension },
  next: 'rest',
});

test('without a unit: the limit that stopped the turn, else dollars', () => {
  assert.deepEqual(budgetEvent(stopped('rounds'), { amount: 50, unit: null }), {
    type: 'ApproveBudget',
    dimension: 'rounds',
    limit: 50,
  });
  assert.deepEqual(budgetEvent(stopped('time'), { amount: 2, unit: null }), {
    type: 'ApproveBudget',
    dimension: 'time',
    limit: 120_000,
  });
  const { limits } = state.session.settings;
  assert.deepEqual(budgetEvent(state, { amount: 5, unit: null }), {
    type: 'SettingsChanged',
    patch: { limits: { ...limits, usd: 5 } },
  });
});

test('another limit than the one that stopped the turn is set', () => {
  const { limits } = state.session.settings;
  assert.deepEqual(budgetEvent(stopped('rounds'), { amount: 10, unit: 'time' }), {
    type: 'SettingsChanged',
    patch: { limits: { ...limits, timeMs: 600_000 } },
  });
});
