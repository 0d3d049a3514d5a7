import assert from 'node:assert/strict';
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { messagesOf } from '../../src/agent/conversation.js';
import { type AgentOptions, openSession, type SessionOptions } from '../../src/api/create-agent.js';
import type { Session } from '../../src/api/session.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { markPath } from '../../src/journal/format/mark.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import type { JournalStore, SessionInfo } from '../../src/ports/journal.js';
import type { ModelRequest } from '../../src/ports/model.js';
import { type Answer, callTools, hang, rawCall, resultsOf, say, testModel } from '../runtime/stage.js';
import { temporaryFolder } from '../temporary-folder.js';

/** What a call costs in these tests: 100 tokens for 1 $ a million, 10 for 10 $ a million. */
const CALL_USD = 0.0002;

const isTask = ({ instructions }: ModelRequest): boolean => instructions.includes('# This is a task');

/** A model whose answers to a task are a list of their own. */
const twoSided = (own: Answer[], ofTasks: Answer[]) => {
  const model = testModel();
  const requests: { readonly task: boolean; readonly request: ModelRequest }[] = [];
  return {
    requests,
    model: {
      ...model,
      stream(request: ModelRequest, signal: AbortSignal) {
        const task = isTask(request);
        requests.push({ task, request });
        const answer = (task ? ofTasks : own).shift() ?? say('nothing left to say');
        return answer(request, signal);
      },
    },
  };
};

const open = async (
  t: TestContext,
  options: Partial<SessionOptions> & Pick<AgentOptions, 'model'> & { readonly journals?: JournalStore },
): Promise<{ session: Session; journals: JournalStore; workspace: string }> => {
  const workspace = temporaryFolder(t, 'task');
  await writeFile(path.join(workspace, 'a.txt'), 'the answer is 42\n');
  const journals = memoryJournals();
  const session = await openSession({ journals, workspace, tasks: true, ...options });
  t.after(() => session.close().catch(() => undefined)); // a test may have ended it otherwise
  return { session, journals: options.journals ?? journals, workspace };
};

const startTask = (callId = '1', more = {}) =>
  rawCall(callId, 'task', { purpose: 'look', prompt: 'What does a.txt say?', ...more });

const listed = async (journals: JournalStore): Promise<readonly SessionInfo[]> => {
  const found: SessionInfo[] = [];
  for await (const info of journals.list()) found.push(info);
  return found;
};

const resultIn = (session: Awaited<ReturnType<Session['state']>>, callId = '1'): string =>
  messagesOf(session.session.conversation)
    .map((message) => resultsOf([message])[callId])
    .find((text) => text !== undefined) ?? '';

/** Resolves when `holds` does; asked again with every step. */
const until = (session: Session, holds: () => boolean): Promise<void> =>
  new Promise((resolve) => {
    const look = setInterval(() => {
      if (!holds()) return;
      clearInterval(look);
      resolve();
    }, 5);
    session.ended.catch(() => clearInterval(look));
  });

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
  const { model } = twoSided([callTools(startTask('1'), startTask('2')), say('done')], [meet, meet]);
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
    { maxUsd: undefined, limit: 0.01 - CALL_USD },
    { maxUsd: 0.001, limit: 0.001 },
    { maxUsd: 5, limit: 0.01 - CALL_USD },
  ]) {
    const more = maxUsd === undefined ? {} : { maxUsd };
    const { model } = twoSided([callTools(startTask('1', more)), say('done')], [say('42')]);
    const { session, journals } = await open(t, { model, settings: { limits: { usd: 0.01 } } });
    await session.prompt('find out');
    const child = (await listed(journals)).find(({ startedBy }) => startedBy !== undefined);
    const { header } = await journals.peek(child?.sessionId ?? '');
    assert.ok(Math.abs(Number(header.settings.limits.usd) - limit) < 1e-9, `${header.settings.limits.usd}`);
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
  assert.match(resultIn(state), /the task has no answer: the provider refused the key: the key is wrong/);
});

/** A state folder as a crash leaves it now, without the locks of this process. */
const crashedCopy = async (t: TestContext, folder: string): Promise<string> => {
  const copy = temporaryFolder(t, 'crashed');
  await cp(folder, copy, { recursive: true, filter: (place) => !place.includes('.lock') });
  return copy;
};

for (const { when, ofTask, requestsAgain } of [
  { when: 'was waiting for its model', ofTask: [hang()], requestsAgain: 1 },
  {
    when: 'had read a file',
    ofTask: [callTools(rawCall('r', 'read', { path: 'a.txt' })), hang()],
    requestsAgain: 1,
  },
]) {
  test(`after a crash the session goes on with a task that ${when}`, async (t) => {
    const folder = temporaryFolder(t, 'state');
    const reached = ofTask.length;
    const { model, requests } = twoSided([callTools(startTask())], [...ofTask]);
    const { session, workspace } = await open(t, { model, journals: fileJournals({ folder }) });
    const prompted = session.prompt('find out');
    await until(session, () => requests.filter(({ task }) => task).length === reached);
    const copy = await crashedCopy(t, folder);
    await session.cancel();
    await prompted;

    const later = twoSided([say('done')], [say('42, as before')]);
    const journals = fileJournals({ folder: copy });
    const again = await openSession({
      journals,
      workspace,
      tasks: true,
      model: later.model,
      resume: session.id,
    });
    const state = await again.idle();
    await again.close();
    assert.match(resultIn(state), /^42, as before\n\[task/);
    assert.equal(later.requests.filter(({ task }) => task).length, requestsAgain);
    const tasks = (await listed(journals)).filter(({ startedBy }) => startedBy !== undefined);
    assert.equal(tasks.length, 1, 'no second task was started');
  });
}

test('after a crash the answer of a task that had ended is not asked for again', async (t) => {
  const folder = temporaryFolder(t, 'state');
  const { model } = twoSided([callTools(startTask()), say('done')], [say('It says 42.')]);
  const { session, workspace } = await open(t, { model, journals: fileJournals({ folder }) });
  await session.prompt('find out');
  await session.close();
  const journal = path.join(folder, 'sessions', `${session.id}.jsonl`);
  const lines = (await readFile(journal, 'utf8')).split('\n');
  const ended = lines.findIndex((line) => line.includes('"type":"ToolCompleted"'));
  await writeFile(
    journal,
    lines.slice(0, ended).map((line) => `${line}\n`),
  );
  await rm(markPath(journal), { force: true });

  const later = twoSided([say('done')], []);
  const again = await openSession({
    journals: fileJournals({ folder }),
    workspace,
    tasks: true,
    model: later.model,
    resume: session.id,
  });
  const state = await again.idle();
  await again.close();
  assert.match(resultIn(state), /^It says 42\.\n\[task/);
  assert.ok(!later.requests.some(({ task }) => task));
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
