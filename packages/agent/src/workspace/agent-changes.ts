import path from 'node:path';
import { entryStatus, isWithin } from '../platform/files.js';
import type { JudgedCall } from '../policy/judged-call.js';
import { isAncestor, markedFolder, type Repository } from './git.js';
import {
  type ChangedFiles,
  changedBetween,
  type Refs,
  type Stamp,
  type WorktreeSnapshot,
} from './repository-snapshot.js';

/**
 * Which uncommitted changes are the agent's. Paths are relative to the top of the repository.
 *
 * A file is the agent's if it had no uncommitted changes (or did not exist) when a call first
 * changed it. It stops being the agent's when its changes are committed or undone, or when somebody
 * else changes it. Other files that the agent changed too are not touched, which is reported once.
 * In doubt a file does not count as the agent's.
 */

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
const WHILE_UNREADABLE = 'it was changed while the repository could not be read';

export class AgentChanges {
  readonly #ours = new Map<string, Stamp | null>();
  readonly #leftAlone = new Map<string, Reason>();
  /** Files that a call changed and that can't be committed to this repository. */
  readonly #excluded = new Map<string, Reason>();
  /** Files that had uncommitted changes in the first snapshot. */
  #first: ReadonlySet<string> | null = null;

  /** A call changed the file; `before` is the last snapshot before the call. */
  touch(name: string, before: ChangedFiles): void {
    if (this.#ours.has(name) || this.#leftAlone.has(name)) return;
    if (!before.has(name)) this.#ours.set(name, null);
    else this.#leave(name, this.#first?.has(name) === true ? BEFORE_ALL : BETWEEN);
  }

  /** The file is as after a call or a formatter; `now` is a snapshot taken afterwards. */
  accept(name: string, now: ChangedFiles): void {
    if (!this.#leftAlone.has(name)) this.#ours.set(name, now.get(name)?.stamp ?? null);
  }

  /** A call may have changed the file, but it is unclear whose the change is. */
  doubt(name: string, why: string): void {
    if (!this.#ours.has(name)) this.#leave(name, why);
  }

  exclude(name: string, why: string): void {
    if (!this.#excluded.has(name)) this.#excluded.set(name, { why, reported: false });
  }

  /**
   * Compares with a snapshot: a file of the agent that is not as it was accepted was changed by
   * somebody else. `unseen`: a call may have run, but there was no snapshot before it.
   */
  notice(now: ChangedFiles, unseen?: 'unseen'): void {
    this.#first ??= new Set(now.keys());
    for (const files of [this.#ours, this.#leftAlone])
      for (const name of files.keys()) if (!now.has(name)) files.delete(name);
    for (const [name, stamp] of this.#ours)
      if (stamp !== now.get(name)?.stamp)
        this.#leave(name, unseen === undefined ? SOMEBODY_ELSE : WHILE_UNREADABLE);
  }

  /**
   * Leaves all files of the agent alone, so that no part of a batch is committed without the rest.
   */
  leaveAll(why: string): void {
    for (const name of [...this.#ours.keys()]) this.#leave(name, why);
  }

  /** The agent's files. */
  ours(): readonly string[] {
    return [...this.#ours.keys()];
  }

  /** Excluded files that are not yet reported. */
  takeUnreported(): readonly FileLeftAlone[] {
    return [this.#leftAlone, this.#excluded].flatMap((files) =>
      [...files].flatMap(([name, { why, reported }]) => {
        files.set(name, { why, reported: true });
        return reported ? [] : [{ name, why }];
      }),
    );
  }

  /** These files are committed. */
  commit(names: readonly string[]): void {
    for (const name of names) this.#ours.delete(name);
  }

  forget(): void {
    this.#first = null;
    for (const files of [this.#ours, this.#leftAlone, this.#excluded]) files.clear();
  }

  save(): SavedChanges {
    const [ours, left, excluded] = [[...this.#ours], [...this.#leftAlone], [...this.#excluded]];
    return { ours, left, excluded, first: this.#first && [...this.#first] };
  }

  restore({ ours, left, excluded, first }: SavedChanges): void {
    this.forget();
    for (const [name, stamp] of ours) this.#ours.set(name, stamp);
    for (const [name, reason] of left) this.#leftAlone.set(name, reason);
    for (const [name, reason] of excluded) this.#excluded.set(name, reason);
    this.#first = first && new Set(first);
  }

  #leave(name: string, why: string): void {
    this.#ours.delete(name);
    if (!this.#leftAlone.has(name)) this.#leftAlone.set(name, { why, reported: false });
  }
}

// ---- What one call changed ----

/** Files that changed while a call ran, relative to the top. */
export type CallChanges = {
  readonly call: JudgedCall;
  readonly before: WorktreeSnapshot;
  readonly changed: readonly string[];
  /** The content may come from a commit or a stash instead of the call itself. */
  readonly mixed: boolean;
};

/** Opens the repository, which is needed only if HEAD moved. */
type Ask = <T>(work: (repository: Repository) => Promise<T>) => Promise<T | null>;

export const callChangesBetween = async (
  call: JudgedCall,
  before: WorktreeSnapshot,
  after: WorktreeSnapshot,
  ask: Ask,
): Promise<CallChanges> => {
  const changed = changedBetween(before, after);
  return { call, before, changed, mixed: await isMixed(before, after, ask) };
};

const isMixed = async (
  before: WorktreeSnapshot,
  after: WorktreeSnapshot,
  ask: Ask,
): Promise<boolean> => {
  if (before.stash !== after.stash || before.head.branch !== after.head.branch) return true;
  const [from, to] = [before.head.hash, after.head.hash];
  if (from === to || from === null) return false;
  if (to === null) return true;
  return (await ask((repository) => isAncestor(repository, from, to))) !== true;
};

export const isFolder = (file: string): boolean => entryStatus(file)?.isDirectory() === true;

/** The files, not folders, that calls name. */
export const namedFiles = (calls: readonly JudgedCall[]): readonly string[] =>
  [...new Set(calls.flatMap(({ facts }) => facts.paths))].filter((file) => !isFolder(file));

/**
 * The files that a call changed, as absolute paths: those that it names, and all changes below a
 * folder that it names. Without `changes`, only the former are known.
 */
export const filesOfCall = (
  { facts }: JudgedCall,
  changes: CallChanges | undefined,
  { top, gitFolder }: Refs,
): readonly string[] => {
  const changed = (changes?.changed ?? []).map((name) => path.join(top, name));
  return facts.paths
    .filter((place) => !isWithin(place, gitFolder))
    .flatMap((place) =>
      isFolder(place) ? changed.filter((file) => isWithin(file, place)) : [place],
    );
};

const INSIDE = 'it belongs to a repository inside this one';
const MIXED = 'it came with a switch of branches, a stash or an undone commit';
const CUT =
  'Pawl was killed or closed while a call of the agent ran, so nobody knows who changed ' +
  'what. Commit it yourself: auto-commit leaves it alone from now on';
const UNSEEN = 'the repository could not be read before the agent changed it';
/** The record of an earlier process is missing. */
const UNRECORDED =
  'Pawl was killed between the calls of the agent, and how the files were before is not ' +
  'recorded. Commit it yourself: auto-commit leaves it alone from now on';

/** The files of this repository that a call names. Files of inner repositories are excluded. */
const namedIn = (
  { facts }: JudgedCall,
  { top, gitFolder }: Refs,
  agent: AgentChanges,
): readonly string[] =>
  facts.paths.flatMap((place) => {
    if (isWithin(place, gitFolder) || !isWithin(place, top) || isFolder(place)) return [];
    const name = path.relative(top, place);
    if (markedFolder(path.dirname(place)) === top) return [name];
    agent.exclude(name, INSIDE);
    return [];
  });

/** Those of the changed files that a call names, or that lie below a folder that it names. */
const reachedBy = (
  { facts }: JudgedCall,
  changed: readonly string[],
  { top }: Refs,
): readonly string[] =>
  changed.filter((name) => facts.paths.some((place) => isWithin(path.join(top, name), place)));

/** Records the changes of a call between two snapshots as the agent's. */
export const noteCallChanges = (
  { call, before, changed, mixed }: CallChanges,
  after: WorktreeSnapshot,
  agent: AgentChanges,
): void => {
  const named = namedIn(call, after, agent);
  for (const name of named) agent.touch(name, before.changed);
  for (const name of reachedBy(call, changed, after)) {
    if (mixed) agent.doubt(name, MIXED);
    else agent.touch(name, before.changed);
    agent.accept(name, after.changed);
  }
  for (const name of named) agent.accept(name, after.changed);
};

/** Records that a call may have changed the files that it names, although no look preceded it. */
export const noteUnseenCall = (call: JudgedCall, refs: Refs, agent: AgentChanges): void => {
  for (const name of namedIn(call, refs, agent)) agent.doubt(name, UNSEEN);
};

/**
 * Records that a call of a process that was killed may have changed any of these files, and nobody
 * knows which.
 */
export const noteUnrecordedCall = (
  call: JudgedCall,
  refs: Refs,
  changed: readonly string[],
  agent: AgentChanges,
): void => {
  agent.leaveAll(UNRECORDED);
  for (const name of namedIn(call, refs, agent)) agent.doubt(name, UNRECORDED);
  for (const name of reachedBy(call, changed, refs)) agent.doubt(name, UNRECORDED);
};

/** Records that nobody knows who changed the files of a call: Pawl ended while it ran. */
export const noteCutCall = (
  { call, changed }: CallChanges,
  refs: Refs,
  agent: AgentChanges,
): void => {
  const names = reachedBy(call, changed, refs);
  if (names.length === 0) return;
  agent.leaveAll(CUT);
  for (const name of names) agent.doubt(name, CUT);
};
