import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from './given.js';
import { begin, lastOf, outcome, running } from './walker.js';

/** A tree is resumed after a while, and after the computer's clock was set. */

for (const [title, jumpMs] of [
  ['back by a day', -86_400_000],
  ['forward by two hours', 7_200_000],
] as const) {
  test(`after a crash timers wait at most their delay, with a clock set ${title}`, () => {
    const walker = begin({ limits: { timeMs: 60_000 } });
    walker.send(g.fails({ kind: 'overloaded', retryable: true }));
    const [retry] = lastOf(walker, 'ScheduleTimer');
    assert.ok(retry !== undefined);
    const now = g.NOW + jumpMs;
    walker.send({ ...g.resumed(), at: now });
    const waits = lastOf(walker, 'ScheduleTimer').map(
      ({ timerId, dueAt }) => [timerId, dueAt - now] as const,
    );
    assert.equal(waits.length, 2, 'the time limit and the retry');
    for (const [timerId, waitMs] of waits)
      assert.ok(waitMs <= 300_000, `${timerId} waits ${waitMs} ms`);
    assert.ok(
      waits.some(([, waitMs]) => waitMs <= 60_000),
      'the time limit is not longer than it was',
    );
  });

  test(`the time in which nobody ran counts for no deadline, with a clock set ${title}`, () => {
    const walker = running({ depthMax: 2, limits: { timeMs: 60_000 } });
    walker.send(
      g.asks(['hard'], { kind: 'rlm' }),
      g.fails({ who: g.child(1), kind: 'overloaded', retryable: true }),
    );
    const [retry] = lastOf(walker, 'ScheduleTimer');
    const now = g.NOW + jumpMs;
    walker.send({ type: 'Resumed', node: 'n0', epoch: 1, at: now, stoppedAt: g.NOW + 400 });
    assert.deepEqual(
      lastOf(walker, 'ScheduleTimer').map(({ node, delayMs }) => [node, delayMs]),
      [
        ['n0', 59_600],
        ['n0.c1.1.1', (retry?.delayMs ?? 0) - 400],
      ],
    );
    for (const { run } of Object.values(walker.tree().nodes))
      assert.equal(run.deadline?.dueAt, now + 59_600);
  });

  test(`new limits of a resumed tree leave out the time in which nobody ran, with a clock set ${title}`, () => {
    const walker = begin({ limits: { usd: 0.5, timeMs: 60_000 } });
    walker.send(g.says(g.program('one()'), { costUsd: 0.5 }), g.prints('1'));
    assert.equal(outcome(walker).status, 'stopped');
    const at = g.NOW + jumpMs;
    walker.send(
      { type: 'LimitsChanged', node: 'n0', at, limits: { usd: 9 }, stoppedAt: g.NOW + 10_000 },
      // Killed in between, and resumed once more, an hour later.
      { type: 'Resumed', node: 'n0', epoch: 1, at: at + 3_600_000, stoppedAt: at },
    );
    assert.equal(lastOf(walker, 'ScheduleTimer')[0]?.delayMs, 50_000);
    assert.equal(lastOf(walker, 'CallModel').length, 1, 'it goes on');
  });
}
