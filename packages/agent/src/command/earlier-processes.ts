/**
 * Leftovers of killed processes of Pawl: commands, records of protected paths, folders.
 *
 * A session asks here with its first command, and when it was resumed. Each process of a session
 * has a separate folder (session-folders.ts), and all these folders lie side by side. From top to
 * bottom: commands that still run or whose results wait; guards, the records with which a killed
 * process watched protected paths (protected-files.ts); and unneeded folders.
 */

import { lstatSync } from 'node:fs';
import path from 'node:path';
import { followStatus, namesIn } from '../platform/files.js';
import { processExists } from '../platform/processes.js';
import {
  type FoundCommand,
  findCommands,
  isCommandAlive,
  type LaunchedProcess,
} from './launched-command.js';
import { type FindGit, finishHistory } from './sandbox/git-history.js';
import {
  guardRecordIn,
  type InterruptedGuard,
  readGuardRecord,
  takeNotes,
} from './sandbox/protected-files.js';
import {
  commandsFolder,
  findOrigin,
  hasSent,
  type RecordOrigin,
  readSession,
  removeFolders,
  removePrivateFolders,
  sessionFile,
} from './sandbox/session-folders.js';

/** The folders of all other processes. */
const otherFolders = (processFolder: string): readonly string[] => {
  const parent = path.dirname(processFolder);
  return namesIn(parent)
    .map((name) => path.join(parent, name))
    .filter((folder) => folder !== processFolder);
};

export type EarlierCommands = {
  /** Folders of earlier processes of the session that can be removed with it. */
  folders(): readonly string[];
  /**
   * The record of every process of the session that may have started commands is here. Then a
   * command without files was never started.
   */
  readonly isComplete: boolean;
  /**
   * Why what they did can't be known: one of them worked where nothing can be seen from here. Null:
   * nothing is hidden.
   */
  readonly hiddenBy: Unreachable | null;
  /** Whether a process of the session has sent a call (batch and call) to another program. */
  hasSent(call: string): boolean;
  /** On this machine since its last start, the oldest first. */
  readonly commands: readonly FoundCommand[];
  /** Of unreachable processes: only their files can be read. */
  readonly elsewhere: readonly { readonly command: FoundCommand; readonly why: Unreachable }[];
  /**
   * Puts back the history that commands here have deleted, after one of them has ended. Returns
   * lines for the model.
   */
  finishHistory(): readonly string[];
};

/**
 * `elsewhere`: it ran on another machine, or on this one before its last start. `copy`: its folder
 * here is a copy of the one that its commands use.
 */
export type Unreachable = Extract<RecordOrigin, 'elsewhere' | 'copy'>;

/**
 * The folder of an earlier process. Of one that is `here`, process numbers, pipes and files can be
 * trusted; of one in another pid `namespace` of this machine, pipes and files; else files alone.
 */
type Located = { readonly folder: string; readonly origin: RecordOrigin };

const isUnreachable = (origin: RecordOrigin): origin is Unreachable =>
  origin === 'elsewhere' || origin === 'copy';

/** Its commands, `foreign` ones without process numbers. */
const listCommands = ({ folder, origin }: Located): readonly FoundCommand[] =>
  findCommands(commandsFolder(folder), origin === 'here' ? 'own' : 'foreign');

/** `EarlierCommands.finishHistory` for one folder. */
const finishIn = (located: Located, git: FindGit): readonly string[] => {
  const haveAllEnded = !listCommands(located).some(isCommandAlive);
  return finishHistory(located.folder, git, { isLast: haveAllEnded }).map(
    (line) => `[the sandbox: ${line}]`,
  );
};

/** Finds the leftovers of earlier processes of the session. `processFolder`: of this process. */
export const findEarlier = (
  processFolder: string,
  sessionId: string,
  git: FindGit,
): EarlierCommands => {
  const located = otherFolders(processFolder).flatMap((folder): readonly Located[] => {
    const record = readSession(folder);
    return record?.sessionId === sessionId ? [{ folder, origin: findOrigin(folder, record) }] : [];
  });
  const reached = located.filter(({ origin }) => !isUnreachable(origin));
  const elsewhere = located.flatMap(({ folder, origin }) =>
    isUnreachable(origin)
      ? listCommands({ folder, origin }).map((command) => ({ command, why: origin }))
      : [],
  );
  return {
    // Not while a command runs in another pid namespace: its launcher reads in its folder that the
    // command must end.
    folders: () =>
      reached
        .filter((one) => one.origin === 'here' || !listCommands(one).some(isCommandAlive))
        .map(({ folder }) => folder),
    hiddenBy: located.map(({ origin }) => origin).find(isUnreachable) ?? null,
    isComplete: reached.length > 0 && reached.length === located.length,
    hasSent: (call) => located.some(({ folder }) => hasSent(folder, call)),
    commands: reached.flatMap(listCommands),
    elsewhere,
    finishHistory: () => reached.flatMap((one) => finishIn(one, git)),
  };
};

/** Processes of running commands that share the session's network, the newest first. */
export const findInNetwork = (
  processFolder: string,
  sessionId: string,
): readonly LaunchedProcess[] =>
  // Without git, which only `finishHistory` needs.
  findEarlier(processFolder, sessionId, () => null)
    .commands.filter(({ record }) => record.sharesNetwork === true)
    .flatMap((command) => command.runningProcess() ?? [])
    .toSorted((one, other) => other.startedAt - one.startedAt);

/** Whose guards are looked for. */
export type GuardSearch = {
  /** The folder of this process. */
  readonly processFolder: string;
  readonly workspace: string;
  /**
   * The session that this process has open, so no other process has. Null if it can't be resumed.
   */
  readonly sessionId: string | null;
};

/** Whether the process of a folder has ended. The folder's name begins with its number. */
const hasEnded = (folder: string): boolean => {
  const pid = Number(/^(\d+)-/.exec(path.basename(folder))?.[1] ?? process.pid);
  return pid !== process.pid && !processExists(pid);
};

const locate = (folder: string): Located => {
  const record = readSession(folder);
  return { folder, origin: record === null ? 'here' : findOrigin(folder, record) };
};

/** What the process of a folder guarded in this workspace when it was killed; null if nothing. */
const guardIn = (
  folder: string,
  { workspace, sessionId }: GuardSearch,
): InterruptedGuard | null => {
  const { origin } = locate(folder);
  // In another pid namespace process numbers mean nothing, but a session is open in one process
  // only.
  const isInterrupted =
    origin === 'namespace' ? readSession(folder)?.sessionId === sessionId : hasEnded(folder);
  const guard = isInterrupted && origin !== 'copy' ? readGuardRecord(folder) : null;
  if (guard === null || guard.workspace !== workspace) return null;
  const commandsOf = [folder, ...(guard.commandsOf ?? [])];
  const places = commandsOf.map(locate);
  // Not `isCommandAlive`: while only output is missing, the command itself has ended.
  const isAlive = (): boolean =>
    places.flatMap(listCommands).some((command) => command.verdict().kind === 'running');
  return { ...guard, commandsOf, isAlive };
};

/** Whether a process was killed in this workspace while commands ran. */
export const hasInterruptedGuard = (search: GuardSearch): boolean =>
  otherFolders(search.processFolder).some((folder) => guardIn(folder, search) !== null);

/** Takes the guards of killed processes over: this process judges the changes of their commands. */
export const takeInterruptedGuards = (search: GuardSearch): readonly InterruptedGuard[] =>
  otherFolders(search.processFolder).flatMap((folder) => {
    const guard = guardIn(folder, search);
    if (guard === null) return [];
    guardRecordIn(folder).remove(); // so no other process takes it over
    return [guard];
  });

/** Lines that were unread when their sessions ended. */
export const takeUnreadNotes = ({
  processFolder,
  workspace,
}: Omit<GuardSearch, 'sessionId'>): readonly string[] =>
  otherFolders(processFolder).flatMap((folder) => takeNotes(folder, workspace));

// ---- Unneeded folders ----

const KEPT_MS = 7 * 24 * 60 * 60 * 1000;

/**
 * Removes the folders of killed sessions, when another session runs its first command.
 *
 * 1. Nothing is removed while the session's process or one of its commands runs.
 * 2. History that its commands have deleted is put back first.
 * 3. Results of commands, and the record of the session, stay for a week: the session may be
 *    resumed, and its journal may lack results. Without the record, a call that never began can't
 *    be told from one that ran.
 *
 * `processFolder`: the folder of this process. The names of folders begin with a process id.
 */
export const removeStale = (processFolder: string, git: FindGit): void => {
  const parent = path.dirname(processFolder);
  for (const name of namesIn(parent)) {
    const place = path.join(parent, name);
    const pid = Number(/^(\d+)-/.exec(name)?.[1] ?? process.pid);
    if (place === processFolder || pid === process.pid || processExists(pid)) continue;
    if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true)
      removeStaleFolder(place, git);
  }
};

const removeStaleFolder = (place: string, git: FindGit): void => {
  const judged = judgeFolder(place);
  if (judged !== 'keep') finishHistory(place, git, { isLast: true });
  if (judged === 'remove') removeFolders(place);
  if (judged === 'keepResults') removePrivateFolders(place);
};

const judgeFolder = (place: string): 'keep' | 'keepResults' | 'remove' => {
  const record = readSession(place);
  // Not every process writes a record, and one in another pid namespace may live.
  if (record === null) return isRecent(place) ? 'keep' : 'remove';
  const origin = findOrigin(place, record);
  // Elsewhere, nothing is known but the age: the process of the session may live.
  if (origin !== 'here' && isRecent(place)) return 'keep';
  if (!isUnreachable(origin) && listCommands({ folder: place, origin }).some(isCommandAlive))
    return 'keep';
  return isRecent(sessionFile(place)) || isRecent(commandsFolder(place)) ? 'keepResults' : 'remove';
};

const isRecent = (place: string): boolean =>
  Date.now() - (followStatus(place)?.mtimeMs ?? 0) < KEPT_MS;
