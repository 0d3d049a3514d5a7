import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { type SettingsPatch, settingsOf } from '../../../../test/kit/agent/settings.js';
import { countCases, SEED } from '../../../../test/tier.js';
import type { Event } from '../../src/machine/event.js';
import { initialState, step } from '../../src/machine/machine.js';
import type { State } from '../../src/machine/state.js';
import { presetRules } from '../../src/policy/presets.js';
import { type Dimension, SpendingChecker } from './spending-checker.js';
import { createRandom, SpendingWorld } from './spending-world.js';

// Random events with spending everywhere. 20,000 of them here; PAWL_COUNT=1000000 for more, PAWL_SEED repeats.

const COUNT = countCases(20_000);
/** Then another session begins, under other settings. */
const SESSION = 400;

const VARIANTS: readonly SettingsPatch[] = [
  { limits: { usd: 2 } },
  { limits: { tokens: 3_000 }, hooks: 'always', maxParallel: 8 },
  { limits: { usd: 4, tokens: 3_000 }, windowTokens: 2_000, cancelMode: 'drain' },
  {
    limits: { usd: 1, timeMs: 60_000 },
    rules: presetRules.careful,
    emptyRetries: 1,
    resultCutBytes: 1,
  },
  { limits: { usd: 3, rounds: 4 }, atLimit: 'finish', queueOnCancel: 'send', windowTokens: 1_000 },
];

/** Now and then the user raises a limit that is reached, in dollars or tokens. */
const raise = (state: State, roll: number): Event | null => {
  if (state.name !== 'WaitingForUserInput' || state.reason.kind !== 'budget' || roll > 0.2)
    return null;
  const { dimension } = state.reason;
  if (dimension !== 'usd' && dimension !== 'tokens') return null;
  const limit = state.session.settings.limits[dimension];
  return limit === 'unlimited' ? null : { ...g.approve(dimension, limit * 2), at: g.NOW };
};

type Figures = { events: number; requests: number; calls: number; stops: number };

const live = (
  patch: SettingsPatch,
  random: () => number,
  count: number,
  figures: Figures,
): void => {
  const settings = settingsOf({ autoRearm: 'off', ...patch });
  const limitOf = (dimension: Dimension): number => {
    const limit = settings.limits[dimension];
    return limit === 'unlimited' ? Number.POSITIVE_INFINITY : limit;
  };
  const checker = new SpendingChecker({ usd: limitOf('usd'), tokens: limitOf('tokens') });
  const world = new SpendingWorld(random, checker);
  let state: State = initialState(settings);
  const last: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const event = raise(state, random()) ?? world.next();
    const taken = step(state, event);
    state = taken.state;
    world.see(event, taken.actions);
    last.push(`${event.type} -> ${state.name}`);
    const faults = checker.look(event, taken.actions);
    assert.deepEqual(faults, [], last.slice(-12).join('\n'));
    figures.events += 1;
    for (const { type } of taken.actions) {
      if (type === 'SendLlmRequest') figures.requests += 1;
      if (type === 'ExecuteTools') figures.calls += 1;
    }
    if (taken.path.some(({ to }) => to === 'BudgetExceeded')) figures.stops += 1;
  }
};

test('no request and no call at a limit; never more than the limit and one reply', (t) => {
  t.diagnostic(`PAWL_SEED=${SEED}`);
  const random = createRandom(SEED);
  const figures: Figures = { events: 0, requests: 0, calls: 0, stops: 0 };
  for (let index = 0; figures.events < COUNT; index += 1)
    live(VARIANTS[index % VARIANTS.length] ?? {}, random, SESSION, figures);
  t.diagnostic(JSON.stringify(figures));
  assert.ok(
    figures.requests > COUNT / 50 && figures.calls > COUNT / 100,
    'the walks buy something',
  );
  assert.ok(figures.stops > COUNT / 1_000, 'limits are reached');
});
