import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';

// Where the window ends, and what is sent then: corners that the cases leave out.

const { edit } = g;
const overflowsTwice = [g.overflows, g.compacts(), g.overflows];

/** A cancelled batch with a long result. */
const waiting = (output: string): Walker => {
  const walker = bring('C[u] long');
  walker.send(g.wants(edit('1')), g.started('1'), g.cancel, g.ended('1', 'cancelled', output));
  return walker;
};

check([
  {
    rule: 'overflow-gives-input-back',
    title: 'where the user typed nothing, nothing goes back to the editor',
    given: () => waiting('half'),
    send: [g.retryLast, ...overflowsTwice],
    state: 'W(error contextOverflow)',
    does: [],
  },
  {
    rule: 'compaction-failed',
    title: 'results that fill the window to its end are not sent without a summary',
    given: () => {
      const walker = bring('C[u] long');
      walker.send(
        g.completed({ calls: [g.grep('1')], usage: g.usage(0, 9_996) }),
        g.ended('1'),
        g.compactionFails,
      );
      return walker;
    },
    state: 'W(error compaction)',
    does: [],
  },
]);
