import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { until } from '../../../../test/until.js';
import { askToEnd, endTree } from '../../src/command/end-processes.js';
import { readProcess } from '../../src/platform/processes.js';

const commandLineOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has ended
  }
};

test('a grandchild with a session of its own and no variables is found by its parents', async (t) => {
  const script = '(env -i setsid sleep 1000 >/dev/null & echo $!; wait) & wait';
  const child = spawn('bash', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { pid = 0 } = child;
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
  const grandchild = Number(line);
  t.after(() => commandLineOf(grandchild) === '' || process.kill(grandchild, 'SIGKILL'));
  await until('it sleeps', () => commandLineOf(grandchild).startsWith('sleep'));
  const root = { pid, marker: 'none', startedAt: Number(readProcess(pid).started) };
  await endTree(root, askToEnd(root));
  assert.equal(commandLineOf(grandchild), '');
});
