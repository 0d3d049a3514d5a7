/**
 * What the words of a command do not say by themselves: which files it loses, which protected files
 * git writes for it, and what it will need outside of the sandbox.
 *
 * Well-known commands can't work without the network (`npm install`, `git fetch`), or inside the
 * sandbox (`apt-get install`, `git worktree remove`), although their call does not say so. The
 * words decide; what only a look can tell (an installed program, a remote in a folder) is looked
 * up. In doubt nothing is expected, and the command runs as without this file.
 */

import { existsSync } from 'node:fs';
import path from 'node:path';
import { readTextOrEmptySync } from '../../platform/files.js';
import type { CallFacts, Needs, ParsedCommand, ShellFacts } from '../judged-call.js';
import { configEntries, listWords, programName } from '../paths.js';
import type { TreeMove } from '../programs/git-moves.js';
import { operandsIn } from '../programs/network.js';
import type { NetworkPlace, Program, Words } from '../programs/program.js';
import { findRow } from '../programs/program-table.js';
import { repositoryAccess, treeMoves } from '../repository-access.js';
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
  /** Finds protected files that git would write (tools/bash.ts, `ProtectedGitFiles`). */
  readonly protectedGitFiles?: {
    find(workspace: string, moves: readonly TreeMove[] | 'unknown'): Promise<readonly string[]>;
  };
};

/** `paths`: the workspace, then the protected files that git would write. */
export type CommandFacts = Pick<CallFacts, 'paths' | 'unrecoverable' | 'discarded' | 'expects'> &
  Required<Pick<CallFacts, 'shell'>>;

/** Looks up the facts of a command. The first text that is not plain loads the shell grammar. */
export const commandFacts = async (
  command: string,
  needs: Needs | undefined,
  workspace: string,
  lookups: CommandLookups,
): Promise<CommandFacts> => {
  const { find, userShell = null, findLosses, findDiscarded, askGit, protectedGitFiles } = lookups;
  const facts = await shellFacts(command, find, userShell, workspace);
  const shell = askGit === undefined ? facts : await withGitReadings(facts, workspace, askGit);
  const onlyReads = repositoryAccess(shell, needs) === 'read';
  const protectedFiles = onlyReads
    ? []
    : ((await protectedGitFiles?.find(workspace, treeMoves(shell))) ?? []);
  const unrecoverable =
    findLosses === undefined ? null : await unrecoverableFiles(shell, workspace, findLosses);
  const discarded =
    findDiscarded === undefined ? null : await discardedFiles(shell, workspace, findDiscarded);
  // what the command will probably need outside of the sandbox, which the model did not state
  const expects = needs === undefined ? expectedNeeds(shell, workspace) : null;
  return {
    paths: [workspace, ...protectedFiles],
    shell,
    ...(unrecoverable === null ? {} : { unrecoverable }),
    ...(discarded === null ? {} : { discarded }),
    ...(expects === null ? {} : { expects }),
  };
};

// ---- What a command is expected to need ----

/** What a command is known to need, and the words that show it. */
type Expected = NonNullable<CallFacts['expects']>;
type Network = Program['network'];

/** Options with which nothing is loaded. */
const OFFLINE = /^(?:--offline|--no-index|--dry-run|--help|--version|-h)$/;

/** Commands that depend on the folder in which they run: after a `cd` nothing is known of it. */
const BY_FOLDER = /^(?:npx|pnpx|bunx|git worktree) /;

/** What the commands of a text are known to need; null if nothing is known. */
export const expectedNeeds = (
  { commands, unclear }: ShellFacts,
  workspace: string,
): Expected | null => {
  if (unclear !== null) return null;
  const changesFolder = commands.some(({ words }) => /^(?:cd|pushd)$/.test(words[0] ?? ''));
  const expected = commands
    .filter(({ words }) => !changesFolder || !BY_FOLDER.test(words.join(' ')))
    .map((command) => expectedBy(command, workspace));
  return (
    expected.find((one) => one?.needs === 'outside') ?? expected.find((one) => one !== null) ?? null
  );
};

/** What one command is known to need. */
const expectedBy = ({ words }: ParsedCommand, workspace: string): Expected | null => {
  const [program, command] = words;
  const { system, network } = findRow(program) ?? {};
  if (program == null || (system ?? network) === undefined) return null;
  const name = programName(program);
  if (system !== undefined && command != null && listWords(system).includes(command))
    return { needs: 'outside', words: `${name} ${command}` };
  const ended = name === 'git' ? whatEndsWorktree(words, workspace) : null;
  if (ended !== null) return { needs: 'outside', words: ended };
  const loads = whatLoads(words, network, workspace);
  return loads === null ? null : { needs: 'network', words: loads };
};

const CONFIG_BYTES_MAX = 64 * 1024;

/**
 * The addresses of the remotes and submodules of the workspace, as its own configuration writes
 * them. None in a linked worktree, where `.git` is a file.
 */
const remoteAddresses = (workspace: string): readonly string[] => {
  const config = path.join(workspace, '.git', 'config');
  return configEntries(readTextOrEmptySync(config, CONFIG_BYTES_MAX))
    .filter(({ key }) => /^(?:remote|submodule)\.\*\.(?:push)?url$/.test(key))
    .map(({ value }) => value);
};

/**
 * What removes or moves a worktree that is there, in words. The sandbox makes those of its files
 * read-only that git obeys, so git would stop halfway. One that the same command makes is not there
 * yet.
 */
const whatEndsWorktree = (words: Words, workspace: string): string | null => {
  const [, command, verb, ...rest] = words;
  if (command !== 'worktree' || (verb !== 'remove' && verb !== 'move')) return null;
  const [target] = operandsIn(rest);
  if (target === undefined) return null;
  return existsSync(path.resolve(workspace, target, '.git')) ? `git worktree ${verb}` : null;
};

/** `npx tsc` runs what is installed here or in a folder above; anything else is loaded first. */
const isInstalled = (name: string, folder: string): boolean =>
  existsSync(path.join(folder, 'node_modules', '.bin', name)) ||
  existsSync(path.join(folder, 'node_modules', name)) ||
  (folder !== path.dirname(folder) && isInstalled(name, path.dirname(folder)));

/** What loads something by the network, in words; null for everything else. */
const whatLoads = (words: Words, network: Network, workspace: string): string | null => {
  const [program, command] = words;
  if (words.some((word) => word !== null && OFFLINE.test(word))) return null;
  const name = programName(program ?? '');
  if (name === 'yarn' && words.length === 1) return 'yarn';
  if (typeof network === 'string')
    return command != null && listWords(network).includes(command) ? `${name} ${command}` : null;
  const place: NetworkPlace = {
    isInstalled: (one) => isInstalled(one, workspace),
    remotes: () => remoteAddresses(workspace),
  };
  return network?.(words, place) ?? null;
};
