import path from 'node:path';
import { findCommands, isCommandAlive } from '../../launcher/found-commands.js';
import {
  guardRecordIn,
  type InterruptedGuard,
  readGuardRecord,
  takeNotes,
} from '../protected/interrupted-guard.js';
import { isProcessRunning } from './remove-stale-folders.js';
import { commandsFolder, namesIn } from './session-folders.js';

/** What earlier sessions have left to the guard of protected paths. `own`: the folder of this process. */

const otherFolders = (own: string): readonly string[] =>
  namesIn(path.dirname(own))
    .map((name) => path.join(path.dirname(own), name))
    .filter((folder) => folder !== own);

const isInterrupted = (folder: string): boolean => {
  const pid = Number(/^(\d+)-/.exec(path.basename(folder))?.[1] ?? process.pid);
  return pid !== process.pid && !isProcessRunning(pid);
};

const guardIn = (folder: string, workspace: string): InterruptedGuard | null => {
  const guard = isInterrupted(folder) ? readGuardRecord(folder) : null;
  if (guard === null || guard.workspace !== workspace) return null;
  return { ...guard, isAlive: () => findCommands(commandsFolder(folder), 'own').some(isCommandAlive) };
};

/** Whether a process was killed in this workspace while commands ran. */
export const hasInterruptedGuard = (own: string, workspace: string): boolean =>
  otherFolders(own).some((folder) => guardIn(folder, workspace) !== null);

/** Takes the guards of killed processes over: what their commands have made is judged by this process. */
export const takeInterruptedGuards = (own: string, workspace: string): readonly InterruptedGuard[] =>
  otherFolders(own).flatMap((folder) => {
    const guard = guardIn(folder, workspace);
    if (guard === null) return [];
    guardRecordIn(folder).remove();
    return [guard];
  });

/** Lines that nobody has read when their sessions ended. */
export const takeUnreadNotes = (own: string, workspace: string): readonly string[] =>
  otherFolders(own).flatMap((folder) => takeNotes(folder, workspace));
