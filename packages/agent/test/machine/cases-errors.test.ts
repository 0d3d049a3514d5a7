import assert from 'node:assert/strict';
import type { Given } from '../../../../test/kit/agent/given.js';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { summary, u } from '../../../../test/kit/agent/shown.js';

// Failures of the model and retries.

/** As the cases were written: three retries, after 1, 2 and 3 seconds. */
const seed = { maxRetries: 3, retrySchedule: { kind: 'linear', stepMs: 1_000 } } as const;

/** So many failures, each followed by its timer. */
const failures = (count: number): readonly Given[] =>
  Array.from({ length: count }, () => [g.fails(), g.rings()]).flat();

check([
  {
    rule: 'retry-failed-call',
    title: 'a retryable failure waits 1,000 ms',
    given: 'C[u]',
    send: [g.fails()],
    state: 'Er',
    does: ['ScheduleTimer 1000'],
    shows: ['DisplayWarning retry'],
    path: 'C Er',
    talk: [u('hi')],
  },
  {
    rule: 'send-again',
    title: 'the retry timer sends the same messages under a new id',
    given: 'Er',
    send: [g.rings()],
    state: 'C[u] 2',
    does: ['SendLlmRequest'],
    path: 'Er C',
    talk: [u('hi')],
    also: ({ state }) => {
      const now = state();
      assert.equal(now.name === 'CallingLlm' && now.requestId, 'req-2');
    },
  },
  {
    rule: 'retry-schedule',
    settings: seed,
    title: 'the second failure waits 2,000 ms',
    given: 'C[u]',
    send: [...failures(1), g.fails()],
    state: 'Er',
    does: ['ScheduleTimer 2000'],
  },
  {
    rule: 'give-up',
    settings: seed,
    title: 'the fourth failure ends the turn and keeps the user text',
    given: 'C[u]',
    send: [...failures(3), g.fails()],
    state: 'W(error overloaded)',
    does: [],
    shows: [/^DisplayError .*after 3 retries/, 'PromptForInput'],
    path: 'C Failed W',
    talk: [u('hi')],
  },
  {
    rule: 'retry-schedule',
    title: 'a longer retry-after wins over the schedule',
    given: 'C[u]',
    send: [g.fails({ retryAfterMs: 4_000 })],
    state: 'Er',
    does: ['ScheduleTimer 4000'],
  },
  {
    rule: 'give-up',
    title: 'a bad request is not retried',
    given: 'C[u]',
    send: [g.refusedRequest],
    state: 'W(error badRequest)',
    does: [],
    shows: ['DisplayError'],
    talk: [u('hi')],
  },
  {
    rule: 'streamed-text',
    title: 'text streamed before a failure is retracted',
    given: 'C[u]',
    send: [g.delta('y'), g.delta('o'), g.fails()],
    state: 'Er',
    does: ['RetractPartial', 'ScheduleTimer 1000'],
    shows: ['DisplayWarning retry'],
    talk: [u('hi')],
  },
  {
    rule: 'send-again',
    title: 'RetryNow does not wait for the timer',
    given: 'Er',
    send: [g.retryNow],
    state: 'C[u] 2',
    does: ['CancelTimer', 'SendLlmRequest'],
    talk: [u('hi')],
  },
  {
    rule: 'cancel-retry',
    title: 'cancelling the wait for a retry keeps the user text',
    given: 'Er',
    send: [g.cancel],
    state: 'W(cancelled user)',
    does: ['CancelTimer'],
    shows: ['DisplayNotice cancelled', 'PromptForInput'],
    path: 'Er Cancelled W',
    talk: [u('hi')],
  },
  {
    rule: 'overflow-compacts',
    title: 'a context overflow compacts',
    given: 'C[u] long',
    send: [g.overflows],
    state: 'K[o]',
    does: ['StartCompaction'],
    path: 'C K',
  },
  {
    rule: 'overflow-compacts',
    title: 'after the compaction the same purpose is asked again',
    given: 'C[u] long',
    send: [g.overflows, g.compacts()],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [u(summary(), 'x')],
  },
]);
