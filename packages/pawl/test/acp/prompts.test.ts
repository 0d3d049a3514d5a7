import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { makePng } from '../../../../test/servers/sample-pictures.js';
import { readPrompt } from '../../src/editor/prompt-blocks.js';
import { makeStage } from './acp-stage.js';

test('the blocks of a prompt become one text with pictures', () => {
  const folder = '/project';
  const file = path.join(folder, 'src', 'a b.ts');
  const { text, pictures } = readPrompt(
    [
      { type: 'text', text: 'Look at ' },
      { type: 'resource_link', name: 'a b.ts', uri: `${pathToFileURL(file)}#L1:5` },
      { type: 'text', text: ' and ' },
      { type: 'resource', resource: { uri: 'file:///etc/hosts', text: 'has ``` in it' } },
      { type: 'image', data: Buffer.from('picture').toString('base64'), mimeType: 'image/png' },
      {
        type: 'resource',
        resource: { uri: 'https://example.org/x', blob: 'AAAA', mimeType: 'font/woff' },
      },
    ],
    folder,
  );
  assert.equal(
    text,
    [
      'Look at @"src/a b.ts#L1:5" and @/etc/hosts @https://example.org/x',
      'Attached: /etc/hosts\n````\nhas ``` in it\n````',
      'Not attached: https://example.org/x, which is font/woff',
    ].join('\n\n'),
  );
  assert.deepEqual(
    pictures.map(String),
    ['picture'].map((word) => String(Buffer.from(word))),
  );
  assert.throws(() => readPrompt([], folder), /empty/);
  assert.throws(() => readPrompt([{ type: 'text', text: ' \n' }], folder), /empty/);
  assert.throws(
    () => readPrompt([{ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }], folder),
    /audio/,
  );
  assert.throws(
    () => readPrompt([{ type: 'image', data: '', mimeType: 'image/png' }], folder),
    /block 1/,
  );
});

test('a mention has spaces around it, and none before punctuation', () => {
  const link = { type: 'resource_link', name: 'a.ts', uri: 'file:///project/a.ts' } as const;
  const say = (text: string) => ({ type: 'text', text }) as const;
  const written = (...blocks: Parameters<typeof readPrompt>[0]): string =>
    readPrompt(blocks, '/project').text;
  assert.equal(
    written(say('Explain'), link, say('and'), link, link),
    'Explain @a.ts and @a.ts @a.ts',
  );
  assert.equal(written(link, say('is wrong')), '@a.ts is wrong');
  assert.equal(
    written(say('Look ('), link, say('), please. '), link),
    'Look (@a.ts), please. @a.ts',
  );
});

test('the title is what the user typed, without attached texts', async (context) => {
  const { client, workspace } = await makeStage(context, [{ text: 'Yes.' }]);
  const { sessionId } = await client.newSession(workspace);
  const uri = pathToFileURL(path.join(workspace, 'a.ts')).href;
  await client.prompt(sessionId, [
    { type: 'text', text: 'Explain' },
    { type: 'resource', resource: { uri, text: 'export const secret = 1;' } },
    {
      type: 'resource',
      resource: { uri: 'https://example.org/x', blob: 'AAAA', mimeType: 'font/woff' },
    },
    { type: 'text', text: 'to me' },
  ]);
  const title = 'Explain @a.ts @https://example.org/x to me';
  assert.deepEqual(
    client.updatesOf(sessionId, 'session_info_update').map((update) => update.title),
    [title],
  );
  const { sessions } = (await client.request('session/list', {})) as {
    sessions: readonly { title: string }[];
  }; // by the schema
  assert.deepEqual(
    sessions.map((session) => session.title),
    [title],
  );
  client.expectNoFault();
});

test('the response to a prompt has the tokens of its turn', async (context) => {
  const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 40, cacheWriteTokens: 5 };
  const { client, workspace } = await makeStage(context, [
    { calls: [{ tool: 'todo', input: { items: [] } }], usage },
    { text: 'One.', usage },
    { text: 'Two.', usage },
  ]);
  const { sessionId } = await client.newSession(workspace);
  const answers = [];
  for (const text of ['one', 'two'])
    answers.push(
      await client.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }),
    );
  const one = {
    totalTokens: 165,
    inputTokens: 100,
    outputTokens: 20,
    cachedReadTokens: 40,
    cachedWriteTokens: 5,
  };
  const doubled = Object.fromEntries(Object.entries(one).map(([name, count]) => [name, count * 2]));
  assert.deepEqual(answers, [
    { stopReason: 'end_turn', usage: doubled },
    { stopReason: 'end_turn', usage: one },
  ]);
  client.expectNoFault();
});

test('a picture is stored with the prompt and comes back when the session is loaded', async (context) => {
  const { client, workspace } = await makeStage(context, [{ text: 'A cat.' }]);
  const { sessionId } = await client.newSession(workspace);
  const base64 = Buffer.from(makePng()).toString('base64');
  const image = { type: 'image', data: base64, mimeType: 'image/png' } as const;
  assert.equal(
    await client.prompt(sessionId, [{ type: 'text', text: 'What is it?' }, image]),
    'end_turn',
  );
  const before = client.updates.length;
  await client.request('session/load', { sessionId, cwd: workspace, mcpServers: [] });
  const loaded = client.updates.slice(before).map(({ update }) => update);
  assert.ok(
    loaded.some(
      (update) =>
        update.sessionUpdate === 'user_message_chunk' &&
        update.content.type === 'image' &&
        update.content.data === base64,
    ),
  );
  const broken = { type: 'image', data: 'bm8gcGljdHVyZQ==', mimeType: 'image/png' } as const;
  await assert.rejects(client.prompt(sessionId, [{ type: 'text', text: 'And this?' }, broken]), {
    code: -32602,
    message: /PNG, JPEG, GIF or WebP/,
  });
  client.expectNoFault();
});

test('a prompt that is sent while a turn runs steers it, and both are answered at its end', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { calls: [{ tool: 'write', input: { path: 'a.txt', content: 'x' } }] },
    { text: 'Both.' },
  ]);
  let allow = (): void => undefined;
  client.onPermission = () =>
    new Promise((resolve) => {
      allow = () => resolve({ outcome: { outcome: 'selected', optionId: 'once' } });
    });
  const { sessionId } = await client.newSession(workspace);
  const order: string[] = [];
  const first = client.prompt(sessionId, 'first').then((reason) => order.push(`first ${reason}`));
  await client.until('the question', () => client.permissions.length === 1);
  const second = client
    .prompt(sessionId, 'second')
    .then((reason) => order.push(`second ${reason}`));
  const { sessionId: other } = await client.newSession(workspace); // the prompt before it has arrived by then
  assert.notEqual(other, sessionId);
  assert.deepEqual(order, []);
  allow();
  await Promise.all([first, second]);
  assert.deepEqual(order.sort(), ['first end_turn', 'second end_turn']);
  await client.request('session/load', { sessionId, cwd: workspace, mcpServers: [] });
  assert.equal(client.textOf(sessionId, 'user_message_chunk'), 'firstsecond');
  client.expectNoFault();
});

test('the to-do list is the plan', async (context) => {
  const items = [
    { text: 'look', status: 'done' },
    { text: 'repair', status: 'inProgress' },
    { text: 'test', status: 'pending' },
  ];
  const { client, workspace } = await makeStage(context, [
    { calls: [{ tool: 'todo', input: { items } }] },
    { text: 'Planned.' },
  ]);
  const { sessionId } = await client.newSession(workspace);
  await client.prompt(sessionId, 'plan');
  const [plan] = client.updatesOf(sessionId, 'plan');
  assert.deepEqual(
    plan?.entries.map(({ content, status }) => [content, status]),
    [
      ['look', 'completed'],
      ['repair', 'in_progress'],
      ['test', 'pending'],
    ],
  );
  assert.deepEqual(client.updatesOf(sessionId, 'tool_call'), []);
  client.expectNoFault();
});

test('commands are announced, run without the model, and unknown ones are named', async (context) => {
  const { client, workspace } = await makeStage(context, [{ text: 'Hello.' }]);
  const { sessionId } = await client.newSession(workspace);
  const announced = await client.until('the commands', () =>
    client.updatesOf(sessionId, 'available_commands_update').at(0),
  );
  const names = announced.availableCommands.map(({ name }) => name);
  assert.ok(
    names.includes('compact') && names.includes('budget') && !names.includes('quit'),
    names.join(),
  );
  assert.equal(await client.prompt(sessionId, '/preset auto'), 'end_turn');
  assert.match(client.textOf(sessionId), /The preset is now auto/);
  assert.equal(client.updatesOf(sessionId, 'current_mode_update').at(-1)?.currentModeId, 'auto');
  assert.equal(await client.prompt(sessionId, '/budget 3 rounds'), 'end_turn');
  assert.equal(await client.prompt(sessionId, '/preset'), 'end_turn');
  assert.match(client.textOf(sessionId), /careful {2}asks before edits/);
  assert.equal(await client.prompt(sessionId, '/wat now'), 'end_turn');
  assert.match(client.textOf(sessionId), /There is no \/wat here\. There are .*\/compact/);
  assert.equal(await client.prompt(sessionId, '/etc/hosts is what I mean'), 'end_turn');
  assert.match(client.textOf(sessionId), /Hello\.$/, 'a path is no command');
  client.expectNoFault();
});

test('how a turn ended is said in its answer', async (context) => {
  const read = { tool: 'read', input: { path: '.' } };
  const notices = { session: { notices: {}, compaction: {} } };
  const { client, workspace } = await makeStage(
    context,
    [
      { text: 'No.', stopReason: 'refusal' },
      { fail: { kind: 'auth', message: 'no such key' } },
      { text: 'Long', stopReason: 'maxTokens' },
      { calls: [read] },
      { calls: [read] },
    ],
    { capabilities: notices, flags: { maxRounds: '1' } },
  );
  mkdirSync(path.join(workspace, 'empty'));
  writeFileSync(path.join(workspace, 'a.txt'), '');
  const { sessionId } = await client.newSession(workspace);
  assert.equal(await client.prompt(sessionId, 'one'), 'end_turn', 'a refusal stays in the history');
  assert.match(JSON.stringify(client.updatesOf(sessionId, 'notice')), /refused/);
  await assert.rejects(client.prompt(sessionId, 'two'), { code: -32603, message: /no such key/ });
  assert.equal(await client.prompt(sessionId, 'three'), 'max_tokens');
  assert.equal(await client.prompt(sessionId, 'four'), 'max_turn_requests');
  assert.ok(!client.textOf(sessionId).includes('>'), 'warnings are notices');
  client.expectNoFault();
});
