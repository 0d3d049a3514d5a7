import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { serverScript } from '../../../../test/kit/mcp/test-servers.js';
import { makeStage, type Stage, toolsKnown } from './acp-stage.js';
import { select } from './strict-client.js';

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
