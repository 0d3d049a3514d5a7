import assert from 'node:assert/strict';
import type { Given } from '../../../../test/kit/agent/given.js';
import * as g from '../../../../test/kit/agent/given.js';
import { check, countOf } from '../../../../test/kit/agent/rows.js';
import type { bring } from '../../../../test/kit/agent/walker.js';

/** How long a failed model call is tried again: by default, and as settings say (cases 34 and 35). */

/** So many failures, each followed by its timer. */
const failures = (count: number): readonly Given[] =>
  Array.from({ length: count }, () => [g.fails(), g.rings()]).flat();
const waits = (walker: ReturnType<typeof bring>): readonly number[] =>
  walker
    .steps()
    .flatMap(({ actions }) =>
      actions.flatMap((action) => (action.type === 'ScheduleTimer' ? [action.dueAt - g.NOW] : [])),
    );

check([
  {
    rule: 'retry-schedule',
    title: 'by default eight retries are made, over some three minutes',
    given: 'C[u]',
    send: [...failures(8), g.fails()],
    state: 'W(error overloaded)',
    shows: [/^DisplayError .*after 8 retries/, 'PromptForInput'],
    also: (walker) => {
      assert.equal(countOf(walker, 'SendLlmRequest'), 9);
      assert.deepEqual(
        waits(walker).map((ms) => ms / 1_000),
        [1, 2, 4, 8, 16, 32, 60, 60],
      );
    },
  },
  {
    rule: 'retry-schedule',
    title: 'chance adds a quarter of the delay at most',
    given: 'C[u]',
    send: [
      g.fails({ jitter: 1 }),
      g.rings(),
      g.fails({ jitter: 0.5 }),
      g.rings(),
      g.fails({ jitter: 0 }),
    ],
    state: 'Er',
    also: (walker) => assert.deepEqual(waits(walker), [1_250, 2_250, 4_000]),
  },
  {
    rule: 'retry-schedule',
    title: 'the provider’s longer wait wins, up to a minute',
    given: 'C[u]',
    send: [
      g.fails({ jitter: 1, retryAfterMs: 60_000 }),
      g.rings(),
      g.fails({ retryAfterMs: 60_001 }),
    ],
    state: 'W(error overloaded)',
    also: (walker) => assert.deepEqual(waits(walker), [60_000]),
  },
  {
    rule: 'give-up',
    title: 'without retries the first failure ends the turn',
    given: 'C[u]',
    settings: { maxRetries: 0 },
    send: [g.fails()],
    state: 'W(error overloaded)',
    does: [],
    also: (walker) => {
      assert.equal(countOf(walker, 'SendLlmRequest'), 1);
      assert.equal(countOf(walker, 'ScheduleTimer'), 0);
    },
  },
  {
    rule: 'retry-schedule',
    title: 'an exponential schedule doubles up to its cap',
    given: 'C[u]',
    settings: {
      maxRetries: 6,
      retrySchedule: { kind: 'exponential', baseMs: 1_000, factor: 2, capMs: 30_000 },
    },
    send: [...failures(5), g.fails()],
    state: 'Er',
    also: (walker) => assert.deepEqual(waits(walker), [1_000, 2_000, 4_000, 8_000, 16_000, 30_000]),
  },
]);
