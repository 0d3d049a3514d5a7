import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../../../test/bundled-program.js';

const CHILD = await bundleProgram(
  { after },
  {
    file: fileURLToPath(new URL('child.ts', import.meta.url)),
  },
);

export type Child = {
  readonly pid: number | undefined;
  /** The next line of its stdout; undefined when it has ended. */
  nextLine(): Promise<string | undefined>;
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>;
  /** What it wrote to stderr. */
  complaints(): string;
};

/** Runs child.ts in a process of its own, behind the words of `wrapper`; it is killed when the test ends. */
export const startChild = (
  context: TestContext,
  words: readonly string[],
  wrapper: readonly string[] = [],
): Child => {
  const [program = '', ...rest] = [...wrapper, process.execPath, CHILD, ...words];
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let complaints = '';
  child.stderr.on('data', (piece: Buffer) => {
    complaints += piece.toString();
  });
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  context.after(kill);
  return {
    pid: child.pid,
    nextLine: async () => {
      const { value, done } = await lines.next();
      return done === true ? undefined : value;
    },
    kill,
    complaints: () => complaints,
  };
};
