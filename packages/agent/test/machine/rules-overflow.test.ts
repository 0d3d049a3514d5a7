import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { a, good, summary, u, use } from '../../../../test/kit/agent/shown.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';
import { openParts } from '../../src/machine/conversation.js';

// Where the window ends, and what is sent then: corners that the cases leave out.

const { edit, grep } = g;
const LONG = 'x'.repeat(5_000);
const overflowsTwice = [g.overflows, g.compacts(), g.overflows];

/** Two results of which one is long, in a request that is refused for its size. */
const tooLong = (...steers: readonly string[]): Walker => {
  const walker = bring('C[u] long');
  walker.send(g.wants(grep('1'), grep('2')), ...steers.map(g.input), g.ended('1'));
  walker.send(g.ended('2', 'ok', LONG), g.overflows, g.compacts());
  return walker;
};
/** A cancelled batch with a long result. */
const waiting = (output: string): Walker => {
  const walker = bring('C[u] long');
  walker.send(g.wants(edit('1')), g.started('1'), g.cancel, g.ended('1', 'cancelled', output));
  return walker;
};
/** The last message was not answered, and the window is too small for it by now. */
const retryInSmallWindow = (): Walker => {
  const walker = bring('C[u] long');
  walker.send(g.refusedRequest, g.change({ windowTokens: 10 }), g.retryLast);
  return walker;
};
/** How the last answer filled half a window of 10,000 tokens, or nearly so. */
const filled = (inputTokens: number) => () => {
  const walker = bring('W long', { compactAtRatio: 0.5 });
  walker.send(g.input('x'), g.says('y', g.usage(0, inputTokens)), g.input('z'));
  return walker;
};
/** Results that fill the window of 10,000 tokens, or nearly so, and no summary of what came before. */
const unsummarised = (inputTokens: number) => () => {
  const walker = bring('C[u] long');
  walker.send(g.completed({ calls: [grep('1')], usage: g.usage(0, inputTokens) }), g.ended('1'));
  walker.send(g.compactionFails);
  return walker;
};

check([
  {
    rule: 'overflow-cuts-results',
    title: 'after a second overflow only the results that are too long are cut',
    given: () => tooLong(),
    send: [g.overflows],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u(summary()), a(use('1'), use('2')), u(good('1'), good('2', /^x+\n\[… 5000 bytes/))],
  },
  {
    rule: 'overflow-cuts-results',
    title: 'the user’s text beside long results is not cut with them',
    given: () => tooLong(LONG),
    send: [g.overflows],
    state: 'C[t]',
    also: (walker) =>
      assert.equal(openParts(walker.state().session.conversation).at(-1)?.text, LONG),
  },
  {
    rule: 'overflow-cuts-results',
    title: 'long text of the user beside short results is nothing that could be cut',
    given: 'C[u] long',
    send: [g.wants(grep('1')), g.input(LONG), g.ended('1'), ...overflowsTwice],
    state: 'W(error contextOverflow)',
    does: [],
  },
  {
    rule: 'overflow-cuts-results',
    title: 'results are cut for their length alone, not when a request fails for another reason',
    given: 'C[u] long',
    send: [g.wants(grep('1')), g.ended('1', 'ok', LONG), g.refusedRequest],
    state: 'W(error badRequest)',
    does: [],
  },
  {
    rule: 'overflow-gives-input-back',
    title: 'an input that overflows goes back to the editor, though long results lie before it',
    given: () => waiting(LONG),
    send: [g.input('go on'), ...overflowsTwice],
    state: 'W(error contextOverflow)',
    does: ['RestoreQueue go on'],
  },
  {
    rule: 'overflow-gives-input-back',
    title: 'where the user typed nothing, nothing goes back to the editor',
    given: () => waiting('half'),
    send: [g.retryLast, ...overflowsTwice],
    state: 'W(error contextOverflow)',
    does: [],
  },
  {
    rule: 'retry-schedule',
    title: 'the longest wait that the provider may ask for is waited',
    given: 'C[u]',
    settings: { retryAfterCapMs: 5_000 },
    send: [g.fails({ retryAfterMs: 5_000 })],
    state: 'Er',
    does: ['ScheduleTimer 5000'],
  },
  {
    rule: 'begin-turn',
    title: 'a window that is filled to its threshold needs no compaction yet',
    given: filled(4_999),
    state: 'C[u]',
    does: ['SendLlmRequest'],
  },
  {
    rule: 'begin-turn',
    title: 'a window that is filled beyond its threshold needs a compaction',
    given: filled(5_000),
    state: 'K[i]',
    does: ['StartCompaction'],
  },
  {
    rule: 'begin-turn',
    title: 'a retry that a compaction held up is sent after it',
    given: retryInSmallWindow,
    send: [g.compacts()],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    path: 'K W C',
    talk: [u(summary(), 'x')],
  },
  {
    rule: 'begin-turn',
    title: 'a retry that a compaction held up goes without what was typed meanwhile',
    given: retryInSmallWindow,
    send: [g.input('and'), g.compacts()],
    state: 'C[u]',
    queue: ['and'],
    talk: [u(summary(), 'x')],
  },
  {
    rule: 'compaction-failed',
    title: 'results that leave a token of the window free are sent without a summary',
    given: unsummarised(9_995),
    state: 'C[t]',
    does: ['SendLlmRequest'],
  },
  {
    rule: 'compaction-failed',
    title: 'results that fill the window to its end are not sent without a summary',
    given: unsummarised(9_996),
    state: 'W(error compaction)',
    does: [],
  },
]);
