import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { memoryJournals } from '@pawl/agent/journal/memory-store';
import type { Tool } from '@pawl/agent/ports/tool';
import { openSession } from '@pawl/agent/session/create-agent';
import { createAsker } from '@pawl/ask/create-asker';
import { countedUsd, spentBy } from '@pawl/ask/tree/tree-state';
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

for (const { whose, isResumed } of [
  { whose: 'of the same call', isResumed: true },
  { whose: 'of another call', isResumed: false },
])
  test(`an unfinished run ${whose} ${isResumed ? 'goes on, and asks nothing twice' : 'stays as it is'}`, async (t) => {
    const looks = { text: program('lines = context.split("\\n").length') };
    const inner = notingModel({ replies: isResumed ? [looks, COUNT] : [looks, COUNT, COUNT] });
    const { workspace, runs, tool } = await place(t, inner);
    const begin = async (caller: string): Promise<void> => {
      const begun = await createAsker({ model: inner, journals: runs, environments }).ask({
        question: QUESTION.question,
        contexts: [{ path: path.join(workspace, 'big.txt') }],
        workspace,
        settings: { caller },
      });
      await new Promise<void>((resolve) => {
        begun.watch(({ event }) => event.type === 'CellFinished' && resolve());
      });
      await begun.close();
    };
    let asked = 0;
    const killed: Tool = {
      ...tool,
      run: async (input, context) => {
        const { sessionId, batchId, callId } = context;
        await begin(`${sessionId}/${batchId}/${isResumed ? callId : 'other'}`);
        asked = inner.requests.length;
        return tool.run(input, context);
      },
    };
    const { result } = await converse(t, workspace, killed);
    assert.equal(result, '9');
    const isAskedAgain = inner.requests.slice(asked).some(({ messages }) => messages.length === 1);
    assert.equal(isAskedAgain, !isResumed);
    const ids: string[] = [];
    for await (const { sessionId } of runs.list()) ids.push(sessionId);
    assert.equal(ids.length, isResumed ? 1 : 2);
  });

test('runs with another question are not read', async (t) => {
  const inner = notingModel({ replies: [COUNT, COUNT, COUNT] });
  const { workspace, runs, tool } = await place(t, inner);
  const peek = t.mock.method(runs, 'peek');
  const calls = ['1', '2'].map((id) =>
    rawCall(id, 'explore', { ...QUESTION, question: `${QUESTION.question} ${id}` }),
  );
  const model = testModel(...calls.map((call) => callTools(call)), say('done'));
  await converse(t, workspace, tool, { model });
  assert.equal(inner.requests.length, 2, 'control');
  assert.equal(peek.mock.callCount(), 0);
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

type Between = (workspace: string) => Promise<void>;

/** The call is made twice, as after a crash that came before its outcome was stored. */
const callTwice = async (
  t: TestContext,
  inner: NotingModel,
  { later = 0.5, between = async () => undefined }: { later?: number; between?: Between } = {},
) => {
  const { workspace, tool, runs } = await place(t, inner);
  const left = (amount: number) =>
    ({ usd: { type: 'left', amount }, tokens: { type: 'unlimited' } }) as const;
  const costs: (number | null | undefined)[] = [];
  const twice: Tool = {
    ...tool,
    run: async (input, context) => {
      const once = await tool.run(input, { ...context, left: () => left(0.5) });
      await between(workspace);
      const again = await tool.run(input, { ...context, left: () => left(later) });
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

const FAIL = { kind: 'badRequest' } as const;
const BEGUN = { text: program('more = 1'), usage: COUNT.usage };

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
  const inner = notingModel({
    replies: [BEGUN, { fail: FAIL }, COUNT],
    facts: { prices: PRICES },
  });
  const { result, costs, limits, spent } = await callTwice(t, inner);
  assert.equal(result, '9');
  assert.equal(costs[0], 0.0011);
  assert.equal(costs[1]?.toFixed(6), spent);
  assert.ok(Number(spent) >= 0.0022, 'both runs have spent');
  assert.deepEqual(limits.toSorted(), [0.5 - 0.0011, 0.5]);
});

for (const [what, options, expected] of [
  ['has no budget left', { later: 0 }, /used up/],
  [
    'finds a link in the place of its file',
    {
      between: async (workspace: string) => {
        await rm(path.join(workspace, 'big.txt'));
        await symlink('/etc/passwd', path.join(workspace, 'big.txt'));
      },
    },
    /failed/,
  ],
  [
    'finds a file that no run can read',
    {
      between: (workspace: string) =>
        writeFile(path.join(workspace, 'big.txt'), Buffer.from([0, 1, 2, 255])),
    },
    /failed/,
  ],
] as const)
  test(`a repeated call that ${what} tells what its first run has spent`, async (t) => {
    const inner = notingModel({ replies: [BEGUN, { fail: FAIL }], facts: { prices: PRICES } });
    const { result, costs } = await callTwice(t, inner, options);
    assert.match(result, expected);
    assert.deepEqual(costs, [0.0011, 0.0011]);
  });

test('an answer that is there needs no budget', async (t) => {
  const inner = notingModel({ replies: [COUNT], facts: { prices: PRICES } });
  const { result, costs } = await callTwice(t, inner, { later: 0 });
  assert.deepEqual([result, costs], ['9', [0.0011, 0.0011]]);
});

test('an unfinished run goes on with the budget that is left; one that can not go on is passed over', async (t) => {
  const inner = notingModel({ replies: [COUNT], facts: { prices: PRICES } });
  const { workspace, tool, runs } = await place(t, inner);
  const contexts = [{ path: path.join(workspace, 'big.txt') }];
  const { question } = QUESTION;
  /** A run that stopped after its first reply. */
  const stop = async (caller: string) => {
    const model = notingModel({ replies: [BEGUN, { stall: true }], facts: { prices: PRICES } });
    const asker = createAsker({ model, journals: runs, environments });
    const run = await asker.ask({
      question,
      contexts,
      workspace,
      settings: { caller, limits: { usd: 1 } },
    });
    await new Promise<void>((resolve) => {
      run.watch(({ event }) => event.type === 'CellFinished' && resolve());
    });
    await run.close();
    return { id: run.id, spent: countedUsd(run.state()) };
  };
  const begun: Awaited<ReturnType<typeof stop>>[] = [];
  const left = { usd: { type: 'left', amount: 0.25 }, tokens: { type: 'unlimited' } } as const;
  const poor: Tool = {
    ...tool,
    run: async (input, context) => {
      const { sessionId, batchId, callId } = context;
      const caller = `${sessionId}/${batchId}/${callId}`;
      begun.push(await stop(caller), await stop(caller));
      const holder = await runs.open(begun[1]?.id ?? '');
      t.after(() => holder.journal.close());
      return tool.run(input, { ...context, left: () => left });
    },
  };
  const { result } = await converse(t, workspace, poor);
  assert.equal(result, '9');
  assert.deepEqual(
    inner.requests.map(({ messages }) => messages.length > 1),
    [true],
  );
  const ids: string[] = [];
  for await (const { sessionId } of runs.list()) ids.push(sessionId);
  assert.deepEqual(ids.toSorted(), begun.map(({ id }) => id).toSorted());
  const [free, held] = begun;
  const { state } = await runs.peek(free?.id ?? '');
  assert.equal(state.nodes.n0?.run.settings.limits.usd, 0.25 - (held?.spent ?? 0));
});
