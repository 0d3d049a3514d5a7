import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from './given.js';
import {
  allOf,
  begin,
  lastOf,
  lastTold,
  outcome,
  running,
  seedTrace,
  state,
  talk,
} from './walker.js';

/** One run: what it asks of the world, what its model is told, how it ends. */

const types = (walker: ReturnType<typeof begin>): readonly string[] =>
  walker.last().actions.map(({ type }) => type);

test('the environment starts while the model is called', () => {
  const walker = begin({}, 'starting');
  assert.deepEqual(types(walker), ['StartEnvironment', 'CallModel']);
  assert.deepEqual(lastOf(walker, 'StartEnvironment'), [
    { type: 'StartEnvironment', material: { kind: 'inputs' }, past: [], node: 'n0' },
  ]);
  assert.deepEqual(lastOf(walker, 'CallModel'), [
    {
      type: 'CallModel',
      requestId: 'n0.r1',
      purpose: 'iteration',
      length: 1,
      depth: 0,
      node: 'n0',
    },
  ]);
});

test('a reply that comes before the environment stands waits for it', () => {
  const walker = begin({}, 'starting');
  walker.send(g.writes('x = 1'));
  assert.equal(state(walker).name, 'EXECUTING');
  assert.deepEqual(types(walker), []);
  walker.send(g.ready);
  assert.deepEqual(lastOf(walker, 'RunCell'), [
    { type: 'RunCell', cellId: 'n0.c1', code: 'x = 1', deadlineMs: 60_000, node: 'n0' },
  ]);
});

test('a variable that is named before the environment stands is read when it does', () => {
  const walker = begin(g.withForms, 'starting');
  walker.send(g.says('FINAL_VAR(context)'));
  assert.equal(state(walker).name, 'PROMPTING');
  walker.send(g.ready);
  assert.deepEqual(
    lastOf(walker, 'ReadVariable').map(({ variable }) => variable),
    ['context'],
  );
});

test('an environment that can not be started ends the run, and aborts its call', () => {
  const walker = begin({}, 'starting');
  walker.send(g.environmentFails());
  assert.deepEqual(types(walker), ['AbortModel', 'CloseEnvironment', 'ReportOutcome']);
  assert.deepEqual(outcome(walker), {
    status: 'failed',
    kind: 'environment',
    message: 'the environment failed: bwrap is missing',
    partial: '',
  });
});

// ---- What the model is told ----

test('the first message has the question and the sizes of the inputs, never their text', () => {
  assert.deepEqual(talk(state(begin()).run.conversation), [
    'user: How many?\n\nThe variable `context` holds big.txt: text, 52,428,800 characters.\n\nIteration 1 of 30.',
  ]);
  const two = begin({
    inputs: [
      { name: 'a.txt', type: 'text', characters: 1 },
      { name: 'b.json', type: 'JSON', characters: 1_234 },
    ],
  });
  assert.match(
    lastTold(two),
    /list of 2 inputs, 1,235 characters in all:\n {2}context\[0\]: a\.txt, text, 1 character\n {2}context\[1\]: b\.json, JSON, 1,234 characters\n/,
  );
  assert.match(lastTold(begin({ inputs: [] })), /There is no context/);
});

test('only the first of very many inputs are listed', () => {
  const inputs = Array.from({ length: 60 }, (_, index) => ({
    name: `${index}.txt`,
    type: 'text',
    characters: 1,
  }));
  const told = lastTold(begin({ inputs }));
  assert.match(told, /list of 60 inputs/);
  assert.match(told, /context\[49\][^\n]*\n {2}… 10 more inputs/);
  assert.ok(!told.includes('context[50]'));
});

test('after an iteration the model gets its reply back, and one message with the output of all cells', () => {
  const walker = begin();
  walker.send(g.writes('one()', 'two()'));
  walker.send(
    g.ends({ stdout: 'first', variables: [{ name: 'lines', type: 'list', size: 12_345 }] }),
  );
  walker.send(g.ends({ status: 'raised', stderr: 'NameError: x, line 1' }));
  assert.deepEqual(talk(state(walker).run.conversation).slice(1), [
    `assistant: ${g.program('one()', 'two()')}`,
    [
      'user: Output of block 1 of 2:\nfirst\nVariables: lines (list, 12,345)',
      'Output of block 2 of 2:\nErrors:\nNameError: x, line 1',
      'Iteration 2 of 30.',
    ].join('\n\n'),
  ]);
});

test('a cell that printed nothing, was stopped or died is told so', () => {
  const rows = [
    [{}, 'Output:\n(no output)'],
    [
      { status: 'stopped', stderr: 'deadline' },
      'The cell was stopped before its end. Its variables are kept.',
    ],
    [
      { status: 'died', variablesLost: 'yes' },
      'The process of the cell ended.\nAll variables were lost',
    ],
  ] as const;
  for (const [patch, words] of rows) {
    const walker = running();
    walker.send(g.ends(patch));
    assert.ok(lastTold(walker).includes(words), lastTold(walker));
  }
});

test('an empty reply is not stored: the message before it is extended, as strict providers want it', () => {
  const walker = begin();
  walker.send(g.says(''));
  const told = talk(state(walker).run.conversation);
  assert.equal(told.length, 1);
  assert.match(told[0] ?? '', /Iteration 1 of 30\.Your reply was empty\.\n\nIteration 2 of 30\.$/);
});

test('a reply that was cut off runs its whole blocks only, and is told so', () => {
  const cut = `${g.program('whole()')}\n\`\`\`repl\nhalf(`;
  const walker = begin();
  walker.send(g.says(cut, { stopReason: 'maxTokens' }), g.prints('x'));
  assert.deepEqual(
    allOf(walker, 'RunCell').map(({ code }) => code),
    ['whole()'],
  );
  assert.match(lastTold(walker), /was cut off: its last block is not whole/);
  const whole = begin();
  whole.send(g.says(cut), g.prints('x'));
  assert.deepEqual(
    allOf(whole, 'RunCell').map(({ code }) => code),
    ['whole()', 'half('],
  );
});

test('each message of the machine is said once', () => {
  const walker = begin(g.withForms);
  walker.send(g.says('FINAL_VAR(nobody)'), g.holds(null), g.writes('x'), g.prints('1'));
  const told = talk(state(walker).run.conversation).filter((line) =>
    line.includes('no variable of this name'),
  );
  assert.equal(told.length, 1);
});

test('calls that a model makes although it has no tools are not stored', () => {
  const walker = begin();
  walker.send((tree) => {
    const event = g.eventOf(g.writes('x'), tree);
    if (event.type !== 'ModelReplied' || event.message === null) return event;
    const call = { type: 'call', callId: 'c', tool: 'bash', input: {} } as const;
    return { ...event, message: { ...event.message, parts: [...event.message.parts, call] } };
  });
  walker.send(g.prints('1'));
  const stored = state(walker)
    .run.conversation.closed.toArray()
    .flatMap((message) => message.parts.map(({ type }) => type));
  assert.deepEqual(stored, ['text', 'text']);
});

test('the whole conversation stays, also the last reply', () => {
  const walker = begin();
  walker.send(g.writes('x'), g.answers('42'));
  assert.equal(talk(state(walker).run.conversation).at(-1), `assistant: ${g.program('x')}`);
});

test('where the conversation has become too long, the output of earlier iterations is cut, once', () => {
  const walker = begin();
  const overflow = g.fails({ kind: 'contextOverflow', retryable: false });
  walker.send(
    g.writes('a'),
    g.prints('a'.repeat(15_000)),
    g.writes('b'),
    g.prints('b'.repeat(15_000)),
  );
  walker.send(overflow);
  assert.equal(lastOf(walker, 'CallModel').length, 1);
  const told = talk(state(walker).run.conversation);
  assert.ok((told[2]?.length ?? 0) < 1_200, 'the earlier one is cut');
  assert.ok((told[4]?.length ?? 0) > 15_000, 'the last one is whole');
  walker.send(overflow);
  assert.equal(outcome(walker).status, 'failed');
});

// ---- Failure ----

test('a model call that fails is tried again as the agent tries, under new ids', () => {
  const walker = begin({ maxRetries: 3, retrySchedule: { kind: 'linear', stepMs: 1_000 } });
  const due: number[] = [];
  for (let retry = 1; retry <= 3; retry++) {
    walker.send(g.fails());
    due.push((lastOf(walker, 'ScheduleTimer')[0]?.dueAt ?? 0) - g.NOW);
    const [{ text = '' } = {}] = lastOf(walker, 'DisplayWarning');
    assert.match(
      text,
      new RegExp(`overloaded: try later; trying again in ${retry} s \\(retry ${retry} of 3\\)`),
    );
    walker.send(g.rings());
    assert.equal(lastOf(walker, 'CallModel')[0]?.requestId, `n0.r${retry + 1}`);
  }
  assert.deepEqual(due, [1_000, 2_000, 3_000]);
  walker.send(g.fails());
  assert.deepEqual(outcome(walker), {
    status: 'failed',
    kind: 'overloaded',
    message: 'the provider is overloaded: try later (after 3 retries)',
    partial: '',
  });
});

test('the retries of one call do not count for the next', () => {
  const walker = begin({ maxRetries: 1 });
  walker.send(g.fails(), g.rings(), g.writes('x'), g.prints('1'), g.fails());
  assert.equal(lastOf(walker, 'ScheduleTimer').length, 1);
});

test('a call is not retried if a retry can’t help or the wait is too long', () => {
  for (const failure of [
    g.breaks(),
    g.fails({ kind: 'auth' }),
    g.fails({ retryAfterMs: 90_000 }),
  ]) {
    const walker = begin();
    walker.send(failure);
    assert.equal(outcome(walker).status, 'failed');
  }
});

test('a refusal without words ends the run; with words it is a reply', () => {
  const mute = begin();
  mute.send(g.says('', { stopReason: 'refusal' }));
  assert.deepEqual(outcome(mute), {
    status: 'failed',
    kind: 'refused',
    message: 'the model refused',
    partial: '',
  });
  const polite = begin({ depthMax: 0 });
  polite.send(g.says('I would rather not.', { stopReason: 'refusal' }));
  assert.equal(outcome(polite).status, 'answered');
});

test('a cancel ends a run wherever it is', () => {
  const places = [
    [[], ['AbortModel', 'CloseEnvironment', 'ReportOutcome']],
    [[g.writes('x')], ['CloseEnvironment', 'ReportOutcome']],
    [[g.fails()], ['CancelTimer', 'CloseEnvironment', 'ReportOutcome']],
  ] as const;
  for (const [events, expected] of places) {
    const walker = begin();
    walker.send(...events, g.cancels());
    assert.deepEqual(types(walker), expected);
    assert.deepEqual(outcome(walker), { status: 'cancelled', cause: 'user', partial: '' });
  }
  const shallow = begin({ depthMax: 0 });
  shallow.send(g.cancels());
  assert.deepEqual(types(shallow), ['AbortModel', 'ReportOutcome']);
});

test('late and repeated events and those of another cell change nothing and are reported', () => {
  const walker = running();
  const stale: readonly g.Given[] = [
    g.started,
    g.ready,
    g.says('again', { requestId: 'n0.r1', costUsd: 0.1 }),
    g.ends({}, 'n0', 'n0.c7'),
    g.asks(['x'], { cellId: 'n0.c7' }),
    g.holds('x'),
    g.rings(),
    { type: 'SubcallAnswered', at: g.NOW, node: 'n0', cellId: 'n0.c1', ordinal: 3, texts: [] },
    g.says('x', { who: 'n0.c1.1.1' }),
  ];
  for (const given of stale) {
    const before = walker.tree();
    const { state: after, actions, diagnostics } = walker.send(given);
    assert.deepEqual([after, actions], [before, []]);
    assert.equal(diagnostics.length, 1);
  }
});

test('the seed’s FINAL in the limit reply is its answer', () => {
  const walker = begin({ ...g.asSeed, iterationsMax: 1 });
  walker.send(g.writes('x'), g.prints(''), g.says('FINAL(42)'));
  assert.deepEqual(outcome(walker), {
    status: 'answered',
    answer: '42',
    by: 'final',
    closing: 'iterations',
  });
  assert.match(seedTrace(walker), /EXECUTING -MaxIterationsReached-> DONE$/);
});

test('the seed does not run the code of its limit reply', () => {
  const walker = begin({ ...g.asSeed, iterationsMax: 1 });
  walker.send(g.writes('x'), g.prints(''), g.writes('y'));
  assert.equal(allOf(walker, 'RunCell').length, 1);
  assert.equal(outcome(walker).status, 'answered');
});
