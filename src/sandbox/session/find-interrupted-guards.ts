import path from 'node:path';
import { findCommands, isCommandAlive } from '../../launcher/found-commands.js';
import { guardRecordIn, type InterruptedGuard, readGuardRecord } from '../protected/interrupted-guard.js';
import { isProcessRunning } from './remove-stale-folders.js';
import { commandsFolder, namesIn } from './session-folders.js';

/**
 * Finds the guards of this workspace whose process was killed while commands ran, and takes them over: what the
 * commands have made is judged by this process.
 */
export const takeInterruptedGuards = (own: string, workspace: string): readonly InterruptedGuard[] => {
  const parent = path.dirname(own);
  return namesIn(parent).flatMap((name) => {
    const folder = path.join(parent, name);
    const pid = Number(/^(\d+)-/.exec(name)?.[1] ?? process.pid);
    if (folder === own || pid === process.pid || isProcessRunning(pid)) return [];
    const guard = readGuardRecord(folder);
    if (guard === null || guard.workspace !== workspace) return [];
    guardRecordIn(folder).remove();
    return [{ ...guard, isAlive: () => findCommands(commandsFolder(folder)).some(isCommandAlive) }];
  });
};
