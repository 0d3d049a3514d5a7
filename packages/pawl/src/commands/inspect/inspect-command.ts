import { resumeCommand } from '@pawl/agent/journal/journal-error';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes, Stop } from '../../exit-codes.js';
import { findInfo } from '../../sessions/stored-sessions.js';
import { listenToSignals } from '../../signals.js';
import { openInspector } from './page-and-server.js';

/** The id of the session to show; null for the list. Throws a `Stop` if there is none, or it can't be shown. */
export const shownSession = async (given: string): Promise<string> => {
  const { sessionId, kind, unreadable, title } = await findInfo(given);
  if (unreadable !== undefined)
    throw new Stop(exitCodes.badInput, unreadable, `The session ${sessionId} can't be shown: ${title}`);
  if (kind === 'agent') return sessionId;
  throw new Stop(
    exitCodes.usage,
    'usage',
    `${sessionId} is a run of pawl ask, which the inspector can't show. To read it: pawl show ${sessionId}; to go on with it: ${resumeCommand(kind)} ${sessionId}`,
  );
};

/** `pawl inspect`: serves the page until it is told to end. */
export const inspectSessions = async (given: string | undefined): Promise<number> => {
  const sessionId = given === undefined ? null : await shownSession(given);
  const inspector = await openInspector();
  const address = sessionId === null ? inspector.address : inspector.addressOf(sessionId);
  writeError(
    safe`Open this address in a browser on this computer. It shows and changes nothing; Ctrl-C ends it.\n`,
  );
  writeOut(safe`${makeSafe(address)}\n`);
  const alive = setInterval(() => undefined, 2 ** 30); // the server keeps no process alive
  let endListening = (): void => undefined;
  await new Promise<void>((resolve) => {
    endListening = listenToSignals({ interrupt: resolve, interruptAgain: resolve, terminate: resolve });
  });
  endListening();
  clearInterval(alive);
  await inspector.close();
  return exitCodes.done;
};
