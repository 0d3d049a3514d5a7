import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
import type { Model, ModelPiece } from '@pawl/agent/ports/model';
import { fakeClock } from '../../../../test/fake-clock.js';
import {
  answers,
  askAbout,
  askedOf,
  endOf,
  environments,
  journaled,
  memoryRuns,
  notingModel,
  program,
  stepOf,
} from '../../../../test/kit/ask/ask-stage.js';
import { chooseRows } from '../../../../test/tier.js';
import { codeModeInstructions, subcallInstructions } from '../../src/code-mode-instructions.js';
import { createAsker } from '../../src/create-asker.js';
import type { TreeEvent } from '../../src/run/event.js';

/** A tree goes on after a crash at any line of its journal, and after it stood down. */

const script: Script = {
  facts: { prices: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } },
  replies: [
    { text: program('lines = context.split("\\n");', 'print(lines.length);') },
    {
      text: program(
        'first = llm_query_batched(lines.slice(0, 3).map((line) => "leaf " + line));',
        'second = llm_query("leaf again " + first[0]);',
        'print(first.join(), second);',
      ),
      usage: { inputTokens: 1_000_000 },
    },
    { text: program('let mine = 1;', 'throw new Error("on purpose");') },
    {
      text: program(
        'let deep = rlm_query_batched(["deep one", "deep two"]);',
        'print(deep, mine);',
      ),
    },
    { text: answers('[lines.length, first, second, mine, deep].join(";")') },
  ],
  rules: [
    { when: '^leaf (.*)', text: '<$1>', usage: { outputTokens: 1_000_000 } },
    { when: '^deep (\\w+)', text: answers('llm_query("leaf " + context)') },
  ],
};
const settings = { depthMax: 2 };
const ANSWER = '4;<a>,<b>,<c>;<again <a>>;1;<deep one>,<deep two>';
const text = 'a\nb\nc\nd';

const replied = (events: readonly TreeEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === 'ModelReplied' ? [event.requestId] : []));

test('after a crash at any line a run comes to the same answer, and nothing that was answered is paid again', async (context) => {
  const whole = await askAbout(context, text, { script, options: { settings } });
  const outcome = await endOf(whole.run);
  assert.deepEqual(outcome, { status: 'answered', answer: ANSWER, by: 'record', closing: null });
  await whole.run.close();
  const events = await journaled(whole.journals, whole.run.id);
  const cost = whole.run.state().ledger.accounts.n0?.spent.costUsd;
  assert.equal(cost, 7);
  const cuts = [0, ...events.keys()].map((_, seq) => seq);
  for (const seq of chooseRows(cuts, (cut) => events[cut - 1]?.type ?? 'none')) {
    const id = `cut-at-${seq}`;
    await whole.journals.fork(whole.run.id, seq, id, 0);
    const model = notingModel(script);
    const asker = createAsker({ model, journals: whole.journals, environments });
    const again = await asker.resume(id);
    assert.deepEqual(await endOf(again), outcome, `cut at ${seq}`);
    await again.close();
    const paid = replied(await journaled(whole.journals, id));
    assert.equal(new Set(paid).size, paid.length, `cut at ${seq}: a call was answered twice`);
    assert.equal(
      model.requests.length,
      paid.length - replied(events.slice(0, seq)).length,
      `cut at ${seq}`,
    );
    assert.equal(again.state().ledger.accounts.n0?.spent.costUsd, cost, `cut at ${seq}`);
  }
});

for (const recorded of ['quickjs', 'javascript'])
  test(`a run that stood down in the middle of a cell of ${recorded} goes on, and its finished calls are not made again`, async (context) => {
    // A header names the kind that a run began with.
    const quickjs = { ...environments.quickjs, name: recorded as 'quickjs' };
    const first = program('a = llm_query("quick");', 'b = llm_query("slow");');
    const rest = answers('a + b');
    const before: Script = {
      replies: [{ text: first }],
      rules: [
        { when: '^quick', text: '1' },
        { when: '^slow', stall: true },
      ],
    };
    const asked = await askAbout(context, text, {
      script: before,
      asker: { environments: { ...environments, quickjs } },
    });
    await stepOf(
      asked,
      ({ event }) => event.type === 'SubcallAsked' && event.prompts[0] === 'slow',
    );
    await asked.run.close();
    assert.equal(asked.run.state().name, 'ShutDown');
    await assert.rejects(asked.run.outcome, /closed before its end/);
    const model = notingModel({
      replies: [{ text: first }, { text: rest }],
      rules: [{ when: '^slow', text: '2' }],
    });
    const again = await createAsker({ model, journals: asked.journals, environments }).resume(
      asked.run.id,
    );
    assert.equal(asked.run.settings.environment, recorded);
    const outcome = await again.outcome;
    assert.ok(outcome.status === 'answered');
    assert.equal(outcome.answer, '12');
    assert.deepEqual(
      askedOf(model).filter((words) => /^(quick|slow)/.test(words)),
      ['slow'],
    );
    await again.close();
  });

test('a run that is over is only looked at: nothing is written, and nothing is asked', async (context) => {
  const journals = memoryRuns();
  const asked = await askAbout(context, text, {
    journals,
    script: { replies: [{ text: answers('7') }] },
  });
  const outcome = await endOf(asked.run);
  await asked.run.close();
  const { length } = await journaled(journals, asked.run.id);
  const model = notingModel({ replies: [] });
  const again = await createAsker({ model, journals, environments }).resume(asked.run.id);
  assert.deepEqual(await endOf(again), outcome);
  await again.close();
  assert.equal((await journaled(journals, asked.run.id)).length, length);
  assert.equal(model.requests.length, 0);
});

test('a program that asks otherwise the second time loses its variables: a fresh environment goes on, and it is told', async (context) => {
  const script: Script = {
    replies: [
      { text: program('a = 1;', 'b = llm_query("leaf " + Math.random());') },
      { text: answers('typeof a') },
    ],
    rules: [{ when: '^leaf', text: 'x' }],
  };
  const whole = await askAbout(context, text, { script });
  assert.deepEqual(await endOf(whole.run), {
    status: 'answered',
    answer: 'number',
    by: 'record',
    closing: null,
  });
  await whole.run.close();
  const events = await journaled(whole.journals, whole.run.id);
  const cell = events.findIndex(({ type }) => type === 'CellFinished') + 1;
  await whole.journals.fork(whole.run.id, cell, 'again', 0);
  const asker = createAsker({ model: notingModel(script), journals: whole.journals, environments });
  const again = await asker.resume('again');
  const outcome = await again.outcome;
  assert.ok(outcome.status === 'answered');
  assert.equal(outcome.answer, 'undefined');
  await again.close();
  const started = (await journaled(whole.journals, 'again')).findLast(
    ({ type }) => type === 'EnvironmentStarted',
  );
  assert.ok(started?.type === 'EnvironmentStarted' && started.variables === 'lost');
});

test('the time limit of a run leaves out the time in which nobody ran', async (context) => {
  const START = 1_700_000_000_000;
  const stalled: Script = { replies: [], rules: [{ when: '', stall: true }] };
  const limits = { usd: 'unlimited', tokens: 'unlimited', timeMs: 60_000 } as const;
  const clock = fakeClock(START);
  const options = { settings: { limits } } as const;
  const asked = await askAbout(context, text, { script: stalled, asker: { clock }, options });
  await stepOf(asked, ({ event }) => event.type === 'EnvironmentStarted');
  clock.advance(20_000);
  await asked.run.close();
  const later = fakeClock(START + 7_200_000);
  const model = notingModel(stalled);
  const asker = createAsker({ model, journals: asked.journals, environments, clock: later });
  const again = await asker.resume(asked.run.id);
  assert.equal(again.state().nodes.n0?.run.deadline?.dueAt, later.now() + 40_000);
  later.advance(40_000);
  const outcome = await endOf(again);
  assert.ok(outcome.status === 'stopped' && outcome.reason === 'time');
  await again.close();
});

/** Model calls of a tree: who is asked, what is sent, and the last word of each call. */

const callOnce = program(
  'text = llm_query("leaf 1");',
  'answer.content = text;',
  'answer.ready = true;',
);

test('the root is told how to work, a sub-call only its prompt; nobody has tools', async (context) => {
  const model = notingModel({
    replies: [{ text: callOnce }],
    rules: [{ when: '^leaf', text: 'done' }],
  });
  const { run } = await askAbout(context, 'abc', { model });
  await run.outcome;
  const [root, leaf, ...more] = model.requests;
  assert.equal(more.length, 0);
  const facts = {
    finalForms: 'off',
    models: ['a'],
    language: 'javascript',
    recursive: 'no',
    cellDeadlineMs: 60_000,
    outputMax: 20_000,
  } as const;
  assert.equal(root?.instructions, codeModeInstructions(facts));
  assert.equal(leaf?.instructions, subcallInstructions);
  assert.deepEqual([root?.tools, leaf?.tools], [[], []]);
  assert.equal(askedOf(model)[1], 'leaf 1');
});

test('each request has the chosen effort, and no secret that an input or a program holds', async (context) => {
  const reply = program(
    'text = llm_query("leaf " + context);',
    'answer.content = "done";',
    'answer.ready = true;',
  );
  const model = notingModel({
    replies: [{ text: reply }],
    rules: [{ when: '^leaf', text: 'seen' }],
  });
  const asker = { effort: 'high', secrets: { SHOP_KEY: 'opEn5esAme-47b1x' } } as const;
  const { run, steps } = await askAbout(context, 'the key is opEn5esAme-47b1x.', { model, asker });
  await run.outcome;
  assert.deepEqual(
    model.requests.map(({ effort }) => effort),
    ['high', 'high'],
  );
  assert.equal(askedOf(model)[1], 'leaf the key is [secret:$SHOP_KEY].');
  assert.doesNotMatch(JSON.stringify(model.requests), /opEn5esAme/);
  assert.match(JSON.stringify(steps), /opEn5esAme/, 'the control: the program had the whole text');
});

test('without an effort, requests leave it to the model', async (context) => {
  const model = notingModel({
    replies: [{ text: callOnce }],
    rules: [{ when: '^leaf', text: 'done' }],
  });
  const { run } = await askAbout(context, 'abc', { model });
  await run.outcome;
  assert.equal(
    model.requests.some((request) => 'effort' in request),
    false,
  );
});

const piecesOf = (...pieces: readonly ModelPiece[]): Model => ({
  ...notingModel({ replies: [] }),
  async *stream() {
    yield* pieces;
  },
});
const usage = { inputTokens: 10, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
const completed = (
  parts: Extract<ModelPiece, { readonly type: 'completed' }>['parts'],
): ModelPiece => ({
  type: 'completed',
  parts,
  stopReason: 'end',
  usage,
});

const stored: readonly (readonly [string, ModelPiece, readonly unknown[] | null])[] = [
  ['text is stored', completed([{ type: 'text', text: 'hi' }]), [{ type: 'text', text: 'hi' }]],
  [
    'a call of a tool that is made up is left out',
    completed([
      { type: 'text', text: 'hi' },
      { type: 'call', callId: '1', tool: 'x', rawInput: '{}' },
    ]),
    [{ type: 'text', text: 'hi' }],
  ],
  ['an empty reply has no message', completed([{ type: 'text', text: '' }]), null],
  [
    'a reply of made-up calls has no message',
    completed([{ type: 'call', callId: '1', tool: 'x', rawInput: '' }]),
    null,
  ],
];

for (const [title, piece, parts] of stored) {
  test(`of a reply, ${title}`, async (context) => {
    const asked = await askAbout(context, 'abc', { model: piecesOf(piece) });
    const { event } = await stepOf(asked, (stepped) => stepped.event.type === 'ModelReplied');
    assert.ok(event.type === 'ModelReplied');
    assert.deepEqual(event.message?.parts ?? null, parts);
  });
}

/** Says nothing until it is aborted, then what it has cost. */
const slowToEnd: Model = {
  ...notingModel({
    replies: [],
    facts: { prices: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } },
  }),
  async *stream(_request, signal) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await new Promise((resolve) => setImmediate(resolve));
    const error = {
      kind: 'unreachable',
      message: 'aborted',
      retryable: true,
      retryAfterMs: null,
    } as const;
    yield { type: 'failed', error, usage: { ...usage, inputTokens: 2_000_000 } };
  },
};

const failures = (events: readonly TreeEvent[]) =>
  events.filter(({ type }) => type === 'ModelFailed');

test('a call that is ended has one last word, and what it cost is in it', async (context) => {
  const asked = await askAbout(context, 'abc', { model: slowToEnd });
  await asked.run.cancel();
  await asked.run.close();
  const words = failures(await journaled(asked.journals, asked.run.id));
  assert.equal(words.length, 1);
  assert.equal(asked.run.state().ledger.accounts.n0?.spent.costUsd, 2.000001);
});

test('a call that is silent for too long fails, with what it cost all the same', async (context) => {
  const settings = { firstByteMs: 20, maxRetries: 0 };
  const asked = await askAbout(context, 'abc', { model: slowToEnd, options: { settings } });
  const outcome = await asked.run.outcome;
  assert.ok(outcome.status === 'failed' && outcome.kind === 'timeout', JSON.stringify(outcome));
  assert.equal(failures(await journaled(asked.journals, asked.run.id)).length, 1);
  assert.equal(asked.run.state().ledger.accounts.n0?.spent.costUsd, 2.000001);
});

test('a model that throws is a failed call, and the run says so', async (context) => {
  const model: Model = {
    ...notingModel({ replies: [] }),
    stream() {
      throw new Error('no wire');
    },
  };
  const { run } = await askAbout(context, 'abc', { model });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'failed');
  assert.match(outcome.message, /no wire/);
});

test('a failed sub-call spoils its slot and nothing else, after its retries', async (context) => {
  const script = {
    replies: [
      { text: program('all = llm_query_batched(["leaf 1", "broken", "leaf 3"]);') },
      { text: answers('all.join(" | ")') },
    ],
    rules: [
      { when: '^leaf (\\d)', text: 'got $1' },
      { when: '^broken', fail: { kind: 'overloaded' as const } },
    ],
  };
  const retrySchedule = { kind: 'linear', stepMs: 1 } as const;
  const { run } = await askAbout(context, 'abc', {
    script,
    options: { settings: { retrySchedule, maxRetries: 1 } },
  });
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'answered');
  assert.match(outcome.answer, /^got 1 \| Error: .* \| got 3$/);
});

// ---- Under a limit in dollars ----

const PRICES = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };
const LONG = program(...Array.from({ length: 4 }, (_, index) => `text${index} = "x"`));

const askWithin = (context: TestContext, usd: number, outputTokens: number) => {
  const usage = { inputTokens: 2_000, outputTokens };
  const model = notingModel({
    replies: [
      { text: LONG, usage },
      { text: answers('"done"'), usage },
    ],
    facts: { prices: PRICES, outputTokensMax: 64_000 },
  });
  const options = { settings: { limits: { usd } } };
  return { model, asked: askAbout(context, 'abc', { model, options }) };
};

test('a reply may be 32,000 tokens long while money is there, then as long as what is left pays for', async (context) => {
  const { model, asked } = askWithin(context, 0.5, 20_000);
  const outcome = await (await asked).run.outcome;
  assert.equal(outcome.status, 'answered');
  const [first = 0, second = 0] = model.requests.map(({ outputTokensMax }) => outputTokensMax);
  assert.equal(first, 32_000);
  assert.ok(second >= 20_000 && second < 30_000, `${second}`);
});

test('a call that could not be paid is not sent, and the run says how to raise the limit', async (context) => {
  const { model, asked } = askWithin(context, 0.012, 20_000);
  const { run } = await asked;
  const outcome = await run.outcome;
  assert.ok(outcome.status === 'stopped' && outcome.reason === 'usd', JSON.stringify(outcome));
  assert.match(outcome.message, /could cost \$0\.0\d+.*\$0\.0120 are left.*--max-usd/);
  assert.equal(model.requests.length, 0);
});

test('without a limit nothing is said of the length of a reply', async (context) => {
  const model = notingModel({ replies: [{ text: answers('"done"') }], facts: { prices: PRICES } });
  await (await askAbout(context, 'abc', { model })).run.outcome;
  assert.equal(model.requests[0]?.outputTokensMax, undefined);
});

test('a request that grew beyond its cap on the way is not sent either', async (context) => {
  // The name in place of a secret is longer than the secret.
  const name = `KEY_${'N'.repeat(60_000)}`;
  const model = notingModel({
    replies: [{ text: program(`print("opEn5esAme-47b1x")`) }, { text: answers('"done"') }],
    facts: { prices: PRICES, outputTokensMax: 64_000 },
  });
  const { run } = await askAbout(context, 'abc', {
    model,
    asker: { secrets: { [name]: 'opEn5esAme-47b1x' } },
    options: { settings: { limits: { usd: 0.05 } } },
  });
  const outcome = await run.outcome;
  assert.equal(outcome.status, 'failed', JSON.stringify(outcome));
  assert.match(JSON.stringify(outcome), /not sent: .*raise it \(--max-usd\)/);
  assert.equal(model.requests.length, 1);
  assert.ok((run.state().ledger.accounts.n0?.spent.costUsd ?? 1) < 0.05);
});
