import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countRepeat, judge, noRepeat, type StopFacts } from '../src/run/stop-policies.js';
import * as g from './given.js';
import { begin, lastOf, lastTold, outcome, state, type Walker } from './walker.js';

const facts: StopFacts = {
  at: 1_000,
  deadlineAt: null,
  iterations: 2,
  iterationsMax: 30,
  needed: { usd: 0.05, tokens: 100 },
  left: { usd: null, tokens: null },
  unpriced: 0,
  repeated: 1,
  repeatedMax: 3,
  errors: 0,
  errorsMax: 3,
  sameOutput: 1,
  sameOutputMax: 3,
};

const verdicts: readonly (readonly [title: string, patch: Partial<StopFacts>, verdict: string])[] =
  [
    ['nothing speaks against it', {}, 'go'],
    ['dollars that just suffice', { left: { usd: 0.05, tokens: null } }, 'go'],
    [
      'dollars that suffice but for the sum of cents',
      { left: { usd: 0.5 - 0.45, tokens: null } },
      'go',
    ],
    ['too few dollars', { left: { usd: 0.04, tokens: null } }, 'stop usd'],
    [
      'no dollars, and nothing is expected to cost',
      { left: { usd: 0, tokens: null }, needed: { usd: 0, tokens: 0 } },
      'stop usd',
    ],
    ['overspent', { left: { usd: -1, tokens: null } }, 'stop usd'],
    ['tokens that just suffice', { left: { usd: null, tokens: 100 } }, 'go'],
    ['too few tokens', { left: { usd: null, tokens: 99 } }, 'stop tokens'],
    [
      'a call of unknown price with a limit in dollars',
      { left: { usd: 9, tokens: null }, unpriced: 1 },
      'stop unpriced',
    ],
    ['a call of unknown price without one', { unpriced: 1 }, 'go'],
    ['a moment before the deadline', { deadlineAt: 1_001 }, 'go'],
    ['at the deadline', { deadlineAt: 1_000 }, 'stop time'],
    ['one iteration is left', { iterations: 29 }, 'go'],
    ['no iteration is left', { iterations: 30 }, 'finish iterations'],
    ['no limit of iterations', { iterations: 1_000, iterationsMax: 0 }, 'go'],
    ['the same twice', { repeated: 2 }, 'go'],
    ['the same three times', { repeated: 3 }, 'finish repeated'],
    ['no limit of repetitions', { repeated: 1_000, repeatedMax: 0 }, 'go'],
    ['two errors in a row', { errors: 2 }, 'go'],
    ['three errors in a row', { errors: 3 }, 'finish errors'],
    ['no limit of errors', { errors: 1_000, errorsMax: 0 }, 'go'],
    ['the same output three times', { sameOutput: 3 }, 'finish noProgress'],
    ['no limit of the same output', { sameOutput: 1_000, sameOutputMax: 0 }, 'go'],
    ['stop is stronger than finish', { iterations: 30, deadlineAt: 0 }, 'stop time'],
    [
      'the first of two that stop speaks',
      { left: { usd: 0, tokens: null }, deadlineAt: 0 },
      'stop usd',
    ],
  ];

for (const [title, patch, expected] of verdicts) {
  test(`a policy judges: ${title}`, () => {
    const verdict = judge({ ...facts, ...patch });
    assert.equal(verdict.kind === 'go' ? 'go' : `${verdict.kind} ${verdict.reason}`, expected);
  });
}

test('a repetition is counted, a new result starts with one', () => {
  const once = countRepeat(noRepeat, '');
  assert.equal(once.times, 1, 'also if it is nothing');
  assert.equal(countRepeat(once, '').times, 2);
  assert.equal(countRepeat(countRepeat(once, ''), 'a').times, 1);
});

// ---- In a run ----

const iterate = (walker: Walker, code: string, end: g.Given): void => {
  walker.send(g.writes(code), end);
};
const purpose = (walker: Walker): string | undefined => lastOf(walker, 'CallModel')[0]?.purpose;

test('the same code three times in a row: the answer is asked for', () => {
  const walker = begin();
  iterate(walker, 'look()', g.prints('1'));
  iterate(walker, 'look()', g.prints('2'));
  iterate(walker, 'look(2)', g.prints('3'));
  iterate(walker, 'look()', g.prints('4'));
  iterate(walker, 'look()', g.prints('5'));
  assert.equal(purpose(walker), 'iteration');
  iterate(walker, 'look()', g.prints('6'));
  assert.equal(purpose(walker), 'answer');
  assert.match(
    lastTold(walker),
    /There will be no further iteration: the same was asked for 3 times in a row/,
  );
  walker.send(g.says('perhaps 7'));
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: 'perhaps 7',
    by: 'limit',
    closing: 'repeated',
  });
});

test('the same output five times in a row: the answer is asked for; other variables are another output', () => {
  const walker = begin();
  const bound = (count: number) =>
    g.ends({ variables: [{ name: `x${count}`, type: 'number', size: null }] });
  for (let count = 0; count < 8; count++) iterate(walker, `x${count} = 1`, bound(count));
  assert.equal(purpose(walker), 'iteration');
  for (let count = 0; count < 4; count++) iterate(walker, `y(${count})`, bound(7));
  assert.equal(purpose(walker), 'answer');
});

test('replies without a program are no progress', () => {
  const walker = begin();
  for (let count = 0; count < 5; count++) walker.send(g.says(`I think, ${count}`));
  assert.equal(purpose(walker), 'answer');
});

test('an iteration without a program neither counts as an error nor forgives any', () => {
  const walker = begin({ errorsMax: 2 });
  iterate(walker, 'a()', g.raises);
  walker.send(g.says('Hm.'));
  assert.equal(purpose(walker), 'iteration');
  iterate(walker, 'b()', g.raises);
  assert.equal(purpose(walker), 'answer');
});

test('the last reply may still be a program, and then its answer counts', () => {
  const walker = begin({ iterationsMax: 1 });
  iterate(walker, 'x = 1', g.prints(''));
  walker.send(g.writes('answer.ready = true'));
  assert.equal(lastOf(walker, 'RunCell').length, 1);
  walker.send(g.answers('42'));
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: '42',
    by: 'record',
    closing: 'iterations',
  });
});

test('a last reply whose program answers nothing is the answer as it stands', () => {
  const walker = begin({ iterationsMax: 1 });
  iterate(walker, 'x = 1', g.prints(''));
  const last = `About 42.\n${g.program('more()')}`;
  walker.send(g.says(last), g.prints('x'));
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: last,
    by: 'limit',
    closing: 'iterations',
  });
});

test('a reply of unknown price ends a run that has a limit in dollars, and no other', () => {
  const poor = begin({ limits: { usd: 5, tokens: 0, timeMs: 0 } });
  poor.send(g.says(g.program('x'), { costUsd: null }), g.prints(''));
  assert.equal(outcome(poor).status, 'stopped');
  const rich = begin();
  rich.send(g.says(g.program('x'), { costUsd: null }), g.prints(''));
  assert.equal(purpose(rich), 'iteration');
  assert.equal(rich.tree().ledger.accounts.n0?.spent.unpriced, 1);
});

test('the budget is asked before the first call, too', () => {
  const walker = begin({ limits: { usd: 0, tokens: 3, timeMs: 0 } });
  assert.deepEqual(outcome(walker), {
    status: 'stopped',
    reason: 'tokens',
    message: 'the budget is used up (tokens)',
    partial: '',
  });
  assert.deepEqual(
    walker.last().actions.map(({ type }) => type),
    ['StartEnvironment', 'CloseEnvironment', 'ReportOutcome'],
  );
});

test('time ends a run wherever it is, with what it said last', () => {
  const walker = begin({ limits: { usd: 0, tokens: 0, timeMs: 60_000 } });
  assert.deepEqual(
    walker
      .steps()
      .flatMap(({ actions }) =>
        actions.flatMap((action) => (action.type === 'ScheduleTimer' ? [action.dueAt] : [])),
      ),
    [g.NOW + 60_000],
  );
  walker.send(g.says('I begin.'), g.writes('forever()'), g.timeIsUp());
  assert.deepEqual(outcome(walker), {
    status: 'stopped',
    reason: 'time',
    message: 'the time limit is reached',
    partial: 'I begin.',
  });
});

// ---- The user's own ----

test('the user’s policy is asked before every call, the first one included', () => {
  const walker = begin({ userPolicy: 'yes' });
  assert.equal(lastOf(walker, 'CallModel').length, 0);
  walker.send(g.judges({ kind: 'go' }));
  assert.equal(purpose(walker), 'iteration');
  walker.send(g.writes('x'), g.prints('1'));
  const [asked] = lastOf(walker, 'AskPolicy');
  assert.deepEqual([asked?.facts.iterations, asked?.facts.repeated], [1, 1]);
});

test('the user’s policy stops the run, or lets it finish', () => {
  const stopped = begin({ userPolicy: 'yes' });
  stopped.send(g.judges({ kind: 'stop', reason: 'policy', why: 'I have seen enough' }));
  assert.deepEqual(outcome(stopped), {
    status: 'stopped',
    reason: 'policy',
    message: 'I have seen enough',
    partial: '',
  });
  const finished = begin({ userPolicy: 'yes' });
  finished.send(g.judges({ kind: 'finish', reason: 'policy', why: 'be quick' }));
  assert.equal(purpose(finished), 'answer');
  finished.send(g.says('42'));
  assert.deepEqual(outcome(finished), {
    status: 'answered',
    answer: '42',
    by: 'limit',
    closing: 'policy',
  });
});

test('a retry asks the user’s policy again, and the budget', () => {
  const walker = begin({ userPolicy: 'yes' });
  walker.send(g.judges({ kind: 'go' }), g.fails(), g.rings());
  assert.equal(lastOf(walker, 'AskPolicy').length, 1);
  const poor = begin({ limits: { usd: 0.1, tokens: 0, timeMs: 0 } });
  poor.send(g.fails({ costUsd: 0.1 }), g.rings());
  assert.equal(outcome(poor).status, 'stopped');
});

test('an answer of a policy that nobody waits for changes nothing', () => {
  const walker = begin({ userPolicy: 'yes' });
  walker.send(g.judges({ kind: 'go' }));
  const before = state(walker);
  const { actions, diagnostics } = walker.send(
    g.judges({ kind: 'stop', reason: 'policy', why: '' }),
  );
  assert.deepEqual([state(walker), actions, diagnostics.length], [before, [], 1]);
});
