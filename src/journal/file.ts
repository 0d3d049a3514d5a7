import { type FileHandle, open, stat } from 'node:fs/promises';
import type { Entry, Header, Journal, JournalStore, OpenJournal } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import { fileBlobs } from './blobs.js';
import { encodeHeader } from './codec.js';
import { cannotRead, cannotWrite, codeOf, exists, JournalError, notFound } from './error.js';
import { openFileJournal, readEntries } from './file-journal.js';
import { beginFold, CHECK_EVERY, refuseMismatch } from './fold.js';
import { copyEntries } from './fork.js';
import { type InspectableStore, inspectFile, replayFile } from './inspection.js';
import { isSessionId, journalPath, lockPath, makeFolder, sessionsFolder, writeWhole } from './layout.js';
import { listSessions } from './list.js';
import { acquireLock, type Lock } from './lock.js';
import type { Machine } from './machine.js';
import { recover } from './recovery.js';
import { agentMachine } from './replay.js';

type Place<M extends MachineTypes> = {
  readonly folder: string;
  readonly checkEvery: number;
  readonly machine: Machine<M>;
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

/** The path of a session that exists. */
const findJournal = async (folder: string, sessionId: string): Promise<string> => {
  const path = journalPath(folder, sessionId);
  if (!isSessionId(sessionId) || !(await isThere(path))) throw notFound(path, sessionId);
  return path;
};

/** Works on a file under its lock, which is released if that fails. */
const withLock = async <T>(path: string, lock: Lock, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    // The first failure is the one to report; a lock file that stays names a process that is known to be gone.
    await lock.release().catch(() => undefined);
    throw cannotWrite(path, error);
  }
};

/** Locks the id of a session that does not exist yet. */
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
  } catch (error) {
    throw cannotWrite(path, error);
  }
  const lock = await acquireLock(lockPath(folder, sessionId));
  return withLock(path, lock, async () => {
    if (await isThere(path)) throw exists(path, sessionId);
    return { path, lock };
  });
};

const closingOnFailure = async <T>(handle: FileHandle, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    await handle.close();
    throw error;
  }
};

const create = async <M extends MachineTypes>(
  { folder, checkEvery, machine }: Place<M>,
  header: Header<M>,
): Promise<Journal<M>> => {
  const { path, lock } = await claim(folder, header.sessionId);
  return withLock(path, lock, async () => {
    const { bytes, crc } = encodeHeader(header);
    await writeWhole(path, `${path}.new`, [bytes]);
    const handle = await open(path, 'r+');
    const fold = beginFold(header, machine);
    const blobs = fileBlobs(folder);
    return openFileJournal({ path, handle, lock, header, blobs, checkEvery, crc, size: bytes.length, fold });
  });
};

const openSession = async <M extends MachineTypes>(
  { folder, checkEvery, machine }: Place<M>,
  sessionId: string,
): Promise<OpenJournal<M>> => {
  const path = await findJournal(folder, sessionId);
  const lock = await acquireLock(lockPath(folder, sessionId));
  return withLock(path, lock, async () => {
    const handle = await open(path, 'r+');
    const { tornTail, ...found } = await closingOnFailure(handle, () =>
      recover(handle, path, sessionId, machine),
    );
    const blobs = fileBlobs(folder);
    const journal = openFileJournal({ path, handle, lock, blobs, checkEvery, ...found });
    return { journal, state: found.fold.state, tornTail };
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
  await withLock(path, lock, () =>
    writeWhole(path, `${path}.new`, copyEntries(source, seq, newSessionId, createdAt)),
  );
  await lock.release();
};

async function* read<M extends MachineTypes>(
  { folder, machine }: Place<M>,
  sessionId: string,
  from = 1,
): AsyncGenerator<Entry<M>, undefined> {
  yield* readEntries<M>(machine.kind, await findJournal(folder, sessionId), from);
}

export type FileJournalOptions = { readonly folder: string; readonly checkEvery?: number };

/**
 * The sessions of a machine as files under `folder`, which is made when first needed (see layout.ts).
 *
 * A state check is written every `checkEvery` entries, and at rest.
 */
export const fileJournalsOf = <M extends MachineTypes>(
  machine: Machine<M>,
  { folder, checkEvery = CHECK_EVERY }: FileJournalOptions,
): InspectableStore<M> => {
  const place = { folder, checkEvery, machine };
  return {
    blobs: fileBlobs(folder),
    create: (header) => create(place, header),
    open: (sessionId) => openSession(place, sessionId),
    peek: (sessionId) => peek(place, sessionId),
    fork: (sessionId, seq, newSessionId, createdAt) => fork(folder, sessionId, seq, newSessionId, createdAt),
    read: (sessionId, from) => read(place, sessionId, from),
    list: () => listSessions(folder),
    inspect: async (sessionId) => inspectFile<M>(machine.kind, await findJournal(folder, sessionId)),
    replay: async (sessionId, options = {}) =>
      replayFile(machine, await findJournal(folder, sessionId), options),
  };
};

/** The agent's sessions as files under `folder`. */
export const fileJournals = (
  options: FileJournalOptions & { readonly machine?: Machine },
): InspectableStore => fileJournalsOf(options.machine ?? agentMachine, options);
