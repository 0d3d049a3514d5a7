/**
 * Which programs the test files start, for `npm test -- --report`: most of what a test costs is the
 * start of a program.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const COUNTER = fileURLToPath(new URL('count-programs.py', import.meta.url));

/** How often each program was started, by its name. */
export type StartedPrograms = Readonly<Record<string, number>>;

/** By the process of the test file. */
export type ProgramsOfProcesses = Readonly<Record<string, StartedPrograms>>;

export type ProgramCounter = {
  /** Ends the counting. Null where the kernel does not tell: it tells root on Linux. */
  readonly end: () => Promise<ProgramsOfProcesses | null>;
};

/** Counts from now on what the children of this process start, with their descendants. */
export const countPrograms = async (): Promise<ProgramCounter> => {
  const counter = spawn('python3', [COUNTER, String(process.pid)]);
  const lines: string[] = [];
  const output = createInterface({ input: counter.stdout }).on('line', (line) => lines.push(line));
  const complaint = text(counter.stderr);
  const closed = once(counter, 'close');
  await Promise.race([once(output, 'line'), closed]);
  return {
    end: async () => {
      counter.stdin.on('error', () => undefined); // it has ended already, which its code says
      counter.stdin.end();
      const [code] = await closed;
      if (code === 0) return JSON.parse(lines[1] ?? '{}');
      console.log(`ℹ programs were not counted: ${(await complaint).trim().split('\n').at(-1)}`);
      return null;
    },
  };
};
