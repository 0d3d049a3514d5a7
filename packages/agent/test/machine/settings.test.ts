import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { walk } from '../../../../test/kit/agent/walker.js';
import { initialState } from '../../src/machine/machine.js';
import {
  efforts,
  isLimited,
  isReached,
  readLimit,
  readLimits,
  remainingLimit,
  retrySettings,
  type Settings,
  settingsAfterPlan,
  tokensText,
} from '../../src/machine/settings.js';

test('a limit of 0 as people write it is none; what is left of a limit is 0 and stays 0', () => {
  assert.equal(readLimit(0), 'unlimited');
  assert.equal(readLimit(0.01), 0.01);
  assert.deepEqual(
    [isLimited(0), isLimited('unlimited'), isLimited(undefined)],
    [false, false, false],
  );
  assert.ok(isLimited(1));
  assert.deepEqual(remainingLimit(5, 7), { type: 'left', amount: 0 });
  assert.deepEqual(remainingLimit('unlimited', 7), { type: 'unlimited' });
});

test('nothing left is reached at once, no limit never', () => {
  assert.deepEqual([isReached(0, 0), isReached(5, 5), isReached(5, 4.99)], [true, true, false]);
  assert.equal(isReached('unlimited', Number.MAX_SAFE_INTEGER), false);
});

test('a limit that an older journal does not name is none', () => {
  const { usd, rounds, repeats } = readLimits({ usd: 0, rounds: 7 });
  assert.deepEqual([usd, rounds, repeats], ['unlimited', 7, 'unlimited']);
});

test('settings hold no limit of 0, whoever wrote them', () => {
  const settings = settingsOf();
  const given = { ...settings, limits: { ...settings.limits, usd: 0 } };
  const walker = walk(initialState(given));
  assert.equal(walker.state().session.settings.limits.usd, 'unlimited');
  walker.send(g.begin, g.approve('tokens', 5), g.approve('tokens', 0));
  assert.equal(walker.state().session.settings.limits.tokens, 'unlimited');
  walker.send({
    type: 'SettingsChanged',
    at: g.NOW,
    patch: { limits: { ...settings.limits, rounds: 0 } },
  });
  assert.equal(walker.state().session.settings.limits.rounds, 'unlimited');
});

test('another number of retries leaves the schedule, another first delay the number', () => {
  assert.deepEqual(retrySettings(null, null), {});
  assert.deepEqual(retrySettings(0, null), { maxRetries: 0 });
  const { retrySchedule } = settingsOf();
  assert.deepEqual(retrySettings(null, 250), {
    retrySchedule: { ...retrySchedule, baseMs: 250 },
  });
});

test('the word unlimited lifts a limit, as 0 does; what is no limit is refused', () => {
  const lifted = (limit: number | 'unlimited') => {
    const walker = walk(initialState(settingsOf({ limits: { usd: 1 } })));
    walker.send(g.begin, { type: 'ApproveBudget', at: g.NOW, dimension: 'usd', limit });
    const { state, diagnostics } = walker.last();
    return [state.session.settings.limits.usd, diagnostics.length];
  };
  assert.deepEqual(lifted('unlimited'), ['unlimited', 0]);
  assert.deepEqual(lifted(0), ['unlimited', 0]);
  for (const wrong of [-1, Number.POSITIVE_INFINITY, Number.NaN]) {
    assert.deepEqual(lifted(wrong), [1, 1]);
  }
});

test('a plan that is accepted gives back the preset before it, and nothing wider', () => {
  const after = (patch: Partial<Settings>) => {
    const { preset, onAsk, formatter, sandbox } = settingsAfterPlan({
      ...settingsOf({}),
      preset: 'plan',
      ...patch,
    });
    return [preset, onAsk, formatter, sandbox];
  };
  const inside = { sandbox: 'workspace' } as const;
  assert.deepEqual(after({ ...inside, presetBefore: 'auto' }), [
    'auto',
    'ask',
    'onChanges',
    'workspace',
  ]);
  assert.deepEqual(after({ ...inside, presetBefore: 'careful' }), [
    'careful',
    'ask',
    'off',
    'workspace',
  ]);
  assert.deepEqual(after({ ...inside, presetBefore: 'ci' }), [
    'ci',
    'deny',
    'onChanges',
    'workspace',
  ]);
  assert.deepEqual(after({ sandbox: 'read-only', presetBefore: 'auto' }), [
    'auto',
    'ask',
    'onChanges',
    'workspace',
  ]);
  const readOnly = { sandbox: 'read-only', sandboxBefore: 'read-only' } as const;
  assert.equal(after({ ...readOnly, presetBefore: 'auto' })[3], 'read-only');
  for (const sandbox of ['off', 'missing'] as const)
    assert.deepEqual(after({ sandbox, presetBefore: 'auto' }), ['auto', 'ask', 'off', sandbox]);
  const { sandbox: _, ...none } = {
    ...settingsOf({}),
    preset: 'plan',
    presetBefore: 'auto',
  } as const;
  assert.equal(settingsAfterPlan(none).formatter, 'off');
});

test('tokens have the unit of what they are rounded to', () => {
  assert.deepEqual([999, 999_949, 999_950].map(tokensText), ['999', '999.9k', '1.0M']);
});

test('efforts go from the lowest up, behind that of the model itself', () => {
  assert.equal(efforts.join(' '), 'auto low medium high xhigh max');
});
