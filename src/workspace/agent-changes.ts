import type { ChangedFiles, Stamp } from './worktree-snapshot.js';

/**
 * Tracks which uncommitted changes are the agent's.
 *
 * 1. A file is the agent's if it had no uncommitted changes (or did not exist) when a call first changed it. It stops
 *    being the agent's when its changes are committed or undone, or when somebody else changes it between the calls.
 * 2. Other files that the agent changed too are left alone, which is reported once.
 * 3. In doubt a file does not count as the agent's.
 *
 * Paths are relative to the top of the repository.
 */
export type AgentChanges = {
  /** A call changed the file; `before` is the last snapshot before the call. */
  touch(name: string, before: ChangedFiles): void;
  /** Our formatter changed the file in this batch; `now` is a snapshot taken afterwards. */
  format(name: string, now: ChangedFiles): void;
  /** A call may have changed the file, but it is unclear whose the change is. */
  doubt(name: string, why: string): void;
  /** A call changed a file that can't be committed to this repository. */
  exclude(name: string, why: string): void;
  /**
   * Compares with a snapshot after a period without calls: every change since is somebody else's. `unseen`: a call may
   * have run, but there was no snapshot before it.
   */
  notice(now: ChangedFiles, unseen?: 'unseen'): void;
  /** Records the current files as the agent's result. */
  settle(now: ChangedFiles): void;
  /** The agent's files. */
  ours(): readonly string[];
  /** Files that are left alone and not yet reported. */
  tellLeft(): readonly { readonly name: string; readonly why: string }[];
  /** These files are committed. */
  commit(names: readonly string[]): void;
  forget(): void;
};

const BEFORE_ALL = 'it had uncommitted changes when auto-commit first looked at it in this session';
const BETWEEN = 'it was changed between the calls of the agent';
const SOMEBODY_ELSE = 'somebody else changed it too';
const UNSEEN = 'it was changed while the repository could not be read';

export const createAgentChanges = (): AgentChanges => {
  const ours = new Map<string, Stamp | null>();
  const left = new Map<string, { readonly why: string; told: boolean }>();
  /** Files that had uncommitted changes in the first snapshot. */
  let atFirst: ReadonlySet<string> | null = null;
  const excluded = new Map<string, { readonly why: string; told: boolean }>();
  const leave = (name: string, why: string): void => {
    ours.delete(name);
    if (!left.has(name)) left.set(name, { why, told: false });
  };
  /** Forgets files without uncommitted changes. */
  const dropClean = (changed: ChangedFiles): void => {
    for (const names of [ours, left])
      for (const name of names.keys()) if (!changed.has(name)) names.delete(name);
  };
  return {
    touch(name, before) {
      if (ours.has(name) || left.has(name)) return;
      if (before.has(name)) leave(name, atFirst?.has(name) === true ? BEFORE_ALL : BETWEEN);
      else ours.set(name, null);
    },
    format(name, now) {
      if (left.has(name)) return;
      ours.set(name, now.get(name)?.stamp ?? null);
    },
    doubt(name, why) {
      if (!ours.has(name)) leave(name, why);
    },
    notice(now, unseen) {
      atFirst ??= new Set(now.keys());
      dropClean(now);
      for (const [name, stamp] of ours) {
        if (stamp !== now.get(name)?.stamp) leave(name, unseen === undefined ? SOMEBODY_ELSE : UNSEEN);
      }
    },
    settle(now) {
      dropClean(now);
      for (const name of ours.keys()) ours.set(name, now.get(name)?.stamp ?? null);
    },
    ours: () => [...ours.keys()],
    exclude(name, why) {
      if (!excluded.has(name)) excluded.set(name, { why, told: false });
    },
    tellLeft: () =>
      [...left, ...excluded].flatMap(([name, entry]) => {
        if (entry.told) return [];
        entry.told = true;
        return [{ name, why: entry.why }];
      }),
    commit(names) {
      for (const name of names) ours.delete(name);
    },
    forget() {
      atFirst = null;
      ours.clear();
      left.clear();
      excluded.clear();
    },
  };
};
