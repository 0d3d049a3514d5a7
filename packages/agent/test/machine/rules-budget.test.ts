import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { a, bad, u, use } from '../../../../test/kit/agent/shown.js';

// Limits, the queue and settings: corners that cases-budget.test.ts leaves out.

const { grep } = g;
const dear = (callId: string, costUsd: number) =>
  g.completed({ calls: [grep(callId)], usage: g.usage(costUsd) });

check([
  {
    rule: 'limit-after-round',
    title: 'money is named when money and rounds are both used up',
    given: 'C[u]',
    settings: { limits: { usd: 1, rounds: 1 } },
    send: [dear('1', 2)],
    state: 'W(budget usd)',
  },
  {
    rule: 'limit-after-round',
    title: 'tokens are named when tokens and rounds are both used up',
    given: 'C[u]',
    settings: { limits: { tokens: 5, rounds: 1 } },
    send: [dear('1', 0)],
    state: 'W(budget tokens)',
  },
  {
    rule: 'limit-warning',
    title: 'near a limit the user is warned once',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [dear('1', 0.85), g.ended('1'), dear('2', 0.01), g.ended('2')],
    state: 'C[t]',
    hides: ['DisplayWarning budget'],
  },
  {
    rule: 'steering-joins-results',
    title: 'steering texts join the results in order, a follow-up between them waits',
    given: 'X',
    settings: { hooks: 'never' },
    send: [
      g.input('one'),
      g.followUp('later'),
      g.input('two'),
      g.ended('1', 'failed'),
      g.ended('2', 'failed'),
    ],
    state: 'C[t]',
    talk: [u('hi'), a(use('1'), use('2')), u(bad('1'), bad('2'), 'one', 'two')],
    queue: ['later'],
  },
  {
    rule: 'limit-at-end-of-turn',
    title: 'at a session limit the turn ends as it should, but the queue is held',
    given: 'C[u]',
    settings: { limits: { usd: 1 }, autoRearm: 'off' },
    send: [g.input('more'), g.says('yo', g.usage(2))],
    state: 'W(budget usd)',
    does: [],
    shows: ['DisplayNotice'],
    path: 'C Processing EndOfTurn W',
    talk: [u('hi'), a('yo')],
    queue: ['more'],
  },
  {
    rule: 'limit-at-end-of-turn',
    title: 'at a session limit without a queue the turn just ends, with a notice',
    given: 'C[u]',
    settings: { limits: { usd: 1 }, autoRearm: 'off' },
    send: [g.says('yo', g.usage(2))],
    state: 'W(endOfTurn answer)',
    does: [],
    shows: ['DisplayNotice'],
    path: 'C Processing EndOfTurn W',
  },
  {
    rule: 'queue-input',
    title: 'blank input while busy is not queued',
    given: 'X',
    send: [g.input(' ')],
    state: 'X',
    queue: [],
    says: true,
    does: [],
  },
  {
    rule: 'edit-queue',
    title: 'the queue is sent in the order the user gave it',
    given: 'C[u]',
    send: [
      g.input('one'),
      g.input('two'),
      (state) => ({ type: 'EditQueue', at: g.NOW, items: state.session.queue.toReversed() }),
      g.says('yo'),
    ],
    state: 'C[u]',
    talk: [u('hi'), a('yo'), u('two', 'one')],
  },
  {
    rule: 'settings-change',
    title: 'a changed setting holds from the next decision',
    given: 'C[u]',
    send: [g.change({ maxRetries: 0 }), g.fails()],
    state: 'W(error overloaded)',
    does: [],
  },
  {
    rule: 'edit-queue',
    title: 'an item that an edit names twice is there once',
    given: 'C[u]',
    send: [
      g.input('one'),
      (state) => ({
        type: 'EditQueue',
        at: g.NOW,
        items: [...state.session.queue, ...state.session.queue],
      }),
    ],
    state: 'C[u]',
    queue: ['one'],
  },
  {
    rule: 'settings-change',
    title: 'settings that are tightened under way break nothing that runs',
    given: 'C[u]',
    send: [
      g.fails(),
      g.rings(),
      g.change({ maxRetries: 0 }),
      g.wants(grep('1'), grep('2')),
      g.change({ maxParallel: 1 }),
    ],
    state: 'X',
    calls: '1 starting, 2 starting',
    does: [],
  },
  {
    rule: 'raised-limit',
    title: 'another limit than the one that stopped the turn releases nothing',
    given: 'C[u]',
    settings: { limits: { rounds: 1 } },
    send: [g.wants(grep('1')), g.input('later'), g.ended('1'), g.approve('usd', 5)],
    state: 'W(budget rounds)',
    does: [],
    queue: ['later'],
  },
]);
