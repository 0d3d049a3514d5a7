import assert from 'node:assert/strict';
import { rename } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import {
  callTools,
  collect,
  command,
  hang,
  ok,
  play,
  rawCall,
  say,
  settingsOf,
  settle,
  stage,
  testModel,
  tool,
  watchSession,
} from '../../../../test/kit/runtime/stage.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { Entry, JournalStore } from '../../src/ports/journal.js';
import type { Job, ToolOutcome } from '../../src/ports/tool.js';

test('sessions in one process do not see each other', async () => {
  const on = stage({ model: testModel(hang(), say('for the second'), say('for the first again')) });
  const create = async () =>
    watchSession(on, await on.runtime.create({ settings: settingsOf(), instructions: 'be brief' }));
  const [first, second] = [await create(), await create()];
  await first.say('one');
  await settle();
  await second.say('two');
  await second.rest();
  assert.equal((await first.state()).name, 'CallingLlm');
  await on.runtime.close(second.id);
  await first.runtime.send(first.id, { type: 'CancelTurn' });
  await first.say('again');
  const state = await first.rest();
  assert.match(JSON.stringify(messagesOf(state.session.conversation)), /for the first again/);
  assert.doesNotMatch(JSON.stringify(messagesOf(state.session.conversation)), /two/);
});

test('the request holds the frozen instructions and declarations, after a resume too', async () => {
  const look = tool('look', () => ok(''));
  const on = await play({ tools: [look], model: testModel(say('a'), say('b')) });
  await on.say('one');
  await on.rest();
  await on.runtime.close(on.id);
  const later = stage({
    journals: on.journals,
    model: on.model,
    tools: [tool('other', () => ok(''))],
  });
  await later.runtime.open(on.id);
  await later.runtime.send(on.id, { type: 'UserInput', text: 'two', mode: 'steer' });
  await settle();
  const [before, after] = on.model.requests;
  assert.equal(after?.instructions, 'be brief');
  assert.deepEqual(after?.tools, before?.tools);
  assert.deepEqual(
    after?.tools.map(({ name }) => name),
    ['look'],
  );
});

test('close ends what runs: the request, the tool, the timers, background jobs; and frees the lock', async () => {
  const killed: string[] = [];
  const job: Job = {
    jobId: 'job-1',
    command: 'sleep 1000',
    status: () => 'running',
    output: () => '',
    kill: async () => void killed.push('job-1'),
  };
  let signal: AbortSignal | undefined;
  const wait = tool(
    'wait',
    (_input, { force, jobs }) => {
      jobs.add(() => job);
      signal = force;
      return new Promise<ToolOutcome>((resolve) =>
        force.addEventListener('abort', () => resolve({ status: 'cancelled', text: '' })),
      );
    },
    command,
  );
  const on = await play({ tools: [wait], model: testModel(callTools(rawCall('1', 'wait'))) });
  await on.say('go');
  await settle();
  const ended = on.runtime.find(on.id).ended;
  await on.runtime.close(on.id);
  await ended;
  assert.equal(signal?.aborted, true);
  assert.deepEqual(killed, ['job-1']);
  assert.equal(on.clock.waiting(), 0);
  const reopened = await on.journals.open(on.id);
  assert.equal(reopened.state.name, 'ShuttingDown');
  await assert.rejects(on.say('late'), /not open here/);
});

test('a tool that ignores force holds up the end for the grace time at most', async () => {
  const on = await play({
    tools: [tool('stuck', () => new Promise(() => undefined), command)],
    model: testModel(callTools(rawCall('1', 'stuck'))),
  });
  await on.say('go');
  await settle();
  const closed = on.runtime.close(on.id);
  await settle();
  on.clock.advance(1_000);
  await settle();
  on.clock.advance(5_000);
  await closed;
  const { state } = await on.runtime.state(on.id);
  assert.match(
    JSON.stringify(state.session.conversation),
    /interrupted while running, effects unknown"/,
  );
});

test('a reply that is cut short by the end aborts the request', async () => {
  let aborted = false;
  const on = await play({
    model: testModel(async function* (_request, signal) {
      yield { type: 'text', text: 'half' };
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      aborted = true;
    }),
  });
  await on.say('go');
  await settle();
  await on.runtime.close(on.id);
  await settle();
  assert.equal(aborted, true);
  assert.equal(on.clock.waiting(), 0);
});

test('read gives the journal from a seq, then what comes, until the session ends', async () => {
  const on = await play({ model: testModel(say('a'), say('b')) });
  await on.say('one');
  await on.rest();
  const read: Entry[] = [];
  const reading = (async () => {
    for await (const entry of on.runtime.read(on.id, 2)) read.push(entry);
  })();
  await settle();
  assert.deepEqual(
    read.map(({ seq }) => seq),
    [2],
  );
  await on.say('two');
  await settle();
  await on.runtime.close(on.id);
  await reading;
  assert.deepEqual(
    read.map(({ seq, event }) => [seq, event.type]),
    [
      [2, 'LlmCompleted'],
      [3, 'UserInput'],
      [4, 'LlmCompleted'],
      [5, 'ShutdownRequested'],
    ],
  );
  assert.deepEqual(await collect(on.runtime.read(on.id, 2)), read);
});

test('list knows the sessions, and a session that is not open can still be looked at', async () => {
  const on = await play({ model: testModel(say('a')) });
  await on.say('fix it');
  await on.rest();
  await on.runtime.close(on.id);
  assert.deepEqual(
    (await collect(on.runtime.list())).map(({ sessionId, title }) => [sessionId, title]),
    [[on.id, 'fix it']],
  );
  const { seq, state } = await on.runtime.state(on.id);
  assert.deepEqual([seq, state.name], [3, 'ShuttingDown']);
  await on.runtime.open(on.id);
  const elsewhere = stage({ journals: on.journals });
  assert.deepEqual((await elsewhere.runtime.state(on.id)).state.name, 'WaitingForUserInput');
  await on.runtime.close(on.id);
});

test('opening again comes with new settings, which hold before anything is started', async () => {
  const on = await play({ model: testModel(say('a')) });
  await on.runtime.close(on.id);
  const steps: string[] = [];
  await on.runtime.open(on.id, {
    patch: ({ maxRetries }) => ({ maxRetries: maxRetries + 4 }),
    watcher: ({ event }) => steps.push(event.type),
  });
  assert.deepEqual(steps, ['Resumed', 'SettingsChanged']);
  const { state } = await on.runtime.state(on.id);
  assert.deepEqual(
    [state.name, state.session.settings.maxRetries, state.session.epoch],
    ['WaitingForUserInput', 12, 1],
  );
});

test('a session whose blobs are gone is refused as damaged, and its lock is let go', async (context) => {
  const folder = temporaryFolder(context, 'session');
  const [blobs, aside] = [path.join(folder, 'blobs'), path.join(folder, 'aside')];
  const on = await play({ journals: fileJournals({ folder }) });
  await on.runtime.close(on.id);
  await rename(blobs, aside);
  const refused = {
    name: 'JournalError',
    kind: 'damaged',
    message: /what the model was told, is missing/,
  };
  await assert.rejects(on.runtime.open(on.id), refused);
  await rename(aside, blobs);
  await on.runtime.open(on.id);
  await on.runtime.close(on.id);
});

test('what a header names is kept before the header; if that fails, there is no session', async () => {
  const journals = memoryJournals();
  const found: unknown[] = [];
  const create: JournalStore['create'] = async (header) => {
    found.push(
      await journals.blobs.get(header.instructions),
      await journals.blobs.get(header.tools),
    );
    return journals.create(header);
  };
  await play({ journals: { ...journals, create } });
  assert.deepEqual(found, ['be brief', '[]']);
  const put = async (): Promise<string> => Promise.reject(new Error('the disk is full'));
  const full = memoryJournals();
  await assert.rejects(
    play({ journals: { ...full, blobs: { ...full.blobs, put } } }),
    /the disk is full/,
  );
  assert.deepEqual(await collect(full.list()), []);
});
