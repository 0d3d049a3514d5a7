import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batch, llm, result, session, text, waiting } from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import {
  billed,
  COUNTED,
  calls,
  cancelling,
  compacting,
  ended,
  error,
  filled,
  type Group,
  granted,
  held,
  hook,
  keyOf,
  LONG,
  NONE,
  node,
  of,
  open,
  owing,
  queued,
  started,
  streaks,
  talked,
  turn,
  used,
} from './nodes.js';

// What tells two nodes of the exploration apart: the key by itself.

const different: readonly Group[] = [
  {
    title: 'states of different names',
    nodes: of(waiting(), llm(), error(), calls(started(null)), hook(), compacting({ kind: 'mid' })),
  },
  {
    title: 'waiting for a budget or not, and what comes next',
    nodes: of(
      waiting(),
      { ...waiting(), reason: { kind: 'budget', dimension: 'usd' } },
      { ...waiting(), next: 'sendQueue' },
      { ...waiting(), next: 'sendAgain' },
    ),
  },
  {
    title: 'calls that have shown nothing, blank text, and text; and why they are being drained',
    nodes: of(
      llm(),
      { ...llm(), partial: ' ' },
      { ...llm(), partial: 'x' },
      { ...llm(), call: { mode: 'draining', cause: 'user' } },
      { ...llm(), call: { mode: 'draining', cause: 'time' } },
      { ...llm(), purpose: 'toolResults' },
      llm(session(), 2),
    ),
  },
  {
    title: 'waits for a retry, by purpose, attempt and kind',
    nodes: of(
      error(),
      error({ purpose: 'toolResults' }),
      error({ attempt: 2 }),
      error({ error: { kind: 'empty', message: '' } }),
    ),
  },
  {
    title: 'phases of the hooks, trees, batches that changed something',
    nodes: of(
      hook(),
      hook({ phase: 'AutoCommitting' }),
      hook({ tree: 'dirty' }),
      hook({ mutated: ['1'] }),
    ),
  },
  {
    title: 'compactions, by what comes after them',
    nodes: of(
      compacting({ kind: 'mid' }),
      compacting({ kind: 'idle', resume: 'rest' }),
      compacting({ kind: 'idle', resume: 'sendAgain' }),
      compacting({ kind: 'overflow', purpose: 'user', attempt: 1 }),
      compacting({ kind: 'overflow', purpose: 'user', attempt: 2 }),
      compacting({ kind: 'overflow', purpose: 'toolResults', attempt: 1 }),
    ),
  },
  {
    title: 'batches that run, stop, are being cancelled, with grace or without',
    nodes: of(
      calls(started(null)),
      { ...batch([started(null)]), phase: { mode: 'stopping' } },
      cancelling(null),
      cancelling('timer-1'),
      cancelling(null, 'time'),
    ),
  },
  {
    title: 'calls by what they are and how far they have come',
    nodes: of(
      calls(held(g.grep('1'))),
      calls(held(g.edit('1'))),
      calls(held(g.grep('1'), 'byUser')),
      calls(held(g.unknownTool('1'))),
      calls(held({ ...g.grep('1'), verdict: { kind: 'noSuchTool', known: [] } })),
      calls({ judged: g.grep('1'), requestedAt: 1, status: 'awaitingApproval' }),
      calls(started(null, 'starting')),
      calls(started('timer-1', 'starting')),
      calls(started(null)),
      calls(started('timer-1')),
      calls(ended('ok', false)),
      calls(ended('ok', true)),
      calls(ended('ok', false, LONG)),
      calls(started(null), started(null)),
    ),
  },
  {
    title: 'conversations by what can be summarised: nothing, a message, enough, more',
    nodes: of(talked(0), talked(1), talked(2), talked(3)),
  },
  {
    title: 'last messages by what they are made of',
    nodes: of(
      llm(),
      open(text('user', 'x')),
      open(text('user', 'x'), text('user', 'y')),
      open(text('note', 'x')),
      open(text('user', 'x'), text('note', 'y')),
      open(result('1')),
      open({ ...result('1'), text: LONG }),
      open(result('1'), text('user', 'x')),
    ),
  },
  {
    title: 'queues by their modes, in order',
    nodes: of(
      queued(),
      queued('steer'),
      queued('followUp'),
      queued('steer', 'followUp'),
      queued('followUp', 'steer'),
    ),
  },
  {
    title: 'thresholds that the conversation has passed',
    nodes: of(filled(50), filled(51), filled(71), filled(100)),
  },
  {
    title: 'whether a compaction is allowed',
    nodes: of(llm(), llm(session({ mayCompact: 'no' }))),
  },
  { title: 'whether something is to be told', nodes: of(llm(), llm(session({ notes: ['x'] }))) },
  {
    title: 'dollars where they have a limit, and what they are raised by',
    nodes: of(
      used({ costUsd: 0.1 }, { usd: 1 }),
      used({ costUsd: 0.2 }, { usd: 1 }),
      used({ costUsd: 0.1 }, { usd: 2 }),
    ),
  },
  {
    title: 'tokens of each kind where they have a limit',
    nodes: of(
      used({}, { tokens: 9 }),
      used({ inputTokens: 1 }, { tokens: 9 }),
      used({ inputTokens: 1, outputTokens: 1 }, { tokens: 9 }),
      used({ inputTokens: 1, outputTokens: 1, cacheReadTokens: 1 }, { tokens: 9 }),
      used(
        { inputTokens: 1, outputTokens: 1, cacheReadTokens: 1, cacheWriteTokens: 1 },
        { tokens: 9 },
      ),
    ),
  },
  {
    title: 'permissions of the user',
    nodes: of(
      granted(),
      granted({ scope: 'session', tool: 'edit' }),
      granted({ scope: 'session', tool: 'grep' }),
      granted({ scope: 'shape', tool: 'edit', shape: 'a' }),
      granted({ scope: 'shape', tool: 'edit', shape: 'b' }),
    ),
  },
  {
    title: 'limits, and settings that change under way',
    nodes: of(
      ...[
        'usd',
        'tokens',
        'timeMs',
        'rounds',
        'truncation',
        'repeats',
        'errors',
        'sameResults',
      ].map((name) => waiting(session({}, { limits: { [name]: 7 } }))),
      waiting(session({}, { maxRetries: 9 })),
    ),
  },
  {
    title: 'counters of a turn, up to their limits',
    nodes: of(
      turn({}, session({}, COUNTED)),
      turn({ rounds: 2 }, session({}, COUNTED)),
      turn({ truncations: 2 }, session({}, COUNTED)),
      turn({ finishing: 'rounds' }, session({}, COUNTED)),
      turn({ finishing: 'errors' }, session({}, COUNTED)),
      turn({ warned: ['rounds'] }, session({}, COUNTED)),
      streaks({ calls: 'a' }),
      streaks({ results: 'a' }),
      streaks({ repeats: 2 }),
      streaks({ errors: 2 }),
      streaks({ sameResults: 2 }),
    ),
  },
  {
    title: 'streaks where one of them has a limit',
    nodes: of(
      ...(['repeats', 'errors', 'sameResults'] as const).flatMap((name) => {
        const own = session({}, { limits: { ...NONE.limits, [name]: 3 } });
        return [streaks({}, own), streaks({ [name]: 1 }, own)];
      }),
    ),
  },
  {
    title: 'empty replies that may be asked for again',
    nodes: of(
      llm(session({}, { emptyRetries: 2 })),
      llm(session({ emptyReplies: 1 }, { emptyRetries: 2 })),
    ),
  },
  {
    title: 'remaining time of a turn, and whether its timer runs',
    nodes: [
      node(turn({}, session({}, { limits: { timeMs: 5 } }))),
      ...[0, 3].map((now) => {
        const timeLimit = { timerId: 'timer-1', dueAt: 5, delayMs: 5 };
        return node(turn({ timeLimit }, session({}, { limits: { timeMs: 5 } })), { now });
      }),
    ],
  },
  {
    title: 'limits of the session that were warned about before this turn',
    nodes: of(
      waiting(session({}, { limits: { usd: 1 } })),
      waiting({
        ...session({}, { limits: { usd: 1 } }),
        turn: { ...session().turn, warned: ['usd'] },
      }),
      waiting({
        ...session({}, { limits: { usd: 1, tokens: 1 } }),
        turn: { ...session().turn, warned: ['tokens'] },
      }),
    ),
  },
  {
    title: 'where a seed stands',
    nodes: [node(waiting()), node(waiting(), { cursors: [{ state: 'B' }] })],
  },
  {
    title: 'bills that may come while something may still cost, not more of them than that',
    nodes: [
      billed(owing(), 0),
      billed(owing(), 1),
      billed(owing(), 2),
      billed(owing('req-1'), 1),
      billed(owing('req-0'), 1),
      billed(owing('req-0', 'req-1'), 1),
      billed(owing('req-0', 'req-00'), 2),
    ],
  },
];

for (const { title, nodes } of different) {
  test(`nodes are told apart by ${title}`, () => {
    const keys = nodes.map(keyOf);
    assert.equal(new Set(keys).size, keys.length, keys.join('\n'));
  });
}
