import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../../../test/fake-clock.js';
import { createTimers, systemClock } from '../../src/platform/clock.js';
import { priceUsage } from '../../src/session/model-call.js';

test('the fake clock rings in the order of due times, and at those times', () => {
  const clock = fakeClock(0);
  const rung: string[] = [];
  const ring = (name: string) => () => rung.push(`${name}@${clock.now()}`);
  clock.after(30, ring('c'));
  clock.after(10, ring('a'));
  clock.after(10, ring('b'));
  clock.after(20, () => clock.after(5, ring('nested')));
  clock.after(15, ring('cancelled'))();
  clock.advance(29);
  assert.deepEqual(rung, ['a@10', 'b@10', 'nested@25']);
  assert.equal(clock.now(), 29);
  clock.advance(1);
  assert.deepEqual(rung.at(-1), 'c@30');
  assert.equal(clock.waiting(), 0);
});

test('the system clock rings once, and not after it was cancelled', async () => {
  const rung: string[] = [];
  systemClock.after(1, () => rung.push('cancelled'))();
  await new Promise<void>((resolve) => {
    systemClock.after(5, () => {
      rung.push('rung');
      resolve();
    });
  });
  assert.deepEqual(rung, ['rung']);
  const cancelFarAway = systemClock.after(10_000_000_000, () => rung.push('too early'));
  await new Promise((resolve) => setTimeout(resolve, 5));
  cancelFarAway();
  assert.deepEqual(rung, ['rung']);
});

test('timers fire by id at their due time; a past one at once; a cancelled one never; a new one replaces the old', () => {
  const clock = fakeClock(1_000);
  const fired: string[] = [];
  const timers = createTimers(clock, (timerId) => fired.push(`${timerId}@${clock.now()}`));
  timers.after('past', -500);
  timers.after('later', 50);
  timers.after('cancelled', 10);
  timers.after('moved', 20);
  timers.after('moved', 30);
  timers.cancel('cancelled');
  timers.cancel('unknown');
  clock.advance(100);
  assert.deepEqual(fired, ['past@1000', 'moved@1030', 'later@1050']);
  timers.after('a', 900);
  timers.cancelAll();
  assert.equal(clock.waiting(), 0);
});

const tokens = {
  inputTokens: 1_000,
  outputTokens: 100,
  cacheReadTokens: 10_000,
  cacheWriteTokens: 500,
};

test('usage is priced per million tokens, each kind at its own price', () => {
  const usage = priceUsage(tokens, { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 });
  assert.equal(usage.costUsd?.toFixed(6), '0.009375');
  assert.equal(usage.cacheReadTokens, 10_000);
});

test('an unknown price is null and not nothing', () => {
  assert.deepEqual(priceUsage(tokens, null), { ...tokens, costUsd: null });
});
