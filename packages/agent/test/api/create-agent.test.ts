import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { adapterOptions } from '../../../../test/kit/models/adapter-options.js';
import {
  callTools,
  hang,
  ok,
  rawCall,
  resultsOf,
  say,
  testModel,
  tool,
} from '../../../../test/kit/runtime/stage.js';
import { type Replies, startAnthropicServer } from '../../../../test/servers/anthropic.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { fileJournals } from '../../src/journal/file-store.js';
import { memoryJournals } from '../../src/journal/memory-store.js';
import { messagesOf } from '../../src/machine/conversation.js';
import { anthropicModel } from '../../src/models/anthropic.js';
import { catalogueFacts } from '../../src/models/catalogue.js';
import type { Stepped } from '../../src/ports/session.js';
import {
  agentOnEngine,
  createAgent,
  openSession,
  type SessionOptions,
} from '../../src/session/create-agent.js';

const makeFolder = async (t: TestContext): Promise<string> => {
  const folder = temporaryFolder(t, 'agent');
  return folder;
};

test('a session works in a real folder with the tools that come with it, and is gone on with later', async (t) => {
  const workspace = await makeFolder(t);
  const journals = fileJournals({ folder: await makeFolder(t) });
  await writeFile(path.join(workspace, 'a.txt'), 'one\n');
  await writeFile(path.join(workspace, 'AGENTS.md'), 'Always be kind.\n');
  execFileSync('git', ['init', '-q', '-b', 'trunk', workspace]);
  const model = testModel(
    callTools(rawCall('1', 'read', { path: 'a.txt' })),
    callTools(rawCall('2', 'bash', { command: 'cat a.txt a.txt > b.txt; echo written' })),
    say('twice'),
    say('still here'),
  );
  const steps: Stepped[] = [];
  const session = await openSession({
    workspace,
    journals,
    model,
    watcher: (stepped) => steps.push(stepped),
  });
  await session.send({ type: 'UserInput', text: 'double it', mode: 'steer' });
  const state = await session.idle();
  assert.equal(state.name === 'WaitingForUserInput' && state.reason.kind, 'endOfTurn');
  assert.equal(await readFile(path.join(workspace, 'b.txt'), 'utf8'), 'one\none\n');
  assert.match(resultsOf(model.requests[1]?.messages ?? [])['1'] ?? '', /one/);
  assert.match(resultsOf(model.requests[2]?.messages ?? [])['2'] ?? '', /written/);
  assert.match(model.requests[0]?.instructions ?? '', /Git branch: trunk[\s\S]*Always be kind/);
  assert.deepEqual(
    steps.flatMap(({ seq }) => seq ?? []),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], // the last one is the checkpoint
  );
  await session.close();
  await session.close();
  assert.equal((await session.idle()).name, 'ShuttingDown');
  await assert.rejects(session.cancel(), /not open here/);

  await writeFile(path.join(workspace, 'AGENTS.md'), 'Never be kind.\n');
  // a copy is as good as the session, and so are its members by themselves
  const again = { ...(await openSession({ workspace, journals, model, resume: session.id })) };
  assert.equal(again.id, session.id);
  await again.send({ type: 'UserInput', text: 'are you there?', mode: 'steer' });
  const later = await again.idle();
  assert.match(JSON.stringify(messagesOf(later.session.conversation)), /twice.*still here/);
  assert.equal(model.requests[3]?.instructions, model.requests[0]?.instructions);
  const { state: read, watch, close } = again;
  watch(() => undefined)();
  assert.equal(await read(), later);
  await close();
});

test('a resume changes only the settings that the options name differently', async (t) => {
  const workspace = await makeFolder(t);
  const journals = memoryJournals();
  const model = testModel();
  const first = await openSession({
    workspace,
    journals,
    model,
    preset: 'plan',
    settings: { maxRetries: 9 },
  });
  await first.close();
  const types: string[] = [];
  const watcher = ({ event }: Stepped): void => void types.push(event.type);
  const same = await openSession({
    workspace,
    journals,
    model,
    resume: first.id,
    preset: 'plan',
    watcher,
  });
  assert.deepEqual(types, ['Resumed']);
  assert.equal((await same.state()).session.settings.maxRetries, 9);
  await same.close();
  const other = { ...testModel(say('from the other')), id: 'test/other' };
  const changed = await openSession({
    workspace,
    journals,
    model: other,
    resume: first.id,
    preset: 'auto',
  });
  const { settings } = (await changed.state()).session;
  assert.deepEqual([settings.model, settings.maxRetries, settings.onAsk], ['test/other', 9, 'ask']);
  await changed.send({ type: 'UserInput', text: 'hi', mode: 'steer' });
  assert.match(
    JSON.stringify(messagesOf((await changed.idle()).session.conversation)),
    /from the other/,
  );
  await changed.close();
});

test('settings follow the model and the preset: window, drain, and no questions in ci', async (t) => {
  const workspace = await makeFolder(t);
  const model = { ...testModel(), canAbort: 'no' } as const;
  const fallback = [{ ...testModel(), id: 'b/second' }];
  const options = { workspace, journals: memoryJournals(), model, fallback, preset: 'ci' } as const;
  const session = await openSession(options);
  const { settings } = (await session.state()).session;
  assert.deepEqual(
    [settings.windowTokens, settings.cancelMode, settings.onAsk, settings.hooks],
    [100_000, 'drain', 'deny', 'mutating'],
  );
  assert.equal(settings.fallback?.[0]?.cancelMode, 'abort', 'a model that can be aborted is');
  await session.close();
});

test('formatters run unasked only where commands do, unless the options say so', async (t) => {
  const workspace = await makeFolder(t);
  const journals = memoryJournals();
  const model = testModel();
  const formatterOf = async (options: Partial<SessionOptions>): Promise<string> => {
    const session = await openSession({ workspace, journals, model, ...options });
    const { formatter } = (await session.state()).session.settings;
    await session.close();
    return `${formatter} ${session.id}`;
  };
  const found: Record<string, string | undefined> = {};
  const presets = ['plan', 'careful', 'auto', 'ci'] as const;
  for (const preset of presets) found[preset] = (await formatterOf({ preset })).split(' ')[0];
  assert.deepEqual(found, { plan: 'off', careful: 'off', auto: 'onChanges', ci: 'onChanges' });
  const [without, id = ''] = (await formatterOf({})).split(' ');
  assert.equal(without, 'onChanges');
  assert.match(
    await formatterOf({ preset: 'careful', settings: { formatter: 'onChanges' } }),
    /^onChanges/,
  );
  assert.match(await formatterOf({ resume: id }), /^onChanges/);
  assert.match(await formatterOf({ resume: id, preset: 'careful' }), /^off/);
});

test('a limit in dollars is refused if the price is not known', async (t) => {
  const workspace = await makeFolder(t);
  const model = testModel();
  const unpriced = { ...model, facts: { ...model.facts, prices: null } };
  const limits = { usd: 1 };
  const open = openSession({
    workspace,
    journals: memoryJournals(),
    model: unpriced,
    settings: { limits },
  });
  await assert.rejects(open, /the price of test\/one is not known/);
});

test('an engine gets no session that this process would refuse', async (t) => {
  const model = testModel();
  const { prepare } = agentOnEngine({ model });
  await assert.rejects(prepare({ workspace: '/' }), /can't be the workspace/);
  const unpriced = agentOnEngine({ model: { ...model, facts: { ...model.facts, prices: null } } });
  const workspace = await makeFolder(t);
  const session = { workspace, sandbox: 'off', settings: { limits: { usd: 1 } } } as const;
  await assert.rejects(unpriced.prepare(session), /the price of test\/one is not known/);
  const { settings } = await unpriced.prepare({ ...session, unpriced: 'countAsNothing' });
  assert.equal(settings.limits.usd, 1);
});

test('settings that can’t be made reject the opening, and nothing else', async (t) => {
  const workspace = await makeFolder(t);
  const wrong = { preset: 'none' as 'auto', hosts: ['example.com'], sandbox: 'off' } as const;
  const options = { workspace, journals: memoryJournals(), model: testModel(), ...wrong };
  await assert.rejects(openSession(options), TypeError);
});

test('a limit in dollars that a session was given before is refused likewise, and its journal stays free', async (t) => {
  const workspace = await makeFolder(t);
  const journals = memoryJournals();
  const model = testModel();
  const unpriced = { ...model, facts: { ...model.facts, prices: null } };
  const limits = { usd: 1 };
  const { id, close } = await openSession({ workspace, journals, model, settings: { limits } });
  await close();
  const again = { workspace, journals, resume: id };
  await assert.rejects(
    openSession({ ...again, model: unpriced }),
    /the price of test\/one is not known/,
  );
  const session = await openSession({ ...again, model });
  assert.equal((await session.state()).session.settings.limits.usd, 1);
  await session.close();
});

test('cancel brings a running turn to rest; idle rejects when the session cannot go on', async (t) => {
  const workspace = await makeFolder(t);
  const store = memoryJournals();
  let isFull = false;
  const journals = {
    ...store,
    create: async (header: Parameters<typeof store.create>[0]) => {
      const journal = await store.create(header);
      const { append } = journal;
      return Object.assign(Object.create(journal) as typeof journal, {
        append: (...given: Parameters<typeof append>) =>
          isFull ? Promise.reject(new Error('disk full')) : append(...given),
      });
    },
  };
  const { open } = createAgent({
    journals,
    model: testModel(hang(), hang()),
    tools: [tool('look', () => ok(''))],
  });
  const session = await open({ workspace });
  await session.send({ type: 'UserInput', text: 'hi', mode: 'steer' });
  await session.cancel();
  const state = await session.idle();
  assert.equal(state.name === 'WaitingForUserInput' && state.reason.kind, 'cancelled');
  await session.send({ type: 'UserInput', text: 'again', mode: 'steer' });
  const idle = session.idle();
  isFull = true;
  await assert.rejects(session.cancel(), /disk full/);
  await assert.rejects(idle, /disk full/);
  await assert.rejects(session.ended, /disk full/);
  for (const wish of [session.idle(), session.cancel(), session.close()])
    await assert.rejects(wish, /disk full/);
});

/** A session whose model is called at a strict server of its own. */
const openServed = async (t: TestContext, replies: Replies) => {
  const server = await startAnthropicServer({ replies });
  t.after(() => server.close());
  const facts = catalogueFacts('anthropic/claude-sonnet-5-5');
  const model = anthropicModel(
    adapterOptions('anthropic/claude-sonnet-5-5', server.url, { facts }),
  );
  const journals = memoryJournals();
  const tools = [tool('look', () => ok('seen'))];
  const session = await openSession({ workspace: await makeFolder(t), journals, model, tools });
  return { server, session, journals };
};

test('a conversation with calls is compacted by a provider that wants their tools', async (t) => {
  const says = (text: string) => ({ type: 'message', parts: [{ type: 'text', text }] }) as const;
  const { server, session } = await openServed(t, [
    { type: 'message', parts: [{ type: 'call', id: 'a', name: 'look' }] },
    says('looked'),
    says('the summary'),
    says('on we go'),
  ]);
  await session.send({ type: 'UserInput', text: 'look', mode: 'steer' });
  await session.idle();
  await session.send({ type: 'CompactRequested' });
  await session.idle();
  await session.send({ type: 'UserInput', text: 'go on', mode: 'steer' });
  await session.idle();
  await session.close();
  assert.deepEqual(
    server.requests.map(({ fault }) => fault),
    [null, null, null, null],
  );
  const [, before, compaction, later] = server.requests.map(({ text }) => JSON.parse(text));
  assert.deepEqual([compaction.system, compaction.tools], [before.system, before.tools]);
  assert.deepEqual([before.tool_choice, compaction.tool_choice], [undefined, undefined]);
  assert.match(JSON.stringify(later.messages), /the summary.*go on/s);
  assert.doesNotMatch(JSON.stringify(later.messages), /looked/);
});

test('tokens that a provider has counted are in the journal, though the end came in the middle of a reply', async (t) => {
  const parts = [{ type: 'text', text: 'half' }] as const;
  const usage = { input_tokens: 5_000, output_tokens: 1 };
  const { session, journals } = await openServed(t, [
    { type: 'message', parts, usage, end: 'silent' },
  ]);
  const shown = new Promise<void>((resolve) => {
    session.watch(({ event }) => {
      if (event.type === 'TextDelta') resolve();
    });
  });
  await session.send({ type: 'UserInput', text: 'go', mode: 'steer' });
  await shown;
  await session.close();
  const { state } = await journals.peek(session.id);
  assert.deepEqual([state.session.usage.inputTokens, state.session.unaccounted], [5_000, []]);
});
