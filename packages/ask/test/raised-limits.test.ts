import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChangedLimits, TreeEvent } from '../src/run/event.js';
import { canGoOn } from '../src/tree/raise-limits.js';
import * as g from './given.js';
import { begin, lastOf, lastTold, outcome, running, state, type Walker } from './walker.js';

/** A run that met a limit goes on with a higher one. */

const raise = (walker: Walker, limits: ChangedLimits, at = g.NOW): Walker => {
  const raised: TreeEvent = { type: 'LimitsChanged', at, node: 'n0', limits };
  walker.send(raised, { ...g.resumed(walker.tree().epoch + 1), at });
  return walker;
};
const purpose = (walker: Walker): string | undefined => lastOf(walker, 'CallModel')[0]?.purpose;
const rate = { callUsd: 0.1, callTokens: 0, characterUsd: 0, characterTokens: 0 };

test('a run whose money was used up makes the call that it could not make, in an environment built again', () => {
  const walker = begin({ limits: { usd: 0.5 } });
  walker.send(g.says(g.program('one()'), { costUsd: 0.5 }), g.prints('1'));
  assert.equal(outcome(walker).status, 'stopped');
  raise(walker, { usd: 1 });
  assert.equal(purpose(walker), 'iteration');
  assert.deepEqual(
    lastOf(walker, 'StartEnvironment')[0]?.past.map(({ code }) => code),
    ['one()'],
  );
  walker.send(g.ready, g.writes('two()'), g.answers('42'));
  assert.equal(outcome(walker).status, 'answered');
});

test('a limit that is still too low ends the run again, for the same reason', () => {
  const walker = begin({ limits: { usd: 0.5 } });
  walker.send(g.says(g.program('one()'), { costUsd: 0.9 }), g.prints('1'));
  raise(walker, { usd: 0.8 });
  assert.equal(outcome(walker).status, 'stopped');
  raise(walker, { usd: 'unlimited' });
  assert.equal(purpose(walker), 'iteration');
});

test('a run that could not even begin begins', () => {
  const walker = begin({ limits: { tokens: 3 } });
  assert.equal(outcome(walker).status, 'stopped');
  assert.equal(purpose(raise(walker, { tokens: 5_000 })), 'iteration');
});

test('a run that was asked for its answer at the last iteration goes on, and is told so', () => {
  const walker = begin({ iterationsMax: 1 });
  walker.send(g.writes('one()'), g.prints('1'), g.says('perhaps 7'));
  raise(walker, { iterations: 3 });
  assert.equal(purpose(walker), 'iteration');
  assert.match(lastTold(walker), /limit that you met was raised[\s\S]*Iteration 2 of 3\./);
});

test('a run that goes on after its answer has its time limit again, from then on', () => {
  const walker = begin({ iterationsMax: 1, limits: { timeMs: 60_000 } });
  walker.send(g.writes('one()'), g.prints('1'), g.says('perhaps 7'));
  raise(walker, { iterations: 3 }, g.NOW + 100_000);
  assert.deepEqual(
    lastOf(walker, 'ScheduleTimer').map(({ dueAt }) => dueAt - g.NOW),
    [160_000],
  );
});

test('an answer that lacks pieces for want of money can be made better', () => {
  const walker = running({ limits: { usd: 0.25 }, reserve: rate });
  walker.send(g.asks(g.promptsOf(3)));
  for (const slot of [1, 2]) walker.send(g.says('x', { who: g.child(slot), costUsd: 0.1 }));
  walker.send(g.answers('two'));
  assert.equal(outcome(walker).status, 'answered');
  raise(walker, { usd: 1 });
  assert.match(lastTold(walker), /1 prompt of your programs had no answer/);
});

test('a program that the time limit cut off runs again; what it was answered comes from the record', () => {
  const walker = running({ limits: { timeMs: 60_000 } });
  walker.send(g.asks(['one']), g.says('ONE', { who: g.child(1) }));
  walker.send(g.asks(['two'], { ordinal: 2 }), g.timeIsUp());
  assert.equal(outcome(walker).status, 'stopped');
  raise(walker, { timeMs: 90_000 }, g.NOW + 100_000);
  assert.deepEqual(
    lastOf(walker, 'ScheduleTimer').map(({ dueAt }) => dueAt - g.NOW),
    [190_000],
  );
  walker.send(g.ready, g.asks(['one']));
  assert.deepEqual(lastOf(walker, 'AnswerSubcall')[0]?.texts, ['ONE']);
  walker.send(g.asks(['two'], { ordinal: 2 }));
  assert.equal(lastOf(walker, 'CallModel').length, 1, 'what was open is asked again');
});

test('a run that was only interrupted takes new limits, too', () => {
  const walker = running({ limits: { timeMs: 60_000 } });
  walker.send(g.asks(['one']));
  raise(walker, { timeMs: 90_000 }, g.NOW + 50_000);
  assert.equal(state(walker, 'n0.c1.1.1').run.deadline?.dueAt, g.NOW + 140_000);
});

test('a run that answered of its own accord, failed or was cancelled stays over', () => {
  const ends = [g.answers('42'), g.environmentFails(), g.cancels()];
  for (const end of ends) {
    const walker = running();
    walker.send(end);
    assert.equal(canGoOn(walker.tree()), false);
    const before = walker.tree();
    walker.send({ type: 'LimitsChanged', at: g.NOW, node: 'n0', limits: { usd: 9 } });
    assert.deepEqual(walker.tree(), before);
    assert.equal(walker.last().diagnostics.length, 1);
  }
});
