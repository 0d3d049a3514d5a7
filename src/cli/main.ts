import { isMainThread } from 'node:worker_threads';
import { CommanderError } from 'commander';
import { hideEnvironment } from '../secrets/erase-process-environment.js';
import { makeSafe, safe } from '../terminal/safe-text.js';
import { routeStrayOutput } from '../terminal/stray-output.js';
import { writeError } from '../terminal/write.js';
import { buildProgram } from './command-table.js';
import { endingOfError, exitCodes } from './exit-codes.js';
import { tiePrompt } from './flag-advice.js';
import { exitOnSignals } from './signals.js';
import { flushSpans } from './telemetry/flush-at-exit.js';

/** Entry of the program: parses the command line, runs the command, exits with its code. */

/** Prints an error and returns its exit code. A closed pipe is not reported: the reader has gone. */
const codeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  const { exit, message } = endingOfError(error);
  if (exit !== exitCodes.closedPipe) writeError(safe`pawl: ${makeSafe(message)}\n`);
  return exit;
};

const main = async (words: readonly string[]): Promise<number> => {
  let exit: number = exitCodes.done;
  try {
    const program = buildProgram((code) => {
      exit = code;
    });
    const flags = program.options.flatMap(({ short, long }) => [short ?? '', long ?? '']);
    await program.parseAsync(tiePrompt(words, [...flags, '-h', '--help']), { from: 'user' });
    return exit;
  } catch (error) {
    return codeOf(error);
  }
};

if (isMainThread) hideEnvironment();
routeStrayOutput();
exitOnSignals();
// Errors outside of any await: in timers, streams, unhandled promises. Those of a worker go to its parent.
if (isMainThread) process.on('uncaughtException', (error) => process.exit(codeOf(error)));
// `main` below always exits. If the event loop empties before, some promise can never settle.
process.once('beforeExit', () => {
  writeError(
    safe`pawl: an internal fault: nothing is left to wait for, and the work is not done. Please report it.\n`,
  );
  process.exit(exitCodes.internal);
});
void main(process.argv.slice(2)).then(async (exit) => {
  await flushSpans();
  process.exit(exit);
});
