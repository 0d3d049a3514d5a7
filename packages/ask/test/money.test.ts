import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countCases, SEED } from '../../../test/tier.js';
import type { TreeEvent } from '../src/run/event.js';
import { piecesOf, spentBy } from '../src/tree/tree-state.js';
import * as g from './given.js';
import { lastOf, running, state, type Walker } from './walker.js';

/** What sub-calls may spend, who waits for money, and what became of the pieces. */

const answered = (walker: Walker): readonly string[] | undefined =>
  lastOf(walker, 'AnswerSubcall')[0]?.texts;
const spent = (walker: Walker, node = 'n0'): number | undefined =>
  walker.tree().ledger.accounts[node]?.spent.costUsd;

const poor: g.SettingsPatch = {
  depthMax: 2,
  limits: { usd: 1, tokens: 0, timeMs: 0 },
  reserve: { callUsd: 0.1, callTokens: 0, characterUsd: 0, characterTokens: 0 },
};

test('all ancestors pay for a failed, an aborted and a killed call', () => {
  const walker = running(poor);
  walker.send(g.asks(['hard'], { kind: 'rlm' }), g.environmentIs('kept', g.child(1)));
  walker.send(g.fails({ who: g.child(1), costUsd: 0.01 }), g.rings(g.child(1)));
  walker.send(
    g.says(g.program('x'), { who: g.child(1), costUsd: 0.02 }),
    g.asks(['a', 'b'], { who: g.child(1) }),
  );
  const [one = '', two = ''] = Object.keys(walker.tree().calls);
  walker.send(g.ends({ status: 'died', variablesLost: 'yes' }, 'n0.c1.1.1'));
  walker.send(g.fails({ who: 'n0.c1.1.1.c1.1.1', requestId: one, costUsd: 0.04 }));
  assert.equal(spent(walker, 'n0.c1.1.1')?.toFixed(2), '0.07');
  walker.send(g.cancels());
  walker.send(g.says('late', { who: 'n0.c1.1.1.c1.1.2', requestId: two, costUsd: 0.08 }));
  assert.equal(spent(walker)?.toFixed(2), '0.15');
  walker.send(g.says('late', { who: 'n0.c1.1.1.c1.1.2', requestId: two, costUsd: 0.08 }));
  assert.equal(spent(walker)?.toFixed(2), '0.15', 'once');
});

test('without a limit in dollars a call of unknown cost makes the sum a lower bound', () => {
  const unlimited = { limits: { usd: 0, tokens: 0, timeMs: 0 } };
  const isBound = (...given: readonly g.Given[]): boolean => {
    const walker = running(unlimited);
    walker.send(g.prints('x'), ...given);
    return spentBy(walker.tree()).atLeast ?? false;
  };
  const free: g.Given = (tree) => {
    const failed = g.eventOf(g.fails({ kind: 'unreachable', costUsd: 0 }), tree);
    return { ...failed, outputUsd: 0 } as TreeEvent;
  };
  assert.ok(isBound(g.fails({ kind: 'unreachable' })));
  assert.ok(isBound(g.fails({ kind: 'unreachable', costUsd: 0.01 })), 'a part is known');
  assert.ok(isBound(g.resumed()), 'it was open at a crash');
  assert.ok(!isBound(g.fails()), 'it was refused');
  assert.ok(!isBound(free));
  assert.ok(!isBound(g.says('x', { costUsd: 0.01 })));
});

test('a child gets no more than its parent has left, whatever its own limit is', () => {
  const walker = running({ ...poor, childLimits: { usd: 5, tokens: 0, timeMs: 0 } });
  walker.send(g.asks(['hard'], { kind: 'rlm' }), g.environmentIs('kept', g.child(1)));
  walker.send(g.says(g.program('x'), { who: g.child(1), costUsd: 0.95 }), g.ends({}, g.child(1)));
  assert.deepEqual(answered(walker), ['Error: the budget is used up (dollars)']);
});

test('a call that does not fit beside the open ones waits, and starts when one of them cost less than it might have', () => {
  const walker = running({ ...poor, limits: { usd: 0.35, tokens: 0, timeMs: 0 } });
  walker.send(g.asks(g.promptsOf(5)));
  assert.equal(lastOf(walker, 'CallModel').length, 3, 'three of 0.10 fit into 0.35');
  for (const slot of [1, 2]) {
    walker.send(g.says('x', { who: g.child(slot), costUsd: 0.01 }));
    assert.equal(lastOf(walker, 'CallModel').length, 1, `after ${slot}`);
  }
  for (const slot of [3, 4, 5]) walker.send(g.says('x', { who: g.child(slot), costUsd: 0.01 }));
  assert.deepEqual(answered(walker), ['x', 'x', 'x', 'x', 'x']);
});

test('a call is refused only where nothing is open and it still does not fit', () => {
  const walker = running({ ...poor, limits: { usd: 0.25, tokens: 0, timeMs: 0 } });
  walker.send(g.asks(g.promptsOf(3)));
  assert.equal(lastOf(walker, 'CallModel').length, 2);
  walker.send(g.says('x', { who: g.child(1), costUsd: 0.1 }));
  assert.equal(lastOf(walker, 'CallModel').length, 0, '0.15 left, 0.10 set aside');
  assert.equal(walker.tree().waiting.length, 1);
  walker.send(g.says('x', { who: g.child(2), costUsd: 0.1 }));
  assert.deepEqual(answered(walker), ['x', 'x', 'Error: the budget is used up (dollars)']);
  assert.deepEqual(piecesOf(walker.tree().pieces), {
    asked: 3,
    answered: 2,
    refused: 1,
    failed: 0,
    reasons: [{ why: 'the budget is used up (dollars)', count: 1 }],
  });
});

test('a call starts alone although its worst case is more than is left', () => {
  const rate = (callUsd: number) => ({
    callUsd,
    callTokens: 0,
    characterUsd: 0,
    characterTokens: 0,
  });
  const reserve = { expected: rate(0.01), worst: rate(9), basis: 'stated' } as const;
  const walker = running({ ...poor, reserve, limits: { usd: 0.2, tokens: 0, timeMs: 0 } });
  walker.send(g.asks(g.promptsOf(40)));
  for (let slot = 1; slot <= 40; slot++) {
    assert.equal(Object.keys(walker.tree().calls).length, 1);
    walker.send(g.says('x', { who: g.child(slot), costUsd: 0.0003 }));
  }
  assert.deepEqual(answered(walker), Array(40).fill('x'));
});

test('where costs are estimates the first call of a kind starts alone, and the dearest one counts from then on', () => {
  const rate = { callUsd: 0.01, callTokens: 0, characterUsd: 0, characterTokens: 0 };
  const reserve = { expected: rate, worst: rate, basis: 'estimated' } as const;
  const walker = running({ ...poor, reserve, limits: { usd: 3.05, tokens: 0, timeMs: 0 } });
  walker.send(g.asks(g.promptsOf(9)));
  assert.equal(lastOf(walker, 'CallModel').length, 1);
  walker.send(g.says('x', { who: g.child(1), costUsd: 1 }));
  assert.equal(lastOf(walker, 'CallModel').length, 2, 'two at 1.00 each fit into 2.05');
  for (const slot of [2, 3]) walker.send(g.says('x', { who: g.child(slot), costUsd: 1 }));
  assert.equal(spent(walker), 3);
  assert.equal(answered(walker)?.filter((text) => text.startsWith('Error: ')).length, 6);
});

test('where costs are estimates, sub-calls leave their run enough for its answer', () => {
  const rate = { callUsd: 0.01, callTokens: 0, characterUsd: 0, characterTokens: 0 };
  const limits = { usd: 0.2 };
  const ends = (basis: 'stated' | 'estimated'): string => {
    const walker = running({ ...poor, reserve: { expected: rate, worst: rate, basis }, limits });
    walker.send(g.asks(g.promptsOf(9)));
    for (let slot = 1; slot <= 9 && answered(walker) === undefined; slot++)
      walker.send(g.says('x', { who: g.child(slot), costUsd: 0.06 }));
    walker.send(g.prints('x'));
    return state(walker).name;
  };
  assert.equal(ends('estimated'), 'EXECUTING', 'three pieces for 0.18, and 0.02 are left');
  assert.equal(ends('stated'), 'DONE');
});

test('a run waits with its next call, too, while others have money set aside', () => {
  const walker = running({ ...poor, limits: { usd: 0.35, tokens: 0, timeMs: 0 } });
  walker.send(g.asks(g.promptsOf(3), { kind: 'rlm' }));
  for (const slot of [1, 2, 3]) walker.send(g.environmentIs('kept', g.child(slot)));
  walker.send(g.says(g.program('x'), { who: g.child(1), costUsd: 0.1 }), g.ends({}, g.child(1)));
  assert.equal(walker.tree().waiting.length, 1, '0.25 left, 0.20 set aside');
  walker.send(g.says(g.program('x'), { who: g.child(2), costUsd: 0.02 }));
  assert.equal(lastOf(walker, 'CallModel').length, 1, '0.23 left, 0.10 set aside');
});

test('a child that waits only for its own limit holds up nobody else', () => {
  const childLimits = { usd: 0.15, tokens: 0, timeMs: 0 };
  const walker = running({ ...poor, limits: {}, childLimits, depthMax: 2 });
  walker.send(g.asks(['hard', 'easy'], { kind: 'rlm' }), g.environmentIs('kept', g.child(1)));
  walker.send(g.says(g.program('x'), { who: g.child(1), costUsd: 0.01 }));
  walker.send(g.asks(g.promptsOf(2), { who: g.child(1) }));
  assert.equal(walker.tree().waiting.length, 1, '0.14 left of its own, 0.10 set aside');
  walker.send(g.environmentIs('kept', g.child(2)), g.says(g.program('y'), { who: g.child(2) }));
  walker.send(g.asks(['a'], { who: g.child(2) }));
  assert.equal(lastOf(walker, 'CallModel').length, 1);
});

test('calls that wait have set nothing aside: a cell that is stopped leaves only what its aborted calls may cost', () => {
  const walker = running({ ...poor, openCallsMax: 1 });
  walker.send(g.asks(g.promptsOf(5)));
  assert.equal(walker.tree().ledger.accounts.n0?.held.usd.toFixed(2), '0.10');
  walker.send(g.ends({ status: 'stopped' }));
  assert.equal(
    walker.tree().ledger.accounts.n0?.held.usd.toFixed(2),
    '0.20',
    'the aborted call, and the next',
  );
  walker.send(g.fails({ who: 'n0.c1.1.1', requestId: 'n0.c1.1.1.r1' }));
  assert.equal(walker.tree().ledger.accounts.n0?.held.usd.toFixed(2), '0.10');
});

// ---- Pieces ----

test('pieces that failed are counted, and not any more once the same prompt was answered', () => {
  const walker = running();
  walker.send(
    g.asks(['a', '', 'b']),
    g.breaks({ who: g.child(1) }),
    g.says('B', { who: g.child(3) }),
  );
  const first = piecesOf(walker.tree().pieces);
  assert.deepEqual([first.asked, first.answered, first.failed, first.refused], [3, 1, 2, 0]);
  assert.match(JSON.stringify(first.reasons), /the prompt is empty.*bad field/);
  walker.send(g.asks(['a'], { ordinal: 2 }), g.says('A', { who: g.child(1, 2) }));
  const second = piecesOf(walker.tree().pieces);
  assert.deepEqual([second.asked, second.answered, second.failed], [4, 2, 1]);
});

test('a sub-call of unknown price refuses every further prompt where dollars are limited', () => {
  const walker = running(poor);
  walker.send(g.asks(['a']), g.says('A', { who: g.child(1), costUsd: null }));
  walker.send(g.asks(['b'], { ordinal: 2 }));
  assert.match(answered(walker)?.[0] ?? '', /^Error: a call had no known price/);
});

// ---- Limits hold ----

type Spending = {
  readonly limit: number;
  readonly depthMax: number;
  readonly openCallsMax: number;
  readonly prompts: number;
  /** Which open call is answered next, and with which part of the worst case: 0 to 1. */
  readonly answers: readonly (readonly [number, number])[];
};

const spendings: fc.Arbitrary<Spending> = fc.record({
  limit: fc.double({ min: 0.05, max: 3, noNaN: true }),
  depthMax: fc.integer({ min: 1, max: 2 }),
  openCallsMax: fc.integer({ min: 1, max: 16 }),
  prompts: fc.integer({ min: 1, max: 40 }),
  answers: fc.array(
    fc.tuple(fc.integer({ min: 0, max: 15 }), fc.double({ min: 0, max: 1, noNaN: true })),
    {
      minLength: 80,
      maxLength: 80,
    },
  ),
});

const WORST_USD = 0.25;

/** Lets the calls of a tree be answered in any order, at any cost up to the worst; the dearest reply. */
const spend = (walker: Walker, { answers, limit }: Spending): number => {
  let dearest = 0;
  for (const [which, part] of answers) {
    for (const [node, state] of Object.entries(walker.tree().nodes))
      if (state.name !== 'DONE' && state.run.environment === 'starting')
        walker.send(g.environmentIs('kept', node));
    const open = Object.entries(walker.tree().calls);
    const [requestId, who] = open[which % open.length] ?? ['', ''];
    if (who === '') break;
    const costUsd = part * WORST_USD;
    dearest = Math.max(dearest, costUsd);
    walker.send(g.says('words', { who, requestId, costUsd }));
    const sent = lastOf(walker, 'CallModel').length;
    assert.ok(sent === 0 || (spent(walker) ?? 0) < limit, 'a request at or over the limit');
  }
  return dearest;
};

test('with random costs and orders a run spends at most its limit and one reply', (t) => {
  t.diagnostic(`PAWL_SEED=${SEED}`);
  const rate = (callUsd: number) => ({
    callUsd,
    callTokens: 0,
    characterUsd: 0,
    characterTokens: 0,
  });
  fc.assert(
    fc.property(
      spendings,
      fc.constantFrom('estimated' as const, 'stated' as const),
      (spending, basis) => {
        const { limit, depthMax, openCallsMax } = spending;
        const reserve = { expected: rate(0.01), worst: rate(WORST_USD), basis };
        const walker = running({
          reserve,
          limits: { usd: limit },
          depthMax,
          openCallsMax,
          maxRetries: 0,
        });
        walker.send(g.asks(g.promptsOf(spending.prompts), { kind: 'rlm' }));
        const dearest = spend(walker, spending);
        assert.ok(
          (spent(walker) ?? 0) <= limit + dearest + 1e-9,
          `${spent(walker)} of ${limit} and ${dearest}`,
        );
      },
    ),
    { seed: SEED, numRuns: countCases(60) },
  );
});
