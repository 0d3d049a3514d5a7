/** `pawl acp`: the agent of an editor, over stdin and stdout. */

import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout as pause } from 'node:timers/promises';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { reserveStdout, writeError } from '@pawl/terminal/write';
import { type ExitCode, exitCodes, listenToSignals } from '../process/exit-codes.js';
import { refuseBadFlags } from '../sessions/session-settings.js';
import { newSessionFlags, type RunFlags } from '../settings/flags.js';
import { type AcpConnection, serveClient } from './acp-agent.js';

/** Sessions have this long to end after the editor has gone. */
const HARD_END_MS = 2_000;

/** Waits until the editor has gone and all sessions are closed. */
const untilEnded = async (connection: AcpConnection): Promise<ExitCode> => {
  const reason = await connection.closed;
  await Promise.race([connection.ended, pause(HARD_END_MS)]);
  // A message that is nested too deep overflows the stack of the package, which then ends the
  // connection.
  if (reason instanceof RangeError) {
    writeError(
      safe`pawl: the editor sent a message that is nested too deep: ${makeSafe(reason.message)}\n`,
    );
    return exitCodes.badInput;
  }
  if (!(reason instanceof Error) || reason.name !== 'MessageTooLargeError') return exitCodes.done;
  writeError(
    safe`pawl: the editor sent a message that is too large: ${makeSafe(reason.message)}\n`,
  );
  return exitCodes.badInput;
};

/** `pawl acp`: serves the editor until it has gone. Returns the exit code. */
export const runAcp = async (allFlags: RunFlags): Promise<number> => {
  const flags = newSessionFlags(allFlags); // those that count for an editor's sessions
  refuseBadFlags(flags); // throws a usage error
  if (process.stdin.isTTY)
    writeError(
      safe`pawl acp is started by an editor and speaks with it over stdin and stdout. docs/use/editors.md says how to set it up. Ctrl-D ends it.\n`,
    );
  const output = await reserveStdout();
  // Node's own type of the same stream
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>;
  const connection = serveClient(flags, { output, input });
  let exit: ExitCode | null = null;
  const endWith = (code: ExitCode): void => {
    exit ??= code;
    connection.close();
  };
  const stopListening = listenToSignals({
    interrupt: () => endWith(exitCodes.interrupted),
    interruptAgain: () => process.exit(exitCodes.interrupted),
    terminate: () => endWith(exitCodes.terminated),
  });
  const ended = await untilEnded(connection);
  stopListening();
  return exit ?? ended;
};
