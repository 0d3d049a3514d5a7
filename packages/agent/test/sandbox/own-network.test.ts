import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
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
