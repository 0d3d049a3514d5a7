import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
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
