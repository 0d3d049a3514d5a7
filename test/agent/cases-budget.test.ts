import assert from 'node:assert/strict';
import { Log } from '../../src/kernel/log.js';
import * as g from './given.js';
import { check, spentBy } from './rows.js';
import type { SettingsPatch } from './settings.js';
import { a, assertTalk, bad, good, summary, u, use } from './shown.js';
import { bring, type Walker } from './walker.js';

// Conformance cases 4.6: budget, queue, compaction.

const { grep } = g;
const usdLimit = (walker: Walker): number =>
  Math.round(walker.state().session.settings.limits.usd * 100) / 100;
/** In the second turn of a session that has spent 0.90 of 1.00. */
const nearLimit = (patch: SettingsPatch = {}) => {
  const walker = bring('C[u]', { limits: { usd: 1 }, ...patch });
  walker.send(g.says('yo', g.usage(0.9)), g.input('more'));
  return walker;
};
const twoCalls = g.completed({ calls: [grep('1'), grep('2')], usage: g.usage(0.2) });
/** Stopped by the budget with both calls answered. */
const stopped = (patch: SettingsPatch = {}) => {
  const walker = nearLimit(patch);
  walker.send(twoCalls);
  return walker;
};
const before = [u('hi'), a('yo'), u('more')];
const skipped = [bad('1', /skipped.*budget|budget.*skipped/i), bad('2', /skipped.*budget|budget.*skipped/i)];
const sameTalk = (walker: Walker): void => {
  const [one, two] = walker.steps().slice(-2);
  const text = (step: typeof one) => JSON.stringify(step?.state.session.conversation.closed);
  assert.equal(text(two), text(one));
};

check([
  {
    case: '139',
    title: 'a reply that reaches the limit ends the turn as it should, and the limit is armed again',
    given: nearLimit,
    send: [g.says('done', g.usage(0.2))],
    state: 'W(endOfTurn answer)',
    does: [],
    shows: ['DisplayText done', 'DisplayNotice budget'],
    talk: [...before, a('done')],
    also: (walker) => assert.equal(usdLimit(walker), 2.1),
  },
  {
    case: '140',
    title: 'calls of a reply that reaches the limit are skipped and answered',
    given: nearLimit,
    send: [twoCalls],
    state: 'W(budget usd)',
    does: [],
    shows: ['DisplayNotice budget'],
    path: 'C Processing ToolUseRequested CheckingForCancellation X H CheckingBudget BudgetExceeded W',
    talk: [...before, a(use('1'), use('2')), u(...skipped)],
  },
  {
    case: '142',
    title: 'input after an armed limit goes on with the results',
    given: stopped,
    send: [g.input('go on')],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [...before, a(use('1'), use('2')), u(...skipped, 'go on')],
  },
  {
    case: '143a',
    title: 'without arming the text is held until the user raises the limit',
    given: () => stopped({ autoRearm: 'off' }),
    send: [g.input('go on')],
    state: 'W(budget usd)',
    does: [],
    shows: [/^DisplayNotice (approveBudget|budget)/, 'PromptForInput'],
    talk: [...before, a(use('1'), use('2')), u(...skipped)],
    queue: ['go on'],
  },
  {
    case: '143b',
    title: 'ApproveBudget releases what was held',
    given: () => stopped({ autoRearm: 'off' }),
    send: [g.input('go on'), g.approve('usd', 5)],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    talk: [...before, a(use('1'), use('2')), u(...skipped, 'go on')],
    queue: [],
    also: (walker) => assert.equal(usdLimit(walker), 5),
  },
  {
    case: '145',
    title: 'a limit of 0 is no limit',
    given: 'C[u]',
    settings: { limits: { usd: 0 } },
    send: [g.completed({ calls: [grep('1')], usage: g.usage(1_000) }), g.ended('1')],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    hides: ['DisplayNotice', 'DisplayWarning'],
    also: (walker) => assert.equal(spentBy(walker), 1_000),
  },
  {
    case: '146',
    title: 'the cost of a stale completion counts once',
    given: 'C[u]',
    send: [
      g.cancel,
      g.completed({ text: 'late', requestId: 'req-1', usage: g.usage(0.4) }),
      g.completed({ text: 'late', requestId: 'req-1', usage: g.usage(0.4) }),
    ],
    state: 'W(cancelled user)',
    quiet: true,
    also: (walker) => assert.equal(spentBy(walker), 0.4),
  },
  {
    case: '148',
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
    case: '149a',
    title: 'a follow-up does not join the results',
    given: 'C[u]',
    send: [g.followUp('later'), g.wants(grep('1')), g.ended('1')],
    state: 'C[t]',
    talk: [u('hi'), a(use('1')), u(good('1'))],
    queue: ['later'],
  },
  {
    case: '149b',
    title: 'a follow-up opens the next turn',
    given: 'C[u]',
    send: [g.followUp('later'), g.wants(grep('1')), g.ended('1'), g.says('yo')],
    state: 'C[u]',
    talk: [u('hi'), a(use('1')), u(good('1')), a('yo'), u('later')],
    queue: [],
  },
  {
    case: '151',
    title: 'a text that was removed from the queue is nowhere',
    given: 'C[u]',
    send: [g.input('nonsense'), g.unqueue('nonsense'), g.says('yo')],
    state: 'W(endOfTurn answer)',
    does: [],
    shows: ['PromptForInput'],
    talk: [u('hi'), a('yo')],
    queue: [],
  },
  {
    case: '152',
    title: 'a turn over a full window begins with a compaction',
    given: 'W full',
    send: [g.input('x')],
    state: 'K[i]',
    does: ['StartCompaction'],
    path: 'W K',
    queue: ['x'],
  },
  {
    case: '152b',
    title: 'after the compaction the summary and the text are one message',
    given: 'K[i]',
    send: [g.compacts()],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    path: 'K W C',
    talk: [u(summary(), 'x')],
    queue: [],
  },
  {
    case: '154',
    title: 'a compaction that failed does not hold the turn up',
    given: 'K[i]',
    send: [g.compactionFails],
    state: 'C[u]',
    does: ['SendLlmRequest'],
    shows: ['DisplayWarning compaction'],
    path: 'K W C',
    queue: [],
    also: (walker) => {
      sameTalk(walker);
      const { closed, open } = walker.state().session.conversation;
      assert.equal(closed.length, 6);
      assertTalk({ closed: Log.empty(), open }, [u('x')]);
    },
  },
  {
    case: '155a',
    title: 'a turn that fills the window is compacted on its way',
    given: 'K[m]',
    state: 'K[m]',
    does: ['StartCompaction'],
    path: 'X H CheckingBudget Gathering K',
  },
  {
    case: '155b',
    title: 'after a compaction on the way the results are sent, with the calls they answer',
    given: 'K[m]',
    send: [g.compacts()],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u(summary()), a(use('1')), u(good('1'))],
  },
  {
    case: '157',
    title: 'input during a compaction is queued',
    given: 'K[i]',
    send: [g.input('y')],
    state: 'K[i]',
    does: [],
    shows: ['DisplayNotice queued'],
    queue: ['x', 'y'],
  },
  {
    case: '158',
    title: 'a completion of another compaction is stale',
    given: 'K[i]',
    send: [g.compacts(g.usage(), 'compaction-9')],
    state: 'K[i]',
    quiet: true,
  },
  {
    case: '160',
    title: 'a compaction does not reset what was spent',
    given: () => {
      const walker = bring('W long');
      walker.send(g.input('dear'), g.says('yes', g.usage(5)), g.compact, g.compacts(g.usage(0)));
      return walker;
    },
    state: 'W(compacted)',
    also: (walker) => assert.equal(spentBy(walker), 5),
  },
  {
    case: '161',
    title: 'a short conversation is not compacted',
    given: 'W',
    send: [g.compact],
    state: 'W(start)',
    does: [],
    shows: ['DisplayNotice nothingToDo'],
  },
]);
