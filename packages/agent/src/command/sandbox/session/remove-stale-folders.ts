import { lstatSync, statSync } from 'node:fs';
import path from 'node:path';
import { findCommands, isCommandAlive } from '../../launcher/found-commands.js';
import { type FindGit, finishHistory } from '../keep-git-history.js';
import { commandsFolder, namesIn, removeFolders, removePrivateFolders } from './session-folders.js';
import { findOrigin, readSession, sessionFile } from './session-of-folder.js';

/**
 * Removes the folders of killed sessions, when another session runs its first command.
 *
 * 1. Nothing is removed while the session's process or one of its commands runs.
 * 2. History that its commands have deleted is put back first.
 * 3. Results of commands, and the record of the session, stay for a week: the session may be resumed, and its journal may
 *    lack results. Without the record, a call that never began can't be told from one that ran.
 */

const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

export const isProcessRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
};

const isRecent = (place: string): boolean => {
  try {
    return Date.now() - statSync(place).mtimeMs < KEPT_MS;
  } catch {
    return false; // it is not there
  }
};

const judge = (place: string): 'keep' | 'keepResults' | 'remove' => {
  const record = readSession(place);
  if (record === null) return 'remove';
  const origin = findOrigin(place, record);
  // Elsewhere, nothing is known but the age: the process of the session may live.
  if (origin !== 'here' && isRecent(place)) return 'keep';
  const view = origin === 'here' ? 'own' : 'foreign';
  const isAlive = origin === 'here' || origin === 'namespace';
  if (isAlive && findCommands(commandsFolder(place), view).some(isCommandAlive)) return 'keep';
  return isRecent(sessionFile(place)) || isRecent(commandsFolder(place)) ? 'keepResults' : 'remove';
};

const removeStaleFolder = (place: string, git: FindGit): void => {
  const judged = judge(place);
  if (judged !== 'keep') finishHistory(place, git, true);
  if (judged === 'remove') removeFolders(place);
  if (judged === 'keepResults') removePrivateFolders(place);
};

/** `top`: the folder of this process. The names begin with a process id. */
export const removeStale = (top: string, git: FindGit): void => {
  const parent = path.dirname(top);
  for (const name of namesIn(parent)) {
    const place = path.join(parent, name);
    const pid = Number(/^(\d+)-/.exec(name)?.[1] ?? process.pid);
    if (place === top || pid === process.pid || isProcessRunning(pid)) continue;
    if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true) removeStaleFolder(place, git);
  }
};
