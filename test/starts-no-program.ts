import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import workerThreads from 'node:worker_threads';

/**
 * The process of the unit tests loads this first: it starts no program and no thread. A test that tries to fails here, and
 * needs a process of its own (scripts/test-runner/tier.ts). Unit tests close their servers, or the process does not end.
 */

const forbid = (owner: object, names: readonly string[]): void => {
  for (const name of names) {
    const refuse = (): never => {
      throw new Error(
        `${name}: unit tests share a process and start nothing; import test/own-process.ts`,
      );
    };
    Reflect.set(owner, name, refuse);
  }
};

forbid(childProcess, [
  'spawn',
  'spawnSync',
  'exec',
  'execSync',
  'execFile',
  'execFileSync',
  'fork',
]);
forbid(workerThreads, ['Worker']);
syncBuiltinESMExports();
