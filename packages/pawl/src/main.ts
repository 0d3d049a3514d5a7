/** Entry of the program: prepares the process, runs the command line, exits with its code. */

import { isMainThread } from 'node:worker_threads';
import { hideEnvironment } from '@pawl/agent/secrets/redactor';
import { safe } from '@pawl/terminal/safe-text';
import { routeStrayOutput, writeError } from '@pawl/terminal/write';
import { reportError, runCommandLine } from './commands/command-line.js';
import { exitCodes, exitOnSignals } from './process/exit-codes.js';

if (isMainThread) hideEnvironment(); // other programs can't read the keys of this process
routeStrayOutput(); // output of libraries becomes safe for the screen
exitOnSignals(); // at once, until an open session handles signals
// Errors outside of any await: in timers, streams, unhandled promises. Those of a worker go to its
// parent.
if (isMainThread) process.on('uncaughtException', (error) => process.exit(reportError(error)));
// The last line always exits. If the event loop empties before, some promise can never settle.
process.once('beforeExit', () => {
  writeError(
    safe`pawl: an internal fault: nothing is left to wait for, and the work is not done. Please report it.\n`,
  );
  process.exit(exitCodes.internal);
});
void runCommandLine(process.argv.slice(2)).then((exit) => process.exit(exit));
