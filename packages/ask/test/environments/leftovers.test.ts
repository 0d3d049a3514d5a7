import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { until } from '../../../../test/until.js';
import { python } from '../../src/environments/python.js';
import { runCell, withEnvironment } from './conformance.js';
import { familyOf, isAlive, ownProcesses } from './family.js';

/** No process outlives its environment, nor the program that started it. */

const CHILD = await bundleProgram(
  { after },
  {
    file: fileURLToPath(new URL('child.ts', import.meta.url)),
  },
);

/** A program with an environment; resolves when it says that it is up. */
const startChild = async (t: TestContext, how: string) => {
  const child = spawn(process.execPath, [CHILD, how], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  await once(child.stdout, 'data');
  return { child, ended };
};

describe('what is left of an environment', () => {
  it('nothing when it was closed, also in the middle of a cell, also twice', async () => {
    await withEnvironment(python, [], async (environment) => {
      assert.ok(ownProcesses('bwrap').length > 0);
      const running = runCell(environment, 'while True: pass');
      await Promise.all([environment.close(), environment.close()]);
      assert.equal((await running).status, 'died');
      assert.deepEqual(ownProcesses('bwrap'), []);
    });
  });

  for (const how of ['idle', 'busy']) {
    it(`${how}: nothing when its program is killed`, async (t) => {
      const { child, ended } = await startChild(t, how);
      const family = familyOf(child.pid ?? assert.fail('it has no pid'));
      assert.ok(family.length >= 2, 'bubblewrap and the program behind it run');
      child.kill('SIGKILL');
      await ended;
      await until('all of it has ended', () => !family.some(isAlive));
    });
  }

  it('nothing when its program exits without closing it', async (t) => {
    const { child, ended } = await startChild(t, 'leave');
    await ended;
    assert.equal(child.exitCode, 0);
    await until('all of it has ended', () => ownProcesses('bwrap').length === 0);
  });

  it('a process that somebody ends between two cells is replaced, and that is said once', async () => {
    await withEnvironment(python, ['context'], async (environment) => {
      await runCell(environment, 'kept = 1');
      const outer = ownProcesses('bwrap');
      const family = [...outer, ...outer.flatMap(familyOf)];
      for (const pid of outer) process.kill(pid, 'SIGKILL');
      await until('it is gone', () => !family.some(isAlive));
      await new Promise((resolve) => setTimeout(resolve, 100)); // and we have noticed
      const next = await runCell(environment, 'print(context)');
      assert.deepEqual([next.status, next.stdout, next.variablesLost], ['ok', 'context\n', 'yes']);
      assert.deepEqual(next.variables, []);
      assert.equal((await runCell(environment, 'print(context)')).variablesLost, 'no');
    });
  });
});
