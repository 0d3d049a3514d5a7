import { realpathSync } from 'node:fs';
import {
  listLibraries,
  type SandboxedEnd,
  type SandboxedProgram,
  startSandboxed,
} from '../../src/environments/run-program.js';

/** Node behind bubblewrap, for tests: what its code finds out it says through file descriptor 3. */

export const MEGABYTE = 1024 * 1024;

const node = realpathSync(process.execPath);
const libraries = listLibraries(node);

/** `code` finds `say(value)`, which tells the value as JSON. */
export const nodeOrder = async (
  code: string,
  change: Partial<SandboxedProgram> = {},
): Promise<SandboxedProgram> => ({
  program: node,
  words: [
    '-e',
    `const say = (value) => require('fs').writeSync(3, JSON.stringify(value) + '\\n');\n${code}`,
  ],
  readable: (await libraries).map((library) => ({ from: library, to: library })),
  hidden: [],
  memoryMax: 2_048 * MEGABYTE,
  ...change,
});

/** Runs it to its end: what it said, and how it ended. */
export const runNode = async (
  code: string,
  change: Partial<SandboxedProgram> = {},
): Promise<{ readonly said: readonly unknown[]; readonly end: SandboxedEnd }> => {
  const started = startSandboxed(await nodeOrder(code, change));
  let text = '';
  started.channel.on('data', (bytes: Buffer) => {
    text += bytes.toString('utf8');
  });
  const end = await started.ended;
  const lines = text.split('\n').filter((line) => line !== '');
  return { said: lines.map((line) => JSON.parse(line)), end };
};
