import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { NewSessionResponse, RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { openTrust } from '@pawl/agent/extensions/trust';
import { plainScript, serverScript } from '../../../../test/kit/mcp/test-servers.js';
import { readEditorServers } from '../../src/editor/acp-agent.js';
import { makeStage, type Stage, toolsKnown } from './acp-stage.js';
import { select } from './strict-client.js';

test('servers of an editor are read as those of a configuration', () => {
  const { servers, faults } = readEditorServers([
    {
      name: 'GitHub (work)',
      command: '/bin/github',
      args: ['-x'],
      env: [{ name: 'TOKEN', value: 'secret' }],
    },
    {
      name: 'web',
      type: 'http',
      url: 'https://example.org/mcp',
      headers: [{ name: 'X', value: 'y' }],
    },
    { name: 'old', type: 'sse', url: 'https://example.org/sse', headers: [] },
    { name: '(?)', command: '/bin/x', args: [], env: [] },
  ]);
  assert.deepEqual(
    servers.map((server) => [
      server.name,
      server.kind,
      server.kind === 'stdio' ? server.env : server.headers,
    ]),
    [
      ['GitHub-work', 'stdio', { TOKEN: 'secret' }],
      ['web', 'http', { X: 'y' }],
    ],
  );
  assert.equal(faults.length, 2);
});

test('servers of an editor whose names differ stay apart, and the last one of a name counts', () => {
  const names = [
    'company internal tools, production, eu',
    'company internal tools, production, us',
  ];
  const { servers } = readEditorServers(
    [...names, 'x', 'x'].map((name, index) => ({ name, command: `/${index}`, args: [], env: [] })),
  );
  const short = 'company-internal-tools-productio';
  assert.deepEqual(
    servers.map((server) => [server.name, server.kind === 'stdio' ? server.command : '']),
    [
      [`${short.slice(0, 32)}`, '/0'],
      [`${short.slice(0, 29)}-2`, '/1'],
      ['x', '/3'],
    ],
  );
});

test('a server that the editor gives starts with the first prompt, and its tool works in this session', async (context) => {
  const stage = await makeStage(context, [
    { text: 'Hello.' },
    { calls: [{ tool: 'mcp__tickets__count', input: {} }] },
    { text: 'Seven.' },
  ]);
  const { client, workspace } = stage;
  const started = path.join(workspace, 'started');
  const script = serverScript(
    context,
    `process.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(started)}, '');` +
      "server.registerTool('count', { description: 'Counts.', inputSchema: schema() }, async () => ({ content: [{ type: 'text', text: 'seven tickets' }] }));",
  );
  const tickets = { name: 'tickets', command: process.execPath, args: [script], env: [] };
  const open = async (): Promise<string> => {
    const made = await client.request('session/new', { cwd: workspace, mcpServers: [tickets] });
    return (made as NewSessionResponse).sessionId; // by the schema
  };
  const sessionId = await open();
  await open();
  assert.ok(!existsSync(started), 'no server starts before a prompt');
  client.onPermission = () => select('once');
  assert.equal(await client.prompt(sessionId, 'hello'), 'end_turn');
  await toolsKnown(stage);
  assert.ok(existsSync(started));
  assert.equal(await client.prompt(sessionId, 'how many?'), 'end_turn');
  assert.equal(client.permissions.length, 1, 'each call of its tools is asked about');
  assert.match(
    JSON.stringify(client.updatesOf(sessionId, 'tool_call_update').at(-1)),
    /seven tickets/,
  );
  client.expectNoFault();
});

test('a server of an editor that hangs is said in the session, and a cancel ends the wait at once', async (context) => {
  const { client, workspace } = await makeStage(context, [{ text: 'Hello.' }]);
  const script = plainScript(context, 'process.stdin.resume();');
  const mute = { name: 'mute', command: process.execPath, args: [script], env: [] };
  const made = await client.request('session/new', { cwd: workspace, mcpServers: [mute] });
  const { sessionId } = made as NewSessionResponse; // by the schema
  const prompt = client.prompt(sessionId, 'hello');
  await client.until('the words', () =>
    client.textOf(sessionId).includes('waiting at most 5 s for the MCP server mute'),
  );
  client.notify('session/cancel', { sessionId });
  assert.equal(await prompt, 'cancelled');
  assert.ok(!client.textOf(sessionId).includes('did not answer'));
  client.expectNoFault();
});

test('commands of the project are announced and expanded', async (context) => {
  const { client, workspace, model } = await makeStage(context, [{ text: 'Reviewed.' }]);
  assert.ok(model.startsWith('scripted/'));
  const folder = path.join(workspace, '.pawl', 'commands');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    path.join(folder, 'review.md'),
    '---\ndescription: Reviews.\n---\nReview $ARGUMENTS carefully.\n',
  );
  const { sessionId } = await client.newSession(workspace);
  const announced = await client.until('the commands', () =>
    client.updatesOf(sessionId, 'available_commands_update').at(0),
  );
  assert.ok(announced.availableCommands.some(({ name }) => name === 'review'));
  assert.equal(await client.prompt(sessionId, '/review src'), 'end_turn');
  await client.request('session/load', { sessionId, cwd: workspace, mcpServers: [] });
  assert.match(
    client.textOf(sessionId, 'user_message_chunk'),
    /^\/review src\n\n[\s\S]*Review src carefully/,
  );
  client.expectNoFault();
});

/** The questions of a real MCP server in an editor. */

const asking = `server.registerTool('ask', { inputSchema: schema({ many: { type: 'boolean' } }) }, async ({ many }, { mcpReq }) => {
  const choice = { type: 'string', enum: ['staging', 'production'], enumNames: ['Staging', 'hid\\u202eden'] };
  const properties = many ? { place: choice, count: { type: 'integer', title: 'How many?' }, note: { type: 'string' } } : { place: choice };
  const answer = await mcpReq.elicitInput({ mode: 'form', message: 'Where to?\\u001b[2J', requestedSchema: { type: 'object', properties, required: ['place'] } });
  return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
});`;

const call = (many: boolean): object => ({
  calls: [{ tool: 'mcp__deploy__ask', input: { many } }],
});

/** A session that has the tool, and whose calls of it are allowed. */
const openStage = async (
  context: TestContext,
  replies: readonly object[],
  capabilities: object,
): Promise<Stage & { readonly sessionId: string }> => {
  const stage = await makeStage(context, [{ text: 'Hello.' }, ...replies], { capabilities });
  const { client, workspace } = stage;
  const deploy = {
    name: 'deploy',
    command: process.execPath,
    args: [serverScript(context, asking)],
    env: [],
  };
  const open = () => client.request('session/new', { cwd: workspace, mcpServers: [deploy] });
  const { sessionId } = (await open()) as { readonly sessionId: string }; // by the schema
  assert.equal(await client.prompt(sessionId, 'hello'), 'end_turn');
  await toolsKnown(stage);
  return { ...stage, sessionId };
};

const resultOf = ({ client, sessionId }: Stage & { readonly sessionId: string }): string =>
  JSON.stringify(
    client.updatesOf(sessionId, 'tool_call_update').map(({ content }) => content ?? null),
  );

test('a question of a server is a form in an editor that has forms, and its answer is in the result', async (context) => {
  const forms = { elicitation: { form: {} } };
  const stage = await openStage(context, [call(true), call(true), { text: 'Done.' }], forms);
  const { client, sessionId } = stage;
  client.onPermission = () => select('session');
  const contents: Record<string, string | number>[] = [
    { place: 'production', count: 3, more: 'not asked for' },
    { place: 'elsewhere' },
  ];
  client.onForm = () => ({ action: 'accept', content: contents.shift() ?? {} });
  assert.equal(await client.prompt(sessionId, 'deploy'), 'end_turn');
  const [form] = client.forms;
  assert.ok(form?.mode === 'form');
  assert.match(form.message, /^The MCP server deploy asks: Where to\?␛\[2J$/);
  const schema = form.requestedSchema as { readonly properties: Readonly<Record<string, unknown>> }; // by the schema
  assert.deepEqual(schema.properties.place, {
    type: 'string',
    oneOf: [
      { const: 'staging', title: 'Staging' },
      { const: 'production', title: 'hid⟨U+202E⟩den' },
    ],
    title: 'place',
  });
  const results = resultOf(stage);
  assert.ok(
    results.includes(
      String.raw`{\"action\":\"accept\",\"content\":{\"place\":\"production\",\"count\":3}}`,
    ),
  );
  assert.ok(
    results.includes(String.raw`{\"action\":\"decline\"}`),
    'no value that was not offered',
  );
  client.expectNoFault();
});

test('without forms one choice is asked as options, more is declined, and a cancelled turn takes it back', async (context) => {
  const stage = await openStage(
    context,
    [call(false), call(true), { text: 'One.' }, call(false)],
    {},
  );
  const { client, sessionId } = stage;
  const titles: string[] = [];
  client.onPermission = ({ toolCall }) => {
    titles.push(toolCall.title ?? '');
    if (titles.length === 4) return null;
    return toolCall.toolCallId.startsWith('question-') ? select('choice-1') : select('once');
  };
  assert.equal(await client.prompt(sessionId, 'deploy'), 'end_turn');
  assert.match(titles[1] ?? '', /^deploy asks: Where to\?/);
  assert.match(resultOf(stage), /\\"accept\\".*\\"production\\"/);
  assert.match(resultOf(stage), /\\"decline\\"/);
  assert.match(client.textOf(sessionId), /the MCP server deploy asks: Where to\?.*has declined/s);
  client.onPermission = ({ toolCall }) =>
    toolCall.toolCallId.startsWith('question-') ? null : select('once');
  const before = client.permissions.length;
  const turn = client.prompt(sessionId, 'again');
  await client.until('the question', () => client.permissions.length === before + 2);
  client.notify('session/cancel', { sessionId });
  assert.equal(await turn, 'cancelled');
  await client.until('the withdrawal', () => client.withdrawn === 1);
  client.expectNoFault();
});

/** What a project wants to run is asked about in the editor: real servers, hooks and stores. */

/** A project with a hook that writes a file at the start of a session, and an MCP server. */
const makeProject = ({ workspace }: Stage, server: string): void => {
  mkdirSync(path.join(workspace, '.pawl'), { recursive: true });
  const hook = [
    '[hook.greet]',
    'on = "session-start"',
    `command = ["/bin/sh", "-c", 'echo "hid\u202eden" > began.txt']`,
    'sandbox = "off"',
  ];
  writeFileSync(path.join(workspace, '.pawl', 'config.toml'), hook.join('\n'));
  const servers = { tickets: { command: process.execPath, args: [server] } };
  writeFileSync(path.join(workspace, '.mcp.json'), JSON.stringify({ mcpServers: servers }));
};

const counting =
  "server.registerTool('count', { inputSchema: schema() }, async () => ({ content: [] }));";

const textOf = ({ toolCall }: RequestPermissionRequest): string => JSON.stringify(toolCall.content);

const answersOf = ({ folder }: Stage) =>
  openTrust(path.join(folder, 'state', 'pawl'), () => undefined).list();

test('what the project wants to run is asked about at the first prompt, and has its level from then on', async (context) => {
  const stage = await makeStage(context, [
    { text: 'One.' },
    { calls: [{ tool: 'mcp__tickets__count', input: {} }] },
    { text: 'Two.' },
  ]);
  const { client, workspace } = stage;
  makeProject(stage, serverScript(context, counting));
  const began = path.join(workspace, 'began.txt');
  const seen: boolean[] = [];
  client.onPermission = ({ toolCall }) => {
    seen.push(existsSync(began));
    return select(toolCall.title?.includes('hook') === true ? 'y' : 'o');
  };
  const { sessionId } = await client.newSession(workspace);
  await client.request('session/set_mode', { sessionId, modeId: 'plan' });
  const early = client.permissions.length;
  assert.equal(early, 0, 'nothing is asked before a prompt');
  assert.equal(await client.prompt(sessionId, 'hello'), 'end_turn');
  assert.deepEqual(seen, [false, false], 'the hook has not run before its answer');
  const [server, hook] = client.permissions;
  assert.ok(server !== undefined && hook !== undefined && client.permissions.length === 2);
  assert.match(server.toolCall.title ?? '', /^This project wants to run: MCP server tickets$/);
  assert.deepEqual(
    server.options.map(({ optionId, kind }) => `${optionId} ${kind}`),
    ['y allow_always', 'w allow_always', 'o allow_always', 'later reject_once', 'no reject_always'],
  );
  assert.deepEqual(
    hook.options.map(({ optionId }) => optionId),
    ['y', 'later', 'no'],
  );
  assert.match(textOf(hook), /hid⟨U\+202E⟩den.*it runs as you, outside the sandbox/s);
  assert.ok(existsSync(began), 'the hook has run');
  assert.equal(client.updatesOf(sessionId, 'current_mode_update').at(-1)?.currentModeId, 'plan');
  assert.deepEqual(
    (await answersOf(stage)).map(({ kind, name, answer, level }) => [kind, name, answer, level]),
    [
      ['mcp-server', 'tickets', 'allowed', 'off'],
      ['hook', 'greet', 'allowed', undefined],
    ],
  );
  await toolsKnown(stage);
  assert.equal(await client.prompt(sessionId, 'again'), 'end_turn');
  assert.match(
    JSON.stringify(client.updatesOf(sessionId, 'tool_call_update').at(-1)),
    /denied by policy/,
    'its tool is declared in this session, and the preset decides about it',
  );
  assert.match(client.textOf(sessionId), /One\..*Two\./s);
  assert.equal(client.permissions.length, 2, 'one question for each, once');
  client.expectNoFault();
});

test('no, not now, a cancelled question and an answer that was not offered run nothing; a change shows what changed', async (context) => {
  const stage = await makeStage(context, [
    { text: '1' },
    { text: '2' },
    { text: '3' },
    { text: '4' },
  ]);
  const { client, workspace } = stage;
  const server = serverScript(context, counting);
  makeProject(stage, server);
  const answers = [
    { outcome: { outcome: 'cancelled' } } as const,
    select('wild'),
    select('later'),
    select('no'),
    select('y'),
  ];
  client.onPermission = () => answers.shift() ?? select('later');
  const begin = async (): Promise<string> => {
    const { sessionId } = await client.newSession(workspace);
    assert.equal(await client.prompt(sessionId, 'hello'), 'end_turn');
    return sessionId;
  };
  await begin();
  assert.deepEqual(await answersOf(stage), []);
  await begin();
  assert.deepEqual(
    (await answersOf(stage)).map(({ name, answer }) => `${name} ${answer}`),
    ['greet refused'],
  );
  await begin();
  assert.equal(client.permissions.length, 5, 'what is refused is not asked again');
  makeProject(stage, `${server}.changed`);
  await begin();
  assert.match(
    client.permissions.at(-1)?.toolCall.title ?? '',
    /^Changed since you allowed it: MCP server tickets/,
  );
  assert.match(
    textOf(client.permissions.at(-1) as RequestPermissionRequest),
    /```diff.*\.changed/s,
  );
  assert.ok(!existsSync(path.join(workspace, 'began.txt')));
  client.expectNoFault();
});

test('a turn that is cancelled withdraws the question, and a client that goes away leaves no answer', async (context) => {
  const stage = await makeStage(context, [{ text: 'One.' }]);
  const { client, workspace } = stage;
  makeProject(stage, serverScript(context, counting));
  const { sessionId } = await client.newSession(workspace);
  const first = client.prompt(sessionId, 'hello');
  await client.until('a question', () => client.permissions.length === 1);
  client.notify('session/cancel', { sessionId });
  assert.equal(await first, 'cancelled');
  await client.until('the withdrawal', () => client.withdrawn === 1);
  assert.equal(await client.prompt(sessionId, 'hello'), 'end_turn');
  assert.equal(client.permissions.length, 1, 'this session asks no more');
  const other = await client.newSession(workspace);
  void client.prompt(other.sessionId, 'hello').catch(() => undefined);
  await client.until('another question', () => client.permissions.length === 2);
  await stage.leave();
  assert.deepEqual(await answersOf(stage), []);
  assert.ok(!existsSync(path.join(workspace, 'began.txt')));
  client.expectNoFault();
});
