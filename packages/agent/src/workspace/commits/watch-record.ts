import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { JudgedCall } from '../../machine/call.js';
import { readTextOrEmptySync } from '../../platform/files/regular-file.js';
import type { SavedChanges } from '../agent-changes.js';
import type { ChangedFile, WorktreeSnapshot } from '../worktree-snapshot.js';

/**
 * The record beside the journal, with which a session that was killed still knows whose the changes are
 * (docs/hooks.md). It is written before and after each mutating call, if auto-commit is on.
 *
 * 1. It is only a memory: without it, or with an old one, files are left alone that could have been committed. So it is
 *    not synced, and a damaged one counts as none.
 * 2. Above CHANGED_MAX changed files none is written.
 */

export type WatchRecord = {
  readonly version: 1;
  readonly changes: SavedChanges;
  /** Calls since the last report whose changes are in `changes`. */
  readonly noted: readonly string[];
  /** The call that runs, and the snapshot before it; null between calls. */
  readonly running: { readonly call: JudgedCall; readonly before: WorktreeSnapshot } | null;
};

const BYTES_MAX = 16 * 1024 * 1024;
const CHANGED_MAX = 5_000;

type SavedSnapshot = Omit<WorktreeSnapshot, 'changed'> & {
  readonly changed: readonly (readonly [string, ChangedFile])[];
};

/** Replaces the record; null removes it. */
export const writeRecord = (file: string, record: WatchRecord | null): void => {
  const draft = `${file}.new`;
  try {
    if (record === null || (record.running?.before.changed.size ?? 0) > CHANGED_MAX) {
      rmSync(file, { force: true });
      return;
    }
    const { running } = record;
    const saved = running && {
      call: { ...running.call, input: {} },
      before: { ...running.before, changed: [...running.before.changed] } satisfies SavedSnapshot,
    };
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(draft, JSON.stringify({ ...record, running: saved }), { mode: 0o600 });
    renameSync(draft, file);
  } catch {
    // Nothing is lost by it but what rule 1 says: an old record names older stamps, so its files are left alone.
    rmSync(draft, { force: true });
  }
};

/** The record that an earlier process of the session has left; null without one. */
export const readRecord = (file: string): WatchRecord | null => {
  try {
    const record = JSON.parse(readTextOrEmptySync(file, BYTES_MAX));
    if (record.version !== 1) return null;
    const { running } = record;
    return {
      ...record,
      running: running && {
        ...running,
        before: { ...running.before, changed: new Map(running.before.changed) },
      },
    };
  } catch {
    return null; // rule 1
  }
};
