import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createClock,
  createTimers,
  systemClock,
  type TimeSources,
} from '../../src/platform/clock.js';
import { readStream } from '../../src/session/model-call.js';

/** A wall that may be set, and a steady time that only passes. */
const fakeSources = () => {
  let wallMs = 1_000_000_000;
  let steadyMs = 50;
  const waiting = new Set<{ readonly dueMs: number; readonly ring: () => void }>();
  const sources: TimeSources = {
    wall: () => wallMs,
    steady: () => steadyMs,
    after(delayMs, ring) {
      const timer = { dueMs: steadyMs + delayMs, ring };
      waiting.add(timer);
      return () => void waiting.delete(timer);
    },
  };
  const pass = (ms: number): void => {
    const untilMs = steadyMs + ms;
    for (;;) {
      const [next] = [...waiting].sort((a, b) => a.dueMs - b.dueMs);
      if (next === undefined || next.dueMs > untilMs) break;
      waiting.delete(next);
      wallMs += next.dueMs - steadyMs;
      steadyMs = next.dueMs;
      next.ring();
    }
    wallMs += untilMs - steadyMs;
    steadyMs = untilMs;
  };
  const jump = (ms: number): void => {
    wallMs += ms;
  };
  return { sources, pass, jump };
};

const HOUR_MS = 3_600_000;
const JUMPS: readonly (readonly [string, number])[] = [
  ['forward by two hours', 2 * HOUR_MS],
  ['back by two hours', -2 * HOUR_MS],
  ['forward by a day', 24 * HOUR_MS],
  ['back by a day', -24 * HOUR_MS],
];

for (const [title, jumpMs] of JUMPS) {
  test(`a clock that is set ${title} neither holds a timer nor ends it early`, () => {
    const { sources, pass, jump } = fakeSources();
    const clock = createClock(sources);
    const fired: string[] = [];
    const timers = createTimers(clock, (timerId) => void fired.push(timerId));
    const startedAt = clock.now();
    timers.after('turn', 60_000);
    pass(1_000);
    jump(jumpMs);
    // A second timer, from a time that was taken after the jump: a retry, a grace period.
    assert.equal(clock.now(), startedAt + 1_000, 'the turn has lasted for a second');
    timers.after('retry', 4_000);
    pass(3_999);
    assert.deepEqual(fired, []);
    pass(1);
    assert.deepEqual(fired, ['retry']);
    pass(54_999);
    assert.deepEqual(fired, ['retry']);
    pass(1);
    assert.deepEqual(fired, ['retry', 'turn']);
  });

  test(`a clock that is set ${title} makes no reply silent`, async () => {
    const { sources, pass, jump } = fakeSources();
    const ended = readStream({
      model: {
        id: 'm',
        facts: {
          windowTokens: 1,
          outputTokensMax: 1,
          thinking: 'no',
          tools: 'no',
          prices: null,
          source: null,
        },
        canAbort: 'yes',
        async *stream(_, signal) {
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        },
      },
      request: { instructions: '', tools: [], messages: [] },
      clock: createClock(sources),
      firstByteMs: 10_000,
      silenceMs: 10_000,
      onPiece: () => undefined,
      onLateUsage: () => undefined,
      estimates: false,
    });
    let ending: string | null = null;
    void ended.ended.then(({ type }) => {
      ending = type;
    });
    pass(5_000);
    jump(jumpMs);
    pass(4_999);
    await Promise.resolve();
    assert.equal(ending, null);
    pass(1);
    assert.equal((await ended.ended).type, 'failed');
  });
}

test('when nothing waits any more, the time is the wall’s again', () => {
  const { sources, pass, jump } = fakeSources();
  const clock = createClock(sources);
  const cancel = clock.after(1_000, () => undefined);
  jump(HOUR_MS);
  assert.equal(clock.now(), sources.wall() - HOUR_MS);
  cancel();
  cancel();
  assert.equal(clock.now(), sources.wall());
  let rungAt = 0;
  clock.after(1_000, () => {
    rungAt = clock.now();
  });
  jump(HOUR_MS);
  pass(1_000);
  assert.equal(rungAt, sources.wall() - HOUR_MS, 'what a timer does belongs to the wait');
  assert.equal(clock.now(), sources.wall());
});

test('a timer that throws ends its wait', () => {
  const { sources, pass, jump } = fakeSources();
  const clock = createClock(sources);
  clock.after(1_000, () => {
    throw new Error('thrown');
  });
  assert.throws(() => pass(1_000), /thrown/);
  jump(HOUR_MS);
  assert.equal(clock.now(), sources.wall());
});

test('the system’s clock is the wall’s while nothing waits', () => {
  const before = Date.now();
  const now = systemClock.now();
  assert.ok(before <= now && now <= Date.now());
});
