/**
 * The session over which the inspector is measured. `given` makes events in the words of the
 * tests.
 */

import type { Event } from '../packages/agent/src/machine/event.js';
import { initialState, step } from '../packages/agent/src/machine/machine.js';
import type { State } from '../packages/agent/src/machine/state.js';
import * as given from '../test/kit/agent/given.js';
import { settingsOf } from '../test/kit/agent/settings.js';
import { STARTED_AT } from '../test/kit/inspector/stored-session.js';

export const SETTINGS = settingsOf({
  hooks: 'never',
  windowTokens: Number.MAX_SAFE_INTEGER,
  limits: { rounds: 0 },
});

/**
 * A session that reads and searches, turn after turn; each tenth turn has a failed request and its
 * retry.
 */
function* turns(): Generator<readonly [number, given.Given], never> {
  yield [0, given.begin];
  for (let turn = 1; ; turn++) {
    yield [
      20_000,
      given.input(`turn ${turn}: ${'look at the next file and repair it '.repeat(5)}`),
    ];
    if (turn % 10 === 0) {
      yield [900, given.fails()];
      yield [1_200, given.rings()];
    }
    const [first, second] = [`c${turn}a`, `c${turn}b`];
    const calls = [given.grep(first), given.grep(second)];
    yield [
      4_000,
      given.completed({
        text: 'I look at both. '.repeat(20),
        calls,
        usage: given.usage(0.01, 900),
      }),
    ];
    for (const call of [first, second]) {
      yield [5, given.started(call)];
      yield [70, given.ended(call, 'ok', 'export const found = 1; '.repeat(30))];
    }
    yield [3_000, given.says('It is repaired. '.repeat(20), given.usage(0.004, 300))];
  }
}

export const longEvents = (count: number): readonly Event[] => {
  let state: State = initialState(SETTINGS);
  let at = STARTED_AT;
  const events: Event[] = [];
  for (const [afterMs, wanted] of turns()) {
    if (events.length === count) break;
    at += afterMs;
    const event = { ...given.eventOf(wanted, state), at };
    const taken = step(state, event);
    if (taken.diagnostics.length > 0)
      throw new Error(`event ${events.length + 1}: ${taken.diagnostics[0]?.why}`);
    ({ state } = taken);
    events.push(event);
  }
  return events;
};
