import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { openTrust } from '@pawl/agent/extensions/trust';
import { serverScript } from '../../../../test/kit/mcp/test-servers.js';
import { makeStage, type Stage, toolsKnown } from './acp-stage.js';
import { select } from './strict-client.js';

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
