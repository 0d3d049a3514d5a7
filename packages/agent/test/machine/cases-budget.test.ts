import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { a, good, summary, u, use } from '../../../../test/kit/agent/shown.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';

// Budget, queue, compaction.

const { grep } = g;
const usdLimit = (walker: Walker): number =>
  Math.round(Number(walker.state().session.settings.limits.usd) * 100) / 100;
/** In the second turn of a session that has spent 0.90 of 1.00. */
const nearLimit = (patch: SettingsPatch = {}) => {
  const walker = bring('C[u]', { limits: { usd: 1 }, ...patch });
  walker.send(g.says('yo', g.usage(0.9)), g.input('more'));
  return walker;
};
const before = [u('hi'), a('yo'), u('more')];

check([
  {
    rule: 'limit-at-end-of-turn',
    title:
      'a reply that reaches the limit ends the turn as it should, and the limit is armed again',
    given: nearLimit,
    send: [g.says('done', g.usage(0.2))],
    state: 'W(endOfTurn answer)',
    does: [],
    shows: ['DisplayText done', 'DisplayNotice budget'],
    talk: [...before, a('done')],
    also: (walker) => assert.equal(usdLimit(walker), 2.1),
  },
  {
    rule: 'queued-turn',
    title: 'two queued texts open the next turn in one message, in order',
    given: 'C[u]',
    send: [g.input('one'), g.input('two'), g.says('yo')],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    path: 'C Processing EndOfTurn W C',
    talk: [u('hi'), a('yo'), u('one', 'two')],
    queue: [],
  },
  {
    rule: 'queued-turn',
    title: 'a follow-up opens the next turn',
    given: 'C[u]',
    send: [g.followUp('later'), g.wants(grep('1')), g.ended('1'), g.says('yo')],
    state: 'C[u]',
    talk: [u('hi'), a(use('1')), u(good('1')), a('yo'), u('later')],
    queue: [],
  },
  {
    rule: 'begin-turn',
    title: 'a turn over a full window begins with a compaction',
    given: 'W full',
    send: [g.input('x')],
    state: 'K[i]',
    does: ['StartCompaction'],
    path: 'W K',
    queue: ['x'],
  },
  {
    rule: 'compact-between-rounds',
    title: 'a turn that fills the window is compacted on its way',
    given: 'K[m]',
    state: 'K[m]',
    does: ['StartCompaction'],
    path: 'X H CheckingBudget Gathering K',
  },
  {
    rule: 'request-after-compaction',
    title: 'after a compaction on the way the results are sent, with the calls they answer',
    given: 'K[m]',
    send: [g.compacts()],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u(summary()), a(use('1')), u(good('1'))],
  },
  {
    rule: 'compact-on-request',
    title: 'a short conversation is not compacted',
    given: 'W',
    send: [g.compact],
    state: 'W(start)',
    does: [],
    shows: ['DisplayNotice nothingToDo'],
  },
]);
