import { type FileHandle, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { openRegular } from '../platform/files/regular-file.js';
import type { Entry, Header, Journal, JournalStore, OpenJournal } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import { fileBlobs } from './blobs.js';
import { openFileJournal, readEntries } from './file-journal.js';
import { encodeHeader } from './format/line-codec.js';
import { cannotRead, cannotWrite, codeOf, exists, JournalError, notFound } from './journal-error.js';
import { type JournaledMachine, ownHeader } from './journaled-machine.js';
import {
  FILE_MODE,
  isSessionId,
  journalPath,
  lockPath,
  makeFolder,
  sessionsFolder,
  syncFolder,
  writeWhole,
} from './paths-and-durable-writes.js';
import { beginFold, CHECK_EVERY, refuseMismatch } from './read/fold.js';
import { agentMachine } from './read/journaled-agent-machine.js';
import { listSessions } from './read/list-sessions.js';
import {
  type InspectableStore,
  inspectFile,
  replayFile,
  type VisitedOpening,
} from './read/read-without-lock.js';
import { JournalScan } from './read/scan.js';
import { deleteSession } from './removal/delete-session.js';
import { removeLeftovers } from './removal/remove-leftovers.js';
import { isOwn, makeOwn } from './session-owner.js';
import { defaultSnapshotPlan, type SnapshotPlan } from './snapshot/write-snapshots.js';
import { copyEntries, forkHeader } from './write/copy-entries-to-fork.js';
import { acquireLock, type Lock } from './write/lock.js';
import { recover } from './write/recover-journal.js';

/** A header fits into the first block. */
const HEADER_BLOCK_BYTES = 1 << 16;

type Place<M extends MachineTypes> = {
  readonly folder: string;
  readonly checkEvery: number;
  readonly plan: SnapshotPlan;
  readonly machine: JournaledMachine<M>;
};

const isThere = async (path: string): Promise<boolean> => {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw cannotRead(path, error);
  }
};

/** Path of an existing session's journal. */
const findJournal = async (folder: string, sessionId: string): Promise<string> => {
  const path = journalPath(folder, sessionId);
  if (!isSessionId(sessionId) || !(await isThere(path))) throw notFound(path, sessionId);
  return path;
};

/** A pipe or a folder in the place of a journal is refused as no journal; it is not a journal that can't be written. */
const refuseOddFile = async (path: string): Promise<void> => {
  try {
    const { file } = await openRegular(path);
    await file.close();
  } catch (error) {
    const isOdd = codeOf(error) === 'ENOTREG' || codeOf(error) === 'EISDIR';
    if (isOdd) throw cannotRead(path, error);
    // other failures are met again when it is opened for writing
  }
};

/** Runs `work` while holding the lock; releases the lock if it fails. */
const withLock = async <T>(path: string, lock: Lock, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    // Report the first failure. If the lock file stays, the next opener finds that its process is dead.
    await lock.release().catch(() => undefined);
    throw cannotWrite(path, error);
  }
};

/**
 * Makes git and the tools that look for files pass over a store: in a workspace, a search would find the session's own
 * words in it. A store without the file is as good, so faults are ignored.
 */
const hideFromSearches = (folder: string): Promise<void> =>
  writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx', mode: FILE_MODE }).catch(() => undefined);

/** Locks a new session's id; rejects if the session exists. */
const claim = async (
  folder: string,
  sessionId: string,
): Promise<{ readonly path: string; readonly lock: Lock }> => {
  const path = journalPath(folder, sessionId);
  if (!isSessionId(sessionId)) {
    const rule =
      'An id is made of letters, digits, dots, dashes and underscores, and begins with a letter or digit';
    throw new JournalError('cannotWrite', path, `"${sessionId}" cannot be the id of a session. ${rule}.`);
  }
  try {
    await makeFolder(sessionsFolder(folder));
    await hideFromSearches(folder);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  const lock = await acquireLock(lockPath(folder, sessionId));
  return withLock(path, lock, async () => {
    if (await isThere(path)) throw exists(path, sessionId);
    return { path, lock };
  });
};

const closingOnFailure = async <T>(
  handle: { close(): Promise<void> },
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    await handle.close();
    throw error;
  }
};

/** Makes the names of the journal and of its mark durable. Closes the journal if that fails. */
const withDurableNames = async <M extends MachineTypes>(
  path: string,
  journal: Journal<M>,
): Promise<Journal<M>> => {
  await closingOnFailure(journal, () => syncFolder(dirname(path)));
  return journal;
};

const create = async <M extends MachineTypes>(
  { folder, checkEvery, plan, machine }: Place<M>,
  draft: Header<M>,
): Promise<Journal<M>> => {
  const header = ownHeader(draft, machine);
  await removeLeftovers(folder);
  const { path, lock } = await claim(folder, header.sessionId);
  return withLock(path, lock, async () => {
    const { bytes, crc } = encodeHeader(header);
    await makeOwn(folder, header); // first: a session that was created here never counts as foreign
    await writeWhole(path, `${path}.new`, [bytes]);
    const { file: handle } = await openRegular(path, { access: 'change' });
    const fold = beginFold(header, machine, path);
    const blobs = fileBlobs(folder);
    const begun = { crc, size: bytes.length, sum: crc32(bytes), fold, written: null };
    const parts = { path, handle, lock, header, blobs, checkEvery, plan, ...begun };
    return withDurableNames(path, openFileJournal(parts));
  });
};

/**
 * Gives the session's path to a new file with the same content. A last holder that still has the old file open can't
 * reach the new one, whenever it writes.
 */
const renewFile = async (path: string): Promise<void> => {
  const { file } = await openRegular(path);
  try {
    const { size } = await file.stat();
    const content = file.createReadStream({ start: 0, end: Math.max(0, size - 1), autoClose: false });
    await writeWhole(path, `${path}.new`, content);
  } finally {
    await file.close();
  }
};

/** The header of a journal of any machine. */
const headerIn = async (handle: FileHandle, path: string): Promise<Header<MachineTypes>> => {
  const { size } = await handle.stat();
  return (await JournalScan.begin(handle, path, size, HEADER_BLOCK_BYTES)).header;
};

const isForeignFile = async (folder: string, handle: FileHandle, path: string): Promise<boolean> =>
  !(await isOwn(folder, await headerIn(handle, path)));

const openSession = async <M extends MachineTypes>(
  { folder, checkEvery, plan, machine }: Place<M>,
  sessionId: string,
  { takeOver = false, visit, visitLast }: VisitedOpening<M> = {},
): Promise<OpenJournal<M>> => {
  const path = await findJournal(folder, sessionId);
  const foldLast = visit === undefined ? 0 : (visitLast ?? Number.POSITIVE_INFINITY);
  await refuseOddFile(path);
  const lock = await acquireLock(lockPath(folder, sessionId), { takeOver });
  return withLock(path, lock, async () => {
    if (lock.predecessor === 'unknown') await renewFile(path);
    // The process that created the folder may have been killed before its name was durable; so with the file, below.
    await makeFolder(dirname(path));
    const { file: handle } = await openRegular(path, { access: 'change' });
    const { tornTail, isForeign, ...found } = await closingOnFailure(handle, async () => {
      const foreign = await isForeignFile(folder, handle, path);
      const recovered = await recover({
        handle,
        path,
        sessionId,
        machine,
        visit,
        foldLast,
        isForeign: foreign,
      });
      // The last lines may be those of a killed process, and not durable. Their mark is going to be.
      await handle.datasync();
      return { ...recovered, isForeign: foreign };
    });
    const { past, header, upgrade } = found;
    const blobs = fileBlobs(folder);
    const adopt = async (): Promise<void> => {
      await makeOwn(folder, header);
      await syncFolder(dirname(path));
    };
    const parts = { path, handle, lock, blobs, checkEvery, plan, ...found, ...(isForeign ? { adopt } : {}) };
    const journal = await withDurableNames(path, openFileJournal(parts));
    return {
      journal,
      state: found.fold.state,
      tornTail,
      ...(isForeign ? { isForeign } : {}),
      ...(past === undefined ? {} : { past }),
      ...(upgrade === undefined ? {} : { upgrade }),
    };
  });
};

const peek = async <M extends MachineTypes>(
  { folder, machine }: Place<M>,
  sessionId: string,
): ReturnType<JournalStore<M>['peek']> => {
  const path = await findJournal(folder, sessionId);
  const { header, damage, seq, state, mismatches } = await replayFile(machine, path, {});
  if (damage !== null) throw damage;
  refuseMismatch(path, { mismatches, machine }, header);
  return { header, seq, state };
};

const fork = async (
  folder: string,
  sessionId: string,
  seq: number,
  newSessionId: string,
  createdAt: number,
) => {
  const source = await findJournal(folder, sessionId);
  const { path, lock } = await claim(folder, newSessionId);
  await withLock(path, lock, async () => {
    const { file } = await openRegular(source);
    const header = await headerIn(file, source).finally(() => file.close());
    // A fork of a foreign session is foreign.
    if (await isOwn(folder, header)) await makeOwn(folder, forkHeader(header, seq, newSessionId, createdAt));
    await writeWhole(path, `${path}.new`, copyEntries(source, seq, newSessionId, createdAt));
  });
  await lock.release();
};

async function* read<M extends MachineTypes>(
  { folder, machine }: Place<M>,
  sessionId: string,
  from = 1,
): AsyncGenerator<Entry<M>, undefined> {
  yield* readEntries<M>(machine.kind, await findJournal(folder, sessionId), from);
}

export type FileJournalOptions = {
  readonly folder: string;
  readonly checkEvery?: number;
  /** When snapshots are written. */
  readonly snapshots?: SnapshotPlan;
};

/**
 * Stores the sessions of one machine as files under `folder`, which is created on first use (see paths-and-durable-writes.ts).
 *
 * A state check is written every `checkEvery` entries, and whenever the machine is at rest.
 */
export const fileJournalsOf = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  { folder, checkEvery = CHECK_EVERY, snapshots: plan = defaultSnapshotPlan }: FileJournalOptions,
): InspectableStore<M> => {
  const place = { folder, checkEvery, plan, machine };
  return {
    blobs: fileBlobs(folder),
    create: (header) => create(place, header),
    open: (sessionId, options) => openSession(place, sessionId, options),
    peek: (sessionId) => peek(place, sessionId),
    fork: (sessionId, seq, newSessionId, createdAt) => fork(folder, sessionId, seq, newSessionId, createdAt),
    read: (sessionId, from) => read(place, sessionId, from),
    list: () => listSessions(folder),
    inspect: async (sessionId) => inspectFile<M>(machine.kind, await findJournal(folder, sessionId)),
    delete: async (sessionId) => {
      await findJournal(folder, sessionId);
      return deleteSession(folder, sessionId);
    },
    replay: async (sessionId, options = {}) =>
      replayFile(machine, await findJournal(folder, sessionId), options),
  };
};

/** Stores the agent's sessions as files under `folder`. */
export const fileJournals = (
  options: FileJournalOptions & { readonly machine?: JournaledMachine },
): InspectableStore => fileJournalsOf(options.machine ?? agentMachine, options);
