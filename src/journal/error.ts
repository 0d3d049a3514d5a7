import type { MachineTypes } from '../needs-machine.js';

/**
 * What can go wrong with a journal, classified once where it happens.
 *
 * `locked`: another writer has the session open. `damaged`: the file does not hold what was written. `newerVersion`:
 * a later Pawl wrote it. `notFound`, `exists`: there is no such session, or there is one already. `outOfRange`: no
 * such seq. `otherMachine`: the session is of another machine than the one that is to open it. `cannotRead`, `cannotWrite`: the operating system refused.
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
  | 'cannotWrite';

/** Where in a journal: the line of the file (the header is line 1), and the seq of the last good entry before it. */
export type Place = { readonly line: number; readonly seq: number };

export class JournalError extends Error {
  override readonly name = 'JournalError';
  readonly kind: JournalErrorKind;
  /** The file, or `memory:ID` of a journal in memory. */
  readonly path: string;
  /** Only of `damaged`. */
  readonly place: Place | null;

  constructor(
    kind: JournalErrorKind,
    path: string,
    message: string,
    place: Place | null = null,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.path = path;
    this.place = place;
  }
}

/** The code of an error of the operating system, or an empty string. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const repairs: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full: free some space',
  EDQUOT: 'The disk quota is used up: free some space',
  EROFS: 'The file system is read-only: make it writable, or set XDG_STATE_HOME to a folder that is',
  EACCES: 'Permission is missing: change the owner or mode, or set XDG_STATE_HOME to a folder of your own',
  EPERM: 'Permission is missing: change the owner or mode, or set XDG_STATE_HOME to a folder of your own',
  EIO: "The disk reports a fault: look at the system's log",
};

/** An error of ours, or a fault of the program: not the operating system's. */
const isOurs = (error: unknown): error is Error => error instanceof Error && codeOf(error) === '';

/** A write that the operating system refused, as a JournalError that says what to do; other errors stay what they are. */
export const cannotWrite = (path: string, error: unknown): Error => {
  if (isOurs(error)) return error;
  const repair = repairs[codeOf(error)] ?? 'Repair that';
  const text = `Cannot write ${path}: ${textOf(error)}. ${repair}, then open the session again.`;
  return new JournalError('cannotWrite', path, text, null, error);
};

/** A read that the operating system refused, as a JournalError; other errors stay what they are. */
export const cannotRead = (path: string, error: unknown): Error => {
  if (isOurs(error)) return error;
  const text = `Cannot read ${path}: ${textOf(error)}. Check the disk and the permissions of the file.`;
  return new JournalError('cannotRead', path, text, null, error);
};

export const notFound = (path: string, sessionId: string): JournalError =>
  new JournalError(
    'notFound',
    path,
    `There is no session "${sessionId}" (looked for ${path}). List the sessions that exist, and take an id from there.`,
  );

export const exists = (path: string, sessionId: string): JournalError =>
  new JournalError('exists', path, `Session "${sessionId}" exists already (${path}). Take another id.`);

/** Journals that are damaged are never skipped over: the message says where, and what is still good. */
export const damaged = (path: string, place: Place, why: string): JournalError =>
  new JournalError(
    'damaged',
    path,
    `The journal ${path} is damaged at line ${place.line}: ${why}. ` +
      (place.line === 1
        ? 'Nothing of it can be trusted: restore the file from a backup.'
        : `Entries up to seq ${place.seq} are good: fork the session at ${place.seq} to go on from there.`),
    place,
  );

/** A file copied or renamed by hand. Two writers of one session would not see each other's locks. */
export const misnamed = (path: string, sessionId: string): JournalError =>
  new JournalError(
    'damaged',
    path,
    `The journal ${path} is that of session "${sessionId}", copied or renamed by hand. Rename it back, or fork ` +
      `"${sessionId}" to get a second session.`,
    { line: 1, seq: 0 },
  );

export const newerVersion = (path: string, version: number): JournalError =>
  new JournalError(
    'newerVersion',
    path,
    `The journal ${path} has format version ${version}; this Pawl reads up to version 1. It was left untouched: ` +
      'update Pawl to open it.',
  );

const machineNames: Readonly<Record<MachineTypes['kind'], readonly [what: string, how: string]>> = {
  agent: ["a session of the agent's", 'pawl --resume'],
  ask: ['a run of code mode', 'pawl ask --resume'],
};

export const otherMachine = (path: string, sessionId: string, kind: MachineTypes['kind']): JournalError => {
  const [what, how] = machineNames[kind];
  return new JournalError(
    'otherMachine',
    path,
    `Session "${sessionId}" is ${what}. To go on with it: ${how} ${sessionId}`,
  );
};

export const outOfRange = (path: string, seq: number, last: number): JournalError =>
  new JournalError(
    'outOfRange',
    path,
    `There is no entry ${seq} in ${path}: it holds entries 1 to ${last}. Choose a whole number from 0 to ${last}.`,
  );

export const closed = (path: string): JournalError =>
  new JournalError(
    'cannotWrite',
    path,
    `The journal ${path} is closed. Open the session again to write to it.`,
  );
