import * as g from '../../../../test/kit/agent/given.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { a, good, note, u, use } from '../../../../test/kit/agent/shown.js';

// Hooks after tools.

const { grep } = g;
const ROUND = 'X H CheckingBudget Gathering C';
const asked = [u('hi'), a(use('1'))];

check([
  {
    rule: 'hooks-look-after-changes',
    title: 'after reads alone the hook is passed',
    given: 'C[u]',
    send: [g.wants(grep('1')), g.ended('1')],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    path: ROUND,
  },
  {
    rule: 'next-round',
    title: 'a clean tree without commits goes on',
    given: 'H[c]',
    send: [g.hookDone()],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    path: 'H CheckingBudget Gathering C',
  },
  {
    rule: 'format-changes',
    title: 'one commit is formatted under the rule of exactly one',
    given: 'H[c]',
    settings: { formatter: 'onOneCommit' },
    send: [g.hookDone({ commits: g.commits(1), dirty: true })],
    state: 'H[f]',
    does: ['RunHook RunningAutoformatters 1'],
    shows: ['DisplayNotice commits'],
  },
  {
    rule: 'hook-veto',
    title: 'a hook can stop the turn, and the results stay',
    given: 'H[c]',
    send: [
      g.hookDone({ warning: 'stop here', proceed: false, commits: g.commits(1), dirty: true }),
    ],
    state: 'W(cancelled veto)',
    does: [],
    shows: [/^DisplayWarning hook: [\s\S]*stop here/, 'PromptForInput'],
    path: 'H Cancelled W',
    talk: [...asked, u(good('1'))],
  },
  {
    rule: 'next-round',
    title: 'input during a hook goes into the next message, after the results and the notes',
    given: 'H[c]',
    send: [g.input('use tabs'), g.hookDone({ note: 'formatted a.ts' })],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [...asked, u(good('1'), note(/formatted a\.ts/), 'use tabs')],
    queue: [],
  },
]);
