import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { NewSessionResponse } from '@agentclientprotocol/sdk';
import { plainScript, serverScript } from '../../../../test/kit/mcp/test-servers.js';
import { readEditorServers } from '../../src/editor/acp-agent.js';
import { makeStage, toolsKnown } from './acp-stage.js';
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
