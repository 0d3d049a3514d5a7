import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Action } from '@pawl/agent/machine/action';
import type { Event } from '@pawl/agent/machine/event';
import type { State, WaitReason } from '@pawl/agent/machine/state';
import {
  asked,
  failed,
  llm,
  PROMPT,
  send,
  session,
  typed,
  waiting,
  withTalk,
} from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import {
  checkRests,
  checkSteps,
  NOTICE,
  path,
  rests,
  stopped,
  W,
  wrong,
} from '../../../../test/kit/agent/step-rows.js';
import { requiredRequestFaults } from '../../src/invariants.js';

// rules.md#back-to-the-user, each way of breaking it by hand: how the machine comes to wait for the user, and what
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

checkRests([
  {
    title: 'after a rewind',
    path: path('Rewinding', W),
    after: rests({ kind: 'rewound' }),
  },
  {
    title: 'after a rewind',
    path: path('Rewinding', W),
    after: rests(COMPACTED),
    says: [wrong('compacted', 'rewound')],
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

// ---- Steps that must lead to a request ----

type Due = {
  readonly before?: State;
  readonly event?: g.Given;
  readonly path?: ReturnType<typeof path>;
  readonly after?: State;
  readonly actions?: readonly Action[];
};

/** Why a request was due and none came; '' where none was. */
const missed = ({ before = waiting(), event = g.cancel, ...step }: Due): string => {
  const { after = before, actions = [], path: taken = [] } = step;
  const given: Event = g.eventOf(event, before);
  const stepped = { state: after, actions, path: taken, diagnostics: [] };
  return requiredRequestFaults(before, given, stepped).join();
};
const due = (why: string): string => `never-stuck: ${why} leads to no request`;

test('never-stuck: what a user asks for leads to a request', () => {
  const text = due('a text of the user');
  const retry = due('a retry that was asked for');
  assert.equal(missed({ event: typed('go on') }), text);
  assert.equal(missed({ event: typed(' ') }), '');
  assert.equal(missed({ event: typed('go on'), actions: [send(1)] }), '');
  const compaction = { type: 'StartCompaction', compactionId: 'compaction-1' } as const;
  assert.equal(missed({ event: typed('x'), actions: [compaction as unknown as Action] }), '');
  assert.equal(missed({ event: typed('go on'), actions: [PROMPT] }), text);
  assert.equal(missed({ event: g.retryLast }), '');
  assert.equal(missed({ before: waiting(withTalk([], asked())), event: g.retryLast }), retry);
  assert.equal(missed({ before: failed(session(), 1), event: g.retryNow }), retry);
});

test('never-stuck: a retry that is due, and a summary that the turn waited for, lead to a request', () => {
  const error = failed(session(), 1);
  assert.equal(missed({ before: error, event: g.rings('timer-1') }), due('a retry that is due'));
  assert.equal(missed({ before: error, event: g.rings('timer-2') }), '');
  const held = session({ queue: [{ inputId: 'input-1', text: 'more', mode: 'steer' }] });
  const summarising = (mode: object, own = session()): State =>
    ({ ...compacting, session: own, mode }) as State;
  const inTurn = summarising({ kind: 'turn' });
  assert.equal(missed({ before: inTurn, event: g.compacts() }), due('a summary in a turn'));
  const other = { ...compacting, compactionId: 'compaction-2' } as State;
  const late = g.eventOf(g.compacts(), compacting);
  assert.equal(missed({ before: other, event: late }), '');
  assert.equal(missed({ before: inTurn, event: g.cancel }), '');
  const before = due('a summary before a turn');
  const again = summarising({ kind: 'idle', resume: 'sendAgain' });
  assert.equal(missed({ before: again, event: g.compacts() }), before);
  const waits = summarising({ kind: 'idle', resume: 'rest' }, held);
  assert.equal(missed({ before: waits, event: g.compacts() }), before);
  assert.equal(missed({ before: compacting, event: g.compacts() }), '');
});

test('never-stuck: a batch that is over leads to a request, and a queue that is released', () => {
  const over = path('ExecutingTools', 'GatheringAdditionalMessages', W);
  assert.equal(missed({ before: llm(), path: over }), due('a batch that is over'));
  const queue = [{ inputId: 'input-1', text: 'more', mode: 'steer' }] as const;
  const released = due('a queue that is released');
  const ended = path('CallingLlm', 'EndOfTurn', W);
  const stop = path('CallingLlm', 'Cancelled', W);
  const holds = (queueOnCancel: 'send' | 'hold'): State =>
    llm(session({ queue }, { queueOnCancel }));
  assert.equal(missed({ before: holds('hold'), path: ended }), released);
  assert.equal(missed({ before: llm(), path: ended }), '');
  assert.equal(missed({ before: holds('send'), path: stop }), released);
  assert.equal(missed({ before: holds('hold'), path: stop }), '');
  assert.equal(missed({ before: holds('send'), path: path('CallingLlm', 'Failed', W) }), '');
});

test('never-stuck: at a limit no request is due, nor where the limit was raised for the next one', () => {
  const text = { event: typed('go on') };
  const spent = { ...session().usage, costUsd: 2 };
  const limit = { limits: { usd: 1 } };
  assert.equal(missed({ ...text, after: waiting(session({ usage: spent }, limit)) }), '');
  const raised = (autoRearm: 'on' | 'off', reason: WaitReason): State => ({
    ...waiting(session({}, { autoRearm })),
    reason,
  });
  assert.equal(missed({ ...text, after: raised('on', BUDGET) }), '');
  assert.notEqual(missed({ ...text, after: raised('off', BUDGET) }), '');
  assert.notEqual(missed({ ...text, after: raised('on', START) }), '');
  assert.notEqual(missed({ ...text, after: llm() }), '');
});

// ---- rules.md#reserve-before-request ----

const spentOf = (costUsd: number, reservedUsd = 0, outputUsd = 0): State => {
  const own = session({}, { limits: { usd: 1 } });
  const reserved = { id: 'req-1', usd: reservedUsd, outputUsd, outputTokens: 0, sent: null };
  const measured = { model: '', bytes: 0, tokens: 0 };
  return waiting({
    ...own,
    unaccounted: ['req-1'],
    usage: { ...own.usage, costUsd },
    ...(reservedUsd === 0 ? {} : { reserved: [reserved], measured }),
  });
};
const reported = (costUsd: number): Event => g.reports('req-1', g.usage(costUsd, 0));

checkSteps('reserve-before-request', [
  {
    title: 'more is set aside than the limit allows',
    before: spentOf(0.5),
    after: spentOf(0.5, 0.75),
    says: ['reserve-before-request: CancelTurn leads to $1.25 spent and reserved of $1'],
  },
  { title: 'the whole limit is set aside', before: spentOf(0.5), after: spentOf(0.5, 0.5) },
  {
    title: 'what was above the limit stays',
    before: spentOf(0.5, 0.75),
    after: spentOf(0.5, 0.75),
  },
  {
    title: 'a provider charges more than it was asked for',
    before: spentOf(1, 0.25),
    event: reported(0.5),
    after: spentOf(1.5),
  },
  {
    title: 'what was charged is set aside too',
    before: spentOf(1, 0.25),
    event: reported(0.5),
    after: spentOf(1.5, 0.25),
    says: ['reserve-before-request: UsageReported leads to $1.75 spent and reserved of $1'],
  },
]);

checkSteps('usage-counts-once', [
  {
    title: 'a part of a usage counts as the worst case',
    before: spentOf(0.25, 0.25, 0.125),
    event: reported(0.0625),
    after: spentOf(0.4375),
  },
  {
    title: 'a part of a usage counts as the whole',
    before: spentOf(0.25, 0.25, 0.125),
    event: reported(0.0625),
    after: spentOf(0.3125),
    says: [
      'usage-counts-once: UsageReported is to count $0.1875 and 0 tokens, ' +
        'and counted $0.0625 and 0',
    ],
  },
  {
    title: 'what a crash has lost counts',
    before: spentOf(0.25, 0.25),
    event: g.resumed,
    after: spentOf(0.375, 0.125),
  },
]);
