import { realpathSync } from 'node:fs';
import { listLibraries, startSandboxed } from '../../src/environments/run-program.js';

/** Starts three sandboxed programs one after the other as soon as it is told to, and says when the first one started. */

const STARTS = 3;

const main = async (): Promise<void> => {
  const program = realpathSync('/bin/sleep');
  const readable = (await listLibraries(program)).map((library) => ({
    from: library,
    to: library,
  }));
  const words = [process.argv[2] ?? ''];
  process.stdin.once('data', () => {
    for (let count = 0; count < STARTS; count++) {
      startSandboxed({ program, words, readable, hidden: [], memoryMax: 2e9 });
      if (count === 0) process.stdout.write('started\n');
    }
  });
  process.stdout.write('ready\n');
};

void main();
