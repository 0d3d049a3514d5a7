import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import workerThreads from 'node:worker_threads';

/**
 * A test file that imports this shares the process of the unit tests, though its imports reach modules that start programs
 * or threads, or open connections (scripts/test-runner/tier.ts). It promises to start no program and no thread, and to
 * close its servers. A file that breaks the first promise fails here; after a server that stays open the process does not end.
 */

const forbid = (owner: object, names: readonly string[]): void => {
  for (const name of names) {
    const refuse = (): never => {
      throw new Error(`${name}: a test file that imports test/starts-no-program.ts may not call it`);
    };
    Reflect.set(owner, name, refuse);
  }
};

forbid(childProcess, ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork']);
forbid(workerThreads, ['Worker']);
syncBuiltinESMExports();
