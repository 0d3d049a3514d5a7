import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { RequestPermissionRequest, SessionUpdate } from '@agentclientprotocol/sdk';
import { fileBlobs } from '@pawl/agent/journal/state-folder';
import type { Event } from '@pawl/agent/machine/event';
import { initialState, step } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { unknownTool, usage } from '../../../../test/kit/agent/given.js';
import { callOf, completed } from '../../../../test/kit/terminal/stage.js';
import { makePng } from '../../../../test/servers/sample-pictures.js';
import { atEnd } from '../../../../test/temporary-folder.js';
import { Outbox } from '../../src/editor/outbox.js';
import { readPrompt } from '../../src/editor/prompt-blocks.js';
import { SessionUpdates, textUpdate } from '../../src/editor/session-updates.js';
import { storedJournals } from '../../src/sessions/stored-sessions.js';
import { makeStage } from './acp-stage.js';
import { select } from './strict-client.js';

test('a turn streams its text, shows its calls, and is answered after all its updates', async (context) => {
  const { client, workspace } = await makeStage(context, [
    {
      text: 'I look.',
      reasoning: 'Hm.',
      calls: [{ tool: 'read', input: { path: 'a.txt', offset: 2 } }],
    },
    { text: 'It says two.' },
  ]);
  const file = path.join(workspace, 'a.txt');
  writeFileSync(file, 'one\ntwo\n');
  const { sessionId, modes } = await client.newSession(workspace);
  assert.equal(modes?.currentModeId, 'careful');
  assert.equal(await client.prompt(sessionId, 'what is in a.txt?'), 'end_turn');
  assert.equal(client.textOf(sessionId), 'I look.It says two.');
  assert.equal(client.textOf(sessionId, 'agent_thought_chunk'), 'Hm.');
  const [call] = client.updatesOf(sessionId, 'tool_call');
  assert.equal(call?.title, 'read a.txt');
  assert.equal(call.kind, 'read');
  assert.deepEqual(call.locations, [{ path: file, line: 2 }]);
  const statuses = client.updatesOf(sessionId, 'tool_call_update').map(({ status }) => status);
  assert.deepEqual(statuses, ['in_progress', 'completed']);
  const [info] = client.updatesOf(sessionId, 'session_info_update');
  assert.equal(info?.title, 'what is in a.txt?');
  const usage = client.updatesOf(sessionId, 'usage_update').at(-1);
  assert.ok(usage !== undefined && usage.used > 0 && usage.size >= usage.used);
  client.expectNoFault();
});

test('two sessions run at the same time in one process', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { text: 'First.', calls: [{ tool: 'read', input: { path: 'a.txt' } }] },
    { text: 'Second.' },
  ]);
  writeFileSync(path.join(workspace, 'a.txt'), 'one\n');
  const [one, two] = await Promise.all([
    client.newSession(workspace),
    client.newSession(workspace),
  ]);
  assert.notEqual(one.sessionId, two.sessionId);
  const answers = await Promise.all(
    [one, two].map(({ sessionId }) => client.prompt(sessionId, 'go')),
  );
  assert.deepEqual(answers, ['end_turn', 'end_turn']);
  for (const { sessionId } of [one, two]) assert.equal(client.textOf(sessionId), 'First.Second.');
  client.expectNoFault();
});

test('a change of a file is asked about and shown with the whole texts', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { calls: [{ tool: 'read', input: { path: 'a.txt' } }] },
    {
      calls: [
        { tool: 'edit', input: { path: 'a.txt', edits: [{ oldText: 'two', newText: 'three' }] } },
      ],
    },
    { text: 'Done.' },
  ]);
  const file = path.join(workspace, 'a.txt');
  const before = `${'line\n'.repeat(40)}two\n${'line\n'.repeat(40)}`;
  writeFileSync(file, before);
  client.onPermission = () => select('once');
  const { sessionId } = await client.newSession(workspace);
  assert.equal(await client.prompt(sessionId, 'change it'), 'end_turn');
  const after = before.replace('two', 'three');
  assert.equal(readFileSync(file, 'utf8'), after);
  const change = { type: 'diff', path: file, oldText: before, newText: after };
  assert.deepEqual(client.permissions[0]?.toolCall.content?.[0], change);
  const result = client.updatesOf(sessionId, 'tool_call_update').at(-1);
  assert.equal(result?.status, 'completed');
  assert.deepEqual(result.content, [change]);
  assert.deepEqual(result.locations, [{ path: file, line: 41 }]);
  client.expectNoFault();
});

/** The updates of a session with these events, one after the other. */
const updatesOf = (timeless: readonly object[]): readonly SessionUpdate[] => {
  const updates: SessionUpdate[] = [];
  const session = new SessionUpdates({
    workspace: '/w',
    features: { notices: false, compaction: false, forms: false },
    blobs: fileBlobs('/nowhere'),
    title: 'known',
    push: (item) => updates.push('make' in item ? item.otherwise : item),
  });
  let state: State = initialState({ ...defaultSettings, model: 'scripted/x', workspace: '/w' });
  for (const [index, parts] of timeless.entries()) {
    const event = { ...parts, at: index + 1 } as Event; // with its time it is an event
    const next = step(state, event);
    session.see({ seq: index + 1, event, ...next });
    state = next.state;
  }
  return updates;
};

test('what a failed request has cost is told at once, and so is the window of another model', () => {
  const error = { kind: 'overloaded', message: 'busy', retryable: true, retryAfterMs: null };
  const updates = updatesOf([
    { type: 'UserInput', text: 'go', mode: 'steer' },
    { type: 'LlmFailed', requestId: 'req-1', error, usage: usage(0.5), jitter: 0 },
    { type: 'SettingsChanged', patch: { windowTokens: 5_000 } },
  ]);
  const told = updates.flatMap((update) =>
    update.sessionUpdate === 'usage_update' ? [[update.cost?.amount, update.size]] : [],
  );
  assert.deepEqual(told, [
    [0.5, defaultSettings.windowTokens],
    [0.5, 5_000],
  ]);
});

test('of a reply that ends with other text than was streamed, only the streamed text is said not to count', () => {
  const updates = updatesOf([
    { type: 'UserInput', text: 'go', mode: 'steer' },
    { type: 'TextDelta', requestId: 'req-1', text: 'Two' },
    completed('req-1', 'One. Two.'),
  ]);
  const texts = updates.flatMap((update) =>
    update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
      ? [update.content.text.trim()]
      : [],
  );
  assert.deepEqual(texts, ['Two', '> The text of the reply above does not count.', 'One. Two.']);
});

test('texts that wait at rest are told, also when the session is resumed', () => {
  const error = { kind: 'auth', message: 'no', retryable: false, retryAfterMs: null };
  const updates = updatesOf([
    { type: 'UserInput', text: 'go', mode: 'steer' },
    { type: 'UserInput', text: 'be brief', mode: 'steer' },
    { type: 'LlmFailed', requestId: 'req-1', error, usage: usage(0), jitter: 0 },
    { type: 'ShutdownRequested' },
    { type: 'Resumed', epoch: 1 },
  ]);
  const held = '1 of your texts waits; your next message sends it too';
  assert.equal(JSON.stringify(updates).split(held).length, 3, JSON.stringify(updates));
});

test('two calls with one id, in two replies, are two calls in the editor', () => {
  const read = callOf({ callId: 'call_0', tool: 'read', input: { path: 'a.txt' } });
  const outcome = { status: 'ok', text: 'one' };
  const updates = updatesOf([
    { type: 'UserInput', text: 'go', mode: 'steer' },
    completed('req-1', '', [read]),
    { type: 'ToolCompleted', batchId: 'batch-1', callId: 'call_0', outcome },
    completed('req-2', '', [read]),
    { type: 'ToolCompleted', batchId: 'batch-2', callId: 'call_0', outcome },
    completed('req-3', '', [unknownTool('call_0')]), // refused: its batch ends at once
  ]);
  const ids = updates.flatMap((update) =>
    'toolCallId' in update ? [`${update.sessionUpdate} ${update.toolCallId}`] : [],
  );
  assert.deepEqual(
    ids,
    ['batch-1', 'batch-2', 'batch-3'].flatMap((batch) => [
      `tool_call ${batch}.call_0`,
      `tool_call_update ${batch}.call_0`,
    ]),
  );
});

test('an update that can not be made is sent in its other form, and those after it follow', async () => {
  const sent: unknown[] = [];
  const outbox = new Outbox(async (update) => void sent.push(update));
  const [failed, empty, last] = ['a', 'b', 'c'].map((text) =>
    textUpdate('user_message_chunk', text),
  );
  assert.ok(failed && empty && last);
  outbox.push({ make: () => Promise.reject(new Error('no access')), otherwise: failed });
  outbox.push({ make: async () => null, otherwise: empty });
  outbox.push({ make: async () => last, otherwise: failed }); // control
  outbox.open();
  await outbox.flushed();
  assert.deepEqual(sent, [failed, empty, last]);
});

test('streamed text that waits becomes one chunk for each message', async () => {
  const sent: unknown[] = [];
  const outbox = new Outbox(async (update) => void sent.push(update));
  const chunkOf = (text: string, messageId: string) =>
    textUpdate('agent_message_chunk', text, messageId);
  outbox.push(chunkOf('a', '1'));
  outbox.push(chunkOf('b', '1'));
  outbox.push(chunkOf('c', '2'));
  outbox.open();
  await outbox.flushed();
  assert.deepEqual(sent, [chunkOf('ab', '1'), chunkOf('c', '2')]);
});

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
  assert.equal(await client.prompt(sessionId, '/cost'), 'end_turn', 'no turn: the error is over');
  assert.equal(await client.prompt(sessionId, 'three'), 'max_tokens');
  assert.equal(await client.prompt(sessionId, 'four'), 'max_turn_requests');
  assert.equal(await client.prompt(sessionId, '/budget'), 'end_turn');
  assert.ok(!client.textOf(sessionId).includes('>'), 'warnings are notices');
  client.expectNoFault();
});

const textOf = ({ toolCall }: RequestPermissionRequest): string =>
  (toolCall.content ?? [])
    .map((item) =>
      item.type === 'content' && item.content.type === 'text' ? item.content.text : '',
    )
    .join('\n');

const write = (name: string) => ({ tool: 'write', input: { path: name, content: 'x\n' } });
const command = (text: string) => ({ tool: 'bash', input: { command: text } });
const unsandboxed = { flags: { sandbox: 'off' } };

test('options name what they allow, and a grant for the session asks no more', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { calls: [write('one.txt')] },
    { calls: [write('two.txt')] },
    { text: 'Done.' },
  ]);
  client.onPermission = () => select('session');
  const { sessionId } = await client.newSession(workspace);
  assert.equal(await client.prompt(sessionId, 'write'), 'end_turn');
  assert.equal(client.permissions.length, 1);
  const options = client.permissions[0]?.options ?? [];
  assert.deepEqual(
    options.map(({ kind }) => kind),
    ['allow_once', 'allow_always', 'allow_always', 'reject_once'],
  );
  for (const { kind, name } of options)
    assert.equal(/in this session: ./.test(name), kind === 'allow_always', name);
  assert.ok(existsSync(path.join(workspace, 'two.txt')));
  client.expectNoFault();
});

test('a question about a command shows all of it, with hidden characters as marks', async (context) => {
  const text = `echo first 'hid\u202eden'\n${'# a long comment line\n'.repeat(200)}echo last && rm -rf ./x`;
  const { client, workspace } = await makeStage(
    context,
    [{ calls: [command(text)] }, { text: 'Fine.' }],
    unsandboxed,
  );
  client.onPermission = () => select('no');
  const { sessionId } = await client.newSession(workspace);
  assert.equal(await client.prompt(sessionId, 'go'), 'end_turn');
  const [asked] = client.permissions;
  assert.ok(asked !== undefined);
  const shown = textOf(asked);
  assert.ok(shown.includes('echo first') && shown.includes('rm -rf ./x'), shown.slice(0, 200));
  assert.equal(shown.split('# a long comment line').length, 201);
  assert.ok(shown.includes('⟨U+202E⟩') && !shown.includes('\u202e'), 'the direction mark is shown');
  assert.match(shown, /reason: /);
  const [announced] = client.updatesOf(sessionId, 'tool_call');
  assert.ok(
    announced?.title.includes('⟨U+202E⟩') && !announced.title.includes('\u202e'),
    announced?.title,
  );
  assert.equal(client.updatesOf(sessionId, 'tool_call_update').at(-1)?.status, 'failed');
  client.expectNoFault();
});

test('an exact command is allowed again, a prefix for others; an answer that was not offered denies', async (context) => {
  const { client, workspace } = await makeStage(
    context,
    [
      { calls: [command('git status')] },
      { calls: [command('git status')] },
      { calls: [command('git log')] },
      { text: 'Done.' },
    ],
    unsandboxed,
  );
  const answers = ['always', 'made up'];
  client.onPermission = () => select(answers.shift() ?? 'no');
  const { sessionId } = await client.newSession(workspace);
  assert.equal(await client.prompt(sessionId, 'go'), 'end_turn');
  const asked = client.permissions.map(({ toolCall }) => toolCall.title);
  assert.deepEqual(asked, ['git status', 'git log']);
  const last = client.updatesOf(sessionId, 'tool_call_update').at(-1);
  assert.equal(last?.status, 'failed');
  assert.match(JSON.stringify(last.content), /not offered/);
  client.expectNoFault();
});

test('a cancelled question cancels the turn; cancelling the turn withdraws its questions', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { calls: [write('one.txt')] },
    { calls: [write('two.txt')] },
  ]);
  const { sessionId } = await client.newSession(workspace);
  client.onPermission = () => ({ outcome: { outcome: 'cancelled' } });
  assert.equal(await client.prompt(sessionId, 'write'), 'cancelled');
  client.onPermission = () => null;
  const answer = client.prompt(sessionId, 'again');
  await client.until('a second question', () => client.permissions.length === 2);
  client.notify('session/cancel', { sessionId });
  assert.equal(await answer, 'cancelled');
  await client.until('the withdrawal', () => client.withdrawn === 1);
  assert.ok(!existsSync(path.join(workspace, 'two.txt')));
  client.expectNoFault();
});

test('a prompt that is cancelled while it waits is told, and goes with no later one', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { calls: [write('one.txt')] },
    { text: 'Noon.' },
  ]);
  const { sessionId } = await client.newSession(workspace);
  const first = client.prompt(sessionId, 'run the tests');
  await client.until('the question', () => client.permissions.length === 1);
  const second = client.prompt(sessionId, 'delete the migrations');
  await client.newSession(workspace); // the prompt before it has arrived by then
  client.notify('session/cancel', { sessionId });
  assert.deepEqual(await Promise.all([first, second]), ['cancelled', 'cancelled']);
  assert.match(client.textOf(sessionId), /> Not sent: delete the migrations/);
  assert.equal(await client.prompt(sessionId, 'what time is it?'), 'end_turn');
  const { state } = await storedJournals().replay(sessionId);
  assert.doesNotMatch(JSON.stringify(state), /migrations/);
  client.expectNoFault();
});

test('another mode asks by its own rules, and client and options learn of it', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { calls: [write('one.txt')] },
    { text: 'Written.' },
    { calls: [write('two.txt')] },
    { text: 'Not written.' },
  ]);
  const { sessionId } = await client.newSession(workspace);
  await client.request('session/set_mode', { sessionId, modeId: 'auto' });
  assert.equal(await client.prompt(sessionId, 'write'), 'end_turn');
  assert.equal(client.permissions.length, 0);
  assert.ok(existsSync(path.join(workspace, 'one.txt')));
  assert.equal(client.updatesOf(sessionId, 'current_mode_update').at(-1)?.currentModeId, 'auto');
  const set = { sessionId, configId: 'mode', value: 'plan' };
  const { configOptions } = (await client.request('session/set_config_option', set)) as {
    readonly configOptions: readonly { readonly id: string; readonly currentValue: string }[];
  }; // by the schema
  assert.equal(configOptions.find(({ id }) => id === 'mode')?.currentValue, 'plan');
  assert.equal(await client.prompt(sessionId, 'write'), 'end_turn');
  assert.ok(!existsSync(path.join(workspace, 'two.txt')), 'plan changes nothing');
  for (const [configId, value] of [
    ['mode', 'wild'],
    ['effort', 'most'],
    ['colour', 'red'],
  ])
    await assert.rejects(
      client.request('session/set_config_option', { sessionId, configId, value }),
      {
        code: -32602,
        message: /^There is no /,
      },
    );
  client.expectNoFault();
});

test('an effort that the model lacks is told with the level that it gets', async (context) => {
  const { client, workspace } = await makeStage(context, []);
  const { ANTHROPIC_API_KEY } = process.env;
  process.env.ANTHROPIC_API_KEY = 'key';
  atEnd(context, () => {
    if (ANTHROPIC_API_KEY === undefined) delete process.env.ANTHROPIC_API_KEY;
    else process.env.ANTHROPIC_API_KEY = ANTHROPIC_API_KEY;
  });
  const { sessionId } = await client.newSession(workspace);
  const set = (configId: string, value: string) =>
    client.request('session/set_config_option', { sessionId, configId, value });
  const told = () =>
    JSON.stringify([
      client.updatesOf(sessionId, 'agent_message_chunk'),
      client.updatesOf(sessionId, 'notice'),
    ]);
  await set('model', 'anthropic/claude-sonnet-4-6');
  await set('effort', 'max');
  await set('effort', 'xhigh');
  await client.until('the note', () => /has no effort xhigh, so it gets high/.test(told()));
  assert.doesNotMatch(told(), /no effort max/);
  client.expectNoFault();
});

test('a diff that fits no file is shown hunk by hunk', async (context) => {
  const { plannedChange, madeChange } = await import('../../src/editor/tool-calls.js');
  const { temporaryFolder } = await import('../../../../test/temporary-folder.js');
  const file = path.join(temporaryFolder(context, 'diff'), 'a.txt');
  writeFileSync(file, 'something else\n');
  const diff = '--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n';
  const hunk = [{ type: 'diff', path: file, oldText: 'same\nold', newText: 'same\nnew' }];
  assert.deepEqual(await plannedChange(file, diff), hunk);
  assert.deepEqual(await madeChange(file, diff, 'another hash'), hunk);
  assert.deepEqual(await madeChange(file, diff, null), hunk);
  assert.equal(
    await plannedChange(file, '--- a.txt\n+++ a.txt\n(the change is too large to be shown)\n'),
    null,
  );
});

const ask = (question: string) => ({
  calls: [{ tool: 'ask_user', input: { question, choices: ['this', 'that'] } }],
});
const asksTwice = [ask('Which?'), ask('And now?'), { text: 'Done.' }];
const resultsOf = (updates: readonly object[]): string => JSON.stringify(updates);

test('a question of the model has its choices as options, or a form with free text', async (context) => {
  const { client, workspace } = await makeStage(context, asksTwice);
  const answers = ['2', 'no'];
  client.onPermission = () => select(answers.shift() ?? 'no');
  const { sessionId } = await client.newSession(workspace);
  assert.equal(await client.prompt(sessionId, 'go'), 'end_turn');
  assert.deepEqual(
    client.permissions[0]?.options.map(({ name, kind }) => [name, kind]),
    [
      ['this', 'allow_once'],
      ['that', 'allow_once'],
      ['Reject', 'reject_once'],
    ],
  );
  const results = resultsOf(client.updatesOf(sessionId, 'tool_call_update'));
  assert.match(results, /The user answered: that/);
  assert.match(results, /the user declined to answer\. Decide yourself/);
  client.expectNoFault();

  const forms = { capabilities: { elicitation: { form: {} } } };
  const other = await makeStage(context, asksTwice, forms);
  const contents = [{ choice: 'this' }, { choice: 'this', words: 'neither' }];
  other.client.onForm = () => ({ action: 'accept', content: contents.shift() ?? {} });
  const second = await other.client.newSession(other.workspace);
  assert.equal(await other.client.prompt(second.sessionId, 'go'), 'end_turn');
  const told = resultsOf(other.client.updatesOf(second.sessionId, 'tool_call_update'));
  assert.match(told, /The user answered: this[\s\S]*The user answered: neither/);
  assert.equal(other.client.permissions.length, 0);
  other.client.expectNoFault();
});

test('a plan is accepted in an editor, which is told the mode that goes on', async (context) => {
  const plan = { tool: 'propose_plan', input: { title: 'A parser', steps: ['write it'] } };
  const replies = [{ calls: [plan] }, { calls: [plan] }, { text: 'Done.' }];
  const { client, workspace } = await makeStage(context, replies);
  const answers = ['no', 'once'];
  client.onPermission = () => select(answers.shift() ?? 'no');
  const { sessionId } = await client.newSession(workspace);
  await client.request('session/set_mode', { sessionId, modeId: 'plan' });
  assert.equal(await client.prompt(sessionId, 'go'), 'end_turn');
  const [asked] = client.permissions;
  assert.ok(asked !== undefined);
  assert.match(textOf(asked), /A parser\n1\. write it[\s\S]*goes on in preset careful/);
  assert.deepEqual(
    asked.options.map(({ name }) => name),
    ['Yes: accept the plan and start', 'Reject'],
  );
  const modes = client.updatesOf(sessionId, 'current_mode_update');
  assert.deepEqual(
    modes.map(({ currentModeId }) => currentModeId),
    ['plan', 'careful'],
  );
  assert.deepEqual(client.updatesOf(sessionId, 'plan').at(-1)?.entries, [
    { content: 'write it', priority: 'medium', status: 'pending' },
  ]);
  client.expectNoFault();
});
