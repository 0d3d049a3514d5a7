/** Which files a call changed, and which uncommitted changes are the agent's. */

import { lstatSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import path from 'node:path';
import type { JudgedCall } from '../machine/call.js';
import { isWithin } from '../platform/files.js';
import { settleAll } from '../platform/run-program.js';
import { markedFolder, type Repository } from './git.js';
import {
  type ChangedFiles,
  changedBetween,
  type Refs,
  type Stamp,
  type WorktreeSnapshot,
} from './repository-snapshot.js';

/**
 * Tracks which uncommitted changes are the agent's.
 *
 * 1. A file is the agent's if it had no uncommitted changes (or did not exist) when a call first changed it. It stops
 *    being the agent's when its changes are committed or undone, or when somebody else changes it.
 * 2. Other files that the agent changed too are left alone, which is reported once.
 * 3. In doubt a file does not count as the agent's.
 *
 * Paths are relative to the top of the repository.
 */
export type AgentChanges = {
  /** A call changed the file; `before` is the last snapshot before the call. */
  touch(name: string, before: ChangedFiles): void;
  /** The file is as a call or a formatter left it; `now` is a snapshot taken afterwards. */
  accept(name: string, now: ChangedFiles): void;
  /** A call may have changed the file, but it is unclear whose the change is. */
  doubt(name: string, why: string): void;
  /** A call changed a file that can't be committed to this repository. */
  exclude(name: string, why: string): void;
  /**
   * Compares with a snapshot: a file of the agent that is not as it was accepted was changed by somebody else.
   * `unseen`: a call may have run, but there was no snapshot before it.
   */
  notice(now: ChangedFiles, unseen?: 'unseen'): void;
  /** Leaves all files of the agent alone, so that no part of a batch is committed without the rest. */
  leaveAll(why: string): void;
  /** The agent's files. */
  ours(): readonly string[];
  /** Files that are left alone and not yet reported. */
  takeUnreported(): readonly FileLeftAlone[];
  /** These files are committed. */
  commit(names: readonly string[]): void;
  forget(): void;
  /** The whole content, as JSON. */
  save(): SavedChanges;
  restore(saved: SavedChanges): void;
};

export type FileLeftAlone = { readonly name: string; readonly why: string };
type Reason = { readonly why: string; readonly reported: boolean };
export type SavedChanges = {
  readonly ours: readonly (readonly [string, Stamp | null])[];
  readonly left: readonly (readonly [string, Reason])[];
  readonly excluded: readonly (readonly [string, Reason])[];
  readonly first: readonly string[] | null;
};

const BEFORE_ALL = 'it had uncommitted changes when auto-commit first looked at it in this session';
const BETWEEN = 'it was changed between the calls of the agent';
const SOMEBODY_ELSE = 'somebody else changed it too';
const CHANGED_UNSEEN = 'it was changed while the repository could not be read';

export const createAgentChanges = (): AgentChanges => {
  const ours = new Map<string, Stamp | null>();
  const left = new Map<string, Reason>();
  const excluded = new Map<string, Reason>();
  /** Files that had uncommitted changes in the first snapshot. */
  let first: ReadonlySet<string> | null = null;
  const leave = (name: string, why: string): void => {
    ours.delete(name);
    if (!left.has(name)) left.set(name, { why, reported: false });
  };
  const forget = (): void => {
    first = null;
    for (const files of [ours, left, excluded]) files.clear();
  };
  return {
    touch(name, before) {
      if (ours.has(name) || left.has(name)) return;
      if (before.has(name)) leave(name, first?.has(name) === true ? BEFORE_ALL : BETWEEN);
      else ours.set(name, null);
    },
    accept(name, now) {
      if (!left.has(name)) ours.set(name, now.get(name)?.stamp ?? null);
    },
    doubt(name, why) {
      if (!ours.has(name)) leave(name, why);
    },
    exclude(name, why) {
      if (!excluded.has(name)) excluded.set(name, { why, reported: false });
    },
    notice(now, unseen) {
      first ??= new Set(now.keys());
      for (const files of [ours, left])
        for (const name of files.keys()) if (!now.has(name)) files.delete(name);
      for (const [name, stamp] of ours) {
        if (stamp !== now.get(name)?.stamp)
          leave(name, unseen === undefined ? SOMEBODY_ELSE : CHANGED_UNSEEN);
      }
    },
    leaveAll(why) {
      for (const name of [...ours.keys()]) leave(name, why);
    },
    ours: () => [...ours.keys()],
    takeUnreported: () =>
      [left, excluded].flatMap((files) =>
        [...files].flatMap(([name, { why, reported }]) => {
          if (reported) return [];
          files.set(name, { why, reported: true });
          return [{ name, why }];
        }),
      ),
    commit(names) {
      for (const name of names) ours.delete(name);
    },
    forget,
    save: () => ({
      ours: [...ours],
      left: [...left],
      excluded: [...excluded],
      first: first === null ? null : [...first],
    }),
    restore(saved) {
      forget();
      for (const [name, stamp] of saved.ours) ours.set(name, stamp);
      for (const [name, reason] of saved.left) left.set(name, reason);
      for (const [name, reason] of saved.excluded) excluded.set(name, reason);
      first = saved.first === null ? null : new Set(saved.first);
    },
  };
};

/** Determines which files a call changed, and whether the changes are its own. */

/** Files that changed while a call ran, relative to the top. */
export type CallChanges = {
  readonly call: JudgedCall;
  readonly before: WorktreeSnapshot;
  readonly changed: readonly string[];
  /** The content may come from a commit or a stash instead of the call itself. */
  readonly mixed: boolean;
};

export const UNSEEN = 'the repository could not be read before the agent changed it';
const CUT =
  'Pawl was killed or closed while a call of the agent ran, so nobody knows who changed what. Commit it yourself: auto-commit leaves it alone from now on';
/** The record of an earlier process is missing. */
export const UNRECORDED =
  'Pawl was killed between the calls of the agent, and how the files were before is not recorded. Commit it yourself: auto-commit leaves it alone from now on';
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

/** Whether a call may have changed a file: it names the file, or a folder above it. */
const isBelow = ({ facts }: JudgedCall, name: string, { top }: Refs): boolean =>
  facts.paths.some((place) => isWithin(path.join(top, name), place));

/** The changed files below the folder that a command names. */
const namesBelow = (folder: string, { changed }: CallChanges, top: string): readonly string[] =>
  changed.filter((name) => isWithin(path.join(top, name), folder));

/**
 * The files that a call changed, as absolute paths: those that it names, and all changes below a folder that it names.
 * Without `changes`, only the former are known.
 */
export const filesOfCall = async (
  call: JudgedCall,
  changes: CallChanges | undefined,
  { top, gitFolder }: Refs,
): Promise<readonly string[]> => {
  const files: string[] = [];
  for (const place of call.facts.paths) {
    if (isWithin(place, gitFolder)) continue;
    if (!(await isFolder(place))) files.push(place);
    else if (changes !== undefined)
      files.push(...namesBelow(place, changes, top).map((name) => path.join(top, name)));
  }
  return files;
};

/** Calls `visit` for each file that a call names, by its name in the repository. Files of inner repositories are excluded. */
const visitNamed = async (
  call: JudgedCall,
  { top, gitFolder }: Refs,
  agentChanges: AgentChanges,
  visit: (name: string) => void,
): Promise<void> => {
  for (const place of call.facts.paths) {
    if (isWithin(place, gitFolder) || !isWithin(place, top) || (await isFolder(place))) continue;
    const name = path.relative(top, place);
    if (markedFolder(path.dirname(place)) === top) visit(name);
    else agentChanges.exclude(name, INSIDE);
  }
};

/** Records the changes of a call between two snapshots as the agent's. */
export const noteCallChanges = async (
  { call, before, changed, mixed }: CallChanges,
  after: WorktreeSnapshot,
  agentChanges: AgentChanges,
): Promise<void> => {
  const accept = (name: string): void => agentChanges.accept(name, after.changed);
  await visitNamed(call, after, agentChanges, (name) => {
    agentChanges.touch(name, before.changed);
    accept(name);
  });
  for (const folder of call.facts.paths) {
    if (!(await isFolder(folder))) continue;
    for (const name of namesBelow(folder, { call, before, changed, mixed }, after.top)) {
      if (mixed) agentChanges.doubt(name, MIXED);
      else agentChanges.touch(name, before.changed);
      accept(name);
    }
  }
};

/**
 * Records that a call may have changed the files that it names, without snapshots before and after it. `changed`: all
 * files with uncommitted changes, if a command may have changed any of them.
 */
export const noteUnseenCall = async (
  call: JudgedCall,
  refs: Refs,
  agentChanges: AgentChanges,
  { why, changed }: { readonly why: string; readonly changed: readonly string[] },
): Promise<void> => {
  await visitNamed(call, refs, agentChanges, (name) => agentChanges.doubt(name, why));
  for (const name of changed) if (isBelow(call, name, refs)) agentChanges.doubt(name, why);
};

/** Records that nobody knows who changed the files of a call: Pawl ended while it ran. */
export const noteCutCall = async (
  { call, changed }: CallChanges,
  refs: Refs,
  agentChanges: AgentChanges,
): Promise<void> => {
  const names = changed.filter((name) => isBelow(call, name, refs));
  if (names.length === 0) return;
  agentChanges.leaveAll(CUT);
  for (const name of names) agentChanges.doubt(name, CUT);
};
