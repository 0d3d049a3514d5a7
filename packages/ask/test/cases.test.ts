import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from './given.js';
import {
  actionsOf,
  allOf,
  begin,
  lastOf,
  lastTold,
  outcome,
  running,
  seedTrace,
  state,
  type Walker,
} from './walker.js';

/** Code mode, case by case. */

const answerOf = (walker: Walker): string => {
  const ended = outcome(walker);
  return ended.status === 'answered'
    ? ended.answer
    : assert.fail(`not answered but ${ended.status}`);
};

test('at the maximal depth there is one plain call, and no environment is ever started', () => {
  const walker = begin({ depthMax: 0 });
  assert.equal(seedTrace(walker), 'INIT -DepthExceeded-> SHALLOW_CALL');
  walker.send(g.says('42'));
  assert.equal(
    seedTrace(walker),
    'INIT -DepthExceeded-> SHALLOW_CALL; SHALLOW_CALL -LLMResponseReceived-> DONE',
  );
  assert.equal(allOf(walker, 'CallModel').length, 1);
  assert.equal(allOf(walker, 'StartEnvironment').length, 0);
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: '42',
    by: 'reply',
    closing: null,
  });
});

test('a reply with FINAL ends the run after one call', () => {
  const walker = begin(g.withForms);
  walker.send(g.says('I know it.\nFINAL(42)'));
  assert.equal(
    seedTrace(walker),
    'INIT -LLMResponseReceived-> PROMPTING; PROMPTING -FinalAnswerFound-> DONE',
  );
  assert.equal(allOf(walker, 'CallModel').length, 1);
  assert.equal(answerOf(walker), '42');
});

test('code and FINAL_VAR in one reply: the code runs first, and the answer is what it has just made', () => {
  const walker = begin(g.withForms);
  walker.send(g.says(`${g.program('x = 6 * 7')}\n\nFINAL_VAR(x)`));
  assert.equal(walker.last().actions.at(-1)?.type, 'RunCell');
  walker.send(g.ends());
  assert.deepEqual(
    lastOf(walker, 'ReadVariable').map(({ variable }) => variable),
    ['x'],
  );
  walker.send(g.holds('42'));
  assert.equal(
    seedTrace(walker),
    'INIT -LLMResponseReceived-> PROMPTING; PROMPTING -CodeBlocksFound-> EXECUTING; EXECUTING -FinalAnswerFound-> DONE',
  );
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: '42',
    by: 'variable',
    closing: null,
  });
});

test('a reply with neither code nor FINAL burns an iteration', () => {
  const walker = begin();
  walker.send(g.says('Let me think about it.'));
  assert.match(seedTrace(walker), /PROMPTING -CodeBlocksFound-> EXECUTING$/);
  assert.equal(state(walker).run.iterations, 1);
  assert.equal(lastOf(walker, 'CallModel').length, 1);
  assert.match(lastTold(walker), /no program and no answer[\s\S]*Iteration 2 of 30\./);
});

for (const [rules, patch] of [
  ['parity', g.asSeed],
  ['default', g.withForms],
] as const) {
  test(`${rules}: FINAL_VAR of a missing name is no answer, its error is shown, the loop goes on`, () => {
    const walker = begin(patch);
    walker.send(g.says('FINAL_VAR(nobody)'), g.holds(null));
    assert.match(seedTrace(walker), /PROMPTING -CodeBlocksFound-> EXECUTING$/);
    assert.match(lastTold(walker), /FINAL_VAR\(nobody\): there is no variable of this name/);
    assert.equal(state(walker).run.iterations, 1);
    assert.equal(lastOf(walker, 'CallModel').length, 1);
  });
}

const atLimit = (patch: g.SettingsPatch): Walker => {
  const walker = begin({ ...patch, iterationsMax: 1 });
  walker.send(g.writes('x = 42'), g.ends());
  return walker;
};

test('parity: FINAL_VAR in the limit reply stays as it was written', () => {
  const walker = atLimit(g.asSeed);
  walker.send(g.says('FINAL_VAR(x)'));
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: 'FINAL_VAR(x)',
    by: 'limit',
    closing: 'iterations',
  });
});

test('default: FINAL_VAR in the limit reply is the value', () => {
  const walker = atLimit(g.withForms);
  walker.send(g.says('FINAL_VAR(x)'), g.holds('42'));
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: '42',
    by: 'variable',
    closing: 'iterations',
  });
  assert.match(seedTrace(walker), /EXECUTING -MaxIterationsReached-> DONE$/);
});

const example = 'You would write:\n\n```text\nFINAL(an example)\n```\n';

test('FINAL inside a fenced example is ignored (parity: counted)', () => {
  const ours = begin(g.withForms);
  ours.send(g.says(example));
  assert.equal(state(ours).run.iterations, 1);
  const theirs = begin(g.asSeed);
  theirs.send(g.says(example));
  assert.equal(answerOf(theirs), 'an example');
});

test('an empty FINAL() is an empty answer (parity: the whole reply)', () => {
  const ours = begin(g.withForms);
  ours.send(g.says('None found.\nFINAL()'));
  assert.equal(answerOf(ours), '');
  const theirs = begin(g.asSeed);
  theirs.send(g.says('None found.\nFINAL()'));
  assert.equal(answerOf(theirs), 'None found.\nFINAL()');
});

test('an answer that became ready is taken after its cell, also if the cell raised, also if it is empty', () => {
  for (const status of ['ok', 'raised', 'stopped'] as const) {
    for (const answer of ['42', '']) {
      const walker = running();
      walker.send(g.ends({ answer, status }));
      assert.deepEqual(outcome(walker), {
        status: 'answered',
        answer,
        by: 'record',
        closing: null,
      });
      assert.match(seedTrace(walker), /EXECUTING -FinalAnswerFound-> DONE$/);
    }
  }
});

test('blocks after the one that made the answer ready are skipped (parity: run)', () => {
  const ours = begin();
  ours.send(g.writes('answer.ready = true', 'more()'), g.answers('42'));
  assert.equal(answerOf(ours), '42');
  assert.equal(allOf(ours, 'RunCell').length, 1);
  const theirs = begin({ parity: { afterReady: 'run', programs: 'all' } });
  theirs.send(g.writes('answer.ready = true', 'more()'), g.answers('42'));
  assert.deepEqual(
    lastOf(theirs, 'RunCell').map(({ code }) => code),
    ['more()'],
  );
  theirs.send(g.answers('43'));
  assert.equal(answerOf(theirs), '42', 'what was ready first counts');
});

test('a cell after one that overwrote names runs in the same environment', () => {
  const walker = begin();
  walker.send(g.writes('llm_query = 1'), g.ends(), g.writes('llm_query("x")'));
  assert.equal(allOf(walker, 'StartEnvironment').length, 1);
  walker.send(g.asks(['x']));
  assert.equal(lastOf(walker, 'CallModel').length, 1);
});

test('the model gets 20,000 of 50,000 printed characters and the number of missing ones', () => {
  const walker = running();
  walker.send(g.prints(`${'a'.repeat(25_000)}${'b'.repeat(25_000)}`));
  const told = lastTold(walker);
  assert.match(told, /a{10000}\n\[… 30,000 characters left out …\]\nb{10000}/);
  assert.ok(told.length < 20_500, `${told.length} characters`);
});

test('output that the environment has cut is not cut again', () => {
  const walker = running();
  const cut = `${'a'.repeat(10_000)}\n[30000 characters left out; all of it is in last_output]\n${'b'.repeat(10_000)}`;
  walker.send(g.prints(cut));
  assert.ok(lastTold(walker).includes(cut));
});

test('if the third call of a batch of five fails, its slot has the error and the order is kept', () => {
  const walker = running();
  walker.send(g.asks(g.promptsOf(5)));
  assert.equal(lastOf(walker, 'CallModel').length, 5);
  for (const slot of [5, 4, 2, 1]) walker.send(g.says(`answer ${slot}`, { who: g.child(slot) }));
  assert.equal(lastOf(walker, 'AnswerSubcall').length, 0);
  walker.send(g.breaks({ who: g.child(3) }));
  assert.deepEqual(
    lastOf(walker, 'AnswerSubcall').map(({ texts }) => texts),
    [
      [
        'answer 1',
        'answer 2',
        'Error: the provider refused the request: bad field',
        'answer 4',
        'answer 5',
      ],
    ],
  );
});

test('a batch of forty never has more than sixteen open calls, and they start in order', () => {
  const walker = running();
  walker.send(g.asks(g.promptsOf(40)));
  assert.equal(lastOf(walker, 'CallModel').length, 16);
  for (let slot = 1; slot <= 40; slot++) {
    assert.ok(Object.keys(walker.tree().calls).length <= 16);
    walker.send(g.says(`answer ${slot}`, { who: g.child(slot) }));
  }
  const begun = actionsOf(walker.steps(), 'CallModel').slice(1);
  assert.deepEqual(
    begun.map(({ node }) => node),
    Array.from({ length: 40 }, (_, index) => `n0.c1.1.${index + 1}`),
  );
  assert.equal(lastOf(walker, 'AnswerSubcall')[0]?.texts.length, 40);
});

test('money that a child has spent stays spent when its parent continues', () => {
  const walker = running({ depthMax: 2, limits: { usd: 0.5, tokens: 0, timeMs: 0 } });
  walker.send(g.asks(['a hard part'], { kind: 'rlm' }), g.environmentIs('kept', g.child(1)));
  walker.send(g.says(g.program('work()'), { who: g.child(1), costUsd: 0.3 }));
  walker.send(g.ends({ answer: 'done' }, g.child(1)));
  walker.send(g.ends(), g.says(g.program('more()'), { costUsd: 0.1 }), g.prints('x'));
  assert.equal(walker.tree().ledger.accounts.n0?.spent.costUsd.toFixed(2), '0.40');
  assert.equal(state(walker).run.purse.left.usd?.toFixed(2), '0.10');
  walker.send(g.says(g.program('even more'), { costUsd: 0.1 }), g.prints('y'));
  assert.deepEqual(outcome(walker), {
    status: 'stopped',
    reason: 'usd',
    message: 'the budget is used up (dollars)',
    partial: g.program('even more'),
  });
});

test('a sub-call that ends after its cell timed out is accounted, and not delivered to the next cell', () => {
  const walker = running();
  walker.send(g.asks(['slow']));
  const late = g.requestOf(walker.tree(), 'n0.c1.1.1');
  walker.send(g.ends({ status: 'stopped', stderr: 'the deadline is over' }));
  assert.deepEqual(
    lastOf(walker, 'AbortModel').map(({ requestId }) => requestId),
    [late],
  );
  walker.send(g.writes('next()'));
  walker.send(g.says('too late', { who: 'n0.c1.1.1', requestId: late, costUsd: 0.2 }));
  assert.equal(walker.last().actions.length, 0);
  assert.equal(walker.tree().ledger.accounts.n0?.spent.costUsd, 0.2);
  assert.equal(allOf(walker, 'AnswerSubcall').length, 0);
});

test('two iterations with errors, one without, two with errors: the run goes on', () => {
  const walker = begin({ errorsMax: 3 });
  const [bad, good] = [g.raises, g.prints('fine')];
  [bad, bad, good, bad, bad].forEach((end, index) => {
    walker.send(g.writes(`step${index}()`), end);
  });
  assert.equal(lastOf(walker, 'CallModel')[0]?.purpose, 'iteration');
  walker.send(g.writes('step5()'), bad);
  assert.equal(lastOf(walker, 'CallModel')[0]?.purpose, 'answer', 'the third in a row');
});
