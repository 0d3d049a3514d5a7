import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, readdirSync, realpathSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import type { ProgramPath } from '../../src/platform/find-program.js';
import { runProgram } from '../../src/platform/run-program.js';
import { SYSTEM_SHELL } from '../../src/platform/start-program.js';

/** The network devices that a program sees which does not share the network of the commands, as a formatter. */
for (const level of ['read-only', 'workspace'] as const)
  test(`a program beside the commands sees no network: ${level}`, async (t) => {
    const environment = { ...process.env, XDG_STATE_HOME: temporaryFolder(t, 'state') };
    const sandbox = createSessionSandbox({ environment });
    t.after(() => sandbox.close());
    const prepared = await (await sandbox.of(temporaryFolder(t, 'workspace'))).prepare({
      level,
      environment: {},
      program: SYSTEM_SHELL,
      words: ['-c', "sed -n 's/^ *\\([^ :]*\\):.*/\\1/p' /proc/net/dev"],
    });
    const running = runProgram({
      ...prepared,
      program: prepared.program as ProgramPath, // bubblewrap
      title: 'sh',
      input: null,
      bytesMax: 4_096,
      atMax: 'fail',
      deadlineMs: 600_000,
      signal: new AbortController().signal,
    });
    prepared.started();
    const { output, errors } = await running;
    await prepared.finish();
    assert.equal(output.toString('utf8'), 'lo\n', errors);
  });

test('a command that could not be set up does not run: what the user makes stays', async (t) => {
  const state = temporaryFolder(t, 'state');
  const workspace = realpathSync(temporaryFolder(t, 'workspace'));
  const session = createSessionSandbox({ environment: { ...process.env, XDG_STATE_HOME: state } });
  t.after(() => session.close());
  const sandbox = await session.of(workspace);
  const program = { environment: {}, program: SYSTEM_SHELL, words: ['-c', 'true'] };
  const run = async (): Promise<readonly string[]> => {
    const prepared = await sandbox.prepare({ level: 'workspace', ...program });
    prepared.started();
    return prepared.finish();
  };
  await run();
  const top = path.join(state, 'pawl', 'sandbox');
  const files = readdirSync(top, { encoding: 'utf8', recursive: true });
  const filters = files.filter((name) => name.endsWith('.filter'));
  for (const name of filters) renameSync(path.join(top, name), path.join(top, `${name}.away`));
  await assert.rejects(run());
  for (const name of filters) renameSync(path.join(top, `${name}.away`), path.join(top, name));
  writeFileSync(path.join(workspace, '.envrc'), 'mine');
  assert.deepEqual(await run(), []);
  assert.ok(existsSync(path.join(workspace, '.envrc')));
});
