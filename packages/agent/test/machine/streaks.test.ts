import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '@pawl/machine/kernel/shape';
import { session } from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import type { EndedCall } from '../../src/machine/call.js';
import { countStreaks } from '../../src/machine/moves/budget.js';
import type { SessionData } from '../../src/machine/state.js';

/** What counts as the same again: the calls by tool and input, the results by their texts, a failure by all failing. */

type Made = {
  readonly tool?: string;
  readonly input?: { readonly [name: string]: Json };
  readonly raw?: string;
  readonly text?: string;
  readonly failed?: boolean;
};

const ended = ({
  tool = 'grep',
  input = {},
  raw,
  text = 'found',
  failed = false,
}: Made): EndedCall => ({
  judged: { ...g.grep('1'), tool, input, ...(raw === undefined ? {} : { rawInput: raw }) },
  requestedAt: 1,
  status: failed ? 'failed' : 'ok',
  ran: true,
  startedAt: 1,
  completedAt: 2,
  outcome: { failed, text },
});

const counted = (limits: SettingsPatch['limits'], ...batches: readonly (readonly Made[])[]) => {
  const begun: SessionData = session({}, limits === undefined ? {} : { limits });
  const { repeats, errors, sameResults } = batches.reduce(
    (own, calls) => countStreaks(own, calls.map(ended)),
    begun,
  ).turn.streaks;
  return { repeats, errors, sameResults };
};

const ALL = { repeats: 9, errors: 9, sameResults: 9 };
const found: Made = {};

const rows: readonly {
  readonly title: string;
  readonly batches: readonly (readonly Made[])[];
  readonly counts: readonly [repeats: number, errors: number, sameResults: number];
}[] = [
  { title: 'one batch is one of its kind', batches: [[found]], counts: [1, 0, 1] },
  {
    title: 'the same again, and once more',
    batches: [[found], [found], [found]],
    counts: [3, 0, 3],
  },
  {
    title: 'another tool is another call',
    batches: [[found], [{ tool: 'read' }]],
    counts: [1, 0, 2],
  },
  {
    title: 'another input is another call',
    batches: [[found], [{ input: { a: 1 } }]],
    counts: [1, 0, 2],
  },
  {
    title: 'arguments that are no object are told apart by their text',
    batches: [[{ raw: '{"a' }], [{ raw: '{"b' }]],
    counts: [1, 0, 2],
  },
  {
    title: 'arguments that are no object are the same by their text, whatever stands in for them',
    batches: [[{ raw: '{"a', input: { a: 1 } }], [{ raw: '{"a', input: { a: 2 } }]],
    counts: [2, 0, 2],
  },
  {
    title: 'one call more is another batch',
    batches: [[found], [found, found]],
    counts: [1, 0, 1],
  },
  {
    title: 'other results of the same call',
    batches: [[{ text: 'one' }], [{ text: 'two' }]],
    counts: [2, 0, 1],
  },
  {
    title: 'texts of the same length are told apart by their last character, too',
    batches: [[{ text: 'xa' }], [{ text: 'xb' }], [{ text: 'ya' }]],
    counts: [3, 0, 1],
  },
  {
    title: 'batches before the last one do not count',
    batches: [[found], [{ tool: 'read', text: 'other' }], [found]],
    counts: [1, 0, 1],
  },
  {
    title: 'a batch in which all fail counts, and one that does not starts anew',
    batches: [[{ failed: true }], [{ failed: true }]],
    counts: [2, 2, 2],
  },
  {
    title: 'a batch in which one of two fails is no failure',
    batches: [[{ failed: true }], [{ failed: true }, found]],
    counts: [1, 0, 1],
  },
];

for (const {
  title,
  batches,
  counts: [repeats, errors, sameResults],
} of rows) {
  test(title, () => {
    assert.deepEqual(counted(ALL, ...batches), { repeats, errors, sameResults });
  });
}

for (const limit of ['repeats', 'errors', 'sameResults'] as const) {
  test(`a limit of ${limit} alone makes them count`, () => {
    const others = { repeats: 0, errors: 0, sameResults: 0 };
    assert.equal(counted({ ...others, [limit]: 3 }, [found], [found]).repeats, 2);
  });
}

test('without any limit nothing is counted', () => {
  const none = { repeats: 0, errors: 0, sameResults: 0 };
  assert.deepEqual(counted(none, [found], [found]), none);
});

test('a limit that is lifted and set again counts from there', () => {
  const limitedBy = (own: SessionData, limits: SettingsPatch['limits']): SessionData => ({
    ...own,
    settings: session({}, limits === undefined ? {} : { limits }).settings,
  });
  const once = countStreaks(session({}, { limits: ALL }), [ended(found)]);
  const lifted = countStreaks(limitedBy(once, { repeats: 0, errors: 0, sameResults: 0 }), [
    ended(found),
  ]);
  const again = countStreaks(limitedBy(lifted, ALL), [ended(found)]);
  assert.equal(again.turn.streaks.repeats, 1);
});

test('a text is kept as its length and 32 bits, however long it is', () => {
  const own = countStreaks(session({}, { limits: ALL }), [ended({ text: 'x'.repeat(100_000) })]);
  assert.match(own.turn.streaks.results, /^\d+\.[0-9a-f]{1,8}$/);
  assert.equal(own.turn.streaks.results.split('.')[0], String('["'.length + 100_000 + '"]'.length));
});
