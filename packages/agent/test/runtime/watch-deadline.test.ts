import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../../../../test/fake-clock.js';
import type { JudgedCall } from '../../src/policy/judged-call.js';
import { watchDeadline } from '../../src/session/tool-run.js';

const call = { traits: { deadlineMs: 1_000 } } as JudgedCall; // the limit is all that is looked at

const begin = () => ({
  clock: fakeClock(),
  run: {
    call,
    signal: new AbortController(),
    force: new AbortController(),
    giveUp: (): void => undefined,
  },
});

test('progress puts a time limit off, up to ten times the limit, and not while the user is asked', () => {
  const { clock, run } = begin();
  const watch = watchDeadline(run, 1_000, clock, 100);
  for (let step = 0; step < 3; step++) {
    clock.advance(900);
    watch.extend();
  }
  const asked = watch.pause();
  clock.advance(60_000);
  watch.extend();
  asked();
  clock.advance(999);
  assert.equal(run.signal.signal.aborted, false);
  clock.advance(1);
  assert.equal(run.signal.signal.reason, 'timedOut');
  const other = begin();
  const busy = watchDeadline(other.run, 1_000, other.clock, 100);
  for (let ranMs = 0; ranMs < 10_000; ranMs += 500) {
    assert.equal(other.run.signal.signal.aborted, false, String(ranMs));
    busy.extend();
    other.clock.advance(500);
  }
  assert.equal(other.run.signal.signal.reason, 'timedOut');
});

test('a time limit stands still while the user is asked, for as long as one question is open', () => {
  const { clock, run } = begin();
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

test('progress gives a recovered call its whole limit again, and an abandoned call names all of it', () => {
  const { clock, run } = begin();
  const texts: string[] = [];
  const watch = watchDeadline({ ...run, giveUp: ({ text }) => texts.push(text) }, 200, clock, 100);
  clock.advance(100);
  watch.extend();
  clock.advance(999);
  assert.equal(run.signal.signal.aborted, false);
  clock.advance(101);
  watch.extend(); // while it is being ended, progress changes nothing
  clock.advance(100);
  assert.deepEqual(texts, ['time limit of 1.1 s reached; the tool did not stop']);
});
