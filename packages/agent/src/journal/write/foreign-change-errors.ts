import { basename } from 'node:path';
import { JournalError } from '../journal-error.js';
import type { ForeignChange } from './file-identity.js';
import type { Rescued } from './rescue-copy.js';

/** Thrown by a write target; becomes a JournalError once it is known what could be rescued. */
export class NotOwnFile extends Error {
  override readonly name = 'NotOwnFile';
  readonly change: ForeignChange | { readonly kind: 'overwritten' };

  constructor(change: NotOwnFile['change']) {
    super(change.kind);
    this.change = change;
  }
}

const whatHappened = (change: NotOwnFile['change']): string => {
  switch (change.kind) {
    case 'removed':
      return 'was removed';
    case 'folderRemoved':
      return 'was removed with its folder';
    case 'moved':
      return change.to === null ? 'was moved' : `was moved to ${change.to}`;
    case 'replaced':
      return 'was replaced by another file';
    case 'readOnly':
      return 'was made read-only';
    case 'truncated':
      return 'was cut shorter';
    case 'extended':
      return 'was appended to by another program';
    case 'overwritten':
      return 'was overwritten by another program';
    default:
      return change satisfies never;
  }
};

/** True if the session's path still leads to a file, which an import must not overwrite. */
const isPathTaken = ({ kind }: NotOwnFile['change']): boolean =>
  kind !== 'removed' && kind !== 'folderRemoved' && kind !== 'moved';

const wayOn = (
  path: string,
  change: NotOwnFile['change'],
  rescued: Rescued | null,
  resume: string,
): string => {
  const sessionId = basename(path, '.jsonl');
  if (rescued === null)
    return 'No copy could be made: restore the file from a backup, then open the session again.';
  const count = rescued.entries === 1 ? '1 entry' : `${rescued.entries} entries`;
  const first = isPathTaken(change) ? `move ${path} away, then: ` : '';
  return (
    `A copy with ${count} is in ${rescued.path}. ` +
    `To go on: ${first}pawl import ${rescued.path}, then: ${resume} ${sessionId}`
  );
};

/** The error of a session that stopped because its file is no longer its own. */
export const foreignChange = (
  path: string,
  change: NotOwnFile['change'],
  rescued: Rescued | null,
  resume: string,
): JournalError =>
  new JournalError(
    'foreignChange',
    path,
    `The journal ${path} ${whatHappened(change)} while its session was running, so the session stopped. ` +
      wayOn(path, change, rescued, resume),
  );

/** The error of a session that another process has taken over, written to and closed. */
export const takenOver = (path: string, resume: string): JournalError => {
  const sessionId = basename(path, '.jsonl');
  return new JournalError(
    'takenOver',
    path,
    `The session ${sessionId} was taken over by another process, which has ended since, so it was stopped here. ` +
      `All that was acknowledged is in the journal. To go on: ${resume} ${sessionId}`,
  );
};
