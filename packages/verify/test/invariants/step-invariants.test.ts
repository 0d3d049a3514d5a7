import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event } from '@pawl/agent/machine/event';
import type { SessionData, State } from '@pawl/agent/machine/state';
import * as hand from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import { checkSteps, LATE, NOTICE } from '../../../../test/kit/agent/step-rows.js';
import { stepFaults } from '../../src/invariants.js';

// Stale events and usage: each rule broken by hand; what looks like a breach and is none has to pass.

const { batch, llm, running, session, waiting } = hand;

const at = (given: g.Given, changes: Partial<Record<string, unknown>>): g.Given => {
  const make = (state: State): Event =>
    // The fields of an event are replaced by others of the same kind.
    ({ ...g.eventOf(given, state), ...changes }) as Event;
  return make;
};

// ---- Stale events ----

const stale = (type: Event['type']): readonly string[] => [
  `stale-events: a stale ${type} left no diagnostic`,
];
const starting = batch([
  {
    judged: g.grep('1'),
    requestedAt: 1,
    status: 'starting',
    allowed: 'byPolicy',
    graceTimerId: null,
  },
  running('2'),
]);

checkSteps('stale-events', [
  { title: 'a piece of the request that is open', before: llm(), event: g.delta('x') },
  {
    title: 'a piece of an old request',
    before: llm(),
    event: g.delta('x', 'req-0'),
    says: stale('TextDelta'),
  },
  { title: 'a piece of no request', event: g.delta('x', 'req-1'), says: stale('TextDelta') },
  { title: 'a thought of an old request', event: g.thought, says: stale('ReasoningDelta') },
  { title: 'a thought of the request that is open', before: llm(), event: g.thought },
  { title: 'half a call of an old request', event: g.halfCall, says: stale('ToolCallDelta') },
  { title: 'half a call of the request that is open', before: llm(), event: g.halfCall },
  {
    title: 'a stale piece that is said to be so',
    event: g.delta('x', 'req-1'),
    diagnostics: [LATE],
  },
  { title: 'the start of a call that is starting', before: starting, event: g.started('1') },
  {
    title: 'the start of a call that runs',
    before: starting,
    event: g.started('2'),
    says: stale('ToolStarted'),
  },
  {
    title: 'the start of no call',
    before: starting,
    event: g.started('9'),
    says: stale('ToolStarted'),
  },
  {
    title: 'the start of a call of another batch',
    before: starting,
    event: g.started('1', 'batch-0'),
    says: stale('ToolStarted'),
  },
  {
    title: 'the start of a call while nothing runs',
    event: g.started('1', 'batch-1'),
    says: stale('ToolStarted'),
  },
  { title: 'the failure of the tools', before: starting, event: g.toolsFail },
  {
    title: 'the failure of other tools',
    before: starting,
    event: at(g.toolsFail, { batchId: 'batch-0' }),
    says: stale('ToolsFailed'),
  },
  { title: 'the failure of no tools', event: g.toolsFail, says: stale('ToolsFailed') },
  { title: 'an opening of a new epoch', event: { type: 'Resumed', at: g.NOW, epoch: 1 } },
  {
    title: 'an opening of the epoch that is',
    before: waiting(session({ epoch: 1 })),
    event: { type: 'Resumed', at: g.NOW, epoch: 1 },
    says: stale('Resumed'),
  },
  {
    title: 'a reply to nothing',
    event: g.completed({ text: 'x', requestId: 'req-1' }),
    says: stale('LlmCompleted'),
  },
  { title: 'an event of the user is never stale', event: g.input('hi') },
]);

/** The same state with another session: all that is not changed is the very same value. */
const withSession = (state: State, change: Partial<SessionData>): State =>
  // A spread keeps all other fields.
  ({ ...state, session: { ...state.session, ...change } }) as State;

const open = llm(session({ unaccounted: ['req-0'] }));
const old = g.completed({ text: 'x', requestId: 'req-0', usage: g.usage(1) });
const counted = { usage: { ...open.session.usage, costUsd: 1, inputTokens: 10 }, unaccounted: [] };

checkSteps('stale-events', [
  {
    title: 'a stale event that counts',
    before: open,
    event: old,
    after: withSession(open, counted),
    diagnostics: [LATE],
  },
  {
    title: 'a stale event that counts and says nothing',
    before: open,
    event: old,
    after: withSession(open, counted),
    says: stale('LlmCompleted'),
  },
  {
    title: 'a stale event that counts and queues something',
    before: open,
    event: old,
    after: withSession(open, { ...counted, queue: [] }),
    diagnostics: [LATE],
    says: ['stale-events: a stale LlmCompleted changed CallingLlm'],
  },
  {
    title: 'a stale event that changes its state',
    before: llm(),
    event: g.delta('x', 'req-0'),
    after: { ...llm(), partial: 'x' },
    diagnostics: [LATE],
    says: ['stale-events: a stale TextDelta changed CallingLlm'],
  },
  {
    title: 'a stale event that does something',
    before: llm(),
    event: g.delta('x', 'req-0'),
    actions: [NOTICE],
    diagnostics: [LATE],
    says: ['stale-events: a stale TextDelta changed CallingLlm'],
  },
  {
    title: 'a stale event that does something and says nothing',
    before: llm(),
    event: g.delta('x', 'req-0'),
    actions: [NOTICE],
    says: [...stale('TextDelta'), 'stale-events: a stale TextDelta changed CallingLlm'],
  },
]);

// ---- Usage ----

const owing = (id: string): State => waiting(session({ unaccounted: [id] }));
const having = (costUsd: number, inputTokens: number): State =>
  waiting(session({ usage: { ...session().usage, costUsd, inputTokens } }));
const miscounted = (type: Event['type'], due: string, told: string): readonly string[] => [
  `usage-counts-once: ${type} is to count ${due} tokens, and counted ${told}`,
];
const spent = g.usage(0.5, 7);
const usages: readonly (readonly [string, g.Given])[] = [
  ['req-1', g.completed({ text: 'x', requestId: 'req-1', usage: spent })],
  ['req-1', g.fails({ requestId: 'req-1', usage: spent })],
  ['compaction-1', g.compacts(spent, 'compaction-1')],
  ['compaction-1', at(g.compactionFails, { compactionId: 'compaction-1', usage: spent })],
  ['hook-1', at(g.hookDone({ usage: spent }), { hookId: 'hook-1' })],
  [
    'batch-1/1',
    at(g.ended('1', 'ok', 'x', 'batch-1'), { outcome: { status: 'ok', text: 'x', usage: spent } }),
  ],
  ['usage-1', g.reports('usage-1', spent)],
];
const countFaults = (before: State, given: g.Given, after: State): readonly string[] =>
  stepFaults(before, g.eventOf(given, before), {
    state: after,
    actions: [],
    path: [],
    diagnostics: [LATE],
  }).filter((fault) => fault.startsWith('usage-counts-once'));

for (const [id, given] of usages) {
  const { type } = g.eventOf(given, waiting());
  test(`usage-counts-once ${type}: what it says is counted once, if its id is open, and not otherwise`, () => {
    const full = having(0.5, 7);
    assert.deepEqual(countFaults(owing(id), given, full), []);
    assert.deepEqual(countFaults(owing('req-9'), given, waiting()), []);
    assert.deepEqual(
      countFaults(owing('req-9'), given, full),
      miscounted(type, '$0 and 0', '$0.5 and 7'),
    );
    assert.deepEqual(
      countFaults(owing(id), given, waiting()),
      miscounted(type, '$0.5 and 7', '$0 and 0'),
    );
    assert.deepEqual(
      countFaults(owing(id), given, having(0.5, 0)),
      miscounted(type, '$0.5 and 7', '$0.5 and 0'),
    );
    assert.deepEqual(
      countFaults(owing(id), given, having(1, 7)),
      miscounted(type, '$0.5 and 7', '$1 and 7'),
    );
  });
}

test('usage-counts-once: what is counted before stays, sums of prices need not be exact, a call without a price costs nothing', () => {
  const before = withSession(having(0.1, 3), { unaccounted: ['req-1'] });
  const priced = g.completed({ text: 'x', requestId: 'req-1', usage: g.usage(0.2, 7) });
  assert.deepEqual(countFaults(before, priced, having(0.30000000000000004, 10)), []);
  const unpriced = g.completed({ text: 'x', requestId: 'req-1', usage: g.usage(null, 7) });
  assert.deepEqual(countFaults(before, unpriced, having(0.1, 10)), []);
  const silent = g.fails({ requestId: 'req-1' });
  assert.deepEqual(countFaults(before, silent, having(0.1, 3)), []);
  assert.deepEqual(
    countFaults(before, g.input('hi'), having(0.2, 3)),
    miscounted('UserInput', '$0 and 0', '$0.1 and 0'),
  );
  assert.deepEqual(
    countFaults(waiting(), g.input('hi'), having(1e-9, 0)),
    miscounted('UserInput', '$0 and 0', '$1e-9 and 0'),
  );
});
