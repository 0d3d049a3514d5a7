import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { a, nameOf, u } from '../../../../test/kit/agent/shown.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import type { State } from '../../src/machine/state.js';

// Limits that are raised, and the time limit of a turn: corners that the cases leave out.

const TIMED: SettingsPatch = { limits: { timeMs: 60_000 } };
/** Waits for a reply whose turn has run out of time. */
const timedOut = () => {
  const walker = bring('C[u]', { ...TIMED, cancelMode: 'drain' });
  walker.send(g.delta('so'), g.timeIsUp);
  return walker;
};

check([
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
