import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { median } from './figures.js';

const run = promisify(execFile);

/** `pawl --version` against `node -e 0`, in alternation. */
export const benchStart = async (times = 25): Promise<string> => {
  const bin = path.resolve('packages/pawl/bin/pawl.js');
  const timed = async (words: readonly string[]): Promise<number> => {
    const startedAt = performance.now();
    await run(process.execPath, words);
    return performance.now() - startedAt;
  };
  const bare: number[] = [];
  const own: number[] = [];
  for (let time = 0; time < times; time++) {
    bare.push(await timed(['-e', '0']));
    own.push(await timed([bin, '--version']));
  }
  return [
    '| wall, ms | node -e 0 | pawl --version | ratio |',
    '|---|--:|--:|--:|',
    `| median of ${times} | ${median(bare).toFixed(1)} | ${median(own).toFixed(1)} | ${(median(own) / median(bare)).toFixed(2)} |`,
  ].join('\n');
};
