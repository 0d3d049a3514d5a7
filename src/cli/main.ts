import { CommanderError } from 'commander';
import { endingOfError, exitCodes } from './exit-codes.js';
import { buildProgram } from './program.js';
import { exitOnSignals } from './signals.js';

/** The program's entry: reads the command line and ends with its code. */

/** Turns whatever ended the program into its code; the only place that does. A closed pipe is nothing to talk about. */
const codeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const { exit, message } = endingOfError(error);
  if (exit !== exitCodes.closedPipe) process.stderr.write(`pawl: ${message}\n`);
  return exit;
};

const main = async (words: readonly string[]): Promise<number> => {
  let exit: number = exitCodes.done;
  try {
    await buildProgram((code) => {
      exit = code;
    }).parseAsync(words, { from: 'user' });
    return exit;
  } catch (error) {
    return codeOf(error);
  }
};

// Progress that nobody can read any more is no reason to fail.
process.stderr.on('error', () => undefined);
exitOnSignals();
// The end is said below. If nothing is left to wait for before that, something waits for what can never come.
process.once('beforeExit', () => {
  process.stderr.write(
    'pawl: an internal fault: nothing is left to wait for, and the work is not done. Please report it.\n',
  );
  process.exit(exitCodes.internal);
});
void main(process.argv.slice(2)).then((exit) => process.exit(exit));
