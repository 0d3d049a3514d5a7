import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Script } from '@pawl/agent/models/scripted-model';
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

test('a run that stood down in the middle of a cell goes on, and its finished calls are not made again', async (context) => {
  const first = program('a = llm_query("quick");', 'b = llm_query("slow");');
  const rest = answers('a + b');
  const before: Script = {
    replies: [{ text: first }],
    rules: [
      { when: '^quick', text: '1' },
      { when: '^slow', stall: true },
    ],
  };
  const asked = await askAbout(context, text, { script: before });
  await stepOf(asked, ({ event }) => event.type === 'SubcallAsked' && event.prompts[0] === 'slow');
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
