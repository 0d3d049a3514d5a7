import {
  closeSync,
  constants,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { statusOf } from '../../../platform/files/entry-status.js';
import type { ProtectedPath } from './protected-scan.js';

/**
 * What protected paths there were before the commands that run now, in a file of the session.
 *
 * It is empty unless fenced commands run that may write. If it says something when nobody runs, Pawl was killed, and
 * the next session in the workspace judges what came since.
 */

export type RecordedPath = ProtectedPath & {
  /** The target of a symlink; null for anything else. */
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

export type GuardRecord = {
  write(guard: RecordedGuard): void;
  /** No command runs. */
  empty(): void;
  /** What is written stays for the next session. */
  close(): void;
  remove(): void;
  /** Keeps lines that nobody has read when the session ends: the next session in the workspace tells them. */
  leaveNotes(workspace: string, notes: readonly string[]): void;
};

const fileIn = (sessionFolder: string): string => path.join(sessionFolder, 'protected.json');
const notesIn = (sessionFolder: string): string => path.join(sessionFolder, 'notes.json');

/** Null if it is not there, or was cut when Pawl was killed. */
const readJson = (file: string): unknown => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
};

export const guardRecordIn = (sessionFolder: string): GuardRecord => {
  /** Stays open, since making a file for each command costs a quarter of a millisecond. */
  let descriptor: number | null = null;
  const close = (): void => {
    if (descriptor !== null) closeSync(descriptor);
    descriptor = null;
  };
  return {
    write(guard) {
      try {
        descriptor ??= openSync(fileIn(sessionFolder), constants.O_WRONLY | constants.O_CREAT, 0o600);
        const bytes = Buffer.from(JSON.stringify(guard));
        let written = 0;
        while (written < bytes.length) written += writeSync(descriptor, bytes, written, undefined, written);
        ftruncateSync(descriptor, bytes.length);
      } catch {
        // The disk is full, or the session has no folder: the command itself will fail and say so.
      }
    },
    empty() {
      if (descriptor !== null) ftruncateSync(descriptor, 0);
    },
    close,
    remove() {
      close();
      rmSync(fileIn(sessionFolder), { force: true });
    },
    leaveNotes(workspace, notes) {
      try {
        writeFileSync(notesIn(sessionFolder), JSON.stringify({ workspace, notes }), { mode: 0o600 });
      } catch {
        // The disk is full. The files have been moved all the same.
      }
    },
  };
};

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
  const value = readJson(fileIn(sessionFolder));
  return isRecorded(value) ? value : null;
};

/** Removes the record of a session whose commands have all been judged. */
export const removeEmptyRecord = (sessionFolder: string): void => {
  if (statusOf(fileIn(sessionFolder))?.size === 0) rmSync(fileIn(sessionFolder), { force: true });
};

/** The notes that a session has left for this workspace. They are gone afterwards. */
export const takeNotes = (sessionFolder: string, workspace: string): readonly string[] => {
  const value = readJson(notesIn(sessionFolder));
  const isOurs =
    typeof value === 'object' && value !== null && 'workspace' in value && value.workspace === workspace;
  if (!isOurs || !('notes' in value) || !Array.isArray(value.notes)) return [];
  rmSync(notesIn(sessionFolder), { force: true });
  return value.notes.filter((note) => typeof note === 'string');
};
