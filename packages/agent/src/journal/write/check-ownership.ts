import type { FileHandle } from 'node:fs/promises';
import { openRegular } from '../../platform/files/regular-file.js';
import { JournalScan } from '../read/scan.js';
import { FileIdentity, type IdentityLook } from './file-identity.js';
import { foreignChange, NotOwnFile, takenOver } from './foreign-change-errors.js';
import type { Ownership } from './group-writer.js';
import type { Lock } from './lock.js';
import { rescue } from './rescue-copy.js';

/**
 * How often the content of a file is read again because its time was changed. Some network file systems change the time
 * late, and a journal must not be read again for each of its lines.
 */
const READS_MAX = 8;

type OpenFile = {
  readonly handle: FileHandle;
  readonly path: string;
  readonly lock: Pick<Lock, 'loss'>;
  /** The command that goes on with the session, without its id. */
  readonly resume: string;
};

/** Throws if the lock or the file is not the writer's own. Who takes the lock also exchanges the file: then that is said. */
const refuse = (lock: OpenFile['lock'], look: IdentityLook): void => {
  const loss = lock.loss();
  if (loss?.kind === 'takenOver') throw loss;
  if (look.kind !== 'own' && look.kind !== 'touched') throw new NotOwnFile(look);
  if (loss !== null) throw loss;
};

/** True if the lines up to `size` are those that were written. */
const isIntact = async (handle: FileHandle, path: string, size: number): Promise<boolean> => {
  try {
    const scan = await JournalScan.begin(handle, path, size);
    for await (const _ of scan.records());
    return scan.size === size;
  } catch {
    return false; // the header is damaged
  }
};

const COMPARED_BYTES = 4_096;

/**
 * True if the file at the path holds the same lines up to `size`, and more: another process took the session over and has
 * ended since. The checksums of lines depend on all lines before, so the last ones are enough.
 */
const wasContinued = async (handle: FileHandle, path: string, size: number): Promise<boolean> => {
  const { file, status } = await openRegular(path);
  try {
    if (status.size <= size) return false;
    const length = Math.min(size, COMPARED_BYTES);
    const [own, other] = [Buffer.alloc(length), Buffer.alloc(length, 1)];
    await handle.read(own, 0, length, size - length);
    await file.read(other, 0, length, size - length);
    return own.equals(other);
  } finally {
    await file.close();
  }
};

/** The writer owns its file while it holds the lock, and the path leads to the file as the writer left it. */
export const ownershipOf = ({ handle, path, lock, resume }: OpenFile): Ownership => {
  const identity = new FileIdentity(handle, path);
  let reads = 0;
  return {
    before: async (size) => {
      const look = identity.look(size);
      refuse(lock, look);
      if (look.kind !== 'touched' || reads >= READS_MAX) return;
      reads += 1;
      if (!(await isIntact(handle, path, size))) throw new NotOwnFile({ kind: 'overwritten' });
      identity.accept();
    },
    after: (size) => refuse(lock, identity.lookAfterWrite(size)),
    explain: async (error, size, unwritten) => {
      if (!(error instanceof NotOwnFile)) return error;
      const { change } = error;
      if (change.kind === 'replaced' && (await wasContinued(handle, path, size).catch(() => false)))
        return takenOver(path, resume);
      return foreignChange(path, change, await rescue(handle, path, size, unwritten), resume);
    },
  };
};
