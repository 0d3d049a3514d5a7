import { readdirSync } from 'node:fs';
import path from 'node:path';
import { type FoundCommand, findCommands, isCommandAlive } from '../../launcher/found-commands.js';
import { type FindGit, finishHistory } from '../keep-git-history.js';
import { commandsFolder } from './session-folders.js';
import { readSession, thisMachine } from './session-of-folder.js';

/** Finds what earlier processes of a session have started and left, since they were killed. */

const foldersIn = (parent: string): readonly string[] => {
  try {
    return readdirSync(parent).map((name) => path.join(parent, name));
  } catch {
    return []; // no session has run a command
  }
};

export type EarlierCommands = {
  /** Folders of earlier processes of the session. */
  readonly folders: readonly string[];
  /**
   * Every process of the session that may have started commands has left its record here. Then a command without files
   * was never started.
   */
  readonly isComplete: boolean;
  /** One of them ran on another machine, or before this one was restarted. */
  readonly isElsewhere: boolean;
  /** On this machine since its last start, the oldest first. */
  readonly commands: readonly FoundCommand[];
  /** On another machine, or before this one was restarted: only what they have left can be read. */
  readonly elsewhere: readonly FoundCommand[];
  /** Puts back the history that commands here have deleted, after one of them has ended. Returns lines for the model. */
  finishHistory(): readonly string[];
};

const commandsIn = (records: readonly { readonly folder: string }[]): readonly FoundCommand[] =>
  records.flatMap(({ folder }) => findCommands(commandsFolder(folder)));

const finishIn = (folder: string, git: FindGit): readonly string[] => {
  const isOver = !findCommands(commandsFolder(folder)).some(isCommandAlive);
  return finishHistory(folder, git, isOver).map((line) => `[the sandbox: ${line}]`);
};

/** `own`: the folder of this process. */
export const findEarlier = (own: string, sessionId: string, git: FindGit): EarlierCommands => {
  const machine = thisMachine();
  const records = foldersIn(path.dirname(own))
    .filter((folder) => folder !== own)
    .map((folder) => ({ folder, record: readSession(folder) }))
    .filter(({ record }) => record?.sessionId === sessionId);
  const here = records.filter(({ record }) => record?.machine === machine);
  const elsewhere = records.filter(({ record }) => record?.machine !== machine);
  return {
    folders: here.map(({ folder }) => folder),
    isElsewhere: elsewhere.length > 0,
    isComplete: here.length > 0 && here.length === records.length,
    commands: commandsIn(here),
    elsewhere: commandsIn(elsewhere),
    finishHistory: () => here.flatMap(({ folder }) => finishIn(folder, git)),
  };
};
