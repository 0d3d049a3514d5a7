/**
 * `pawl inspect`, and `pawl export ID --html FILE`: the inspector's page, from a server or as a
 * file.
 */

import path from 'node:path';
import { resumeCommand } from '@pawl/agent/journal/journal-error';
import { stateFolder } from '@pawl/agent/platform/environment';
import { plural } from '@pawl/agent/platform/text';
import { InspectedSessions } from '@pawl/inspector/server/inspected-sessions';
import { pageWithSession } from '@pawl/inspector/server/page-html';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { livePage } from '../detached/live-page.js';
import { exitCodes, listenToSignals, Stop } from '../process/exit-codes.js';
import { packageVersion } from '../process/package-folder.js';
import { openInspector, pageRedactor, readPage } from '../sessions/inspector-page.js';
import { findInfo } from '../sessions/stored-sessions.js';
import { cannotExport, writeNewFile } from './export-trajectory.js';

/** The id of the session to show. Throws a `Stop` if there is none, or the page can't show it. */
export const showableSession = async (id: string): Promise<string> => {
  const { sessionId, kind, unreadable, title } = await findInfo(id);
  if (unreadable !== undefined)
    throw new Stop(
      exitCodes.badInput,
      unreadable,
      `The session ${sessionId} can't be shown: ${title}`,
    );
  if (kind === 'agent') return sessionId;
  throw new Stop(
    exitCodes.usage,
    'usage',
    `${sessionId} is a run of pawl ask, which the inspector can't show. To read it: pawl ` +
      `show ${sessionId}; to go on with it: ${resumeCommand(kind)} ${sessionId}`,
  );
};

/** `pawl inspect`: serves the page until a signal. */
export const inspectSessions = async (id: string | undefined): Promise<number> => {
  const sessionId = id === undefined ? null : await showableSession(id);
  // `livePage` lets the page see and answer detached sessions, which run in other processes
  const inspector = await openInspector(livePage);
  const address = sessionId === null ? inspector.address : inspector.addressOf(sessionId);
  writeError(
    safe`Open this address in a browser on this computer. It changes nothing, except that you can answer questions of detached sessions there. Ctrl-C ends it.\n`,
  );
  writeOut(safe`${makeSafe(address)}\n`);
  const alive = setInterval(() => undefined, 2 ** 30); // the server keeps no process alive
  let endListening = (): void => undefined;
  await new Promise<void>((resolve) => {
    endListening = listenToSignals({
      interrupt: resolve,
      interruptAgain: resolve,
      terminate: resolve,
    });
  });
  endListening();
  clearInterval(alive);
  await inspector.close();
  return exitCodes.done;
};

/**
 * `pawl export ID --html FILE`: writes the inspector's page with the session inside, and prints its
 * path.
 */
export const exportPage = async (id: string, html: string): Promise<number> => {
  const sessionId = await showableSession(id);
  const target = path.resolve(html);
  const sessions = new InspectedSessions({
    folder: stateFolder(process.env),
    version: packageVersion(),
    redactor: pageRedactor(),
  });
  const session = await sessions.exported(sessionId);
  const page = pageWithSession(readPage(), session);
  try {
    await writeNewFile(target, page);
  } catch (error) {
    throw cannotExport(target, error);
  }
  const { length } = session.entries;
  if (session.damage !== null) writeError(makeSafe(`! ${session.damage}\n`));
  writeError(
    makeSafe(
      `${plural(length, 'entry', 'entries')} in clear text: what was said, called and ` +
        'returned. The keys and tokens of this environment are replaced, secrets from ' +
        `elsewhere are not.\n`,
    ),
  );
  writeOut(safe`${makeSafe(target)}\n`);
  return exitCodes.done;
};
