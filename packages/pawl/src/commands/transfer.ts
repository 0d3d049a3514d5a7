/**
 * `pawl export` and `pawl import`: a session as one file, for another machine or a bug report.
 */

import { existsSync } from 'node:fs';
import path from 'node:path';
import { exportSession, importSession } from '@pawl/agent/journal/transfer';
import { stateFolder } from '@pawl/agent/platform/environment';
import { plural } from '@pawl/agent/platform/text';
import { createRedactor, findSecrets } from '@pawl/agent/secrets/redactor';
import { collectCarried, keepCarried } from '@pawl/agent/workspace/checkpoints/carried-files';
import { refuseForeignPlace } from '@pawl/agent/workspace/checkpoints/foreign-checkpoints';
import { CheckpointStore, storeFolder } from '@pawl/agent/workspace/checkpoints/store';
import { oneLine } from '@pawl/terminal/paint';
import { makeSafe, safe } from '@pawl/terminal/safe-text';
import { writeError, writeOut } from '@pawl/terminal/write';
import { exitCodes } from '../process/exit-codes.js';
import { findInfo, openStateFolder } from '../sessions/stored-sessions.js';

const openStore = (folder: string, workspace: string): CheckpointStore =>
  new CheckpointStore(storeFolder(folder, workspace));

/**
 * `pawl export`: writes a session to one file and prints its path. `withFiles`: takes its
 * checkpoints along, and names what stays behind.
 */
export const exportTo = async (
  id: string,
  file: string | undefined,
  withFiles: boolean,
): Promise<number> => {
  const { sessionId, workspace } = await findInfo(id);
  const target = path.resolve(file ?? `${sessionId}.pawl`);
  const folder = stateFolder(process.env);
  // the checkpoints and their contents, without those in which the redactor finds secrets
  const files = withFiles
    ? await collectCarried(
        openStore(folder, workspace),
        sessionId,
        createRedactor(findSecrets(process.env, {})),
      )
    : null;
  const { entries, blobs, bytes } = await exportSession(folder, sessionId, target, files);
  writeError(
    makeSafe(
      `${plural(entries, 'entry', 'entries')} and ${plural(blobs, 'blob')}, ${bytes} bytes, ` +
        `in clear text: what was said, called and returned.\n`,
    ),
  );
  if (files !== null) {
    const { checkpoints, contents, left } = files;
    // `.` stands for a whole checkpoint
    for (const { path: name, why } of left)
      writeError(
        safe`! left out: ${name === '.' ? safe`a checkpoint` : oneLine(name, Number.POSITIVE_INFINITY)} (${makeSafe(why)})\n`,
      );
    writeError(
      makeSafe(
        `${plural(checkpoints.length, 'checkpoint')} with ${plural(contents.length, 'content')} ` +
          'of files. What holds a key or token of this environment is left out, secrets from ' +
          'elsewhere are not.\n',
      ),
    );
  }
  writeOut(safe`${makeSafe(target)}\n`);
  return exitCodes.done;
};

/** `pawl import`: stores a session from a file and prints its id. */
export const importFrom = async (file: string): Promise<number> => {
  const folder = openStateFolder(process.env);
  const imported = await importSession(
    folder,
    path.resolve(file),
    ({ workspace, sessionId }, files, claims) =>
      // stores the checkpoints that the file brings
      keepCarried(openStore(folder, workspace), sessionId, files, claims),
  );
  const { sessionId, entries, blobs, missing, workspace, checkpoints } = imported;
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
  if (checkpoints > 0) {
    const place = oneLine(workspace, Number.POSITIVE_INFINITY);
    const absent = existsSync(workspace) ? safe`` : safe`, which is not here`;
    const refusal = refuseForeignPlace({
      workspace,
      standsIn: workspace,
      environment: process.env,
    });
    const use =
      refusal === null
        ? safe`its changes can be taken back if you stand in ${place}${absent}`
        : oneLine(refusal, Number.POSITIVE_INFINITY);
    writeError(
      safe`${makeSafe(plural(checkpoints, 'checkpoint'))} stored: ${use}. To look at them: pawl rewind ${makeSafe(sessionId)}\n`,
    );
  }
  writeOut(safe`${makeSafe(sessionId)}\n`);
  return exitCodes.done;
};
