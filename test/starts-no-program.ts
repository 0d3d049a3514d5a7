import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import workerThreads from 'node:worker_threads';

/**
 * The process of the unit tests loads this first: it starts no program and no thread. A test that tries to fails here, and
 * needs a process of its own (scripts/test-runner/tier.ts). Unit tests close their servers, or the process does not end.
 */

const REFUSAL = 'unit tests share a process and start nothing; import test/own-process.ts';

const forbid = (owner: object, names: readonly string[]): void => {
  for (const name of names) {
    const refuse = (): never => {
      throw new Error(`${name}: ${REFUSAL}`);
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

// A session looks whether there is a sandbox here, which starts a program, and reports that there is none.
const { emitWarning } = process;
const emitOthers = (...parameters: Parameters<typeof emitWarning>): void => {
  if (!String(parameters[0]).includes(REFUSAL)) emitWarning(...parameters);
};
process.emitWarning = emitOthers as typeof emitWarning; // all its forms begin with the warning
