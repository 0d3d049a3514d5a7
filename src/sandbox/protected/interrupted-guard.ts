import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ProtectedKind } from './protected-scan.js';

/**
 * What protected paths there were before the commands that run now, in a file of the session.
 *
 * It exists only while fenced commands run that may write. If it is still there when nobody runs, Pawl was killed, and
 * the next session in the workspace judges what came since.
 */

export type RecordedPath = {
  readonly path: string;
  readonly kind: ProtectedKind;
  readonly dev: number;
  readonly ino: number;
  readonly changedMs: number;
  readonly size: number;
  readonly links: number;
  readonly inGit: boolean;
  readonly namedBy: string | null;
  readonly target: string | null;
};

export type RecordedGuard = {
  readonly workspace: string;
  readonly known: readonly RecordedPath[];
  /** Paths that were read-only for every running command. */
  readonly bound: readonly string[];
  /** When the first of the commands started, in ms. */
  readonly sinceMs: number;
};

export type InterruptedGuard = RecordedGuard & {
  /** Whether one of the commands still runs. */
  isAlive(): boolean;
};

export type GuardRecord = { write(guard: RecordedGuard): void; remove(): void };

const fileIn = (sessionFolder: string): string => path.join(sessionFolder, 'protected.json');

export const guardRecordIn = (sessionFolder: string): GuardRecord => ({
  write(guard) {
    try {
      writeFileSync(fileIn(sessionFolder), JSON.stringify(guard), { mode: 0o600 });
    } catch {
      // The disk is full, or the session has no folder: the command itself will fail and say so.
    }
  },
  remove: () => rmSync(fileIn(sessionFolder), { force: true }),
});

const isRecorded = (value: unknown): value is RecordedGuard =>
  typeof value === 'object' &&
  value !== null &&
  'workspace' in value &&
  'known' in value &&
  Array.isArray(value.known) &&
  'bound' in value &&
  Array.isArray(value.bound) &&
  'sinceMs' in value &&
  typeof value.sinceMs === 'number';

/** Null if there is none, or if it was cut when Pawl was killed. Then the commands had not started. */
export const readGuardRecord = (sessionFolder: string): RecordedGuard | null => {
  try {
    const value: unknown = JSON.parse(readFileSync(fileIn(sessionFolder), 'utf8'));
    return isRecorded(value) ? value : null;
  } catch {
    return null;
  }
};
