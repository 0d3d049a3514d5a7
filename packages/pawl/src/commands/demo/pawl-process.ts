import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { NODE_PROGRAM, startProgram } from '@pawl/agent/platform/programs/start-program';
import { parse } from 'valibot';
import { exitCodes, Stop } from '../../exit-codes.js';
import { type JsonRecord, recordSchema } from '../../headless/record-schema.js';
import { packageFolder } from '../../package-folder.js';
import { listenToSignals } from '../../signals.js';

/** Pawl as a process of its own, as a script would start it: `pawl … --json`. */
export type PawlProcess = {
  readonly pid: number;
  /** Ends it at once, as `kill -9` does. */
  kill(): void;
  /** Its exit code; null after `kill`. Rejects with a `Stop` if the user interrupted the demo. */
  readonly ended: Promise<number | null>;
  /** What it printed to stderr. */
  errors(): string;
};

/** Without the user's settings: an empty place for files, and no variable of Pawl. */
const plainEnvironment = (folder: string): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PAWL_'))),
  XDG_CONFIG_HOME: join(folder, 'no-settings'),
});

export const startPawl = (
  folder: string,
  words: readonly string[],
  see: (record: JsonRecord) => void,
): PawlProcess => {
  const child = startProgram(NODE_PROGRAM, [join(packageFolder(), 'bin', 'pawl.js'), ...words, '--json'], {
    cwd: folder,
    env: plainEnvironment(folder),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // the keys of the terminal reach it only through the listener below
  });
  let isStopped = false;
  let errors = '';
  const stop = (): void => {
    isStopped = true;
    child.kill('SIGTERM');
  };
  const stopListening = listenToSignals({ interrupt: stop, interruptAgain: stop, terminate: stop });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    see(parse(recordSchema, JSON.parse(line)));
  });
  const end = async (): Promise<number | null> => {
    try {
      const [[code]] = await Promise.all([once(child, 'close'), once(lines, 'close')]);
      if (isStopped) throw new Stop(exitCodes.interrupted, 'cancelled', 'The demo was stopped.');
      return typeof code === 'number' ? code : null;
    } finally {
      stopListening();
    }
  };
  return {
    pid: child.pid ?? 0,
    kill: () => void child.kill('SIGKILL'),
    ended: end(),
    errors: () => errors,
  };
};
