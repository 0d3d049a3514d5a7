import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waiting } from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { begun } from '../../../../test/kit/agent/random.js';
import {
  addUsage,
  countHookUsage,
  countStale,
  countToolUsage,
  countUsage,
  remainingIn,
} from '../../src/machine/moves/budget.js';
import type { Limits, Usage, UsageTotals } from '../../src/machine/settings.js';
import type { SessionData } from '../../src/machine/state.js';

// Sums by themselves: what is added up, and what is left of a limit.

const totals: UsageTotals = {
  inputTokens: 1,
  outputTokens: 20,
  cacheReadTokens: 300,
  cacheWriteTokens: 4_000,
  costUsd: 0.5,
  unpriced: 6,
};
const call: Usage = {
  inputTokens: 10_000,
  outputTokens: 2_000,
  cacheReadTokens: 500,
  cacheWriteTokens: 60,
  costUsd: 0.25,
};

test('each kind of tokens is added to its own sum', () => {
  assert.deepEqual(addUsage(totals, call), {
    inputTokens: 10_001,
    outputTokens: 2_020,
    cacheReadTokens: 800,
    cacheWriteTokens: 4_060,
    costUsd: 0.75,
    unpriced: 6,
  });
});

test('a call without a price is counted as one, and costs nothing', () => {
  const { costUsd, unpriced } = addUsage(totals, { ...call, costUsd: null });
  assert.deepEqual({ costUsd, unpriced }, { costUsd: 0.5, unpriced: 7 });
});

const session = (limits: Partial<Limits>, change: Partial<SessionData> = {}): SessionData => ({
  ...begun({ limits }).session,
  ...change,
});

test('usage is booked for an id that is open, and for no other', () => {
  const open = session({}, { unaccounted: ['req-1', 'req-2'] });
  const booked = countUsage(open, 'req-1', call);
  assert.deepEqual(booked.unaccounted, ['req-2']);
  assert.equal(booked.usage.costUsd, 0.25);
  assert.equal(countUsage(open, 'req-3', call), open);
  assert.equal(countUsage(open, 'req-1', null), open);
});

test('where nothing is to be booked, nothing changes', () => {
  const before = session({}, { unaccounted: ['req-1'] });
  const hook = {
    type: 'HookCompleted',
    at: g.NOW,
    hookId: 'hook-9',
    commits: [],
    changedFiles: [],
    dirty: false,
    note: '',
    warning: '',
    proceed: true,
    usage: null,
  } as const;
  assert.equal(countHookUsage(before, hook), before);
  const outcome = { status: 'ok', text: '' } as const;
  const tool = {
    type: 'ToolCompleted',
    at: g.NOW,
    batchId: 'batch-9',
    callId: '1',
    outcome,
  } as const;
  assert.equal(countToolUsage(before, tool), before);
  const state = waiting(before);
  assert.equal(countStale(state, hook).state, state);
});

test('the rest of a session’s limits: nothing for a reached limit, unlimited for none', () => {
  assert.deepEqual(remainingIn(session({}, { usage: totals })), {
    usd: { type: 'unlimited' },
    tokens: { type: 'unlimited' },
  });
  assert.deepEqual(remainingIn(session({ usd: 2, tokens: 5_000 }, { usage: totals })), {
    usd: { type: 'left', amount: 1.5 },
    tokens: { type: 'left', amount: 5_000 - 4_321 },
  });
  assert.deepEqual(remainingIn(session({ usd: 0.25, tokens: 4_321 }, { usage: totals })), {
    usd: { type: 'left', amount: 0 },
    tokens: { type: 'left', amount: 0 },
  });
});
