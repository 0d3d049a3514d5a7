import { llm, PROMPT, session, waiting } from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import {
  checkRests,
  NOTICE,
  path,
  rests,
  stopped,
  W,
  wrong,
} from '../../../../test/kit/agent/step-rows.js';
import type { Action } from '../../src/machine/action.js';
import type { State, WaitReason } from '../../src/machine/state.js';

// docs/rules.md#back-to-the-user, each way of breaking it by hand: how the machine comes to wait for the user, and what
// it says of that.

const ERROR: Action = { type: 'DisplayError', text: 'broken', origin: 'tool' };
const WARNING: Action = { type: 'DisplayWarning', kind: 'retry', text: 'again' };

const START: WaitReason = { kind: 'start' };
const BUDGET: WaitReason = { kind: 'budget', dimension: 'usd' };
const COMPACTED: WaitReason = { kind: 'compacted' };
const BROKEN: WaitReason = { kind: 'error', error: 'tools', origin: 'tool', message: 'broken' };
const SILENT: State = stopped('user');

// ---- Asked once, told why, at rest ----

checkRests([
  { title: 'a stop that is told', path: path('Error', 'Cancelled', W) },
  {
    title: 'a stop that is told as an error',
    path: path('Error', 'Cancelled', W),
    actions: [ERROR, PROMPT],
  },
  {
    title: 'a cancel that is not told',
    path: path('Error', 'Cancelled', W),
    actions: [WARNING, PROMPT],
    says: ['back-to-the-user: Cancelled was passed, and the user is not told'],
  },
  {
    title: 'a limit that is not told',
    path: path('Error', 'BudgetExceeded', W),
    after: rests(BUDGET),
    actions: [PROMPT],
    says: ['back-to-the-user: BudgetExceeded was passed, and the user is not told'],
  },
  {
    title: 'a failure that is not told',
    path: path('Error', 'Failed', W),
    after: rests(BROKEN),
    actions: [PROMPT],
    says: ['back-to-the-user: Failed was passed, and the user is not told'],
  },
  {
    title: 'a cancel that goes on at once, and is not told',
    before: waiting(),
    path: path('Error', 'Cancelled', W, 'CallingLlm'),
    after: llm(),
    actions: [{ type: 'SendLlmRequest', requestId: 'req-1', purpose: 'user', length: 1 }],
    says: ['back-to-the-user: Cancelled was passed, and the user is not told'],
  },
  {
    title: 'nobody is asked',
    path: path('Error', 'Cancelled', W),
    actions: [NOTICE],
    says: ['back-to-the-user: the user is asked 0 times'],
  },
  {
    title: 'nobody is asked, after an event that stayed at first',
    path: path('Error', 'Error!', 'Cancelled', W),
    actions: [NOTICE],
    says: ['back-to-the-user: the user is asked 0 times'],
  },
  {
    title: 'nothing is said at all',
    path: path('Error', 'Cancelled', W),
    actions: [],
    says: [
      'back-to-the-user: Cancelled was passed, and the user is not told',
      'back-to-the-user: the user is asked 0 times',
    ],
  },
  {
    title: 'nothing is said or changed',
    before: SILENT,
    after: SILENT,
    path: path('Error', 'Cancelled', W),
    actions: [],
    says: [
      'back-to-the-user: Cancelled was passed, and the user is not told',
      'back-to-the-user: the user is asked 0 times',
    ],
  },
  {
    title: 'the user is asked twice',
    path: path('Error', 'Cancelled', W),
    actions: [NOTICE, PROMPT, PROMPT],
    says: ['back-to-the-user: the user is asked 2 times'],
  },
  {
    title: 'nobody is asked again while waiting goes on',
    path: path(W, `${W}!`),
    actions: [NOTICE],
  },
  {
    title: 'a rest that has something to send',
    path: path('Error', 'Cancelled', W),
    after: rests({ kind: 'cancelled', cause: 'user' }, 'sendQueue'),
    says: ['nothing-to-wait-for: a rest that would go on (sendQueue)'],
  },
]);

// ---- The reason ----

checkRests([
  { title: 'after the opening', path: path('Ready', W), after: rests(START) },
  {
    title: 'after the opening',
    path: path('Ready', W),
    after: rests(BROKEN),
    says: [wrong('error', 'start')],
  },
  { title: 'after the end', path: path('ShuttingDown', W), after: rests({ kind: 'resumed' }) },
  {
    title: 'after the end',
    path: path('ShuttingDown', W),
    after: rests(START),
    says: [wrong('start', 'resumed')],
  },
  { title: 'after a failure', path: path('Failed', W), after: rests(BROKEN) },
  {
    title: 'after a failure',
    path: path('Failed', W),
    after: rests(START),
    says: [wrong('start', 'error')],
  },
  { title: 'after a limit', path: path('BudgetExceeded', W), after: rests(BUDGET) },
  {
    title: 'after a limit',
    path: path('BudgetExceeded', W),
    after: stopped('user'),
    says: [wrong('cancelled user', 'budget')],
  },
  {
    title: 'a limit holds the queue, whatever the way',
    path: path('Ready', W),
    after: rests(BUDGET),
  },
  { title: 'a way that is not known', path: path('Somewhere', W), after: rests(START) },
  { title: 'no way at all', path: path(W, `${W}!`), after: rests(START), actions: [NOTICE] },
  { title: 'after a failed compaction', path: path('Compacting', W), after: rests(BROKEN) },
  {
    title: 'after a failed compaction',
    path: path('Compacting', W),
    after: rests(COMPACTED),
    says: [wrong('compacted', 'error')],
  },
  {
    title: 'the last way into waiting counts',
    path: path('Ready', W, 'Error', 'Cancelled', W, W),
    after: rests(START),
    says: [wrong('start', 'cancelled user')],
  },
]);

const compacting: State = {
  name: 'Compacting',
  session: session(),
  compactionId: 'compaction-1',
  length: 2,
  mode: { kind: 'idle', resume: 'rest' },
};
const compacted = { before: compacting, event: g.compacts(), path: path('Compacting', W) };

checkRests([
  { ...compacted, title: 'after a compaction', after: rests(COMPACTED) },
  {
    ...compacted,
    title: 'after a compaction',
    after: rests(BROKEN),
    says: [wrong('error', 'compacted')],
  },
]);
