import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import type { PreparedCommand } from '../../src/command/command-sandbox.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import type { ProgramPath } from '../../src/platform/find-program.js';

// A folder that is exchanged between the scan and the set-up of the fence: the command must not see what is mounted then.

const EXCHANGED = /exchanged folders of the workspace/;

const makeRepository = (folder: string, secret: string): void => {
  mkdirSync(path.join(folder, '.git'), { recursive: true });
  writeFileSync(path.join(folder, '.git/config'), '[core]\n');
  writeFileSync(path.join(folder, '.git/secret'), secret);
};

const prepare = async (t: TestContext) => {
  const workspace = temporaryFolder(t, 'exchanged');
  makeRepository(path.join(workspace, 'pkg'), 'own');
  makeRepository(path.join(workspace, 'other'), 'foreign');
  const sandbox = createSessionSandbox({
    environment: { ...process.env, XDG_STATE_HOME: temporaryFolder(t, 'exchanged-state') },
  });
  t.after(() => sandbox.close());
  const commands = await sandbox.of(workspace);
  const prepared = await commands.prepare({
    level: 'workspace',
    program: '/bin/cat' as ProgramPath,
    words: [path.join(workspace, 'pkg/.git/secret')],
    environment: {},
  });
  return { workspace, prepared };
};

const exchange = (workspace: string): void => {
  renameSync(path.join(workspace, 'pkg'), path.join(workspace, 'old'));
  renameSync(path.join(workspace, 'other'), path.join(workspace, 'pkg'));
};

const runPrepared = async (prepared: PreparedCommand, words = prepared.words) => {
  const { status, stdout, stderr } = spawnSync(prepared.program, words, {
    cwd: prepared.folder,
    env: prepared.environment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe', ...prepared.descriptors],
  });
  prepared.started();
  await prepared.finish();
  return { status, output: stdout + stderr };
};

test('a command whose mounts were exchanged while they were made does not start, and says so', async (t) => {
  const { workspace, prepared } = await prepare(t);
  exchange(workspace);
  const { status, output } = await runPrepared(prepared);
  assert.equal(status, 126);
  assert.match(output, EXCHANGED);
  assert.doesNotMatch(output, /foreign/);
});

test('control: without the comparison the command sees the other folder', async (t) => {
  const { workspace, prepared } = await prepare(t);
  exchange(workspace);
  const words = prepared.words.map((word) => (EXCHANGED.test(word) ? 'exec "$@"' : word));
  const { output } = await runPrepared(prepared, words);
  assert.equal(output, 'foreign');
});

test('where nothing was exchanged the command starts', async (t) => {
  const { prepared } = await prepare(t);
  assert.deepEqual(await runPrepared(prepared), { status: 0, output: 'own' });
});
