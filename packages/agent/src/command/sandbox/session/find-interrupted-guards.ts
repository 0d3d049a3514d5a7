import path from 'node:path';
import { findCommands } from '../../launcher/found-commands.js';
import {
  guardRecordIn,
  type InterruptedGuard,
  readGuardRecord,
  takeNotes,
} from '../protected/interrupted-guard.js';
import { isProcessRunning } from './remove-stale-folders.js';
import { commandsFolder, namesIn } from './session-folders.js';
import { findOrigin, readSession } from './session-of-folder.js';

/** What earlier sessions have left to the guard of protected paths. */

/** Whose guards are looked for. */
export type GuardSearch = {
  /** The folder of this process. */
  readonly own: string;
  readonly workspace: string;
  /** The session that this process has open, so no other process has. Null if it can't be resumed. */
  readonly sessionId: string | null;
};

const otherFolders = (own: string): readonly string[] =>
  namesIn(path.dirname(own))
    .map((name) => path.join(path.dirname(own), name))
    .filter((folder) => folder !== own);

const hasEnded = (folder: string): boolean => {
  const pid = Number(/^(\d+)-/.exec(path.basename(folder))?.[1] ?? process.pid);
  return pid !== process.pid && !isProcessRunning(pid);
};

const guardIn = (folder: string, { workspace, sessionId }: GuardSearch): InterruptedGuard | null => {
  const record = readSession(folder);
  const origin = record === null ? 'here' : findOrigin(folder, record);
  // In another pid namespace process numbers mean nothing, but a session is open in one process only.
  const isInterrupted = origin === 'namespace' ? record?.sessionId === sessionId : hasEnded(folder);
  const guard = isInterrupted && origin !== 'copy' ? readGuardRecord(folder) : null;
  if (guard === null || guard.workspace !== workspace) return null;
  const view = origin === 'here' ? 'own' : 'foreign';
  // Not while only the writer of its output lacks: the command itself has ended.
  const isAlive = (): boolean =>
    findCommands(commandsFolder(folder), view).some((found) => found.verdict().kind === 'running');
  return { ...guard, isAlive };
};

/** Whether a process was killed in this workspace while commands ran. */
export const hasInterruptedGuard = (search: GuardSearch): boolean =>
  otherFolders(search.own).some((folder) => guardIn(folder, search) !== null);

/** Takes the guards of killed processes over: what their commands have made is judged by this process. */
export const takeInterruptedGuards = (search: GuardSearch): readonly InterruptedGuard[] =>
  otherFolders(search.own).flatMap((folder) => {
    const guard = guardIn(folder, search);
    if (guard === null) return [];
    guardRecordIn(folder).remove();
    return [guard];
  });

/** Lines that nobody has read when their sessions ended. */
export const takeUnreadNotes = ({ own, workspace }: Omit<GuardSearch, 'sessionId'>): readonly string[] =>
  otherFolders(own).flatMap((folder) => takeNotes(folder, workspace));
