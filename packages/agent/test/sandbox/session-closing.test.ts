import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { viewHost } from '../../src/command/sandbox/host.js';
import { createSessionSandbox } from '../../src/command/session-sandbox.js';
import { createJobs } from '../../src/ports/tool.js';
import { commandTool } from '../../src/tools/builtin-tools.js';
import { createFileMemory } from '../../src/tools/file-change.js';

/** A session that is closed leaves neither a folder nor a process, at whatever moment it is. */

const never = new AbortController().signal;

const openSession = (t: TestContext, view: typeof viewHost = viewHost) => {
  const folder = temporaryFolder(t, 'closing');
  const workspace = temporaryFolder(t, 'closing-work');
  const environment = { ...process.env, XDG_STATE_HOME: folder };
  const sandbox = createSessionSandbox({ environment, viewHost: view });
  const tool = commandTool({ environment, sandbox });
  const sandboxes = path.join(folder, 'pawl', 'sandbox');
  return {
    sandbox,
    run: (command: string) =>
      tool.run(
        { command },
        {
          workspace,
          batchId: 'batch',
          callId: 'call',
          paths: [workspace],
          hosts: [],
          sandbox: 'workspace',
          signal: never,
          force: never,
          files: createFileMemory(),
          jobs: createJobs(),
          left: () => ({ usd: { type: 'unlimited' }, tokens: { type: 'unlimited' } }),
          blobs: { get: async () => undefined, put: async () => '' },
          progress: () => undefined,
        },
      ),
    folders: () => (existsSync(sandboxes) ? readdirSync(sandboxes) : []),
    /** Processes that know of a session. */
    processes: () => processesWith(sandboxes),
  };
};

/** Processes that were killed can be seen for a moment, after they have closed their files. */
const leavesNothing = async (
  session: ReturnType<typeof openSession>,
  when: string,
): Promise<void> => {
  assert.deepEqual(session.folders(), [], when);
  await until(`${when}: no process`, () => session.processes().length === 0);
};

test('control: an open session has a folder and a launcher', async (t) => {
  const session = openSession(t);
  await session.run(':');
  assert.equal(session.folders().length, 1);
  await until('a launcher', () => session.processes().length > 0);
  await session.sandbox.close();
});

test('a session that is closed while the next command is parked leaves nothing', async (t) => {
  for (const delay of [0, 1, 2, 3, 4, 5, 6, 8, 10, 15]) {
    const session = openSession(t);
    const { status } = await session.run(':');
    assert.equal(status, 'ok');
    if (delay > 0) await sleep(delay);
    await session.sandbox.close();
    await leavesNothing(session, `closed ${delay} ms after the command`);
  }
});

test('a session that is closed while its first command starts leaves nothing', async (t) => {
  for (const delay of [0, 1, 5, 10, 20, 40, 80]) {
    const session = openSession(t);
    const ran = session.run('sleep 0.1').catch(() => null);
    await sleep(delay);
    await session.sandbox.close();
    await ran;
    await leavesNothing(session, `closed ${delay} ms after the command was given`);
  }
});

test('a session that has been closed starts no command in its sandbox', async (t) => {
  for (const before of [true, false]) {
    const session = openSession(t);
    if (before) await session.run(':');
    await session.sandbox.close();
    const { status, text } = await session.run('echo up');
    assert.deepEqual([status, /the session has ended/.test(text)], ['failed', true], text);
    await leavesNothing(session, before ? 'closed after a command' : 'closed before any command');
  }
});

test('a fault in the first command does not refuse the next one', async (t) => {
  for (const runs of [1, 2]) {
    let views = 0;
    const session = openSession(t, () => {
      views += 1;
      return views === 1 ? assert.fail('EMFILE') : viewHost();
    });
    assert.match((await session.run('echo one')).text, /EMFILE/);
    if (runs === 2) assert.match((await session.run('echo two')).text, /^two/);
    await session.sandbox.close();
    await leavesNothing(session, `closed after ${runs}`);
  }
});
