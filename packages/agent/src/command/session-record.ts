/**
 * Names the session of a folder, in its file `session`. Each process of a session has a folder of its own: so a later
 * process finds the commands of one that was killed.
 */

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { statusOf } from '../platform/files.js';
import { bootId, pidNamespace } from '../platform/process-identity.js';

type SessionRecord = {
  readonly sessionId: string;
  /** Boot id and pid namespace. */
  readonly machine: string;
  /** Device and inode of the folder, when it was made; empty in a record of an earlier version. */
  readonly folder: string;
};

/**
 * Where the commands of a record ran. `here`: process numbers mean the same. `namespace`: this machine since its last
 * start, in another pid namespace. `elsewhere`: another machine, or this one before it was restarted. `copy`: the folder
 * is a copy of the one that the commands use.
 */
export type RecordOrigin = 'here' | 'namespace' | 'elsewhere' | 'copy';

/** This machine since its last start, and this pid namespace. Null if that is unknown. */
const thisMachine = (): string | null => {
  const [boot, pids] = [bootId(), pidNamespace()];
  return boot === '' || pids === '' ? null : `${boot} ${pids}`;
};

/** Device and inode: a copy has others. */
const identifyFolder = (folder: string): string => {
  const status = statusOf(folder);
  return status === null ? '' : `${status.dev}:${status.ino}`;
};

export const findOrigin = (folder: string, record: SessionRecord): RecordOrigin => {
  const machine = thisMachine();
  const [boot] = record.machine.split(' ');
  if (machine === null || boot !== machine.split(' ')[0]) return 'elsewhere';
  if (record.folder !== '' && record.folder !== identifyFolder(folder)) return 'copy';
  return record.machine === machine ? 'here' : 'namespace';
};

export const sessionFile = (folder: string): string => path.join(folder, 'session');

/** Makes the folder and names its session in it. Without the record, an interrupted command counts as unknown. */
export const recordSession = (folder: string, sessionId: string): void => {
  const machine = thisMachine();
  if (machine === null) return;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(sessionFile(folder), `${sessionId}\n${machine}\n${identifyFolder(folder)}\n`);
  } catch {
    // The disk is full: the command itself will fail and say so.
  }
};

/** Null if there is none. */
export const readSession = (folder: string): SessionRecord | null => {
  try {
    const [sessionId = '', machine = '', place] = readFileSync(sessionFile(folder), 'utf8').split('\n');
    return place === undefined ? null : { sessionId, machine, folder: place };
  } catch {
    return null; // it belongs to no session that can be resumed, or its process was killed before it began
  }
};

const sentFile = (folder: string): string => path.join(folder, 'sent');

/** A line of its own, also after one that a full disk has cut. */
const sentLine = (call: string): string => JSON.stringify(call);

/** Records that a call is about to leave this process. Throws if that can't be written: then the call must not leave it. */
export const recordSent = (folder: string, call: string): void =>
  appendFileSync(sentFile(folder), `\n${sentLine(call)}\n`);

/** Whether a call has left the process of a folder. */
export const hasSent = (folder: string, call: string): boolean => {
  try {
    return readFileSync(sentFile(folder), 'utf8').split('\n').includes(sentLine(call));
  } catch {
    return false; // none has left it
  }
};
