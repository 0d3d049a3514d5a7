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
    rule: 'overflow-gives-input-back',
    title: 'where the user typed nothing, nothing goes back to the editor',
    given: () => waiting('half'),
    send: [g.retryLast, ...overflowsTwice],
    state: 'W(error contextOverflow)',
    does: [],
  },
]);
