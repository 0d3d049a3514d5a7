import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type CommandOrder, writeOrder } from '../../launcher/command-recovery-record.js';
import { commandsFolder } from './session-folders.js';
import { sessionFile } from './session-of-folder.js';

/**
 * Records a command that starts without the launcher: an order without a status. If that can't be written, the record of
 * the session is removed, so that the command counts as unknown after a crash and never as one that was not started.
 */
export const recordDirectCommand = (sessionFolder: string, number: number, order: CommandOrder): void => {
  const folder = path.join(commandsFolder(sessionFolder), `direct-${number}`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeOrder(folder, order);
  } catch {
    rmSync(sessionFile(sessionFolder), { force: true });
  }
};
