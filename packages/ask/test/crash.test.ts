import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inFlight, stepTree } from '../src/tree/step-tree.js';
import * as g from './given.js';
import { forRolls } from './random.js';
import { begin, lastOf, outcome, running, state, type Walker, walk } from './walker.js';
import { World } from './world.js';

/** kill -9 at any moment, --continue, same answer. */

const ROOT_PROGRAMS = [
  'ask llm north|south|east; print',
  'ask rlm left|right; ask llm again; print',
  'die',
  'ask llm last|word; ask rlm deep',
  'print; answer',
];
const CHILD_PROGRAMS = ['ask llm piece one|piece two; print', 'ask llm sum; print; answer'];

const script = (node: string, told: readonly string[], purpose: string): string => {
  if (purpose === 'plain') return `<${told[0] ?? ''}>`;
  const replies = Math.floor(told.length / 2);
  const programs = node === 'n0' ? ROOT_PROGRAMS : CHILD_PROGRAMS;
  return g.program(programs[replies] ?? 'answer');
};

const settings: g.SettingsPatch = { depthMax: 2, openCallsMax: 3, sameOutputMax: 0, errorsMax: 0 };

type Story = { readonly walker: Walker; readonly crashes: number };

/** Lets happen what the rolls choose; a roll of less than `crashing` kills the process after the event is durable. */
const live = (rolls: readonly number[], crashing: number): Story => {
  const walker = walk(g.settingsOf(settings));
  const world = new World(script);
  let crashes = 0;
  world.perform(walker.send(g.started).actions);
  for (let index = 0; walker.tree().name !== 'Ended'; index++) {
    assert.ok(index < 2_000, 'it does not end');
    const roll = rolls[index % rolls.length] ?? 0;
    const names = world.pending();
    const name =
      names[Math.floor(((roll * 7_919) % 1) * names.length)] ??
      assert.fail('nothing happens any more');
    const { actions } = walker.send(world.happen(name, walker.tree()));
    // a crash between the event and its actions
    if (roll < crashing && crashes < 10) {
      crashes += 1;
      world.crash();
      const flying = inFlight(walker.tree(), g.NOW);
      const resumed = walker.send(g.resumed(crashes));
      assert.deepEqual(resumed.actions, flying);
      world.perform(resumed.actions);
    } else world.perform(actions);
  }
  return { walker, crashes };
};

const answerOf = ({ walker }: Story): string => {
  const ended = outcome(walker);
  return ended.status === 'answered' ? ended.answer : assert.fail(JSON.stringify(ended));
};

const EXPECTED = '<last>+<word>,<piece one>+<piece two>,<sum>';

test('without a crash the story has its answer', () => {
  assert.equal(answerOf(live([0.999], 0)), EXPECTED);
});

test('in whatever order the world answers, the answer is the same', (t) => {
  forRolls(t, 40, 200, (rolls) => assert.equal(answerOf(live(rolls, 0)), EXPECTED));
});

test('killed at any moment and resumed, the answer is the same', (t) => {
  let crashes = 0;
  forRolls(t, 60, 200, (rolls) => {
    const story = live(rolls, 0.15);
    crashes += story.crashes;
    assert.equal(answerOf(story), EXPECTED);
  });
  assert.ok(crashes > 20, `only ${crashes} crashes`);
});

// ---- What a crash leaves ----

test('the environment is built again from the cells since variables were lost, with what models answered them', () => {
  const walker = running();
  walker.send(
    g.ends({ status: 'died', variablesLost: 'yes' }),
    g.writes('two()'),
    g.asks(['a', 'b']),
  );
  walker.send(g.says('A', { who: g.child(1) }), g.says('B', { who: g.child(2) }), g.prints('AB'));
  walker.send(g.writes('three()'), g.resumed());
  const [start] = lastOf(walker, 'StartEnvironment');
  assert.deepEqual(
    start?.past.map(({ code, status, subcalls }) => [
      code,
      status,
      subcalls.map(({ texts }) => texts),
    ]),
    [['two()', 'ok', [['A', 'B']]]],
  );
  assert.deepEqual(start?.material, { kind: 'inputs' });
  assert.equal(lastOf(walker, 'RunCell').length, 0, 'not before the environment stands');
  walker.send(g.ready);
  assert.deepEqual(
    lastOf(walker, 'RunCell').map(({ code }) => code),
    ['three()'],
  );
});

test('the interrupted cell asks again: what was answered comes from the record, what was open is waited for', () => {
  const walker = running();
  walker.send(g.asks(['one']), g.says('ONE', { who: g.child(1) }));
  walker.send(g.asks(['two'], { ordinal: 2 }), g.resumed());
  const call = lastOf(walker, 'CallModel').map(({ node, requestId }) => [node, requestId]);
  assert.deepEqual(
    call,
    [['n0.c1.2.1', 'n0.c1.2.1.r1']],
    'the open call is sent again under its id',
  );
  walker.send(g.ready, g.asks(['one']));
  assert.deepEqual(
    lastOf(walker, 'AnswerSubcall').map(({ texts }) => texts),
    [['ONE']],
  );
  walker.send(g.asks(['two'], { ordinal: 2 }));
  assert.equal(walker.last().actions.length, 0, 'nothing is asked twice');
  walker.send(g.says('TWO', { who: g.child(1, 2) }));
  assert.deepEqual(
    lastOf(walker, 'AnswerSubcall').map(({ texts }) => texts),
    [['TWO']],
  );
});

test('an answer that comes before the cell asks again waits in the record', () => {
  const walker = running();
  walker.send(g.asks(['one']), g.resumed(), g.says('ONE', { who: g.child(1) }));
  assert.equal(lastOf(walker, 'AnswerSubcall').length, 0);
  walker.send(g.ready, g.asks(['one']));
  assert.deepEqual(
    lastOf(walker, 'AnswerSubcall').map(({ texts }) => texts),
    [['ONE']],
  );
});

test('a cell that asks otherwise than before is asked for anew, and what worked on the old question ends', () => {
  const walker = running();
  walker.send(g.asks(['one']), g.resumed(), g.ready, g.asks(['another']));
  assert.deepEqual(
    walker.last().actions.map(({ type, node }) => `${node} ${type}`),
    ['n0.c1.1.1 AbortModel', 'n0.c1.1.1 ReportOutcome', 'n0.c1.1~1.1 CallModel'],
  );
  walker.send(g.says('the old one', { who: 'n0.c1.1.1', requestId: 'n0.c1.1.1.r1', costUsd: 0.5 }));
  walker.send(g.says('ANOTHER', { who: 'n0.c1.1~1.1' }));
  assert.deepEqual(
    lastOf(walker, 'AnswerSubcall').map(({ texts }) => texts),
    [['ANOTHER']],
  );
  assert.equal(walker.tree().ledger.accounts.n0?.spent.costUsd, 0.5);
});

test('variables that could not be rebuilt are reported to the model and forgotten', () => {
  for (const [variables, words, kept] of [
    ['kept', /Iteration 2/, 1],
    ['changed', /built again from its cells; some printed something else/, 1],
    ['lost', /all variables were lost/, 0],
  ] as const) {
    const walker = running();
    walker.send(g.prints('x'), g.resumed(), g.environmentIs(variables));
    assert.equal(state(walker).run.past.length, kept, variables);
    walker.send(g.writes('y()'), g.prints('y'));
    const told =
      state(walker)
        .run.conversation.open?.parts.map(({ text }) => text)
        .join() ?? '';
    assert.match(told, variables === 'kept' ? /^Output/ : words);
  }
});

test('results that arrive before the environment is rebuilt are from before the crash', () => {
  const walker = running(g.withForms);
  walker.send(g.resumed());
  for (const given of [g.prints('old'), g.asks(['old'])]) {
    const { actions, diagnostics } = walker.send(given);
    assert.deepEqual([actions, diagnostics.length], [[], 1]);
  }
  walker.send(g.ready, g.prints('new'), g.says('FINAL_VAR(x)'), g.resumed(2), g.holds('old'));
  assert.equal(walker.last().diagnostics.length, 1);
  walker.send(g.ready, g.holds('new'));
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: 'new',
    by: 'variable',
    closing: null,
  });
});

test('a retry that waited, waits on; a call that waited for its turn still does', () => {
  const walker = running({ openCallsMax: 1 });
  walker.send(g.asks(['one']), g.asks(['two'], { ordinal: 2 }), g.asks(['three'], { ordinal: 3 }));
  walker.send(g.fails({ who: g.child(1) }), g.resumed());
  assert.deepEqual(
    walker.last().actions.map(({ type, node }) => `${node} ${type}`),
    ['n0 StartEnvironment', 'n0.c1.1.1 ScheduleTimer', 'n0.c1.2.1 CallModel'],
  );
  walker.send(g.says('TWO', { who: g.child(1, 2) }));
  assert.deepEqual(
    lastOf(walker, 'CallModel').map(({ node }) => node),
    ['n0.c1.3.1'],
  );
});

test('a shutdown stops everything, deepest first, and can be resumed', () => {
  const walker = running({ depthMax: 2, limits: { usd: 0, tokens: 0, timeMs: 60_000 } });
  walker.send(g.asks(['hard'], { kind: 'rlm' }), g.environmentIs('kept', g.child(1)));
  walker.send(
    g.says(g.program('ask'), { who: g.child(1) }),
    g.asks(['a', 'b'], { who: g.child(1) }),
  );
  walker.send(g.shutdown);
  const inner = 'n0.c1.1.1.c1.1';
  assert.deepEqual(
    walker.last().actions.map(({ type, node }) => `${node} ${type}`),
    [
      `${inner}.1 AbortModel`,
      `${inner}.2 AbortModel`,
      'n0.c1.1.1 CloseEnvironment',
      'n0 CancelTimer',
      'n0 CloseEnvironment',
    ],
  );
  walker.send(
    g.fails({ who: `${inner}.1`, costUsd: 0.3, kind: 'unreachable' }),
    g.says('late', { who: `${inner}.2` }),
  );
  assert.equal(
    walker.tree().ledger.accounts.n0?.spent.costUsd,
    0.3,
    'the last word of an aborted call counts',
  );
  walker.send(g.shutdown, g.resumed());
  assert.deepEqual(
    walker.last().actions.map(({ type, node }) => `${node} ${type}`),
    [
      'n0 ScheduleTimer',
      'n0 StartEnvironment',
      'n0.c1.1.1 StartEnvironment',
      `${inner}.1 CallModel`,
      `${inner}.2 CallModel`,
    ],
  );
});

test('opening twice under one number is a duplicate', () => {
  const walker = begin();
  walker.send(g.resumed(1));
  const { actions, diagnostics } = walker.send(g.resumed(1));
  assert.deepEqual(actions, []);
  assert.match(diagnostics[0]?.why ?? '', /stale/);
});

test('a run that is over stays over', () => {
  const walker = begin();
  walker.send(g.cancels());
  const ended = walker.tree();
  for (const event of [g.shutdown, g.resumed(1), g.started]) {
    const { state: tree, actions } = stepTree(ended, event);
    assert.deepEqual([tree.name, actions], ['Ended', []]);
  }
});
