import { lstatSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import path from 'node:path';
import type { JudgedCall } from '../agent/call.js';
import { isWithin } from '../files/is-within.js';
import type { AgentChanges } from './agent-changes.js';
import type { Repository } from './git/git.js';
import { markedFolder } from './git/nearest-repository-folder.js';
import type { Refs } from './git/refs.js';
import { settleAll } from './run-program.js';
import { changedBetween, type WorktreeSnapshot } from './worktree-snapshot.js';

/** Determines which files a call changed, and whether the changes are its own. */

/** Files that changed while a call ran, relative to the top. */
export type CallChanges = {
  readonly call: JudgedCall;
  readonly before: WorktreeSnapshot;
  readonly changed: readonly string[];
  /** The content may come from a commit or a stash instead of the call itself. */
  readonly mixed: boolean;
};

const UNSEEN = 'the repository could not be read before the agent changed it';
const INSIDE = 'it belongs to a repository inside this one';
const MIXED = 'it came with a switch of branches, a stash or an undone commit';

/** Opens the repository, which is needed only if HEAD moved. */
type Ask = <T>(work: (repository: Repository) => Promise<T>) => Promise<T | null>;

const isMixed = async (ask: Ask, before: WorktreeSnapshot, after: WorktreeSnapshot): Promise<boolean> => {
  if (before.stash !== after.stash || before.head.branch !== after.head.branch) return true;
  const [from, to] = [before.head.hash, after.head.hash];
  if (from === to || from === null) return false;
  if (to === null) return true;
  const isOnward = await ask((repository) => repository.run(['merge-base', '--is-ancestor', from, to]));
  return isOnward?.code !== 0;
};

export const isFolder = async (file: string): Promise<boolean> => {
  try {
    return (await lstat(file)).isDirectory();
  } catch {
    return false; // it does not exist, so there is nothing below it
  }
};

/** The files, not folders, that calls name. */
export const namedFiles = async (calls: readonly JudgedCall[]): Promise<readonly string[]> => {
  const paths = [...new Set(calls.flatMap(({ facts }) => facts.paths))];
  const folders = await Promise.all(paths.map(isFolder));
  return paths.filter((_path, index) => folders[index] === false);
};

/** Like `namedFiles`, but synchronous. */
export const namedFilesNow = (calls: readonly JudgedCall[]): readonly string[] =>
  [...new Set(calls.flatMap(({ facts }) => facts.paths))].filter((file) => !isFolderNow(file));

const isFolderNow = (file: string): boolean => {
  try {
    return lstatSync(file).isDirectory();
  } catch {
    return false; // as above
  }
};

export const callChangesBetween = async (
  call: JudgedCall,
  before: WorktreeSnapshot,
  after: WorktreeSnapshot,
  ask: Ask,
): Promise<CallChanges> => {
  const [changed, mixed] = await settleAll([changedBetween(before, after), isMixed(ask, before, after)]);
  return { call, before, changed, mixed };
};

const noteNamed = (
  file: string,
  changes: CallChanges | undefined,
  top: string,
  agentChanges: AgentChanges,
): void => {
  if (!isWithin(file, top)) return;
  const name = path.relative(top, file);
  if (markedFolder(path.dirname(file)) !== top) agentChanges.exclude(name, INSIDE);
  else if (changes === undefined) agentChanges.doubt(name, UNSEEN);
  else agentChanges.touch(name, changes.before.changed);
};

/** Attributes to a command all changes below the folder that it names. */
const noteBelow = (
  folder: string,
  { before, changed, mixed }: CallChanges,
  top: string,
  agentChanges: AgentChanges | null,
): readonly string[] => {
  const names = changed.filter((name) => isWithin(path.join(top, name), folder));
  for (const name of names) {
    if (mixed) agentChanges?.doubt(name, MIXED);
    else agentChanges?.touch(name, before.changed);
  }
  return names.map((name) => path.join(top, name));
};

/**
 * The files that a call changed, as absolute paths. Records them in `agentChanges` if given. Without `changes`, only
 * the files that the call names are known.
 */
export const noteCallChanges = async (
  call: JudgedCall,
  changes: CallChanges | undefined,
  { top, gitFolder }: Refs,
  agentChanges: AgentChanges | null,
): Promise<readonly string[]> => {
  const files: string[] = [];
  for (const place of call.facts.paths) {
    if (isWithin(place, gitFolder)) continue;
    if (await isFolder(place)) {
      if (changes !== undefined) files.push(...noteBelow(place, changes, top, agentChanges));
    } else {
      files.push(place);
      if (agentChanges !== null) noteNamed(place, changes, top, agentChanges);
    }
  }
  return files;
};
