import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileJournals } from '@pawl/agent/journal/file-store';
import { scriptedModel } from '@pawl/agent/models/scripted-model';
import { presetRules } from '@pawl/agent/policy/presets';
import { openSession } from '@pawl/agent/session/create-agent';
import { plant, plantCheckpoint } from '../e2e/forged-journal.js';
import { makeStage } from './acp-stage.js';

/** Journals of somebody else, loaded by an editor and by a program. */

for (const way of ['session/load', 'session/resume'])
  for (const until of ['requested', 'running', 'calling'] as const)
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

for (const name of ['.git', '.git/hooks', '.github/workflows', '.vscode'])
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
    const ask = async (method: string, more: object = {}): Promise<string> =>
      JSON.stringify(await client.request(`_pawl/session/${method}`, { sessionId, ...more }));
    const timeline = await ask('timeline');
    assert.match(timeline, /\.envrc deleted \(stays as it is: [^)]*\), ok\.txt deleted/);
    assert.doesNotMatch(timeline, /a\.js/);
    assert.match(await ask('plan_rewind', { at: 0, force: true }), /"path":"\.envrc","why"/);
    const rewind = ask('rewind', { at: 0, force: true, refs: true });
    if (place === 'home') await assert.rejects(rewind, /is your home/);
    else await rewind;
    const written = readdirSync(workspace);
    assert.deepEqual(written, place === 'home' ? [] : ['ok.txt']);
    client.expectNoFault();
  });
