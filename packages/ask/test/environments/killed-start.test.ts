import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../../../test/bundled-program.js';
import { processesWith } from '../../../../test/kit/tools/processes.js';
import { countCases } from '../../../../test/tier.js';
import { until } from '../../../../test/until.js';

/**
 * Bubblewrap makes its inner process before it binds its life to the outer one: a kill in between left it waiting for
 * ever. Each kill comes at another moment of three starts.
 */

const KILLS = countCases(12);
const LATEST_MS = 20;

const runner = await bundleProgram(
  { after },
  { file: fileURLToPath(new URL('sleeping-runner.ts', import.meta.url)) },
);

it('nothing is left of a sandbox if Pawl is killed while it starts', async () => {
  // A number of seconds that no other process has in its command line.
  const seconds = `313${process.pid}`;
  for (let kill = 0; kill < KILLS; kill++) {
    const child = spawn(process.execPath, [runner, seconds], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.stdin.write('go');
    await once(child.stdout, 'data');
    await sleep((LATEST_MS * kill) / KILLS);
    child.kill('SIGKILL');
    await once(child, 'close');
  }
  await until('all of them have ended', () => processesWith(seconds).length === 0);
});
