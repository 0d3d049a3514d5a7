/**
 * A folder of its own for the temporary files of a run. Who still works in it when the run has ended,
 * however it ended, is killed.
 *
 * The folder is in memory where this user may mount: the tests make and remove many thousands of
 * files, and a disk makes that cost a tenth of all CPU, in some files a third. Then the run starts
 * itself again in a mount namespace of its own. Everybody else's tests use the disk.
 */

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { killProcessesWith } from '../../test/kit/tools/processes.js';

const MEMORY_MIN_BYTES = 8e9;
/** Set for the run that this one starts in the new namespace. */
const WITHIN = 'PAWL_TESTS_IN_MEMORY';

const mount = [
  '--mount',
  '--',
  'sh',
  '-c',
  'mount -t tmpfs -o mode=1777 tmpfs "$0" && TMPDIR="$0" exec "$@"',
];

const mountedAt = (folder: string, command: readonly string[]): readonly string[] => [
  ...mount,
  folder,
  ...command,
];

const canMount = (folder: string): boolean =>
  process.getuid?.() === 0 &&
  totalmem() >= MEMORY_MIN_BYTES &&
  spawnSync('unshare', mountedAt(folder, ['true']), { stdio: 'ignore' }).status === 0;

/**
 * Runs this program again with its temporary folder in memory, and gives its exit code; null where
 * that can't be.
 */
const runInMemory = async (folder: string): Promise<number | null> => {
  if (!canMount(folder)) return null;
  const [program = '', ...words] = process.argv;
  const again = spawn('unshare', mountedAt(folder, [program, ...process.execArgv, ...words]), {
    env: { ...process.env, [WITHIN]: '1' },
    stdio: 'inherit',
  });
  process.on('SIGINT', () => undefined); // a terminal sends it to both, and the run within ends
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => again.kill(signal));
  return new Promise((resolve, reject) => {
    again.once('error', reject);
    again.once('exit', (code) => resolve(code ?? 1));
  });
};

/**
 * Gives `main` a temporary folder of its own, and the exit code: that of this program in memory, or
 * null where `main` has run here.
 */
export const withOwnFolder = async (main: () => Promise<void>): Promise<number | null> => {
  if (process.env[WITHIN] === '1') {
    await main();
    return null;
  }
  const folder = mkdtempSync(path.join(tmpdir(), 't-')); // short: addresses of sockets are below it
  process.once('exit', () => {
    for (const line of killProcessesWith(folder)) console.log(`⚠ still running, killed: ${line}`);
    // empty here where it was in memory: what was mounted on it was seen only by the run within
    rmSync(folder, { recursive: true, force: true });
  });
  const code = await runInMemory(folder);
  if (code !== null) return code;
  process.env.TMPDIR = folder;
  await main();
  return null;
};
