import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { sessionsFolder } from '@pawl/agent/journal/paths-and-durable-writes';
import { stateFolder } from '@pawl/agent/platform/base/user-folders';
import { otherWriters } from '@pawl/agent/platform/files/file-ownership';
import { exitCodes, Stop } from '../exit-codes.js';

/** Makes the state folder if it is missing, private to the user. Throws a `Stop` if it can't be written. */
export const openStateFolder = (environment: NodeJS.ProcessEnv): string => {
  const folder = stateFolder(environment);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new Stop(exitCodes.cannotWrite, 'cannotWrite', cannotKeep(folder, error));
  }
  for (const place of [folder, sessionsFolder(folder)]) refuseShared(place);
  return folder;
};

/**
 * Throws a `Stop` if somebody else can put sessions there: who opens one goes on with what was pending in it. A folder that
 * is not there yet is going to be private.
 */
const refuseShared = (folder: string): void => {
  const status = statSync(folder, { throwIfNoEntry: false });
  if (status === undefined) return;
  const own = process.geteuid?.() ?? status.uid;
  const writers = otherWriters(status);
  const why =
    status.uid !== own
      ? [`it belongs to another user (uid ${status.uid}, and you are ${own})`, `chown -R ${own} ${folder}`]
      : writers === 'others' || writers === 'sticky'
        ? ['others may write there', `chmod go-w ${folder}`]
        : null;
  if (why === null) return;
  throw new Stop(
    exitCodes.configuration,
    'configuration',
    `Pawl does not use ${folder}, since ${why[0]}: they could put sessions there that go on in your name. ` +
      `If all in it is yours: ${why[1]}. Or set XDG_STATE_HOME to a folder of your own.`,
  );
};

/** The real reason why a folder can't be made. Node may report ENOENT, so the nearest existing parent is tried. */
const reasonOf = (folder: string, error: unknown): string => {
  let above = folder;
  while (!existsSync(above) && above !== dirname(above)) above = dirname(above);
  try {
    accessSync(above, constants.W_OK);
  } catch (closer) {
    return closer instanceof Error ? closer.message : String(closer);
  }
  return error instanceof Error ? error.message : String(error);
};

const cannotKeep = (folder: string, error: unknown): string => {
  const why = reasonOf(folder, error);
  const parent = dirname(folder);
  return [
    `Pawl can't write its journal below ${parent}: ${why}.`,
    'A session without a journal could not be resumed, so none was started.',
    'Set XDG_STATE_HOME to a writable folder, for example XDG_STATE_HOME=/tmp/state.',
  ].join('\n');
};
