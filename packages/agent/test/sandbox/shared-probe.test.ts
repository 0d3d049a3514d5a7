import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { probeSandbox } from '../../src/command/session-sandbox.js';
import { defaultSettings, type Settings } from '../../src/machine/settings.js';
import { presetSettings } from '../../src/session/session-settings.js';

test('a probe of this process is shared while it runs, and asked again after it', async (context) => {
  const folder = temporaryFolder(context, 'probe');
  const first = probeSandbox(process.env, folder, 'kept');
  assert.equal(probeSandbox(process.env, folder, 'kept'), first);
  const fresh = probeSandbox(process.env, folder, 'fresh');
  const elsewhere = probeSandbox({ ...process.env, PATH: '/nowhere' }, folder, 'kept');
  for (const other of [fresh, elsewhere]) assert.notEqual(other, first);
  await Promise.all([first, fresh, elsewhere]);
  assert.notEqual(probeSandbox(process.env, folder, 'kept'), first);
});

test('another preset keeps a read-only sandbox that the user chose', async (context) => {
  const workspace = temporaryFolder(context, 'preset');
  const { kind } = await probeSandbox(process.env, workspace, 'kept');
  const levelFrom = async (before: Partial<Settings>, preset: 'plan' | 'auto') => {
    const settings = { ...defaultSettings, model: 'm', workspace, ...before };
    const { sandbox } = await presetSettings(settings, preset);
    return kind === 'missing' && sandbox === 'missing' ? 'read-only' : sandbox;
  };
  const chosen = { preset: 'careful', sandbox: 'read-only' } as const;
  assert.equal(await levelFrom(chosen, 'auto'), 'read-only');
  const planning = { preset: 'plan', sandbox: 'read-only' } as const;
  assert.equal(await levelFrom({ ...planning, sandboxBefore: 'read-only' }, 'auto'), 'read-only');
  if (kind !== 'missing') assert.equal(await levelFrom(planning, 'auto'), 'workspace');
});
