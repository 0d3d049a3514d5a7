import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { bring, type Walker, walk } from '../../../../test/kit/agent/walker.js';
import { initialState } from '../../src/machine/machine.js';
import { spendingIds } from '../../src/machine/moves/tool-batch.js';
import type { Usage } from '../../src/machine/settings.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';

// rules.md#usage-counts-once for tools that make model calls of their own: what they spent counts once, however
// they ended.

const explore = (callId: string): JudgedCall => {
  const call = g.grep(callId);
  return { ...call, tool: 'explore', traits: { ...call.traits, spends: 'yes' } };
};

const SPENT: Usage = { ...g.usage(0.5, 1_000) };

const ended =
  (callId: string, usage?: Usage, batchId = 'batch-1'): g.Given =>
  () => ({
    type: 'ToolCompleted',
    at: g.NOW,
    batchId,
    callId,
    outcome: { status: 'ok', text: 'found', ...(usage === undefined ? {} : { usage }) },
  });

const run = (...given: readonly g.Given[]): Walker => {
  const walker = walk(
    initialState(settingsOf({ hooks: 'never', autoRearm: 'off', limits: { usd: 1 } })),
  );
  for (const one of [
    g.begin,
    g.input('what is in it?'),
    g.wants(explore('1'), g.grep('2')),
    ...given,
  ]) {
    walker.send(g.eventOf(one, walker.state()));
  }
  return walker;
};

const measuredRequest: g.Given = {
  type: 'RequestMeasured',
  at: g.NOW,
  usageId: 'req-1',
  model: 'test/model',
  bytes: 100,
  images: 0,
  outputTokensMax: 1_000,
  prices: { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 },
};

const costOf = (walker: Walker): number => walker.state().session.usage.costUsd;
const openIds = (walker: Walker): readonly string[] => walker.state().session.unaccounted;

test('usage-counts-once: the id of a call that spends is open from its start', () => {
  assert.deepEqual(openIds(run()), ['batch-1/1']);
});

test('usage-counts-once: what a call spent counts with its outcome, and is closed', () => {
  const walker = run(ended('1', SPENT));
  assert.equal(costOf(walker), 0.5);
  assert.deepEqual(openIds(walker), []);
});

test('usage-counts-once: an outcome that says nothing of spending closes its id', () => {
  const walker = run(ended('1'), ended('1', SPENT));
  assert.equal(costOf(walker), 0);
});

test('usage-counts-once: an outcome that says nothing of spending leaves the ids of other calls open', () => {
  const walker = walk(initialState(settingsOf({ hooks: 'never' })));
  walker.send(g.begin, g.input('what is in it?'), g.wants(explore('1'), explore('2')), ended('1'));
  assert.deepEqual(openIds(walker), ['batch-1/2']);
});

test('usage-counts-once: a second outcome counts nothing and leaves the very state', () => {
  const walker = run(ended('1', SPENT));
  const before = walker.state();
  walker.send(ended('1', SPENT));
  assert.equal(costOf(walker), 0.5);
  assert.equal(walker.state(), before);
});

test('usage-counts-once: what a call claims that does not spend counts nothing', () => {
  assert.equal(costOf(run(ended('2', SPENT))), 0);
});

test('usage-counts-once: a call that was given up by force counts when it ends after all, in the batch and after it', () => {
  const inBatch = run(g.cancelTool('1'), g.cancelTool('1'), ended('1', SPENT));
  assert.equal(inBatch.state().name, 'ExecutingTools');
  assert.equal(costOf(inBatch), 0.5);
  const after = run(g.cancel, g.cancel, ended('1', SPENT), ended('1', SPENT));
  assert.equal(after.state().name, 'WaitingForUserInput');
  assert.equal(costOf(after), 0.5);
});

test('usage-counts-once: of another batch it counts nothing', () => {
  assert.equal(costOf(run(ended('1', SPENT, 'batch-0'))), 0);
});

test('limit-after-round: a limit in dollars that tools used up stops the turn', () => {
  const walker = run(ended('1', { ...SPENT, costUsd: 1 }), ended('2'));
  const state = walker.state();
  assert.deepEqual(state.name === 'WaitingForUserInput' && state.reason, {
    kind: 'budget',
    dimension: 'usd',
  });
});

test('resume-calls: a call that is started again after a crash keeps the one id it has', () => {
  const walker = run({ type: 'Resumed', at: g.NOW, epoch: 1 });
  assert.deepEqual(openIds(walker), ['batch-1/1']);
});

test('resume-calls: under a limit, a call that spends and had not begun starts again, with its money', () => {
  const walker = bring('C[u]', { autoRearm: 'off', limits: { usd: 1 } });
  walker.send(measuredRequest, g.wants(explore('1'), g.grep('2')));
  const held = (walker.state().session.reserved ?? []).map(({ id, usd }) => [id, usd]);
  assert.deepEqual(held, [['batch-1/1', 1]]);
  const { state } = walker.send({ type: 'Resumed', at: g.NOW, epoch: 1 });
  const calls = state.name === 'ExecutingTools' ? state.calls : [];
  assert.deepEqual(
    calls.map(({ status }) => status),
    ['starting', 'starting'],
  );
  const { reserved = [], usage } = state.session;
  assert.deepEqual([reserved.map(({ id, usd }) => [id, usd]), usage.costUsd], [held, 0]);
  assert.deepEqual(openIds(walker), ['batch-1/1']);
});

test('resume-calls: a call that spends and had begun keeps its money until its outcome', () => {
  const walker = bring('C[u]', { autoRearm: 'off', limits: { usd: 1 } });
  walker.send(measuredRequest, g.wants(explore('1')), g.started('1'));
  walker.send({ type: 'Resumed', at: g.NOW, epoch: 1 });
  const { reserved = [], usage } = walker.state().session;
  assert.deepEqual([reserved.map(({ id }) => id), usage.costUsd], [['batch-1/1'], 0]);
  assert.deepEqual(openIds(walker), ['batch-1/1']);
});

test('limit-before-call: a request that has not said what it cost holds back no call that spends', () => {
  const walker = bring('C[u]', { autoRearm: 'off', limits: { usd: 1 } });
  walker.send(g.fails({ kind: 'unreachable' }), g.retryNow, g.wants(explore('1')));
  assert.deepEqual(openIds(walker), ['req-1', 'batch-1/1']);
  const state = walker.state();
  assert.equal(state.name === 'ExecutingTools' && state.calls[0]?.status, 'starting');
  assert.deepEqual(spendingIds(state), ['batch-1/1']);
  assert.deepEqual(spendingIds(bring('W').state()), []);
});
