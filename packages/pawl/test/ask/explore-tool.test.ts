import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { memoryJournals } from '@pawl/agent/journal/memory-store';
import type { Tool } from '@pawl/agent/ports/tool';
import { openSession } from '@pawl/agent/session/create-agent';
import { createAsker } from '@pawl/ask/create-asker';
import { spentBy } from '@pawl/ask/tree/tree-state';
import {
  answers,
  environments,
  makeFolder,
  memoryRuns,
  type NotingModel,
  notingModel,
  program,
} from '../../../../test/kit/ask/ask-stage.js';
import {
  callTools,
  rawCall,
  resultsOf,
  say,
  testModel,
} from '../../../../test/kit/runtime/stage.js';
import { createExploreTool } from '../../src/sessions/explore-tool.js';

/** Code mode as a tool of the agent: its answer, its spending, its run that goes on. */

const COUNT = {
  text: answers('String(context.split("\\n").length)'),
  usage: { inputTokens: 1_000, outputTokens: 10 },
};
const QUESTION = { paths: ['big.txt'], question: 'how many lines?' };

const place = async (t: TestContext, inner: NotingModel) => {
  const workspace = await makeFolder(t);
  await writeFile(path.join(workspace, 'big.txt'), 'line\n'.repeat(9).trimEnd());
  const runs = memoryRuns();
  const tool = createExploreTool(async () => ({
    journals: runs,
    asker: createAsker({ model: inner, journals: runs, environments }),
  }));
  return { workspace, runs, tool };
};

/** One session in which the model calls the tool, then says what it was told. */
const converse = async (
  t: TestContext,
  workspace: string,
  tool: Tool,
  {
    limits = {},
    model = testModel(callTools(rawCall('1', 'explore', QUESTION)), say('so many')),
  } = {},
) => {
  const session = await openSession({
    workspace,
    journals: memoryJournals(),
    model,
    tools: [tool],
    settings: { limits },
  });
  t.after(() => session.close());
  await session.send({ type: 'UserInput', text: 'count', mode: 'steer' });
  const state = await session.idle();
  return { model, state, result: resultsOf(model.requests[1]?.messages ?? [])['1'] ?? '' };
};

test('its answer is the result, and what it spent counts for the session', async (t) => {
  const inner = notingModel({ replies: [COUNT] });
  const { workspace, tool } = await place(t, inner);
  const { state, result } = await converse(t, workspace, tool);
  assert.equal(result, '9');
  assert.equal(inner.requests.length, 1);
  // 110 for each of the two calls of the session's own model
  assert.equal(state.session.usage.inputTokens + state.session.usage.outputTokens, 2 * 110 + 1_010);
});

test('a run that was begun and not finished is gone on with: what it has asked is not asked again', async (t) => {
  const first = notingModel({
    replies: [{ text: program('lines = context.split("\\n").length') }, COUNT],
  });
  const { workspace, runs, tool } = await place(t, first);
  const file = path.join(workspace, 'big.txt');
  const begun = await createAsker({
    model: first,
    journals: runs,
    environments,
  }).ask({ question: QUESTION.question, contexts: [{ path: file }], workspace });
  await new Promise<void>((resolve) => {
    const unwatch = begun.watch(({ event }) => {
      if (event.type !== 'CellFinished') return;
      unwatch();
      resolve();
    });
  });
  await begun.close();
  const asked = first.requests.length;
  const { result } = await converse(t, workspace, tool);
  assert.equal(result, '9');
  assert.equal(first.requests[0]?.messages.length, 1);
  assert.ok(
    first.requests.slice(asked).every(({ messages }) => messages.length > 1),
    'the first call was not made again',
  );
  const ids: string[] = [];
  for await (const { sessionId } of runs.list()) ids.push(sessionId);
  assert.deepEqual(ids, [begun.id]);
});

test('a file that can not be asked about is a failed result, and the model may go on', async (t) => {
  const { workspace, tool } = await place(t, notingModel({ replies: [] }));
  await writeFile(path.join(workspace, 'big.txt'), Buffer.from([0, 1, 2, 255]));
  const { result, state } = await converse(t, workspace, tool);
  assert.match(result, /failed/);
  assert.equal(state.name === 'WaitingForUserInput' && state.reason.kind, 'endOfTurn');
});

test('no money left: nothing is asked, and the result says so', async (t) => {
  const inner = notingModel({ replies: [COUNT] });
  const { workspace, tool } = await place(t, inner);
  const left = { usd: { type: 'unlimited' }, tokens: { type: 'left', amount: 1 } } as const;
  const poor: Tool = {
    ...tool,
    run: (input, context) => tool.run(input, { ...context, left: () => left }),
  };
  const { result } = await converse(t, workspace, poor);
  assert.match(result, /budget/);
  assert.equal(inner.requests.length, 0);
});

const THREE = ['1', '2', '3'].map((callId) =>
  rawCall(callId, 'explore', { ...QUESTION, question: `question ${callId}` }),
);
/** Never content: it asks and asks, until nothing is left. */
const INSATIABLE = { text: program('more = 1'), usage: { inputTokens: 400, outputTokens: 10 } };

const askThree = async (t: TestContext, limits: { readonly tokens?: number }, replies: number) => {
  const inner = notingModel({ replies: Array.from({ length: replies }, () => INSATIABLE) });
  const { workspace, tool } = await place(t, inner);
  const model = testModel(callTools(...THREE), say('enough'));
  const { state } = await converse(t, workspace, tool, { limits, model });
  const { session: after } = state;
  return {
    spent: after.usage.inputTokens + after.usage.outputTokens,
    asked: inner.requests.length,
  };
};

test('three of them in one reply spend what the session has left, and one reply more at most', async (t) => {
  const { spent, asked } = await askThree(t, { tokens: 1_000 }, 100);
  assert.ok(asked > 0, 'something was asked');
  assert.ok(spent <= 1_000 + 410, `${spent} tokens`);
});

test('without a limit all three ask as long as they like', async (t) => {
  const { spent } = await askThree(t, {}, 8);
  assert.ok(spent > 2 * (1_000 + 410), `${spent} tokens`);
});

test('a cancelled turn ends the run, and what it had spent counts', async (t) => {
  const inner = notingModel({ replies: [{ text: program('while (true) {}') }] });
  const { workspace, tool } = await place(t, inner);
  const model = testModel(callTools(rawCall('1', 'explore', QUESTION)));
  const session = await openSession({
    workspace,
    journals: memoryJournals(),
    model,
    tools: [tool],
  });
  t.after(() => session.close());
  const told = new Promise<void>((resolve) => {
    session.watch(({ event }) => {
      if (event.type === 'ToolProgress') resolve();
    });
  });
  await session.send({ type: 'UserInput', text: 'count', mode: 'steer' });
  await told;
  // A run that does not end within the grace time says later what it has spent.
  const booked = new Promise<void>((resolve) => {
    session.watch(({ event, state: { session: after } }) => {
      if (event.type !== 'ToolProgress' && after.unaccounted.length === 0) resolve();
    });
  });
  await session.cancel();
  const state = await session.idle();
  assert.deepEqual(state.name === 'WaitingForUserInput' && state.reason, {
    kind: 'cancelled',
    cause: 'user',
  });
  await booked;
});

const PRICES = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };

/** The call is made twice, as after a crash that came before its outcome was stored. */
const callTwice = async (t: TestContext, inner: NotingModel) => {
  const { workspace, tool, runs } = await place(t, inner);
  const left = { usd: { type: 'left', amount: 0.5 }, tokens: { type: 'unlimited' } } as const;
  const costs: (number | null | undefined)[] = [];
  const twice: Tool = {
    ...tool,
    run: async (input, context) => {
      const once = await tool.run(input, { ...context, left: () => left });
      const again = await tool.run(input, { ...context, left: () => left });
      costs.push(once.usage?.costUsd, again.usage?.costUsd);
      return again;
    },
  };
  const { result } = await converse(t, workspace, twice);
  const limits: unknown[] = [];
  let spent = 0;
  for await (const { sessionId } of runs.list()) {
    const { header, state } = await runs.peek(sessionId);
    limits.push(header.settings.limits.usd);
    spent += spentBy(state).costUsd;
  }
  return { result, costs, limits, spent: spent.toFixed(6) };
};

test('a repeated call takes the answer of its run, and tells what it spent', async (t) => {
  const inner = notingModel({ replies: [COUNT], facts: { prices: PRICES } });
  const { result, costs, limits } = await callTwice(t, inner);
  assert.equal(result, '9');
  assert.equal(inner.requests.length, 1);
  assert.deepEqual(limits, [0.5]);
  assert.equal(costs[0], 0.0011);
  assert.equal(costs[1], 0.0011);
});

test('a repeated call whose run failed begins another one, of what that has left, and tells both', async (t) => {
  const fail = { kind: 'badRequest' } as const;
  const inner = notingModel({
    replies: [{ text: program('more = 1'), usage: COUNT.usage }, { fail }, COUNT],
    facts: { prices: PRICES },
  });
  const { result, costs, limits, spent } = await callTwice(t, inner);
  assert.equal(result, '9');
  assert.equal(costs[0], 0.0011);
  assert.equal(costs[1]?.toFixed(6), spent);
  assert.ok(Number(spent) >= 0.0022, 'both runs have spent');
  assert.deepEqual(limits.toSorted(), [0.5 - 0.0011, 0.5]);
});
