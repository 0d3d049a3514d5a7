/** The facts of a shell command for the policy: what it would run, change and lose. */

import type { CallFacts, Needs } from '../judged-call.js';
import type { TreeMove } from '../programs/git-moves.js';
import { repositoryAccess, treeMoves } from '../repository-access.js';
import { expectedNeeds } from './expected-needs.js';
import { type ShellLookup, shellFacts } from './shell-facts.js';
import {
  type AskGit,
  discardedFiles,
  type FindDiscarded,
  type FindLosses,
  unrecoverableFiles,
  withGitReadings,
} from './unrecoverable-files.js';

/** What a command's words do not say. */
export type CommandLookups = {
  readonly find: ShellLookup;
  /** The value of SHELL; null: not set. */
  readonly userShell?: string | null;
  /** Finds files that git could not restore. Without it every file that the words name counts. */
  readonly findLosses?: FindLosses;
  /** Finds changes that `git restore` of paths would discard. */
  readonly findDiscarded?: FindDiscarded;
  readonly askGit?: AskGit;
  /** Finds protected files that git would write. */
  readonly movedFiles?: {
    find(workspace: string, moves: readonly TreeMove[] | 'unknown'): Promise<readonly string[]>;
  };
};

export type CommandFacts = Pick<CallFacts, 'paths' | 'unrecoverable' | 'discarded' | 'expects'> &
  Required<Pick<CallFacts, 'shell'>>;

/** Looks up the facts of a command. Loads the shell grammar with the first command. */
export const commandFacts = async (
  command: string,
  needs: Needs | undefined,
  workspace: string,
  lookups: CommandLookups,
): Promise<CommandFacts> => {
  const { find, userShell = null, findLosses, findDiscarded, askGit, movedFiles } = lookups;
  const read = await shellFacts(command, find, userShell);
  const shell = askGit === undefined ? read : await withGitReadings(read, workspace, askGit);
  // protected files that git writes are decided about as those that a tool writes
  const isReading = repositoryAccess(shell, needs) === 'read';
  const moved = isReading ? [] : ((await movedFiles?.find(workspace, treeMoves(shell))) ?? []);
  const unrecoverable =
    findLosses === undefined ? null : await unrecoverableFiles(shell, workspace, findLosses);
  const discarded =
    findDiscarded === undefined ? null : await discardedFiles(shell, workspace, findDiscarded);
  // what the command will probably need outside of the sandbox, which the model did not state
  const expects = needs === undefined ? expectedNeeds(shell, workspace) : null;
  return {
    paths: [workspace, ...moved],
    shell,
    ...(unrecoverable === null ? {} : { unrecoverable }),
    ...(discarded === null ? {} : { discarded }),
    ...(expects === null ? {} : { expects }),
  };
};
