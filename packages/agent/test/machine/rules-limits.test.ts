import assert from 'node:assert/strict';
import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { a, bad, nameOf, u, use } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import type { State } from '../../src/machine/state.js';

// Limits that are raised, and the time limit of a turn: corners that the cases leave out.

const { grep } = g;
const TIMED: SettingsPatch = { limits: { timeMs: 60_000 } };
/** Waits for a reply whose turn has run out of time. */
const timedOut = () => {
  const walker = bring('C[u]', { ...TIMED, cancelMode: 'drain' });
  walker.send(g.delta('so'), g.timeIsUp);
  return walker;
};
/** Stopped by a limit of 1 dollar, calls answered. */
const overspent = () => {
  const walker = bring('C[u]', { limits: { usd: 1 }, autoRearm: 'off' });
  walker.send(g.completed({ calls: [grep('1')], usage: g.usage(2) }));
  return walker;
};

check([
  {
    rule: 'raised-limit',
    title: 'a limit can be raised at any time',
    given: 'C[u]',
    send: [g.approve('usd', 7)],
    state: 'C[u]',
    does: [],
    shows: ['DisplayNotice budget'],
    also: (walker) => assert.equal(walker.state().session.settings.limits.usd, 7),
  },
  ...(['Ready', 'W', 'K[i]', 'Z'] as const).map((given) => ({
    rule: 'time-limit' as const,
    title: `a time limit that is set in ${given} starts no timer: no turn runs`,
    given,
    send: [
      (state: State) => ({
        type: 'SettingsChanged' as const,
        at: g.NOW,
        patch: { limits: { ...state.session.settings.limits, timeMs: 1_000 } },
      }),
    ],
    state: nameOf(bring(given).state()),
    does: [],
  })),
  {
    rule: 'raised-limit',
    title: 'raising the limit sends nothing by itself',
    given: overspent,
    send: [g.approve('usd', 5)],
    state: 'W(budget usd)',
    does: [],
    shows: [/^DisplayNotice .*(RetryLast|retry)/i, 'PromptForInput'],
    talk: [u('hi'), a(use('1')), u(bad('1'))],
  },
  {
    rule: 'raised-limit',
    title: 'raising the limit by too little holds the queue',
    given: overspent,
    send: [g.input('go on'), g.approve('usd', 1.5)],
    state: 'W(budget usd)',
    does: [],
    queue: ['go on'],
  },
  {
    rule: 'time-limit',
    title: 'the time limit aborts a request and keeps its text',
    given: 'C[u]',
    settings: TIMED,
    send: [g.delta('half'), g.timeIsUp],
    state: 'W(budget time)',
    shows: ['AbortLlmRequest', 'DisplayNotice budget', 'PromptForInput'],
    path: 'C BudgetExceeded W',
    talk: [u('hi'), a('half')],
  },
  {
    rule: 'time-limit',
    title: 'the time limit stops tools',
    given: 'X',
    settings: TIMED,
    send: [g.timeIsUp],
    state: 'X cancelling',
    calls: '1 running, 2 cancelled',
    shows: ['CancelTools 1', 'ScheduleTimer 5000'],
  },
  ...(['K[m]', 'K[o]'] as const).map((given) => ({
    rule: 'time-limit' as const,
    title: `the time limit aborts a compaction in ${given}`,
    given,
    settings: TIMED,
    send: [g.timeIsUp],
    state: 'W(budget time)',
    shows: ['AbortCompaction'],
    path: 'K BudgetExceeded W',
  })),
  {
    rule: 'time-limit',
    title: 'the time limit changes nothing about a cancel that waits for tools',
    given: 'X',
    settings: TIMED,
    send: [g.cancel, g.timeIsUp],
    state: 'X cancelling',
    says: true,
    does: [],
  },
  ...(
    [
      ['a reply', g.says('so it is'), a('so it is')],
      ['a failure', g.fails(), a('so')],
      ['a cancel', g.cancel, a('so')],
      ['Resumed', g.resumed, a('so')],
    ] as const
  ).map(([what, given, kept]) => ({
    rule: 'time-limit' as const,
    title: `after the time limit ${what} ends the wait for the reply`,
    given: timedOut,
    send: [given],
    state: 'W(budget time)',
    hides: ['SendLlmRequest'],
    path: 'C BudgetExceeded W',
    talk: [u('hi'), kept],
  })),
]);
