import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initialState } from '@pawl/agent/machine/machine';
import { type Dimension, defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { catalogueFacts } from '@pawl/agent/models/catalogue';
import type { Model } from '@pawl/agent/ports/model';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { CacheWatch } from '../../src/interactive/run-sessions.js';
import { budgetEvent, readBudget } from '../../src/interactive/slash-commands.js';
import { fakeClock } from '../../src/testing.js';

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
  ['200k', '200000 tokens'],
  ['5m', null],
  ['$5k dollars', '5000 usd'],
  ['$5 tokens', null],
  ['$5 foo', null],
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

const MODEL = 'anthropic/claude-sonnet-5-5';
const { session } = initialState({ ...defaultSettings, model: MODEL, workspace: '/w' });
const conversation = { ...session, contextTokens: 100_000 };
const ready: State = { name: 'Ready', session: conversation };
const working = { name: 'CallingLlm', session: conversation } as State; // only these are looked at
const turned = (model: string): State => ({
  name: 'Ready',
  session: { ...conversation, settings: { ...conversation.settings, model } },
});

const createWatch = () => {
  const clock = fakeClock();
  let redrawn = 0;
  const asked = { id: MODEL };
  const model = async (): Promise<Model> =>
    ({ id: asked.id, facts: catalogueFacts(asked.id) }) as Model; // no call is made
  const watch = new CacheWatch({ model }, clock, () => {
    redrawn += 1;
  });
  const see = async (state: State, ...types: readonly 'SendLlmRequest'[]): Promise<void> => {
    watch.see({ event: { at: clock.now() }, state, actions: types.map((type) => ({ type })) });
    await Promise.resolve();
    await Promise.resolve();
  };
  const costs = (state: State): number | null => watch.coldUsd(state, clock.now());
  return { clock, asked, watch, see, costs, redraws: () => redrawn };
};

test('the cache is cold five minutes after the last request was sent', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { clock, watch, see, costs, redraws } = createWatch();
  await see(working, 'SendLlmRequest');
  clock.advance(60_000);
  await see(ready);
  assert.equal(costs(ready), null);
  clock.advance(239_999);
  context.mock.timers.tick(239_999);
  assert.equal(costs(ready), null);
  assert.equal(redraws(), 0);
  clock.advance(1);
  context.mock.timers.tick(1);
  assert.equal(redraws(), 1);
  assert.equal(costs(ready), 0.25);
  assert.equal(costs(working), null, 'nothing is said while it works');
  await see(working, 'SendLlmRequest');
  await see(ready);
  assert.equal(costs(ready), null, 'a request warms it again');
  watch.end();
});

test('a watch that has ended starts no timer when the facts of the model come late', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { watch, see, redraws } = createWatch();
  await see(working, 'SendLlmRequest');
  const seen = see(ready);
  watch.end();
  await seen;
  context.mock.timers.tick(300_000);
  assert.equal(redraws(), 0);
});

test('without a request nothing is cold, and another model knows nothing', async () => {
  const { asked, see, costs, watch } = createWatch();
  await see(ready);
  assert.equal(costs(ready), null);
  await see(working, 'SendLlmRequest');
  asked.id = 'anthropic/claude-opus-5-5';
  const other = turned(asked.id);
  await see(other);
  assert.equal(costs(other), 0.5);
  asked.id = 'google/gemini-3.5-flash';
  await see(turned(asked.id));
  assert.equal(costs(turned(asked.id)), null, 'nobody says how long Google keeps it');
  watch.end();
});
