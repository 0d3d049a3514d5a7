/**
 * The errors of journals, classified where they happen. Each message says what is wrong and what
 * the user can do. Here are those that several files need.
 */

import { errorCode } from '../platform/files.js';
import type { MachineTypes } from '../ports/journal.js';

/**
 * `locked`: another writer has the session open. `damaged`: the file differs from what was written.
 * `newerVersion`: a later Pawl wrote it. `notFound`: no such session. `exists`: the session exists
 * already. `outOfRange`: no such seq. `otherMachine`: the session belongs to another machine.
 * `cannotRead`, `cannotWrite`: the operating system refused. `foreignChange`: somebody else
 * removed, moved or changed the file of a running session. `takenOver`: another process has taken
 * the session over.
 */
export type JournalErrorKind =
  | 'locked'
  | 'damaged'
  | 'newerVersion'
  | 'notFound'
  | 'exists'
  | 'outOfRange'
  | 'otherMachine'
  | 'cannotRead'
  | 'cannotWrite'
  | 'foreignChange'
  | 'takenOver';

/**
 * Position of damage: the line of the file (the header is line 1), and the seq of the last good
 * entry before it.
 */
type JournalPlace = { readonly line: number; readonly seq: number };

export class JournalError extends Error {
  override readonly name = 'JournalError';
  readonly kind: JournalErrorKind;
  /** Path of the file, or `memory:ID` for a journal in memory. */
  readonly path: string;
  /** Set only for `damaged`. */
  readonly place: JournalPlace | null;
  /** The reason alone, without path and advice. */
  readonly why: string;

  constructor(
    kind: JournalErrorKind,
    path: string,
    message: string,
    place: JournalPlace | null = null,
    { cause, why = message }: { readonly cause?: unknown; readonly why?: string } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.path = path;
    this.place = place;
    this.why = why;
  }
}

const messageText = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

const NO_PERMISSION = 'Permission is missing: change the owner or mode';
const NOT_WRITABLE = `${NO_PERMISSION}, or set XDG_STATE_HOME to a folder of your own`;
const repairs: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full: free some space',
  EDQUOT: 'The disk quota is used up: free some space',
  EROFS:
    'The file system is read-only: make it writable, or set XDG_STATE_HOME to a folder that is',
  EACCES: NOT_WRITABLE,
  EPERM: NOT_WRITABLE,
  ENOENT: 'A folder of the path is missing: create it',
  EIO: "The disk reports a fault: look at the system's log",
  EMFILE: 'Too many files are open: raise the limit (ulimit -n)',
  ENFILE: 'Too many files are open on this computer: close some programs',
};
const readRepairs: typeof repairs = {
  ...repairs,
  ...{ EACCES: NO_PERMISSION, EPERM: NO_PERMISSION, ENOENT: 'The file is gone: restore it' },
};

/** True for a JournalError or a bug, false for an error of the operating system. */
const isOurs = (error: unknown): error is Error =>
  error instanceof Error && errorCode(error) === '';

/**
 * Turns a refused write into a JournalError that says what to do; returns other errors unchanged.
 * `then`: what works once that is repaired.
 */
export const cannotWrite = (
  path: string,
  error: unknown,
  then = 'open the session again',
): Error => {
  if (isOurs(error)) return error;
  const repair = repairs[errorCode(error)] ?? 'Repair that';
  const text = `Cannot write ${path}: ${messageText(error)}. ${repair}, then ${then}.`;
  return new JournalError('cannotWrite', path, text, null, { cause: error });
};

/** Turns a refused read into a JournalError; returns other errors unchanged. */
export const cannotRead = (path: string, error: unknown): Error => {
  if (isOurs(error)) return error;
  const repair = readRepairs[errorCode(error)] ?? 'Check the disk and the permissions of the file';
  const text = `Cannot read ${path}: ${messageText(error)}. ${repair}, then try again.`;
  return new JournalError('cannotRead', path, text, null, { cause: error });
};

export const notFound = (path: string, sessionId: string): JournalError =>
  new JournalError(
    'notFound',
    path,
    `There is no session "${sessionId}" (looked for ${path}). List the sessions that exist, ` +
      'and take an id from there.',
  );

export const exists = (path: string, sessionId: string): JournalError =>
  new JournalError(
    'exists',
    path,
    `Session "${sessionId}" exists already (${path}). Take another id.`,
  );

/**
 * The error for a damaged journal: its message says where the damage is and which entries are still
 * good.
 */
export const damaged = (path: string, place: JournalPlace, why: string): JournalError =>
  new JournalError(
    'damaged',
    path,
    `The journal ${path} is damaged at line ${place.line}: ${why}. ` +
      (place.line === 1
        ? 'Nothing of it can be trusted: restore the file from a backup.'
        : `Entries up to seq ${place.seq} are good: fork the session at ${place.seq} to go on ` +
          'from there.'),
    place,
    { why },
  );

/**
 * The error for a journal that was copied or renamed by hand: two writers of one session would use
 * different locks.
 */
export const misnamed = (path: string, sessionId: string): JournalError =>
  new JournalError(
    'damaged',
    path,
    `The journal ${path} is that of session "${sessionId}", copied or renamed by hand. ` +
      `Rename it back, or fork "${sessionId}" to get a second session.`,
    { line: 1, seq: 0 },
  );

export const newerVersion = (path: string, version: number): JournalError =>
  new JournalError(
    'newerVersion',
    path,
    `The journal ${path} has format version ${version}; this Pawl reads up to version 1. It was ` +
      'left untouched: update Pawl to open it.',
  );

export const newerMachine = (path: string, version: number, known: number): JournalError =>
  new JournalError(
    'newerVersion',
    path,
    `The journal ${path} was written by a newer Pawl (its state machine has version ${version}, ` +
      `this one has version ${known}). It was left untouched: update Pawl to open it.`,
  );

const machineNames: Readonly<Record<MachineTypes['kind'], readonly [what: string, how: string]>> = {
  agent: ["a session of the agent's", 'pawl --resume'],
  ask: ['a run of code mode', 'pawl ask --resume'],
};

export const otherMachine = (
  path: string,
  sessionId: string,
  kind: MachineTypes['kind'],
): JournalError => {
  if (!Object.hasOwn(machineNames, kind))
    return new JournalError(
      'otherMachine',
      path,
      `Session "${sessionId}" is of a kind that this Pawl does not know: "${kind}". Update ` +
        'Pawl to open it.',
    );
  const [what, how] = machineNames[kind];
  return new JournalError(
    'otherMachine',
    path,
    `Session "${sessionId}" is ${what}. To go on with it: ${how} ${sessionId}`,
  );
};

/** The command that goes on with a session of this kind, without its id. */
export const resumeCommand = (kind: MachineTypes['kind']): string => machineNames[kind][1];

export const outOfRange = (path: string, seq: number, last: number): JournalError => {
  const range =
    last === 0
      ? 'it has none. Choose 0.'
      : `it holds entries 1 to ${last}. Choose a whole number from 0 to ${last}.`;
  const why = `There is no entry ${seq} in the session: ${range}`;
  const text = `There is no entry ${seq} in ${path}: ${range}`;
  return new JournalError('outOfRange', path, text, null, { why });
};

export const closed = (path: string): JournalError =>
  new JournalError(
    'cannotWrite',
    path,
    `The journal ${path} is closed. Open the session again to write to it.`,
  );

export const blobDamaged = (path: string): JournalError =>
  new JournalError(
    'damaged',
    path,
    `The blob ${path} is damaged: its content does not fit its name.`,
  );
