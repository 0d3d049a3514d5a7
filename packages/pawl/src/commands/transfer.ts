import path from 'node:path';
import { exportSession, importSession } from '@pawl/agent/journal/transfer';
import { stateFolder } from '@pawl/agent/platform/environment';
import { plural } from '@pawl/agent/platform/text';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { findInfo, openStateFolder } from '../sessions/stored-sessions.js';

/** `pawl export`: writes a session to one file and prints its path. */
export const exportTo = async (id: string, file: string | undefined): Promise<number> => {
  const { sessionId } = await findInfo(id);
  const target = path.resolve(file ?? `${sessionId}.pawl`);
  const { entries, blobs, bytes } = await exportSession(
    stateFolder(process.env),
    sessionId,
    target,
  );
  writeError(
    makeSafe(
      `${plural(entries, 'entry', 'entries')} and ${plural(blobs, 'blob')}, ${bytes} bytes, ` +
        `in clear text: what was said, called and returned.\n`,
    ),
  );
  writeOut(safe`${makeSafe(target)}\n`);
  return exitCodes.done;
};

/** `pawl import`: stores a session from a file and prints its id. */
export const importFrom = async (file: string): Promise<number> => {
  const folder = openStateFolder(process.env);
  const { sessionId, entries, blobs, missing } = await importSession(folder, path.resolve(file));
  if (missing.length > 0)
    writeError(
      makeSafe(
        `! The instructions or tools of the session (blob ${missing.join(', ')}) are neither ` +
          `in the file nor here: it can be read, but not gone on with.\n`,
      ),
    );
  writeError(
    makeSafe(
      `${plural(entries, 'entry', 'entries')} and ${plural(blobs, 'blob')} verified and ` +
        `stored; nothing was performed. To look at it: pawl show ${sessionId}\n`,
    ),
  );
  writeOut(safe`${makeSafe(sessionId)}\n`);
  return exitCodes.done;
};
