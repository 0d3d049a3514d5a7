import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { exitCodes, Stop } from './exit-codes.js';

/** Where sessions are kept: `$XDG_STATE_HOME/pawl`, else `~/.local/state/pawl`. A relative XDG path is ignored, as its specification asks. */
export const stateFolder = (environment: NodeJS.ProcessEnv): string => {
  const configured = environment.XDG_STATE_HOME ?? '';
  if (configured.startsWith('/')) return join(configured, 'pawl');
  const home = environment.HOME ?? '';
  return join(home === '' ? homedir() : home, '.local', 'state', 'pawl');
};

/** The folder, made if missing and private to the user. Stops with `cannotWrite` where it can't be written. */
export const openStateFolder = (environment: NodeJS.ProcessEnv): string => {
  const folder = stateFolder(environment);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new Stop(exitCodes.cannotWrite, 'cannotWrite', cannotKeep(folder, error));
  }
  return folder;
};

/** Node reports a missing folder where making it failed for another reason: the first folder that is there knows better. */
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
    'A session that is not written down can not be resumed, so none was started.',
    'Set XDG_STATE_HOME to a folder that can be written, for example XDG_STATE_HOME=/tmp/state.',
  ].join('\n');
};
