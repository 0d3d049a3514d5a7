import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check, spentBy } from '../../../../test/kit/agent/rows.js';
import { a, u } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';

// Stale events, usage, turns and input: corners that the cases leave out.

/** Waits with a text that a cancel has left in the queue. */
const holding = () => {
  const walker = bring('C[u]');
  walker.send(g.input('one'), g.cancel);
  return walker;
};

check([
  {
    rule: 'stale-events',
    title: 'another timer does not end the wait for a retry',
    given: 'Er',
    send: [g.rings('timer-9')],
    state: 'Er',
    quiet: true,
  },
  ...[
    g.started('2', 'batch-0'),
    g.cancelTool('1', 'batch-0'),
    g.allows('1', 'once', 'batch-0'),
  ].map((given) => ({
    rule: 'stale-events' as const,
    title: 'an event for a call of another batch is stale',
    given: 'X' as const,
    send: [given],
    state: 'X',
    calls: '1 running, 2 queued',
    quiet: true as const,
  })),
  {
    rule: 'usage-counts-once',
    title: 'usage of an id that was never asked for does not count',
    given: 'W',
    send: [g.reports('req-7', g.usage(0.3))],
    state: 'W(start)',
    quiet: true,
    also: (walker) => assert.equal(spentBy(walker), 0),
  },
  {
    rule: 'nothing-to-wait-for',
    title: 'a held queue is not sent by a stale event',
    given: holding,
    send: [g.rings('timer-9')],
    state: 'W(cancelled user)',
    quiet: true,
    queue: ['one'],
  },
  {
    rule: 'nothing-to-wait-for',
    title: 'a held queue is not sent by Resumed',
    given: holding,
    send: [g.resumed],
    state: 'W(cancelled user)',
    does: [],
    shows: ['PromptForInput'],
    queue: ['one'],
  },
  {
    rule: 'input-starts-turn',
    title: 'the held queue goes first, then the text, in one message',
    given: holding,
    send: [g.input('two')],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [u('hi', 'one', 'two')],
    queue: [],
  },
  {
    rule: 'retry-last',
    title: 'RetryLast sends the conversation as it stands and holds the queue',
    given: holding,
    send: [g.retryLast],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [u('hi')],
    queue: ['one'],
  },
  {
    rule: 'retry-last',
    title: 'RetryLast after an answer has nothing to send',
    given: 'C[u]',
    send: [g.says('yo'), g.retryLast],
    state: 'W(endOfTurn answer)',
    does: [],
    shows: ['DisplayNotice', 'PromptForInput'],
    talk: [u('hi'), a('yo')],
  },
  {
    rule: 'begin-turn',
    title: 'a turn with a time limit schedules it',
    given: 'W',
    settings: { limits: { timeMs: 60_000 } },
    send: [g.input('hi')],
    state: 'C[u]',
    does: ['SendLlmRequest', 'ScheduleTimer 60000'],
  },
  {
    rule: 'compact-on-request',
    title: 'CompactRequested starts a compaction',
    given: 'W long',
    send: [g.compact],
    state: 'K[i]',
    does: ['StartCompaction'],
  },
]);
