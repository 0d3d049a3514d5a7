import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { atEnd } from '../../../../test/temporary-folder.js';
import { makeStage } from './acp-stage.js';
import { select } from './strict-client.js';

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
  assert.match(textOf(asked), /A parser\n1\. write it[\s\S]*goes on with the preset careful/);
  assert.deepEqual(
    asked.options.map(({ name }) => name),
    ['Yes: accept the plan, and carry it out', 'Reject'],
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
