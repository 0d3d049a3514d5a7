import type { ChangedFiles, Stamp } from './worktree-snapshot.js';

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
const UNSEEN = 'it was changed while the repository could not be read';

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
        if (stamp !== now.get(name)?.stamp) leave(name, unseen === undefined ? SOMEBODY_ELSE : UNSEEN);
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
