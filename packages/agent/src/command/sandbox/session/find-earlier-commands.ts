import { readdirSync } from 'node:fs';
import path from 'node:path';
import { type FoundCommand, findCommands, isCommandAlive } from '../../launcher/found-commands.js';
import { type FindGit, finishHistory } from '../keep-git-history.js';
import { commandsFolder } from './session-folders.js';
import { findOrigin, hasSent, type RecordOrigin, readSession } from './session-of-folder.js';

/** Finds what earlier processes of a session have started and left, since they were killed. */

const foldersIn = (parent: string): readonly string[] => {
  try {
    return readdirSync(parent).map((name) => path.join(parent, name));
  } catch {
    return []; // no session has run a command
  }
};

export type EarlierCommands = {
  /** Folders of earlier processes of the session that can be removed with it. */
  folders(): readonly string[];
  /**
   * Every process of the session that may have started commands has left its record here. Then a command without files
   * was never started.
   */
  readonly isComplete: boolean;
  /** Why what they did can't be known: one of them worked where nothing can be seen from here. Null: nothing is hidden. */
  readonly hiddenBy: Unreachable | null;
  /** Whether a call, as batch and call, has left a process of the session for another program. */
  hasSent(call: string): boolean;
  /** On this machine since its last start, the oldest first. */
  readonly commands: readonly FoundCommand[];
  /** Of unreachable processes: only what they have left can be read. */
  readonly elsewhere: readonly { readonly command: FoundCommand; readonly why: Unreachable }[];
  /** Puts back the history that commands here have deleted, after one of them has ended. Returns lines for the model. */
  finishHistory(): readonly string[];
};

/** See RecordOrigin. */
export type Unreachable = Extract<RecordOrigin, 'elsewhere' | 'copy'>;

type Located = { readonly folder: string; readonly origin: RecordOrigin };

const isUnreachable = (origin: RecordOrigin): origin is Unreachable =>
  origin === 'elsewhere' || origin === 'copy';

const commandsOf = ({ folder, origin }: Located): readonly FoundCommand[] =>
  findCommands(commandsFolder(folder), origin === 'here' ? 'own' : 'foreign');

const finishIn = (located: Located, git: FindGit): readonly string[] => {
  const isOver = !commandsOf(located).some(isCommandAlive);
  return finishHistory(located.folder, git, isOver).map((line) => `[the sandbox: ${line}]`);
};

/** `own`: the folder of this process. */
export const findEarlier = (own: string, sessionId: string, git: FindGit): EarlierCommands => {
  const located = foldersIn(path.dirname(own))
    .filter((folder) => folder !== own)
    .flatMap((folder): readonly Located[] => {
      const record = readSession(folder);
      return record?.sessionId === sessionId ? [{ folder, origin: findOrigin(folder, record) }] : [];
    });
  const reached = located.filter(({ origin }) => !isUnreachable(origin));
  const elsewhere = located.flatMap(({ folder, origin }) =>
    isUnreachable(origin) ? commandsOf({ folder, origin }).map((command) => ({ command, why: origin })) : [],
  );
  return {
    // The guard of a command in another pid namespace reads in its folder that the command must end.
    folders: () =>
      reached
        .filter((one) => one.origin === 'here' || !commandsOf(one).some(isCommandAlive))
        .map(({ folder }) => folder),
    hiddenBy: located.map(({ origin }) => origin).find(isUnreachable) ?? null,
    isComplete: reached.length > 0 && reached.length === located.length,
    hasSent: (call) => located.some(({ folder }) => hasSent(folder, call)),
    commands: reached.flatMap(commandsOf),
    elsewhere,
    finishHistory: () => reached.flatMap((one) => finishIn(one, git)),
  };
};
