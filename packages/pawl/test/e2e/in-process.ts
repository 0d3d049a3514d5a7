import fs, { type Stats } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { Readable } from 'node:stream';
import { runCommandLine } from '../../src/commands/command-line.js';
import type { Ended, Place } from './pawl.js';

/**
 * Runs the command line in the process of the test: everything from the words to the exit code, without the start of a
 * program, which costs ten times as much. What only a process of its own can show (signals, kills, closed pipes, its
 * environment, the bundle) is for `runPawl`, as is a run beside another one.
 *
 * 1. Variables and folder are those of the place until the run has ended, stdin holds the input.
 * 2. What is written to stdout and stderr is caught where it leaves the program: in the system call.
 */

type Caught = { readonly out: Buffer[]; readonly error: Buffer[] };
let caught: Caught | null = null;

const { writeSync, fstatSync } = fs;

/** Both are called by other code, too: only what goes to the two streams during a run is caught. */
const catchOutput = (): void => {
  Reflect.set(
    fs,
    'writeSync',
    (descriptor: number, content: Buffer | string, ...rest: readonly never[]) => {
      if (caught === null || (descriptor !== 1 && descriptor !== 2))
        return Reflect.apply(writeSync, fs, [descriptor, content, ...rest]);
      const bytes = Buffer.from(content as Buffer); // a copy, of bytes or of text
      (descriptor === 1 ? caught.out : caught.error).push(bytes);
      return bytes.length;
    },
  );
  const pipe = { isFIFO: () => true, isSocket: () => false, isFile: () => false } as Stats;
  Reflect.set(fs, 'fstatSync', (descriptor: number, ...rest: readonly never[]) =>
    caught !== null && descriptor === 0
      ? pipe
      : Reflect.apply(fstatSync, fs, [descriptor, ...rest]),
  );
  syncBuiltinESMExports();
};

const exchangeEnvironment = (environment: NodeJS.ProcessEnv): (() => void) => {
  const before = { ...process.env };
  const set = (variables: NodeJS.ProcessEnv): void => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    for (const [name, value] of Object.entries(variables))
      if (value !== undefined) process.env[name] = value;
  };
  set(environment);
  return () => set(before);
};

const exchangeStdin = (input: string | Buffer): (() => void) => {
  const before = Object.getOwnPropertyDescriptor(process, 'stdin');
  const stdin = Readable.from(input.length === 0 ? [] : [Buffer.from(input as Buffer)], {
    objectMode: false,
  });
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  return () => {
    if (before !== undefined) Object.defineProperty(process, 'stdin', before);
  };
};

/** Like `runPawl`. One run at a time. */
export const runInProcess = async (
  place: Place,
  words: readonly string[],
  input: string | Buffer = '',
): Promise<Ended> => {
  if (caught !== null) throw new Error('one run at a time: a run beside another one needs runPawl');
  if (fs.writeSync === writeSync) catchOutput();
  const own: Caught = { out: [], error: [] };
  const folder = process.cwd();
  caught = own;
  const back = [exchangeEnvironment(place.environment), exchangeStdin(input)];
  process.chdir(place.workspace);
  try {
    const code = await runCommandLine(words);
    const [stdout, stderr] = [own.out, own.error].map((pieces) =>
      Buffer.concat(pieces).toString('utf8'),
    );
    return { code, stdout: stdout ?? '', stderr: stderr ?? '' };
  } finally {
    caught = null;
    process.chdir(folder);
    for (const restore of back) restore();
  }
};
