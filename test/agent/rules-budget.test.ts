import * as g from './given.js';
import { check } from './rows.js';
import { a, bad, good, u, use } from './shown.js';

// Rules R50-R59 where no case shows them.

const { edit, grep } = g;
const asked = [u('hi'), a(use('1'))];
const cut = (callId: string) => g.completed({ calls: [edit(callId)], stopReason: 'maxTokens' });
const dear = (callId: string, costUsd: number) =>
  g.completed({ calls: [grep(callId)], usage: g.usage(costUsd) });

check([
  {
    case: 'R50',
    title: 'of money and rounds money is named',
    given: 'C[u]',
    settings: { limits: { usd: 1, rounds: 1 } },
    send: [dear('1', 2)],
    state: 'W(budget usd)',
  },
  {
    case: 'R50',
    title: 'of tokens and rounds tokens are named',
    given: 'C[u]',
    settings: { limits: { tokens: 5, rounds: 1 } },
    send: [dear('1', 0)],
    state: 'W(budget tokens)',
  },
  {
    case: 'R50',
    title: 'of rounds and truncation rounds are named',
    given: 'C[u]',
    settings: { limits: { rounds: 1, truncation: 1 } },
    send: [cut('1')],
    state: 'W(budget rounds)',
  },
  {
    case: 'R50',
    title: 'the time of the turn is looked at even before its timer rings',
    given: 'C[u]',
    settings: { limits: { timeMs: 60_000, rounds: 1 } },
    send: [g.wants(grep('1')), g.after(60_000, g.ended('1'))],
    state: 'W(budget time)',
    talk: [...asked, u(good('1'))],
  },
  {
    case: 'R51',
    title: 'near a limit the user is warned',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [dear('1', 0.85), g.ended('1')],
    state: 'C[t]',
    shows: ['DisplayWarning budget'],
  },
  {
    case: 'R51',
    title: 'near a limit the user is warned once',
    given: 'C[u]',
    settings: { limits: { usd: 1 } },
    send: [dear('1', 0.85), g.ended('1'), dear('2', 0.01), g.ended('2')],
    state: 'C[t]',
    hides: ['DisplayWarning budget'],
  },
  {
    case: 'R52',
    title: 'steering texts join the results in order, a follow-up between them waits',
    given: 'X',
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
    case: 'R55',
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
    case: 'R55',
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
    case: 'R56',
    title: 'blank input while busy is not queued',
    given: 'X',
    send: [g.input(' ')],
    state: 'X',
    queue: [],
    says: true,
    does: [],
  },
  {
    case: 'R57',
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
    case: 'R57',
    title: 'the text of a queued item can be changed',
    given: 'C[u]',
    send: [
      g.input('one'),
      (state) => ({
        type: 'EditQueue',
        at: g.NOW,
        items: state.session.queue.map((item) => ({ ...item, text: 'better' })),
      }),
      g.says('yo'),
    ],
    state: 'C[u]',
    talk: [u('hi'), a('yo'), u('better')],
  },
  {
    case: 'R59',
    title: 'a changed setting holds from the next decision',
    given: 'C[u]',
    send: [g.change({ maxRetries: 0 }), g.fails()],
    state: 'W(error overloaded)',
    does: [],
  },
  {
    case: 'R57',
    title: 'an item that an edit names twice is there once',
    given: 'C[u]',
    send: [
      g.input('one'),
      (state) => ({ type: 'EditQueue', at: g.NOW, items: [...state.session.queue, ...state.session.queue] }),
    ],
    state: 'C[u]',
    queue: ['one'],
  },
  {
    case: 'R57',
    title: 'an edit cannot add items or blank texts',
    given: 'C[u]',
    send: [
      g.input('one'),
      (state) => ({
        type: 'EditQueue',
        at: g.NOW,
        items: [
          ...state.session.queue.map((item) => ({ ...item, text: ' ' })),
          { inputId: 'input-9', text: 'ghost', mode: 'steer' },
        ],
      }),
    ],
    state: 'C[u]',
    queue: [],
  },
  {
    case: 'R59',
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
]);
