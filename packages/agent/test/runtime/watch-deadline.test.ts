import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../../../test/fake-clock.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { watchDeadline } from '../../src/session/tool-run.js';

const call = { traits: { deadlineMs: 1_000 } } as JudgedCall; // the limit is all that is looked at

test('a time limit stands still while the user is asked, for as long as one question is open', () => {
  const clock = fakeClock();
  const run = {
    call,
    signal: new AbortController(),
    force: new AbortController(),
    giveUp: (): void => undefined,
  };
  const watch = watchDeadline(run, 1_000, clock, 100);
  clock.advance(900);
  const [first, second] = [watch.pause(), watch.pause()];
  clock.advance(60_000);
  first();
  clock.advance(60_000);
  assert.equal(run.signal.signal.aborted, false);
  second();
  clock.advance(99);
  assert.equal(run.signal.signal.aborted, false);
  clock.advance(1);
  assert.equal(run.signal.signal.reason, 'timedOut');
  watch.pause()();
  clock.advance(100);
  assert.equal(run.force.signal.aborted, true, 'a limit that has passed is not stopped');
});
