import assert from 'node:assert/strict';
import { test } from 'node:test';
import { llm, session, text, waiting } from '../../../../test/kit/agent/by-hand.js';
import {
  billed,
  COUNTED,
  calls,
  compacting,
  ended,
  error,
  filled,
  type Group,
  keyOf,
  NONE,
  node,
  of,
  open,
  owing,
  streaks,
  talked,
  turn,
  used,
} from './nodes.js';

// What does not tell two nodes of the exploration apart, though they differ: the key by itself.

const same: readonly Group[] = [
  {
    title: 'reasons to wait that are not for a budget',
    nodes: of(waiting(), { ...waiting(), reason: { kind: 'resumed' } }),
  },
  {
    title: 'texts that are shown',
    nodes: of({ ...llm(), partial: 'x' }, { ...llm(), partial: 'long' }),
  },
  { title: 'failures', nodes: of(error(), error({ error: { kind: 'timeout', message: 'late' } })) },
  { title: 'ids', nodes: of(llm(), llm(session(), 1, 'req-7')) },
  { title: 'times', nodes: of(error(), error({ dueAt: 9 })) },
  {
    title: 'mutating calls that never ran, and reads',
    nodes: of(calls(ended('failed', true, 'x', false)), calls(ended('ok', false))),
  },
  {
    title: 'mutating calls that failed, and others',
    nodes: of(calls(ended('failed', true)), calls(ended('ok', true))),
  },
  {
    title: 'reads that failed, and others',
    nodes: of(calls(ended('failed', false)), calls(ended('ok', false))),
  },
  { title: 'long conversations', nodes: of(talked(3), talked(8)) },
  {
    title: 'three texts of the user and two',
    nodes: of(
      open(text('user', 'x'), text('user', 'x')),
      open(text('user', 'x'), text('user', 'x'), text('user', 'x')),
    ),
  },
  { title: 'sizes that pass no other threshold', nodes: of(filled(0), filled(50)) },
  {
    title: 'dollars and tokens without a limit',
    nodes: of(used({}, {}), used({ costUsd: 1 }, {}), used({ inputTokens: 9 }, {})),
  },
  {
    title: 'counts beyond their limits',
    nodes: of(
      turn({ rounds: 3, truncations: 3 }, session({}, COUNTED)),
      turn({ rounds: 9, truncations: 9 }, session({}, COUNTED)),
    ),
  },
  {
    title: 'counts without a limit',
    nodes: of(
      turn({}, session({}, NONE)),
      turn({ rounds: 9, truncations: 9, warned: ['rounds'] }, session({}, NONE)),
      streaks(
        { calls: 'a', results: 'b', repeats: 2, errors: 2, sameResults: 2 },
        session({}, NONE),
      ),
      llm(session({ emptyReplies: 4 }, NONE)),
    ),
  },
  {
    title: 'counts of a turn that is over, in each state between turns',
    nodes: of(waiting(), {
      ...waiting(),
      session: { ...session(), turn: { ...session().turn, rounds: 9 } },
    }),
  },
  {
    title: 'counts of a turn that is over, before the next one is compacted for',
    nodes: of(
      compacting({ kind: 'idle', resume: 'rest' }),
      compacting(
        { kind: 'idle', resume: 'rest' },
        { ...session(), turn: { ...session().turn, rounds: 9 } },
      ),
    ),
  },
  {
    title: 'warnings about limits of the turn, or about what has none, between turns',
    nodes: of(
      waiting(),
      waiting({ ...session(), turn: { ...session().turn, warned: ['rounds', 'usd', 'tokens'] } }),
    ),
  },
  { title: 'times of a turn without a limit', nodes: [node(llm()), node(llm(), { now: 9 })] },
  {
    title: 'bills while nothing may cost',
    nodes: [billed(owing(), 0), billed(owing('req-0', 'req-1'), 0)],
  },
  {
    title: 'more bills than may cost something, and bills of hooks that are over',
    nodes: [
      billed(owing('req-0'), 1),
      billed(owing('req-0', 'req-00'), 1),
      billed(owing('req-0', 'hook-1'), 1),
    ],
  },
  {
    title: 'settings that nobody changes under way',
    nodes: of(waiting(), waiting(session({}, { graceMs: 1 }))),
  },
];

for (const { title, nodes } of same) {
  test(`nodes are not told apart by ${title}`, () => {
    assert.equal(new Set(nodes.map(keyOf)).size, 1, nodes.map(keyOf).join('\n'));
  });
}
