import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { bootId, pidNamespace } from '../../programs/process-identity.js';

/**
 * Names the session of a folder, in its file `session`. Each process of a session has a folder of its own: so a later
 * process finds the commands of one that was killed.
 */

export type SessionRecord = { readonly sessionId: string; readonly machine: string };

/** This machine since its last start, as far as process numbers mean the same. Null if that is unknown. */
export const thisMachine = (): string | null => {
  const [boot, pids] = [bootId(), pidNamespace()];
  return boot === '' || pids === '' ? null : `${boot} ${pids}`;
};

export const sessionFile = (folder: string): string => path.join(folder, 'session');

/** Makes the folder and names its session in it. Without the record, an interrupted command counts as unknown. */
export const recordSession = (folder: string, sessionId: string): void => {
  const machine = thisMachine();
  if (machine === null) return;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(sessionFile(folder), `${sessionId}\n${machine}\n`);
  } catch {
    // The disk is full: the command itself will fail and say so.
  }
};

/** Null if there is none. */
export const readSession = (folder: string): SessionRecord | null => {
  try {
    const [sessionId = '', machine = '', end] = readFileSync(sessionFile(folder), 'utf8').split('\n');
    return end === undefined ? null : { sessionId, machine };
  } catch {
    return null; // it belongs to no session that can be resumed, or its process was killed before it began
  }
};
