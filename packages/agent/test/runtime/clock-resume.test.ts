import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FakeClock, fakeClock } from '../../../../test/fake-clock.js';
import {
  hang,
  play,
  say,
  settle,
  stage,
  testModel,
  watchSession,
} from '../../../../test/kit/runtime/stage.js';
import { defaultSettings } from '../../src/machine/settings.js';

/** A session is resumed after the computer's clock was set: what waits neither waits longer nor is forgotten. */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const JUMPS: readonly (readonly [string, number])[] = [
  ['back by a day', -DAY_MS],
  ['back by ten years', -3_652 * DAY_MS],
  ['forward by two hours', 2 * HOUR_MS],
  ['forward by ten years', 3_652 * DAY_MS],
];

const START = 40 * 365 * DAY_MS;

const busy = () =>
  testModel(async function* () {
    const error = {
      kind: 'overloaded',
      message: 'busy',
      retryable: true,
      retryAfterMs: null,
    } as const;
    yield { type: 'failed', error, usage: null };
  });

for (const [title, jumpMs] of JUMPS) {
  test(`a retry waits its delay after a resume, neither more nor less, with a clock set ${title}`, async () => {
    const on = await play({ model: busy(), clock: fakeClock(START) });
    await on.say('go');
    await on.until(({ state }) => state.name === 'Error');
    on.clock.advance(400); // of 1,125 in all
    const id = await on.runtime.fork(on.id, 2);
    const clock = fakeClock(START + 400 + jumpMs);
    const later = stage({ journals: on.journals, clock, model: testModel(say('at last')) });
    await later.runtime.open(id);
    const again = watchSession(later, id);
    clock.advance(1_124);
    await settle();
    assert.equal(later.model.requests.length, 0);
    clock.advance(1);
    await again.rest();
    assert.equal(later.model.requests.length, 1);
  });

  test(`a turn lasts what is left of its time limit after a resume, with a clock set ${title}`, async () => {
    const limits = { ...defaultSettings.limits, timeMs: 60_000 };
    const on = await play({
      model: testModel(hang()),
      clock: fakeClock(START),
      settings: { limits },
    });
    await on.say('go');
    await on.until(({ state }) => state.name === 'CallingLlm');
    on.clock.advance(20_000);
    const id = await on.runtime.fork(on.id, 1);
    const clock = fakeClock(START + 20_000 + jumpMs);
    const later = stage({ journals: on.journals, clock, model: testModel(hang()) });
    await later.runtime.open(id);
    const again = watchSession(later, id);
    clock.advance(59_999);
    await settle();
    assert.equal((await later.runtime.state(id)).state.name, 'CallingLlm');
    clock.advance(1);
    const state = await again.rest();
    assert.equal(state.name === 'WaitingForUserInput' && state.reason.kind, 'budget');
  });

  for (const kind of ['longer', 'first'] as const)
    test(`a ${kind} time limit that is given with a resume counts what the turn has run, with a clock set ${title}`, async () => {
      const limits = {
        ...defaultSettings.limits,
        timeMs: kind === 'first' ? ('unlimited' as const) : 30_000,
      };
      const on = await play({
        model: testModel(hang()),
        clock: fakeClock(START),
        settings: { limits },
      });
      await on.say('go');
      await on.until(({ state }) => state.name === 'CallingLlm');
      on.clock.advance(20_000);
      await on.runtime.send(on.id, { type: 'UserInput', text: 'later', mode: 'followUp' });
      const id = await on.runtime.fork(on.id, 2);
      const reopen = async (from: string, clock: FakeClock) => {
        const later = stage({ journals: on.journals, clock, model: testModel(hang()) });
        const patch = () => ({ limits: { ...limits, timeMs: 60_000 } });
        await later.runtime.open(from, { patch });
        return watchSession(later, from);
      };
      await reopen(id, fakeClock(START + jumpMs));
      // Killed between the new limit and Resumed, and resumed once more, much later.
      const killed = await on.runtime.fork(id, 3);
      const clock = fakeClock(START + 3 * jumpMs);
      const again = await reopen(killed, clock);
      clock.advance(39_999);
      await settle();
      assert.equal((await again.runtime.state(killed)).state.name, 'CallingLlm');
      clock.advance(1);
      const state = await again.rest();
      assert.equal(state.name === 'WaitingForUserInput' && state.reason.kind, 'budget');
    });
}
