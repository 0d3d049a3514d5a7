import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { testContext } from '../../../../test/kit/mcp/tool-context.js';
import {
  type Answer,
  callTools,
  hang,
  rawCall,
  resultsOf,
  say,
} from '../../../../test/kit/runtime/stage.js';
import { initialState } from '../../src/machine/machine.js';
import { defaultSettings } from '../../src/machine/settings.js';
import { createTaskTool } from '../../src/session/task.js';
import { CALL_USD, listed, open, resultIn, startTask, twoSided, until } from './task-stage.js';

test('a task has a session of its own, and its last message is the result of the call', async (t) => {
  const { model, requests } = twoSided(
    [callTools(startTask()), say('done')],
    [callTools(rawCall('r', 'read', { path: 'a.txt' })), say('It says 42.')],
  );
  const { session, journals } = await open(t, { model });
  const turn = await session.prompt('find out');
  assert.equal(turn.text, 'done');
  assert.match(resultIn(turn.state), /^It says 42\.\n\[task \S+\]$/);
  const [own, task] = [requests.find((one) => !one.task), requests.find((one) => one.task)];
  assert.ok(own?.request.tools.some(({ name }) => name === 'task'));
  assert.ok(!task?.request.tools.some(({ name }) => name === 'task'), 'a task starts no tasks');
  assert.match(JSON.stringify(requests[2]?.request.messages), /the answer is 42/);

  const sessions = await listed(journals);
  const child = sessions.find(({ startedBy }) => startedBy !== undefined);
  assert.equal(sessions.length, 2);
  assert.deepEqual(
    { from: child?.startedBy?.sessionId, call: child?.startedBy?.callId, title: child?.title },
    { from: session.id, call: '1', title: 'What does a.txt say?' },
  );
  const { costUsd } = turn.usage;
  assert.ok(costUsd !== null && Math.abs(costUsd - 4 * CALL_USD) < 1e-9, `4 calls, not ${costUsd}`);
});

test('a task with a call of unknown price costs at least what is known', async (t) => {
  const unknown: Answer = async function* (...given) {
    for await (const piece of callTools(rawCall('r', 'read', { path: 'a.txt' }))(...given))
      yield piece.type === 'completed' ? { ...piece, usage: null } : piece;
  };
  const { model } = twoSided([callTools(startTask()), say('done')], [unknown, say('It says 42.')]);
  const { session, journals } = await open(t, { model });
  const turn = await session.prompt('find out');
  const child = (await listed(journals)).find(({ startedBy }) => startedBy !== undefined);
  const stored = await journals.peek(child?.sessionId ?? '');
  for (const [state, priced] of [
    [stored.state, 1],
    [turn.state, 3],
  ] as const) {
    const { costUsd, unpriced } = state.session.usage;
    assert.ok(Math.abs(costUsd - priced * CALL_USD) < 1e-9, `${priced} calls, not ${costUsd}`);
    assert.equal(unpriced, 1);
  }
  assert.equal(turn.usage.costUsd, null, 'never as exact');
});

test('a task with a call that broke off costs at least what is known', async (t) => {
  const breaksOff: Answer = async function* () {
    yield { type: 'text', text: 'It says' };
  };
  const rows: readonly (readonly [Answer[], boolean | undefined])[] = [
    [[breaksOff, say('It says 42.')], true],
    [[say('It says 42.')], undefined],
  ];
  for (const [answers, atLeast] of rows) {
    const { model } = twoSided([callTools(startTask()), say('done')], answers);
    const { session } = await open(t, { model });
    const turn = await session.prompt('find out');
    assert.equal(turn.text, 'done');
    assert.equal(turn.state.session.usage.atLeast, atLeast);
    assert.equal(turn.usage.atLeast, atLeast);
  }
});

test('a task changes nothing, and nobody is asked for it', async (t) => {
  const { model, requests } = twoSided(
    [callTools(startTask()), say('done')],
    [
      callTools(
        rawCall('w', 'write', { path: 'b.txt', content: 'x' }),
        rawCall('c', 'bash', { command: 'curl example.org', needs: 'network' }),
      ),
      say('I may not.'),
    ],
  );
  const { session, workspace } = await open(t, { model, sandbox: 'off' });
  const turn = await session.prompt('find out');
  assert.equal(turn.ok, true);
  const results = resultsOf(requests[2]?.request.messages ?? []);
  assert.match(results.w ?? '', /the preset plan only reads/);
  assert.match(results.c ?? '', /denied|never|plan/);
  assert.deepEqual(await readdir(workspace), ['a.txt']);
});

test('tasks of one reply run side by side', async (t) => {
  let waiting = 0;
  let meeting = (): void => undefined;
  const met = new Promise<void>((resolve) => {
    meeting = resolve;
  });
  const meet: Answer = async function* (request, signal) {
    waiting += 1;
    if (waiting === 2) meeting();
    await met;
    yield* say('met')(request, signal);
  };
  const { model } = twoSided(
    [callTools(startTask('1'), startTask('2')), say('done')],
    [meet, meet],
  );
  const { session } = await open(t, { model });
  const { state } = await session.prompt('find out');
  assert.match(resultIn(state, '1'), /^met/);
  assert.match(resultIn(state, '2'), /^met/);
});

test('a task is cancelled with its call, and its session is closed', async (t) => {
  const { model, requests } = twoSided([callTools(startTask())], [hang()]);
  const { session, journals } = await open(t, { model });
  const prompted = session.prompt('find out');
  await until(session, () => requests.some(({ task }) => task));
  await session.cancel();
  const { reason, state } = await prompted;
  assert.deepEqual(reason, { kind: 'cancelled', cause: 'user' });
  assert.match(resultIn(state), /the task has no answer: The turn was cancelled\./);
  const child = (await listed(journals)).find(({ startedBy }) => startedBy !== undefined);
  const stored = await journals.peek(child?.sessionId ?? '');
  assert.equal(stored.state.name, 'ShuttingDown');
});

test('a task spends at most what is left of the limits, and less if the model says so', async (t) => {
  for (const { maxUsd, limit } of [
    { maxUsd: undefined, limit: 1 - CALL_USD },
    { maxUsd: 0.5, limit: 0.5 },
    { maxUsd: 5, limit: 1 - CALL_USD },
  ]) {
    const more = maxUsd === undefined ? {} : { maxUsd };
    const { model } = twoSided([callTools(startTask('1', more)), say('done')], [say('42')]);
    const { session, journals } = await open(t, { model, settings: { limits: { usd: 1 } } });
    await session.prompt('find out');
    const child = (await listed(journals)).find(({ startedBy }) => startedBy !== undefined);
    const { header } = await journals.peek(child?.sessionId ?? '');
    assert.ok(
      Math.abs(Number(header.settings.limits.usd) - limit) < 1e-9,
      `${header.settings.limits.usd}`,
    );
  }
});

test('a task that fails is a failed call that says why', async (t) => {
  const refuse: Answer = async function* () {
    yield {
      type: 'failed',
      error: { kind: 'auth', message: 'the key is wrong', retryable: false, retryAfterMs: null },
      usage: null,
    };
  };
  const { model } = twoSided([callTools(startTask()), say('done')], [refuse]);
  const { session } = await open(t, { model });
  const { state } = await session.prompt('find out');
  assert.match(
    resultIn(state),
    /the task has no answer: the provider refused the key: the key is wrong/,
  );
});

test('a fork of a task is a session of the user', async (t) => {
  const { model } = twoSided([callTools(startTask()), say('done')], [say('42')]);
  const { session, journals } = await open(t, { model });
  await session.prompt('find out');
  const child = (await listed(journals)).find(({ startedBy }) => startedBy !== undefined);
  await journals.fork(child?.sessionId ?? '', 1, 'forked', 1);
  const { header } = await journals.peek('forked');
  assert.equal(header.startedBy, undefined);
});

test('a task that takes no prompt is closed, and its call fails', async () => {
  const done: string[] = [];
  const child = {
    id: 's',
    current: initialState({ ...defaultSettings, model: 'm', workspace: '/' }),
    watch: () => () => undefined,
    send: async () => Promise.reject(new Error('the journal is full')),
    close: async () => void done.push('closed'),
  };
  const sessions = { settings: () => defaultSettings, start: async () => child };
  const task = createTaskTool(sessions as never); // what a start needs
  const outcome = await task.run({ purpose: 'p', prompt: 'q' }, testContext());
  assert.match(outcome.text, /the task was stopped: the journal is full/);
  assert.deepEqual([outcome.status, done], ['failed', ['closed']]);
});
