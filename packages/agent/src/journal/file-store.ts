/**
 * The store of sessions as files: creates, opens, reads and forks them.
 *
 * writer.ts appends to the open journal, reader.ts reads one without the lock, delete-session.ts
 * deletes a session.
 *
 * - To fold is to apply entries to a state, one after the other. A snapshot is a stored state, from
 *   which a fold can start.
 * - A torn end is a last line that a crash left incomplete.
 * - The mark is a small file that names the last acknowledged entry.
 * - A foreign session was created in another state folder, for example imported: its snapshots are
 *   not trusted, and its entries are checked.
 *
 * From top to bottom: `fileJournals`, the store; finding and locking a journal; creating, opening,
 * reading and forking a session; recovery while a journal is opened, with the repair of its end;
 * and the removal of what killed processes left.
 */

import { type FileHandle, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { MachineUpgrade } from '../machine/event.js';
import type { PastFiles } from '../machine/seen-files.js';
import { attempt } from '../platform/attempt.js';
import { errorCode, openRegular, withRegular } from '../platform/files.js';
import type {
  Entry,
  Header,
  Journal,
  JournalStore,
  MachineTypes,
  OpenJournal,
} from '../ports/journal.js';
import { encodeHeader, type JournalEnd, readBlocks } from './codec.js';
import { deleteSession, finishDeletion, hasJournal } from './delete-session.js';
import { copyEntries, forkHeader } from './fork.js';
import {
  cannotRead,
  cannotWrite,
  exists,
  JournalError,
  misnamed,
  notFound,
} from './journal-error.js';
import { agentMachine } from './journaled-agent-machine.js';
import { listSessions } from './list.js';
import { acquireLock, type Lock, removeBesideLocks } from './lock.js';
import {
  checkHeader,
  checkRecords,
  type InspectableStore,
  inspectFile,
  JournalScan,
  type RecentReplay,
  readEntries,
  replayFile,
  type StoredReplay,
  type VisitedOpening,
} from './reader.js';
import {
  beginFold,
  CHECK_EVERY,
  endReplay,
  type Fold,
  foldOn,
  type JournaledMachine,
  ownHeader,
  refuseMismatch,
  upgradeFold,
  type Visit,
  visitPast,
} from './replay.js';
import {
  defaultSnapshotPlan,
  type LoadedSnapshot,
  loadSnapshot,
  type SnapshotPlan,
  type SnapshotRequest,
  snapshotPath,
  type WrittenSnapshot,
} from './snapshot.js';
import {
  FILE_MODE,
  fileBlobs,
  importPath,
  isAllForeign,
  isSessionId,
  journalPath,
  lockPath,
  makeFolder,
  makeOwn,
  ownerPath,
  parseDeletedName,
  readForeignUntil,
  readMark,
  sessionsFolder,
  syncFolder,
  writeWhole,
} from './state-folder.js';
import { type FileJournalParts, openFileJournal } from './writer.js';

/** Bytes that are read for a header alone. */
const HEADER_BLOCK_BYTES = 1 << 16;

export type FileJournalOptions = {
  readonly folder: string;
  /** Entries between two state checks, hashes with which a replay compares its states. */
  readonly checkEvery?: number;
  /** When snapshots are written. */
  readonly snapshots?: SnapshotPlan;
};

/** Stores the agent's sessions as files under `folder`. */
export const fileJournals = (
  options: FileJournalOptions & { readonly machine?: JournaledMachine },
): InspectableStore => machineFileJournals(options.machine ?? agentMachine, options);

/**
 * Stores the sessions of one machine as files under `folder`, which is created on first use (see
 * state-folder.ts).
 *
 * A state check is written every `checkEvery` entries, and whenever the machine is at rest.
 */
export const machineFileJournals = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  { folder, checkEvery = CHECK_EVERY, snapshots: plan = defaultSnapshotPlan }: FileJournalOptions,
): InspectableStore<M> => {
  const store = { folder, checkEvery, plan, machine };
  /** Once per process, since the search for leftovers reads the names of all sessions. */
  let cleaning: Promise<void> | null = null;
  return {
    blobs: fileBlobs(folder),
    create: async (header) => {
      cleaning ??= removeLeftovers(folder);
      await cleaning;
      return create(store, header);
    },
    open: (sessionId, options) => openSession(store, sessionId, options),
    peek: (sessionId) => peek(store, sessionId),
    fork: (sessionId, seq, newSessionId, createdAt) =>
      fork(folder, sessionId, seq, newSessionId, createdAt),
    read: (sessionId, from) => read(store, sessionId, from),
    list: (sessionIds) => listSessions(folder, sessionIds),
    inspect: async (sessionId) =>
      inspectFile<M>(machine.kind, await findJournal(folder, sessionId)),
    delete: async (sessionId) => {
      await findJournal(folder, sessionId);
      return deleteSession(folder, sessionId);
    },
    replay: async (sessionId, options = {}) =>
      options.visitLast === undefined
        ? replayFile(machine, await findJournal(folder, sessionId), options)
        : replayRecent(store, sessionId, options),
  };
};

/** The state folder of a store, its machine, and how it writes. */
type Store<M extends MachineTypes> = {
  readonly folder: string;
  readonly checkEvery: number;
  /** When snapshots are written. */
  readonly plan: SnapshotPlan;
  readonly machine: JournaledMachine<M>;
};

const isThere = async (path: string): Promise<boolean> => {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw cannotRead(path, error);
  }
};

/** Path of an existing session's journal. */
const findJournal = async (folder: string, sessionId: string): Promise<string> => {
  const path = journalPath(folder, sessionId);
  if (!isSessionId(sessionId) || !(await isThere(path))) throw notFound(path, sessionId);
  return path;
};

/** Refuses a pipe or a folder in place of a journal, with a clear error. */
const refuseOddFile = async (path: string): Promise<void> => {
  try {
    await withRegular(path, async () => undefined);
  } catch (error) {
    const isOdd = errorCode(error) === 'ENOTREG' || errorCode(error) === 'EISDIR';
    if (isOdd) throw cannotRead(path, error);
    // other failures come again when it is opened for writing
  }
};

/** Runs `work`; releases the lock if it fails. A JournalError is thrown as it is. */
const releasingOnFailure = async <T>(
  path: string,
  lock: Lock,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    // Report the first failure. If the lock file stays, the next process finds its holder dead.
    await lock.release().catch(() => undefined);
    throw cannotWrite(path, error);
  }
};

/**
 * Makes git and search tools ignore the state folder, in case it lies in a workspace: a search
 * would find the session's own texts in it. The file is not necessary, so faults are ignored.
 */
const hideFromSearches = (folder: string): Promise<void> =>
  writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx', mode: FILE_MODE }).catch(
    () => undefined,
  );

/** Locks a new session's id; rejects if the session exists. */
const lockNewSession = async (
  folder: string,
  sessionId: string,
): Promise<{ readonly path: string; readonly lock: Lock }> => {
  const path = journalPath(folder, sessionId);
  if (!isSessionId(sessionId)) {
    const rule =
      'An id is made of letters, digits, dots, dashes and underscores, and begins with a ' +
      'letter or digit';
    throw new JournalError(
      'cannotWrite',
      path,
      `"${sessionId}" cannot be the id of a session. ${rule}.`,
    );
  }
  try {
    await makeFolder(sessionsFolder(folder));
    await hideFromSearches(folder);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  const lock = await acquireLock(lockPath(folder, sessionId));
  return releasingOnFailure(path, lock, async () => {
    if (await isThere(path)) throw exists(path, sessionId);
    return { path, lock };
  });
};

/** Runs `work`, which uses the handle; closes the handle if it fails. */
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

/**
 * Opens a journal, and makes its name and that of its mark durable. Closes the handle if that
 * fails.
 */
const openDurably = <M extends MachineTypes>(parts: FileJournalParts<M>): Promise<Journal<M>> =>
  closingOnFailure(parts.handle, async () => {
    const journal = openFileJournal(parts);
    await closingOnFailure(journal, () => syncFolder(dirname(parts.path)));
    return journal;
  });

const create = async <M extends MachineTypes>(
  { folder, checkEvery, plan, machine }: Store<M>,
  draft: Header<M>,
): Promise<Journal<M>> => {
  const header = ownHeader(draft, machine);
  const { path, lock } = await lockNewSession(folder, header.sessionId);
  return releasingOnFailure(path, lock, async () => {
    const { bytes, crc } = encodeHeader(header);
    const fold = beginFold(header, machine, path); // throws before anything is written
    await makeOwn(folder, header); // first: a session that was created here never counts as foreign
    await writeWhole(path, [bytes], `${path}.new`);
    const { file: handle } = await openRegular(path, { access: 'change' });
    const blobs = fileBlobs(folder);
    const end = { seq: 0, crc, size: bytes.length, sum: crc32(bytes) };
    const start = { end, fold, foreignUntil: 0, written: null };
    const parts = { path, handle, lock, header, blobs, checkEvery, plan, ...start };
    return openDurably(parts);
  });
};

/**
 * Gives the session's path to a new file with the same content. An earlier holder that still has
 * the old file open can't write to the new one.
 */
const renewFile = (path: string): Promise<void> =>
  withRegular(path, (file, { size }) => writeWhole(path, readBlocks(file, 0, size), `${path}.new`));

/** The header of a journal of any machine. */
const headerIn = async (handle: FileHandle, path: string): Promise<Header<MachineTypes>> => {
  const { size } = await handle.stat();
  return (await JournalScan.begin(handle, path, size, HEADER_BLOCK_BYTES)).header;
};

const openSession = async <M extends MachineTypes>(
  { folder, checkEvery, plan, machine }: Store<M>,
  sessionId: string,
  { takeOver = false, visit, visitLast }: VisitedOpening<M> = {},
): Promise<OpenJournal<M>> => {
  const path = await findJournal(folder, sessionId);
  const entriesToVisit = visit === undefined ? 0 : (visitLast ?? Number.POSITIVE_INFINITY);
  await refuseOddFile(path);
  const lock = await acquireLock(lockPath(folder, sessionId), { takeOver });
  return releasingOnFailure(path, lock, async () => {
    if (lock.predecessor === 'unknown') await renewFile(path);
    // The process that created the folder may have been killed before the folder's name was
    // durable. The same holds for the file, below.
    await makeFolder(dirname(path));
    const { file: handle } = await openRegular(path, { access: 'change' });
    const { tornTail, foreignUntil, ...opened } = await closingOnFailure(handle, async () => {
      const stored = await headerIn(handle, path);
      const until = await readForeignUntil(folder, stored);
      const recovered = await recover({
        handle,
        path,
        header: stored,
        sessionId,
        machine,
        visitor: visit,
        entriesToVisit,
        isForeign: isAllForeign(until),
      });
      // The last lines may come from a killed process, and not be durable. The next mark says that
      // they are.
      await handle.datasync();
      return { ...recovered, foreignUntil: until };
    });
    const isForeign = isAllForeign(foreignUntil);
    const { past, header, upgrade } = opened;
    const blobs = fileBlobs(folder);
    // The journal calls it at the user's first prompt in a foreign session.
    const adopt = async (lastForeign: number): Promise<void> => {
      await makeOwn(folder, header, lastForeign);
      await syncFolder(dirname(path));
    };
    const parts = {
      path,
      handle,
      lock,
      blobs,
      checkEvery,
      plan,
      ...opened,
      foreignUntil,
      ...(isForeign ? { adopt } : {}),
    };
    const journal = await openDurably(parts);
    return {
      journal,
      state: opened.fold.state,
      tornTail,
      ...(isForeign ? { isForeign } : {}),
      ...(past === undefined ? {} : { past }),
      ...(upgrade === undefined ? {} : { upgrade }),
    };
  });
};

/** The current state, read without the lock. Throws if the journal is damaged. */
const peek = async <M extends MachineTypes>(
  { folder, machine }: Store<M>,
  sessionId: string,
): ReturnType<JournalStore<M>['peek']> => {
  const path = await findJournal(folder, sessionId);
  const { header, damage, seq, state, mismatches } = await replayFile(machine, path, {});
  if (damage !== null) throw damage;
  refuseMismatch(path, { mismatches, machine }, header);
  return { header, seq, state };
};

/**
 * Folds a session that another process may have open, from its last snapshot on; null without a
 * snapshot that fits. Changes no file.
 */
const foldFromSnapshot = async <M extends MachineTypes>(
  { folder, machine }: Store<M>,
  sessionId: string,
  { visit, visitLast = 0 }: RecentReplay<M>,
): Promise<StoredReplay<M> | null> => {
  const path = await findJournal(folder, sessionId);
  const mark = await readMark(path); // before the size: the writer may be at work
  return withRegular(path, async (handle, { size }) => {
    const stored = await headerIn(handle, path);
    // snapshots of foreign sessions are not trusted
    if (isAllForeign(await readForeignUntil(folder, stored))) return null;
    const request = { handle, path, header: stored, machine, entriesToVisit: visitLast };
    const start = await loadSnapshot(request);
    if (start === null) return null;
    const scan = JournalScan.after(handle, path, size, start.point);
    const { fold } = start;
    const visitor = visit === undefined ? {} : { visit };
    for await (const records of scan.records()) foldOn(fold, records, visitor);
    refuseMismatch(path, fold, scan.header);
    scan.compare(mark); // acknowledged entries that are missing make the ending `damaged`
    const { header, ending } = scan;
    if (ending.kind === 'damaged') return null;
    const tornBytes = ending.kind === 'torn' ? ending.bytes : 0;
    return { path, header, damage: null, tornBytes, ...endReplay(fold) };
  });
};

/** Replays the last steps from a snapshot; the whole journal if the snapshot is unusable. */
const replayRecent = async <M extends MachineTypes>(
  store: Store<M>,
  sessionId: string,
  options: RecentReplay<M>,
): Promise<StoredReplay<M>> => {
  const folded = await attempt(() => foldFromSnapshot(store, sessionId, options));
  if (folded.kind === 'done' && folded.value !== null) return folded.value;
  const { visitLast: _, ...whole } = options;
  return replayFile(store.machine, await findJournal(store.folder, sessionId), whole);
};

const fork = async (
  folder: string,
  sessionId: string,
  seq: number,
  newSessionId: string,
  createdAt: number,
) => {
  const source = await findJournal(folder, sessionId);
  const { path, lock } = await lockNewSession(folder, newSessionId);
  await releasingOnFailure(path, lock, async () => {
    const header = await withRegular(source, (file) => headerIn(file, source));
    const foreignUntil = await readForeignUntil(folder, header);
    // Without this file a fork counts as foreign.
    if (!isAllForeign(foreignUntil))
      await makeOwn(
        folder,
        forkHeader(header, seq, newSessionId, createdAt),
        Math.min(foreignUntil, seq),
      );
    await writeWhole(path, copyEntries(source, seq, newSessionId, createdAt), `${path}.new`);
  });
  await lock.release();
};

async function* read<M extends MachineTypes>(
  { folder, machine }: Store<M>,
  sessionId: string,
  from = 1,
): AsyncGenerator<Entry<M>, undefined> {
  yield* readEntries<M>(machine.kind, await findJournal(folder, sessionId), from);
}

/** Result of opening a journal for writing; the file is ready for the next line. */
type Recovered<M extends MachineTypes> = {
  readonly header: Header<M>;
  readonly fold: Fold<M>;
  readonly end: JournalEnd;
  readonly tornTail: OpenJournal['tornTail'];
  readonly past?: PastFiles;
  readonly upgrade?: MachineUpgrade;
  /** The snapshot beside the journal, if it was used. */
  readonly written: WrittenSnapshot<M> | null;
};

/** A folded journal, whose end may need a repair. */
type Folded<M extends MachineTypes> = Omit<Recovered<M>, 'end' | 'tornTail'> & {
  readonly scan: JournalScan<M>;
  readonly ending: Exclude<JournalScan<M>['ending'], { readonly kind: 'damaged' }>;
};

type RecoveryParts<M extends MachineTypes> = SnapshotRequest<M> & {
  readonly sessionId: string;
  readonly visitor: Visit<M> | undefined;
  /** Then snapshots are not trusted, and the shapes of entries are checked. */
  readonly isForeign: boolean;
};

/** Cuts a torn end off, or adds the line feed that is missing. */
const repairEnd = async <M extends MachineTypes>(
  handle: FileHandle,
  path: string,
  { ending, scan: { seq, crc, size, sum } }: Pick<Folded<M>, 'ending' | 'scan'>,
): Promise<Pick<Recovered<M>, 'end' | 'tornTail'>> => {
  const end = { seq, crc, size, sum };
  switch (ending.kind) {
    case 'torn':
      return { end, tornTail: await cutTail(handle, path, size, ending.bytes) };
    case 'unended':
      await handle.write('\n', size);
      await handle.sync();
      return { end: { ...end, size: size + 1, sum: crc32('\n', sum) }, tornTail: null };
    case 'whole':
      return { end, tornTail: null };
    default:
      return ending satisfies never;
  }
};

/** Folds the journal from a snapshot on (null: from its first entry). Changes no file. */
const foldFrom = async <M extends MachineTypes>(
  { handle, path, sessionId, machine, visitor, isForeign }: RecoveryParts<M>,
  start: LoadedSnapshot<M> | null,
): Promise<Folded<M>> => {
  const { size } = await handle.stat();
  const scan =
    start === null
      ? await JournalScan.beginOf<M>(machine.kind, handle, path, size)
      : JournalScan.after(handle, path, size, start.point);
  if (scan.header.sessionId !== sessionId) throw misnamed(path, scan.header.sessionId);
  if (isForeign) checkHeader(path, machine, scan.header);
  const fold = start?.fold ?? beginFold(scan.header, machine, path);
  // `past`: the files in the entries
  const { visit, past } = visitPast(machine, visitor, start?.past);
  for await (const records of scan.records()) {
    if (isForeign) checkRecords(path, machine, records);
    foldOn(fold, records, { visit });
  }
  refuseMismatch(path, fold, scan.header);
  const upgrade = upgradeFold(fold); // may replace the state of the fold
  scan.compare(await readMark(path)); // acknowledged entries that are missing count as damage
  const { header, ending } = scan;
  if (ending.kind === 'damaged') throw ending.error;
  const result = { header, fold, scan, ending, ...past(), written: start?.written ?? null };
  return upgrade === undefined ? result : { ...result, upgrade };
};

/**
 * Reads, verifies and folds a journal from its last snapshot on, or whole, and repairs a torn end.
 * Throws on any other damage. If the fold from the snapshot fails, the whole journal is folded: the
 * snapshot may not fit it.
 */
const recover = async <M extends MachineTypes>(parts: RecoveryParts<M>): Promise<Recovered<M>> => {
  if (parts.isForeign) await rm(snapshotPath(parts.path), { force: true });
  const loaded = parts.isForeign ? null : await loadSnapshot(parts);
  const folded = loaded && (await attempt(() => foldFrom(parts, loaded)));
  const { scan, ending, ...rest } =
    folded?.kind === 'done' ? folded.value : await foldFrom(parts, null);
  return { ...rest, ...(await repairEnd(parts.handle, parts.path, { scan, ending })) };
};

/** Creates the file `PATH.torn-N` with the first free N. */
const openTornFile = async (
  path: string,
): Promise<{ readonly handle: FileHandle; readonly keptAs: string }> => {
  for (let number = 1; ; number++) {
    const keptAs = `${path}.torn-${number}`;
    try {
      return { handle: await open(keptAs, 'wx', FILE_MODE), keptAs };
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    }
  }
};

const BLOCK_BYTES = 1 << 20;
const ZEROS = Buffer.alloc(BLOCK_BYTES);

/**
 * Copies the end of a file block by block. Blocks of zeros become holes: a power loss can leave
 * gigabytes of them.
 */
const copyTail = async (
  journal: FileHandle,
  size: number,
  bytes: number,
  copy: FileHandle,
): Promise<void> => {
  let copied = 0;
  for await (const block of readBlocks(journal, size, size + bytes, BLOCK_BYTES)) {
    if (!block.equals(ZEROS.subarray(0, block.length))) await writeAll(copy, block, copied);
    copied += block.length;
  }
  await copy.truncate(copied);
};

/** Writes all bytes: one call of `write` may write fewer. */
const writeAll = async (file: FileHandle, bytes: Buffer, position: number): Promise<void> => {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
};

/** Saves the bytes after `size` durably in another file, then truncates the journal to `size`. */
const cutTail = async (
  journal: FileHandle,
  path: string,
  size: number,
  bytes: number,
): Promise<{ readonly bytes: number; readonly keptAs: string }> => {
  const { handle, keptAs } = await openTornFile(path);
  try {
    await copyTail(journal, size, bytes, handle);
    await handle.sync();
  } catch (error) {
    await rm(keptAs, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  await syncFolder(dirname(path));
  await journal.truncate(size);
  await journal.sync();
  return { bytes, keptAs };
};

// ---- Leftovers of killed processes, before a session is created ----

/** Ends of the names of files that a creation or import makes before the journal itself. */
const BEFORE_JOURNAL = ['.lock', '.jsonl.new', '.jsonl.import'];
/** Leftovers of an import that was killed just after it placed the journal. */
const AFTER_JOURNAL = ['.jsonl.import'];

const idsWithEnd = (names: readonly string[], ends: readonly string[]): readonly string[] => {
  const ids = names.flatMap((name) =>
    ends.filter((end) => name.endsWith(end)).map((end) => name.slice(0, -end.length)),
  );
  return [...new Set(ids)].filter(isSessionId);
};

/**
 * Ids of sessions with leftovers. A lock file beside a journal stays: at the next opening it shows
 * whether the journal must be renewed.
 */
const idsWithLeftovers = (names: readonly string[]): readonly string[] => {
  const existing = new Set(names);
  return [
    ...idsWithEnd(names, BEFORE_JOURNAL).filter((id) => !existing.has(`${id}.jsonl`)),
    ...idsWithEnd(names, AFTER_JOURNAL).filter(
      (id) => existing.has(`${id}.jsonl`) && !existing.has(`${id}.lock`),
    ),
  ];
};

/** Removes the leftovers of one session, unless a living process is creating it. */
const removeSessionLeftovers = async (folder: string, sessionId: string): Promise<void> => {
  const path = journalPath(folder, sessionId);
  const lock = await acquireLock(lockPath(folder, sessionId));
  try {
    await rm(importPath(folder, sessionId), { force: true });
    // created meanwhile
    if (await hasJournal(folder, sessionId)) return;
    await rm(`${path}.new`, { force: true });
    await rm(ownerPath(folder, sessionId), { force: true });
  } finally {
    await lock.release();
  }
};

/**
 * Finishes deletions, and removes the locks, sockets and drafts of processes that were killed while
 * they created or imported a session, or took its lock. Such a session is never opened, so only
 * this function removes them. Never rejects.
 */
export const removeLeftovers = async (folder: string): Promise<void> => {
  try {
    const names = await readdir(sessionsFolder(folder));
    // The process lives, or the disk refuses: the next creation or import tries again.
    const tryNextTime = (): undefined => undefined;
    for (const deleted of names.map(parseDeletedName))
      if (deleted !== undefined) await finishDeletion(folder, deleted).catch(tryNextTime);
    for (const sessionId of idsWithLeftovers(names))
      await removeSessionLeftovers(folder, sessionId).catch(tryNextTime);
    await removeBesideLocks(sessionsFolder(folder));
  } catch {
    // Nothing depends on it, and the creation of the session reports faults of the folder.
  }
};
