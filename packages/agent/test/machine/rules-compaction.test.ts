import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { a, bad, note, summary, u, use } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';

// Compaction: corners that the cases leave out.

const { edit, grep } = g;
/** A cancelled batch: its results wait in a nearly full window. */
const waiting = (tokens: number) => {
  const walker = bring('C[u] long');
  walker.send(
    g.completed({ calls: [edit('1')], usage: g.usage(0, tokens) }),
    g.started('1'),
    g.cancel,
    g.ended('1', 'cancelled'),
  );
  return walker;
};
const cancelledResults = [bad('1'), note(/./)] as const;
const failedLong = () => {
  const walker = bring('C[u] long');
  walker.send(g.refusedRequest);
  return walker;
};

check([
  {
    rule: 'summary-keeps-unanswered',
    title: 'a compaction by request keeps user text that was not answered',
    given: failedLong,
    send: [g.compact, g.compacts()],
    state: 'W(compacted)',
    talk: [u(summary(), 'x')],
  },
  {
    rule: 'summary-keeps-unanswered',
    title: 'after an overflow of a user turn waiting results stay with their calls',
    given: () => waiting(10),
    send: [g.input('go on'), g.overflows, g.compacts()],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [u(summary()), a(use('1')), u(...cancelledResults, 'go on')],
  },
  {
    rule: 'request-after-compaction',
    title: 'the attempt is the same after a compaction',
    given: 'C[u] long',
    send: [g.fails(), g.rings(), g.overflows, g.compacts()],
    state: 'C[u] 2',
    does: ['SendLlmRequest'],
  },
  {
    rule: 'compaction-failed',
    title: 'a compaction on the way that fails below the window goes on without it',
    given: 'K[m]',
    send: [g.compactionFails],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    shows: ['DisplayWarning compaction'],
  },
  {
    rule: 'compaction-failed',
    title:
      'a compaction on the way that fails above the window ends the turn and keeps the results',
    given: 'C[u] long',
    send: [
      g.completed({ calls: [grep('1')], usage: g.usage(0, 11_000) }),
      g.ended('1'),
      g.compactionFails,
    ],
    state: 'W(error compaction)',
    does: [],
    shows: ['DisplayWarning compaction', 'DisplayError'],
    path: 'K Failed W',
    also: (walker) => assert.equal(walker.state().session.conversation.open?.parts.length, 1),
  },
  {
    rule: 'one-compaction-between-replies',
    title: 'an overflow right after a compaction does not compact again',
    given: 'K[i]',
    send: [g.compacts(), g.overflows],
    state: 'W(error contextOverflow)',
    does: ['RestoreQueue x'],
    talk: [u(summary())],
  },
  {
    rule: 'one-compaction-between-replies',
    title: 'new input allows a compaction again',
    given: 'K[o]',
    send: [g.compactionFails, g.input('again'), g.overflows],
    state: 'K[o]',
    does: ['StartCompaction'],
  },
]);
