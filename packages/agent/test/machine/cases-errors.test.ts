import assert from 'node:assert/strict';
import { timerOf } from '../../../../test/kit/agent/flight.js';
import type { Given } from '../../../../test/kit/agent/given.js';
import * as g from '../../../../test/kit/agent/given.js';
import { check, countOf, spentBy } from '../../../../test/kit/agent/rows.js';
import { a, good, nameOf, summary, u, use } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';

// Failures of the model and retries.

/** As the cases were written: three retries, after 1, 2 and 3 seconds. */
const seed = { maxRetries: 3, retrySchedule: { kind: 'linear', stepMs: 1_000 } } as const;

/** So many failures, each followed by its timer. */
const failures = (count: number): readonly Given[] =>
  Array.from({ length: count }, () => [g.fails(), g.rings()]).flat();
const waits = (walker: ReturnType<typeof bring>): readonly number[] =>
  walker
    .steps()
    .flatMap(({ actions }) =>
      actions.flatMap((action) => (action.type === 'ScheduleTimer' ? [action.dueAt - g.NOW] : [])),
    );
const hours = (count: number): number => count * 3_600_000;

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
    rule: 'retry-schedule',
    settings: seed,
    title: 'the third failure waits 3,000 ms',
    given: 'C[u]',
    send: [...failures(2), g.fails()],
    state: 'Er',
    does: ['ScheduleTimer 3000'],
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
    settings: seed,
    title: 'a turn that fails four times makes exactly 4 requests and sets 3 timers',
    given: 'C[u]',
    send: [...failures(3), g.fails()],
    state: 'W(error overloaded)',
    also: (walker) => {
      assert.equal(countOf(walker, 'SendLlmRequest'), 4);
      assert.deepEqual(waits(walker), [1_000, 2_000, 3_000]);
    },
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
    rule: 'retry-schedule',
    title: 'a shorter retry-after gives way to the schedule',
    given: 'C[u]',
    send: [g.fails({ retryAfterMs: 400 })],
    state: 'Er',
    does: ['ScheduleTimer 1000'],
  },
  {
    rule: 'retry-schedule',
    title: 'a retry-after beyond the cap fails at once and names the time',
    given: 'C[u]',
    send: [g.fails({ kind: 'rateLimited', retryAfterMs: hours(5) })],
    state: 'W(error rateLimited)',
    does: [],
    shows: [/^DisplayError .*(5 h|300 min|18,?000 s|\d\d:\d\d)/],
    talk: [u('hi')],
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
    rule: 'streamed-text',
    settings: seed,
    title: 'text streamed before the last failure is retracted, too',
    given: 'C[u]',
    send: [...failures(3), g.delta('yo'), g.fails()],
    state: 'W(error overloaded)',
    does: ['RetractPartial'],
    shows: ['DisplayError'],
    talk: [u('hi')],
  },
  {
    rule: 'streamed-text',
    title: 'half a call is neither executed nor stored',
    given: 'C[u]',
    send: [g.halfCall, g.fails()],
    state: 'Er',
    does: ['ScheduleTimer 1000'],
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
    rule: 'stale-events',
    title: 'the timer that RetryNow overtook sends nothing',
    given: () => {
      const walker = bring('Er');
      const old = timerOf(walker.state());
      walker.send(g.retryNow, g.rings(old));
      return walker;
    },
    state: 'C[u] 2',
    quiet: true,
    also: (walker) => assert.equal(countOf(walker, 'SendLlmRequest'), 2),
  },
  {
    rule: 'usage-counts-once',
    title: 'the late completion of a failed request is no answer, but its usage counts',
    given: 'Er',
    send: [g.completed({ text: 'late', requestId: 'req-1', usage: g.usage(0.5) })],
    state: 'Er',
    quiet: true,
    talk: [u('hi')],
    also: (walker) => assert.equal(spentBy(walker), 0.5),
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
    rule: 'give-up',
    settings: seed,
    title: 'results stay when the request with them fails for good',
    given: 'C[t]',
    send: [...failures(3), g.fails()],
    state: 'W(error overloaded)',
    does: [],
    shows: [/^DisplayError .*after 3 retries/],
    talk: [u('hi'), a(use('1')), u(good('1'))],
  },
  {
    rule: 'input-starts-turn',
    settings: seed,
    title: 'the next input joins results that were not answered',
    given: 'C[t]',
    send: [...failures(3), g.fails(), g.input('continue')],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [u('hi'), a(use('1')), u(good('1'), 'continue')],
  },
  {
    rule: 'malformed-reply',
    title: 'a reply with two calls of one id is not stored and not executed',
    given: 'C[u]',
    send: [g.wants(g.grep('1'), g.grep('1'))],
    state: 'W(error malformed)',
    does: [],
    shows: ['DisplayError'],
    path: 'C Processing Failed W',
    talk: [u('hi')],
  },
  {
    rule: 'stale-events',
    title: 'a piece of an old request is not shown',
    given: 'C[u]',
    send: [g.fails(), g.rings(), g.delta('old', 'req-1')],
    state: 'C[u] 2',
    quiet: true,
  },
  {
    rule: 'usage-counts-once',
    title: 'the second completion of a request is stale and its usage counts once',
    given: 'C[u]',
    send: [
      g.says('yo', g.usage(0.25)),
      g.completed({ text: 'yo', requestId: 'req-1', usage: g.usage(0.25) }),
    ],
    state: 'W(endOfTurn answer)',
    quiet: true,
    talk: [u('hi'), a('yo')],
    also: (walker) => assert.equal(spentBy(walker), 0.25),
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
  {
    rule: 'summary-keeps-unanswered',
    title: 'compacting an overflow keeps the last calls and their results',
    given: 'C[t] long',
    send: [g.overflows, g.compacts()],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u(summary()), a(use('1')), u(good('1'))],
    also: (walker) => assert.equal(nameOf(walker.steps().at(-2)?.state ?? walker.state()), 'K[o]'),
  },
]);
