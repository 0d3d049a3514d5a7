import * as g from './given.js';
import { check } from './rows.js';
import { a, good, note, u, use } from './shown.js';

// Rules R40-R46 where no case shows them.

const { grep } = g;
const asked = [u('hi'), a(use('1'))];

check([
  {
    case: 'R40',
    title: 'the setting always runs the hook after reads',
    given: 'C[u]',
    settings: { hooks: 'always' },
    send: [g.wants(grep('1')), g.ended('1')],
    state: 'H[c]',
    does: ['RunHook CheckingGitCommits '],
    talk: [...asked, u(good('1'))],
  },
  {
    case: 'R42',
    title: 'changed files are formatted',
    given: 'H[c]',
    send: [g.hookDone({ changedFiles: ['a.ts'] })],
    state: 'H[f]',
    does: ['RunHook RunningAutoformatters 1'],
  },
  {
    case: 'R42',
    title: 'new commits are shown and formatted',
    given: 'H[c]',
    send: [g.hookDone({ commits: g.commits(2) })],
    state: 'H[f]',
    does: ['RunHook RunningAutoformatters 1'],
    shows: ['DisplayNotice commits'],
  },
  {
    case: 'R43',
    title: 'without a formatter a dirty tree is committed',
    given: 'H[c]',
    settings: { formatter: 'off' },
    send: [g.hookDone({ changedFiles: ['a.ts'], dirty: true })],
    state: 'H[a]',
    does: ['RunHook AutoCommitting 1'],
  },
  {
    case: 'R43',
    title: 'without a formatter and without auto-commit a dirty tree is left alone',
    given: 'H[c]',
    settings: { formatter: 'off', autoCommit: 'off' },
    send: [g.hookDone({ changedFiles: ['a.ts'], dirty: true })],
    state: 'C[t]',
    does: ['SendLlmRequest'],
  },
  {
    case: 'R43',
    title: 'after formatting a clean tree goes on',
    given: 'H[f]',
    send: [g.hookDone()],
    state: 'C[t]',
    does: ['SendLlmRequest'],
  },
  {
    case: 'R44',
    title: 'the note of each phase is appended at once, after the results',
    given: 'H[c]',
    send: [
      g.hookDone({ changedFiles: ['a.ts'], dirty: true, note: 'changed a.ts' }),
      g.hookDone({ dirty: true, note: 'formatted a.ts' }),
    ],
    state: 'H[a]',
    talk: [...asked, u(good('1'), note(/changed a\.ts/), note(/formatted a\.ts/))],
  },
  {
    case: 'R45',
    title: 'a commit check that fails is a warning',
    given: 'H[c]',
    send: [g.hookFails('no git here')],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    shows: [/^DisplayWarning hook: [\s\S]*no git here/],
  },
  {
    case: 'R45',
    title: 'a formatter that fails does not keep a dirty tree from its commit',
    given: 'H[f]',
    send: [g.hookFails()],
    state: 'H[a]',
    does: ['RunHook AutoCommitting 1'],
    shows: ['DisplayWarning hook'],
  },
  {
    case: 'R45',
    title: 'a formatter that fails over a clean tree goes on',
    given: 'H[c]',
    send: [g.hookDone({ commits: g.commits(1) }), g.hookFails()],
    state: 'C[t]',
    does: ['SendLlmRequest'],
  },
  {
    case: 'R45',
    title: 'a formatter that fails without auto-commit goes on',
    given: 'H[f]',
    settings: { autoCommit: 'off' },
    send: [g.hookFails()],
    state: 'C[t]',
    does: ['SendLlmRequest'],
  },
  {
    case: 'R46',
    title: 'a formatter can stop the turn, too, and its note stays',
    given: 'H[f]',
    send: [g.hookDone({ proceed: false, dirty: true, note: 'formatted a.ts' })],
    state: 'W(cancelled veto)',
    does: [],
    talk: [...asked, u(good('1'), note(/formatted a\.ts/))],
  },
]);
