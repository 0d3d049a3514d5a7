import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { ListSessionsResponse, SessionUpdate } from '@agentclientprotocol/sdk';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { agentMachine } from '@pawl/agent/journal/journaled-agent-machine';
import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Event } from '@pawl/agent/machine/event';
import { agent, initialState, step } from '@pawl/agent/machine/machine';
import { defaultSettings } from '@pawl/agent/machine/settings';
import type { State } from '@pawl/agent/machine/state';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import { presetRules } from '@pawl/agent/policy/presets';
import type { Stepped } from '@pawl/agent/ports/session';
import { openSession } from '@pawl/agent/session/create-agent';
import { chooseRows, isDeep } from '../../../../test/tier.js';
import { SessionUpdates } from '../../src/editor/session-updates.js';
import { openFromFlags } from '../../src/sessions/open-session.js';
import { plant, plantCheckpoint } from '../e2e/forged-journal.js';
import { makeStage } from './acp-stage.js';
import { type StrictClient, select } from './strict-client.js';

const warn = (): void => undefined;
const loading = (sessionId: string, cwd: string) => ({ sessionId, cwd, mcpServers: [] });

/** The updates of a session without what differs between live and loaded: thoughts in pieces, usage, commands. */
const conversationOf = (client: StrictClient, from: number): readonly string[] =>
  client.updates.slice(from).flatMap(({ update }): readonly string[] => {
    if (
      update.sessionUpdate === 'agent_message_chunk' ||
      update.sessionUpdate === 'agent_thought_chunk'
    )
      return update.content.type === 'text'
        ? [`${update.sessionUpdate} ${update.content.text}`]
        : [];
    if (update.sessionUpdate === 'tool_call') return [`call ${update.title}`];
    return update.sessionUpdate === 'tool_call_update' && update.status !== 'in_progress'
      ? [`${update.status} ${JSON.stringify(update.content)}`]
      : [];
  });

const replies = [
  { reasoning: 'Hm.', text: 'I look.', calls: [{ tool: 'read', input: { path: 'a.txt' } }] },
  { calls: [{ tool: 'write', input: { path: 'b.txt', content: 'new\n' } }] },
  { text: 'Done.' },
  { text: 'Again.' },
];

test('a session of the terminal loads whole, and one of the editor opens in the terminal', async (context) => {
  const { client, workspace, model, leave } = await makeStage(context, replies);
  writeFileSync(path.join(workspace, 'a.txt'), 'one\n');
  const flags = { model, workspace, preset: 'auto' };
  const { session } = await openFromFlags(flags, 'terminal', { warn, configured: false });
  await session.prompt('from the terminal');
  await assert.rejects(client.request('session/load', loading(session.id, workspace)), {
    code: -32603,
    message: /open/,
  });
  await session.close();
  const loaded = (await client.request('session/load', loading(session.id, workspace))) as {
    readonly modes: { readonly currentModeId: string };
  }; // by the schema
  assert.equal(loaded.modes.currentModeId, 'careful', 'the preset is that of the configuration');
  assert.equal(client.textOf(session.id, 'user_message_chunk'), 'from the terminal');
  assert.deepEqual(conversationOf(client, 0).slice(0, 3), [
    'agent_thought_chunk Hm.',
    'agent_message_chunk I look.',
    'call read a.txt',
  ]);
  assert.equal(client.textOf(session.id), 'I look.Done.');
  assert.equal(await client.prompt(session.id, 'from the editor'), 'end_turn');
  client.expectNoFault();
  await leave();
  const again = await openFromFlags({ workspace }, 'terminal', {
    warn,
    configured: false,
    resume: session.id,
  });
  const messages = messagesOf((await again.session.state()).session.conversation);
  const typed = messages.flatMap(({ role, parts }) =>
    role === 'user' ? parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
  );
  assert.deepEqual(typed, ['from the terminal', 'from the editor']);
  await again.session.close();
});

test('a loaded session looks as it did live', async (context) => {
  const { client, workspace } = await makeStage(context, replies, { flags: { preset: 'auto' } });
  writeFileSync(path.join(workspace, 'a.txt'), 'one\n');
  const { sessionId } = await client.newSession(workspace);
  await client.prompt(sessionId, 'go');
  const live = conversationOf(client, 0);
  const from = client.updates.length;
  await client.request('session/load', loading(sessionId, workspace));
  assert.deepEqual(conversationOf(client, from), live);
  const [first, again] = client.updatesOf(sessionId, 'session_info_update');
  assert.ok(first?.updatedAt);
  assert.deepEqual(again, { sessionUpdate: 'session_info_update', title: 'go' }); // not active now
  client.expectNoFault();
});

test('loading a session that runs here goes on with it: the turn, its question and its answer', async (context) => {
  const { client, workspace } = await makeStage(context, replies);
  writeFileSync(path.join(workspace, 'a.txt'), 'one\n');
  let allow = (): void => undefined;
  client.onPermission = () =>
    new Promise((resolve) => {
      allow = () => resolve(select('once'));
    });
  const { sessionId } = await client.newSession(workspace);
  const answer = client.prompt(sessionId, 'go');
  await client.until('the question', () => client.permissions.length === 1);
  const from = client.updates.length;
  await Promise.all([
    client.request('session/load', loading(sessionId, workspace)),
    client.request('session/resume', { sessionId, cwd: workspace }),
  ]);
  const kinds = client.updates.slice(from).map(({ update }) => update.sessionUpdate);
  assert.ok(kinds.includes('user_message_chunk'), kinds.join());
  allow();
  assert.equal(await answer, 'end_turn');
  const texts = conversationOf(client, from);
  assert.equal(texts.at(-1), 'agent_message_chunk Done.');
  client.expectNoFault();
});

test('the beginning of a reply that is in the journal is shown once', () => {
  const texts: string[] = [];
  const features = { notices: true, compaction: true, forms: false };
  const updates = new SessionUpdates({
    workspace: '/w',
    features,
    blobs: { get: async () => undefined, put: async () => '' },
    title: 'known',
    push(item) {
      if ('sessionUpdate' in item && item.sessionUpdate === 'agent_message_chunk')
        texts.push(item.content.type === 'text' ? item.content.text : '');
    },
  });
  const delta = { type: 'TextDelta', requestId: 'req-1' } as const;
  const events: readonly Event[] = [
    { type: 'Start', at: 1 },
    { type: 'UserInput', at: 2, text: 'go', mode: 'steer' },
    { ...delta, at: 3, text: 'One' },
    { type: 'SettingsChanged', at: 4, patch: { effort: 'high' } },
  ];
  let state: State = initialState({ ...defaultSettings, model: 'scripted/x', workspace: '/w' });
  for (const [index, event] of events.entries()) {
    const next = step(state, event) as Omit<Stepped, 'seq' | 'event'>; // the machine's own step
    state = next.state;
    updates.replay({ ...next, seq: index + 1, event });
  }
  updates.endReplay(step(state, { ...delta, at: 5, text: ' two.' }).state);
  assert.deepEqual(texts, ['One', ' two.']);
});

test('sessions are listed by folder in pages; unused and foreign ones are not opened', async (context) => {
  const { client, workspace } = await makeStage(context, [{ text: 'Hi.' }, { text: 'Hi.' }]);
  const elsewhere = path.join(path.dirname(workspace), 'elsewhere');
  mkdirSync(elsewhere);
  const [used, unused] = [await client.newSession(workspace), await client.newSession(workspace)];
  const other = await client.newSession(elsewhere);
  await client.prompt(used.sessionId, 'first words\nof a session');
  await client.prompt(other.sessionId, 'elsewhere');
  const list = async (params: object): Promise<ListSessionsResponse> =>
    (await client.request('session/list', params)) as ListSessionsResponse; // by the schema
  const { sessions } = await list({ cwd: workspace });
  assert.deepEqual(
    sessions.map(({ sessionId, cwd, title }) => ({ sessionId, cwd, title })),
    [{ sessionId: used.sessionId, cwd: workspace, title: 'first words of a session' }],
  );
  assert.equal((await list({})).sessions.length, 2);
  assert.ok(!JSON.stringify(await list({})).includes(unused.sessionId));
  await assert.rejects(list({ cursor: 'gone' }), { code: -32602 });
  await client.request('session/close', { sessionId: other.sessionId });
  await assert.rejects(client.request('session/load', loading(other.sessionId, workspace)), {
    code: -32602,
    message: /elsewhere/,
  });
  await assert.rejects(client.prompt(other.sessionId, 'more'), { code: -32002 });
  await client.request('session/resume', { sessionId: other.sessionId, cwd: elsewhere });
  const shown = client.updates.filter(
    ({ sessionId, update }: { readonly sessionId: string; readonly update: SessionUpdate }) =>
      sessionId === other.sessionId && update.sessionUpdate === 'user_message_chunk',
  );
  assert.deepEqual(shown, [], 'resume replays nothing');
  await client.request('session/load', loading(other.sessionId, elsewhere));
  assert.equal(client.textOf(other.sessionId, 'user_message_chunk'), 'elsewhere');
  client.expectNoFault();
});

test('requests that can not be fulfilled say why', async (context) => {
  const { client, workspace } = await makeStage(context, [], {
    flags: { model: 'anthropic/claude-opus-5' },
  });
  const file = path.join(workspace, 'a.txt');
  writeFileSync(file, '');
  for (const [cwd, why] of [
    ['relative', /absolute/],
    [path.join(workspace, 'missing'), /can't be opened/],
    [file, /must be a folder/],
  ] as const)
    await assert.rejects(client.newSession(cwd), { code: -32602, message: why });
  await assert.rejects(
    client.request('session/load', loading('20200101-000000-aaaaaaaa', workspace)),
    {
      code: -32002,
      message: /There is no session/,
    },
  );
  await assert.rejects(client.prompt('nothing', 'hello'), {
    code: -32002,
    message: /There is no session/,
  });
  await assert.rejects(client.newSession(workspace), {
    code: -32000,
    message: /No API key found .*ANTHROPIC_API_KEY/s,
  });
  await assert.rejects(client.request('session/new', { cwd: workspace }, 'unchecked'), {
    code: -32602,
  });
  await assert.rejects(client.request('session/made_up', {}, 'unchecked'), { code: -32601 });
  client.notify('session/cancel', { sessionId: 'nothing' });
  assert.ok(await client.request('session/list', {}), 'it goes on');
  client.expectNoFault();
});

test('what is ignored is said after the answer that names the session', async (context) => {
  const { client, workspace } = await makeStage(context, []);
  const server = { name: 'tickets', type: 'sse', url: 'https://example.org/sse', headers: [] };
  const wanted = { cwd: workspace, mcpServers: [server], additionalDirectories: ['/elsewhere'] };
  const { sessionId } = (await client.request('session/new', wanted)) as {
    readonly sessionId: string;
  }; // by the schema
  await client.until('the commands', () =>
    client.updatesOf(sessionId, 'available_commands_update').at(0),
  );
  assert.match(
    client.textOf(sessionId),
    /mcpServers\.tickets\.type is "stdio" or "http".*Not added: \/elsewhere/s,
  );
  client.expectNoFault();
});

test('the editor deletes a session, also one that it has open, but none that is open elsewhere', async (context) => {
  const { client, workspace, model } = await makeStage(context, replies, {
    flags: { preset: 'auto' },
  });
  writeFileSync(path.join(workspace, 'a.txt'), 'one\n');
  const { sessionId } = await client.newSession(workspace);
  await client.prompt(sessionId, 'go');
  const elsewhere = await openFromFlags({ model, workspace }, 'terminal', {
    warn,
    configured: false,
  });
  await elsewhere.session.prompt('from the terminal');
  const remove = (id: string) => client.request('session/delete', { sessionId: id });
  const listed = async () =>
    ((await client.request('session/list', {})) as ListSessionsResponse).sessions // by the schema
      .map((session) => session.sessionId)
      .sort();
  await assert.rejects(remove(elsewhere.session.id), { code: -32603, message: /is open in/ });
  assert.deepEqual(await listed(), [sessionId, elsewhere.session.id].sort());
  await elsewhere.session.close();
  assert.deepEqual(await remove(sessionId), {});
  assert.deepEqual(await listed(), [elsewhere.session.id]);
  await assert.rejects(client.prompt(sessionId, 'more'), { code: -32002 });
  await assert.rejects(remove(sessionId), { code: -32002 });
  await assert.rejects(remove('../../config'), { code: -32002 });
  client.expectNoFault();
});

const TURNS = isDeep ? 20 : 2;
const CALLS = 50;

/** Two longReplies a turn: calls, then a text that names the turn. */
const longReplies = Array.from({ length: 2 * (TURNS + 1) }, (_, index) =>
  index % 2 === 0
    ? {
        text: `Turn ${index / 2 + 1} begins.`,
        calls: Array.from({ length: CALLS }, (_call, offset) => ({
          tool: 'read',
          input: { path: 'a.txt', offset: offset + 1, limit: 1 },
        })),
      }
    : { text: `Turn ${(index + 1) / 2} ends.` },
);

test('a long terminal session loads whole, and its journal is folded once', async (context) => {
  const { client, workspace, model, folder } = await makeStage(context, longReplies);
  writeFileSync(path.join(workspace, 'a.txt'), 'line\n'.repeat(CALLS));
  const { session } = await openFromFlags({ model, workspace, preset: 'auto' }, 'terminal', {
    warn,
    configured: false,
  });
  for (let turn = 1; turn <= TURNS; turn++) await session.prompt(`turn ${turn}`);
  await session.close();
  const { seq } = await fileJournals({ folder: path.join(folder, 'state', 'pawl') }).peek(
    session.id,
  );
  assert.ok(seq >= 100 * TURNS, `${seq} events`);

  let folded = 0;
  context.mock.method(agentMachine, 'step', (...given: Parameters<typeof agent.stepUnchecked>) => {
    folded += 1;
    return agent.stepUnchecked(...given);
  });
  const loaded = { sessionId: session.id, cwd: workspace, mcpServers: [] };
  await client.request('session/load', loaded);
  assert.equal(folded, seq, 'each event is folded once');
  const texts = Array.from({ length: TURNS }, (_, index) => index + 1);
  assert.equal(
    client.textOf(session.id, 'user_message_chunk'),
    texts.map((turn) => `turn ${turn}`).join(''),
  );
  assert.equal(
    client.textOf(session.id),
    texts.map((turn) => `Turn ${turn} begins.Turn ${turn} ends.`).join(''),
  );
  assert.equal(client.updatesOf(session.id, 'tool_call').length, TURNS * CALLS);
  const ended = client
    .updatesOf(session.id, 'tool_call_update')
    .filter(({ status }) => status === 'completed');
  assert.equal(ended.length, TURNS * CALLS);
  assert.equal(client.updatesOf(session.id, 'session_info_update').at(0)?.title, 'turn 1');
  assert.equal(await client.prompt(session.id, 'go on'), 'end_turn');
  client.expectNoFault();
  if (!isDeep) return; // a short session has no snapshot

  await client.request('session/close', { sessionId: session.id });
  folded = 0;
  await client.request('session/resume', { sessionId: session.id, cwd: workspace });
  assert.ok(
    folded < seq / 2,
    `resuming folds only what follows the last snapshot: ${folded} events`,
  );
});

/** Journals of somebody else, loaded by an editor and by a program. */

const shownWays = ['session/load', 'session/resume'].flatMap((way) =>
  (['requested', 'running', 'calling'] as const).map((until) => ({ way, until })),
);
for (const { way, until } of chooseRows(shownWays, ({ way }) => way))
  test(`an editor's ${way} of a foreign session only shows it: ${until}`, async (context) => {
    const { client, workspace, folder } = await makeStage(context, [{ text: 'Fine.' }]);
    const canary = path.join(workspace, 'CANARY');
    const call = { tool: 'write', input: { path: canary, content: 'x' }, title: 'read a.txt' };
    const state = path.join(folder, 'state', 'pawl');
    const { sessionId } = await plant(state, workspace, {
      calls: [call],
      until,
      settings: { preset: 'plan' },
    });
    const loaded = (await client.request(way, { sessionId, cwd: workspace, mcpServers: [] })) as {
      readonly modes: { readonly currentModeId: string };
    }; // by the schema
    assert.equal(loaded.modes.currentModeId, 'careful', 'the mode is that of the configuration');
    await client.until('the notice', () =>
      client.textOf(sessionId).includes('was not created here'),
    );
    assert.equal(client.permissions.length, 0);
    assert.equal(await client.prompt(sessionId, 'go on'), 'end_turn');
    assert.ok(!existsSync(canary));
    const { rules } = (await fileJournals({ folder: state }).peek(sessionId)).state.session
      .settings;
    assert.deepEqual(rules, presetRules.careful);
    // A client that resumes has the conversation already, and so the call whose end it is told.
    if (way === 'session/load') client.expectNoFault();
  });

for (const name of chooseRows(['.git', '.git/hooks', '.github/workflows', '.vscode']))
  test(`an editor opens no session in ${name}`, async (context) => {
    const { client, workspace } = await makeStage(context, [{ text: 'Fine.' }]);
    const cwd = path.join(workspace, name);
    mkdirSync(cwd, { recursive: true });
    for (const [method, more] of [
      ['session/new', {}],
      ['session/load', { sessionId: 'x' }],
    ] as const)
      await assert.rejects(client.request(method, { cwd, mcpServers: [], ...more }), {
        message: /can't be the workspace, since it lies in/,
      });
  });

test('a program that opens a foreign session gives it its own rights, and nothing of it starts', async (context) => {
  const { workspace, folder } = await makeStage(context, []);
  const state = path.join(folder, 'state', 'pawl');
  const canary = path.join(workspace, 'CANARY');
  const calls = [{ tool: 'write', input: { path: canary, content: 'x' } }];
  const { sessionId } = await plant(state, workspace, {
    calls,
    settings: { sandbox: 'off', autoRearm: 'on' },
  });
  const session = await openSession({
    model: scriptedModel({ replies: [{ text: 'Fine.' }] }),
    journals: fileJournals({ folder: state }),
    workspace,
    resume: sessionId,
    preset: 'careful',
  });
  const opened = await session.idle();
  assert.equal(opened.name, 'WaitingForUserInput');
  const { settings } = opened.session;
  assert.deepEqual([settings.rules, settings.autoRearm], [presetRules.careful, 'off']);
  assert.notEqual(settings.sandbox, 'off');
  await session.prompt('go on');
  await session.close();
  assert.ok(!existsSync(canary));
});

for (const place of ['project', 'home'] as const)
  test(`an editor takes a foreign session back, in a ${place}: its files are named, protected ones stay`, async (context) => {
    const { client, workspace, folder } = await makeStage(context, [{ text: 'Fine.' }]);
    const home = process.env.HOME;
    context.after(() => {
      process.env.HOME = home;
    });
    process.env.HOME = place === 'home' ? workspace : folder;
    const state = path.join(folder, 'state', 'pawl');
    const sessionId = await plantCheckpoint(state, workspace, ['.envrc', 'ok.txt']);
    await client.request('session/load', { sessionId, cwd: workspace, mcpServers: [] });
    const typed = async (command: string): Promise<string> => {
      const before = client.textOf(sessionId).length;
      await client.prompt(sessionId, command);
      return client.textOf(sessionId).slice(before);
    };
    const timeline = await typed('/rewind');
    assert.match(timeline, /\.envrc deleted \(stays as it is: [^)]*\), ok\.txt deleted/);
    assert.doesNotMatch(timeline, /a\.js/);
    const said = await typed('/rewind 0 force refs');
    assert.match(said, place === 'home' ? /is your home/ : /left as it is: \.envrc/);
    const written = readdirSync(workspace);
    assert.deepEqual(written, place === 'home' ? [] : ['ok.txt']);
    client.expectNoFault();
  });
