/**
 * Keeps the temporary files of the tests in memory, where this user may mount: the tests make and
 * remove many thousands of files, and a disk makes that cost a tenth of all CPU, in some files a
 * third.
 *
 * The run starts itself again in a mount namespace of its own. The memory is free when its last
 * process has ended, however it ended. Everybody else's tests use the disk.
 */

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import path from 'node:path';

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
export const runInMemory = async (): Promise<number | null> => {
  if (process.env[WITHIN] === '1') return null;
  const folder = mkdtempSync(path.join(tmpdir(), 't-')); // short: addresses of sockets are below it
  try {
    if (!canMount(folder)) return null;
    const [program = '', ...words] = process.argv;
    const again = spawn('unshare', mountedAt(folder, [program, ...process.execArgv, ...words]), {
      env: { ...process.env, [WITHIN]: '1' },
      stdio: 'inherit',
    });
    process.on('SIGINT', () => undefined); // a terminal sends it to both, and the run within ends
    process.on('SIGTERM', () => again.kill('SIGTERM'));
    return await new Promise((resolve, reject) => {
      again.once('error', reject);
      again.once('exit', (code) => resolve(code ?? 1));
    });
  } finally {
    // empty here: what was mounted on it was seen only by the run within
    rmdirSync(folder);
  }
};
