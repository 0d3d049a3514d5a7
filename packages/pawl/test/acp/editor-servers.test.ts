import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { NewSessionResponse } from '@agentclientprotocol/sdk';
import { serverScript } from '../../../../test/kit/mcp/test-servers.js';
import { readEditorServers } from '../../src/editor/acp-agent.js';
import { makeStage } from './acp-stage.js';
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

test('a server that the editor gives starts with the first prompt, and each call of its tools is asked about', async (context) => {
  const { client, workspace } = await makeStage(context, [
    { calls: [{ tool: 'mcp__tickets__count', input: {} }] },
    { text: 'Seven.' },
  ]);
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
  const first = await open();
  await open();
  assert.ok(!existsSync(started), 'no server starts before a prompt');
  assert.equal(await client.prompt(first, 'hello'), 'end_turn');
  await client.until('the tools are known', () =>
    client.textOf(first).includes('tickets is new: 1 tool'),
  );
  client.onPermission = () => select('once');
  assert.ok(existsSync(started));
  const sessionId = await open();
  assert.equal(await client.prompt(sessionId, 'how many?'), 'end_turn');
  assert.equal(client.permissions.length, 1);
  assert.match(
    JSON.stringify(client.updatesOf(sessionId, 'tool_call_update').at(-1)),
    /seven tickets/,
  );
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
