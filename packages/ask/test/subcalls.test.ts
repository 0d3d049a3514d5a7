import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stepTree } from '../src/tree/step-tree.js';
import * as g from './given.js';
import { lastOf, lastTold, outcome, running, state, talk, type Walker } from './walker.js';

/** Sub-calls: children and their end. Their money: money.test.ts. */

const performed = (walker: Walker): readonly string[] =>
  walker.last().actions.map(({ type, node }) => `${node} ${type}`);
const answered = (walker: Walker): readonly string[] | undefined =>
  lastOf(walker, 'AnswerSubcall')[0]?.texts;

test('a plain sub-call sends its prompt and nothing else', () => {
  const walker = running();
  walker.send(g.asks(['Which of these?\n1\n2']));
  assert.deepEqual(lastOf(walker, 'CallModel'), [
    {
      type: 'CallModel',
      requestId: 'n0.c1.1.1.r1',
      purpose: 'plain',
      length: 1,
      depth: 1,
      node: 'n0.c1.1.1',
    },
  ]);
  assert.deepEqual(talk(state(walker, 'n0.c1.1.1').run.conversation), [
    'user: Which of these?\n1\n2',
  ]);
  walker.send(g.says('2', { who: g.child(1) }));
  assert.deepEqual(answered(walker), ['2']);
  assert.deepEqual(
    Object.keys(walker.tree().nodes),
    ['n0'],
    'a child that is done leaves the tree',
  );
});

test('at depth 1 a recursive sub-call is a plain one; deeper it has an environment with its prompt as context', () => {
  const flat = running();
  flat.send(g.asks(['hard'], { kind: 'rlm' }));
  assert.deepEqual(performed(flat), ['n0.c1.1.1 CallModel']);
  const deep = running({ depthMax: 2 });
  deep.send(g.asks(['hard'], { kind: 'rlm' }));
  assert.deepEqual(performed(deep), ['n0.c1.1.1 StartEnvironment', 'n0.c1.1.1 CallModel']);
  assert.deepEqual(lastOf(deep, 'StartEnvironment')[0]?.material, { kind: 'text', text: 'hard' });
  assert.equal(
    lastTold(deep, 'n0.c1.1.1'),
    'user: hard\n\nThe variable `context` holds this text, too.\n\nIteration 1 of 15.',
  );
  deep.send(g.environmentIs('kept', g.child(1)), g.says(g.program('sub()'), { who: g.child(1) }));
  deep.send(g.asks(['harder'], { kind: 'rlm', who: g.child(1) }));
  assert.deepEqual(
    performed(deep),
    ['n0.c1.1.1.c1.1.1 CallModel'],
    'at the maximal depth it is plain again',
  );
});

test('a plain sub-call is plain at any depth', () => {
  const walker = running({ depthMax: 3 });
  walker.send(g.asks(['easy']));
  assert.deepEqual(performed(walker), ['n0.c1.1.1 CallModel']);
});

test('a child is told the beginning of a long prompt: its context has all of it', () => {
  const walker = running({ depthMax: 2 });
  const prompt = `Summarise.\n${'x'.repeat(90_000)}`;
  walker.send(g.asks([prompt], { kind: 'rlm' }));
  const told = lastTold(walker, 'n0.c1.1.1');
  assert.ok(told.length < 4_300, `${told.length} characters`);
  assert.match(
    told,
    /^user: Summarise\.[\s\S]*The variable `context` holds the whole text: 90,011 characters\./,
  );
  assert.deepEqual(lastOf(walker, 'StartEnvironment')[0]?.material, { kind: 'text', text: prompt });
});

test('a batch of nothing is answered at once, an empty prompt not asked', () => {
  const walker = running();
  walker.send(g.asks([]));
  assert.deepEqual(answered(walker), []);
  walker.send(g.asks(['', 'x', ' \n'], { ordinal: 2 }), g.says('X', { who: g.child(2, 2) }));
  assert.deepEqual(answered(walker), [
    'Error: the prompt is empty',
    'X',
    'Error: the prompt is empty',
  ]);
});

test('a batch that is too long is refused as a whole, and nothing of it is paid for', () => {
  const walker = running({ batchMax: 3 });
  walker.send(g.asks(g.promptsOf(4)));
  assert.deepEqual(performed(walker), ['n0 AnswerSubcall']);
  assert.match(
    answered(walker)?.[3] ?? '',
    /^Error: 4 prompts in one call, and at most 3 are allowed/,
  );
});

test('prompts over the limit of the whole tree are refused one by one', () => {
  const walker = running({ subcallsMax: 3 });
  walker.send(
    g.asks(g.promptsOf(2)),
    g.says('1', { who: g.child(1) }),
    g.says('2', { who: g.child(2) }),
  );
  walker.send(g.asks(g.promptsOf(2), { ordinal: 2 }), g.says('3', { who: g.child(1, 2) }));
  assert.deepEqual(answered(walker), [
    '3',
    'Error: 3 sub-calls were made, and no more are allowed',
  ]);
});

test('calls of several sub-calls wait in one line; a long batch does not hold up a short one', () => {
  const walker = running({ openCallsMax: 2 });
  walker.send(g.asks(g.promptsOf(10)), g.asks(['short'], { ordinal: 2 }));
  const order: string[] = [];
  for (let count = 0; count < 11; count++) {
    const [requestId = '', who = ''] = Object.entries(walker.tree().calls)[0] ?? [];
    order.push(who);
    walker.send(g.says('x', { who, requestId }));
  }
  assert.equal(order.indexOf('n0.c1.2.1'), 2, order.join(' '));
});

test('at most four children with an environment work for one sub-call', () => {
  const walker = running({ depthMax: 2 });
  walker.send(g.asks(g.promptsOf(6), { kind: 'rlm' }));
  assert.equal(lastOf(walker, 'StartEnvironment').length, 4);
  walker.send(g.cancels(g.child(2)));
  assert.deepEqual(
    lastOf(walker, 'StartEnvironment').map(({ node }) => node),
    ['n0.c1.1.5'],
  );
});

test('a child that is cancelled, fails or is stopped spoils its slot only', () => {
  const walker = running({ depthMax: 2, childLimits: { usd: 0.2, tokens: 0, timeMs: 5_000 } });
  walker.send(g.asks(g.promptsOf(4), { kind: 'rlm' }));
  walker.send(g.cancels(g.child(1)), g.environmentFails(g.child(2)), g.timeIsUp(g.child(3)));
  walker.send(g.environmentIs('kept', g.child(4)));
  walker.send(g.says(g.program('x'), { who: g.child(4), costUsd: 0.25 }), g.ends({}, g.child(4)));
  assert.deepEqual(answered(walker), [
    'Error: cancelled',
    'Error: the environment failed: bwrap is missing',
    'Error: the time limit is reached',
    'Error: the budget is used up (dollars)',
  ]);
  assert.equal(state(walker).name, 'EXECUTING');
});

test('a child that answers at its own limit of iterations has answered', () => {
  const walker = running({ depthMax: 2, childIterationsMax: 1 });
  walker.send(g.asks(['hard'], { kind: 'rlm' }), g.environmentIs('kept', g.child(1)));
  walker.send(g.says(g.program('x'), { who: g.child(1) }), g.ends({}, g.child(1)));
  walker.send(g.says('about 7', { who: g.child(1) }));
  assert.deepEqual(answered(walker), ['about 7']);
});

test('a child has no more time than its parent, and its own timer only if it ends sooner', () => {
  const limits = { usd: 0, tokens: 0, timeMs: 60_000 };
  const own = running({ depthMax: 2, limits, childLimits: { usd: 0, tokens: 0, timeMs: 5_000 } });
  own.send(g.asks(['hard'], { kind: 'rlm' }));
  assert.deepEqual(
    lastOf(own, 'ScheduleTimer').map(({ dueAt }) => dueAt - g.NOW),
    [5_000],
  );
  const parents = running({
    depthMax: 2,
    limits,
    childLimits: { usd: 0, tokens: 0, timeMs: 90_000 },
  });
  parents.send(g.later(1_000, g.asks(['hard'], { kind: 'rlm' })));
  assert.deepEqual(lastOf(parents, 'ScheduleTimer'), []);
  assert.equal(state(parents, 'n0.c1.1.1').run.deadline?.dueAt, g.NOW + 60_000);
});

// ---- The end ----

test('a cancel ends the tree deepest first, and answers every cell that waits', () => {
  const walker = running({ depthMax: 2, limits: { usd: 0, tokens: 0, timeMs: 60_000 } });
  walker.send(g.asks(['hard', 'plain'], { kind: 'rlm' }), g.environmentIs('kept', g.child(1)));
  walker.send(
    g.says(g.program('sub()'), { who: g.child(1) }),
    g.asks(['a', 'b'], { who: g.child(1) }),
  );
  walker.send(g.fails({ who: 'n0.c1.1.1.c1.1.2' }), g.cancels());
  assert.deepEqual(
    performed(walker).filter((line) => !line.endsWith('ReportOutcome')),
    [
      'n0.c1.1.1.c1.1.1 AbortModel',
      'n0.c1.1.1.c1.1.2 CancelTimer',
      'n0.c1.1.1 AnswerSubcall',
      'n0.c1.1.1 CloseEnvironment',
      'n0.c1.1.2 AbortModel',
      'n0.c1.1.2 CloseEnvironment',
      'n0 AnswerSubcall',
      'n0 CancelTimer',
      'n0 CloseEnvironment',
    ],
  );
  assert.deepEqual(outcome(walker), { status: 'cancelled', cause: 'user', partial: '' });
});

test('a cell that ends without its sub-calls ends them; the cell after it begins anew', () => {
  const walker = running();
  walker.send(g.asks(['a', 'b']), g.ends());
  assert.deepEqual(
    performed(walker).filter((line) => !line.endsWith('ReportOutcome')),
    ['n0.c1.1.1 AbortModel', 'n0.c1.1.2 AbortModel', 'n0 CallModel'],
  );
  walker.send(g.writes('next()'), g.asks(['c']));
  assert.deepEqual(
    lastOf(walker, 'CallModel').map(({ node }) => node),
    ['n0.c2.1.1'],
  );
});

test('batches of a thousand prompts, thirty iterations: everything is answered, and nothing of it stays', () => {
  let tree = running({ subcallsMax: 0, repeatedMax: 0 }).tree();
  const answersOf = (given: g.Given): readonly number[] => {
    const { state: next, actions } = stepTree(tree, g.eventOf(given, tree));
    tree = next;
    return actions.flatMap((action) =>
      action.type === 'AnswerSubcall' ? [action.texts.length] : [],
    );
  };
  for (let iteration = 1; iteration <= 30; iteration++) {
    const count = iteration <= 3 ? 1_000 : 50;
    answersOf(g.asks(g.promptsOf(count)));
    for (let slot = 1; slot < count; slot++)
      assert.deepEqual(answersOf(g.says('x', { who: g.child(slot) })), []);
    assert.deepEqual(answersOf(g.says('x', { who: g.child(count) })), [count]);
    assert.deepEqual(Object.keys(tree.nodes), ['n0']);
    answersOf(g.prints(`${iteration}`));
    answersOf(g.writes(`next(${iteration})`));
  }
  assert.equal(tree.ledger.accounts.n0?.calls, 3 * 1_000 + 27 * 50 + 31);
  answersOf(g.answers('42'));
  assert.equal(tree.name, 'Ended');
});
