/**
 * An open journal: encodes entries as lines, and appends lines durably and in groups, as long as
 * the file belongs to this process.
 *
 * - A draft is an entry without its number, with the state after it.
 * - The mark is a small file that names the last acknowledged entry.
 * - A fold applies entries to a state, one after the other. A snapshot is a stored state, from
 *   which a fold can start.
 * - A state check is a hash of the state, in some of the lines: a replay compares its own states
 *   with it.
 * - A foreign journal came from another state folder. A foreign change is a change by another
 *   program.
 *
 * From top to bottom: `openFileJournal`; `GroupWriter`, which appends and syncs; the reserve, disk
 * space for the end of the session on a full disk; ownership of lock and file; the errors without
 * it; and the rescue, a copy of a journal that another program removed or changed.
 */

import {
  closeSync,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readlinkSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { type FileHandle, mkdtemp, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { PastFiles } from '../machine/seen-files.js';
import { descriptorPath, errorCode, hasDescriptorPaths, withRegular } from '../platform/files.js';
import type { Blobs, EntryDraft, Header, Journal, MachineTypes } from '../ports/journal.js';
import { encodeRecord, type JournalEnd, readBlocks } from './codec.js';
import { cannotWrite, closed, JournalError, resumeCommand } from './journal-error.js';
import type { Lock } from './lock.js';
import { JournalScan, readEntries, readFrozen } from './reader.js';
import type { Fold, JournaledMachine } from './replay.js';
import {
  type SnapshotPlan,
  type SnapshotPoint,
  type SnapshotWriter,
  type WrittenSnapshot,
  writeSnapshots,
} from './snapshot.js';
import {
  FILE_MODE,
  makeFolder,
  openMark,
  rescueFolder,
  reservePath,
  syncFolder,
} from './state-folder.js';

export type FileJournalParts<M extends MachineTypes> = {
  readonly path: string;
  readonly handle: FileHandle;
  readonly lock: Lock;
  readonly header: Header<M>;
  readonly blobs: Blobs;
  /** Entries between two state checks. */
  readonly checkEvery: number;
  /** Where the file ends: number and checksums of the last line, and size. */
  readonly end: JournalEnd;
  /** The state after the file's entries, and the function that hashes the states that follow. */
  readonly fold: Fold<M>;
  /** When snapshots are written. */
  readonly plan: SnapshotPlan;
  /** The files in the entries, for snapshots. */
  readonly past?: PastFiles;
  /** The last foreign entry; 0: none; Infinity: the session is foreign. */
  readonly foreignUntil: number;
  /** Makes a foreign session one of this folder; entries up to `lastForeign` stay foreign. */
  readonly adopt?: (lastForeign: number) => Promise<void>;
  /** The existing snapshot; null: none. */
  readonly written: WrittenSnapshot<M> | null;
};

/** An open journal. It owns its file handle and its lock until it is closed. */
export const openFileJournal = <M extends MachineTypes>(parts: FileJournalParts<M>): Journal<M> => {
  const { path, handle, header, blobs, lock, foreignUntil, adopt } = parts;
  const { machine } = parts.fold;
  const ownership = watchOwnership({ handle, path, lock, resume: resumeCommand(machine.kind) });
  const reserve = openReserve(path);
  const writer = new GroupWriter(
    fileTarget(handle),
    { ...ownership, freeSpace: reserve.free },
    path,
    parts.end.size,
  );
  // the last line handed to the writer (if its write fails, all later ones do), and to the disk
  let lastIssued = parts.end;
  let durableSeq = parts.end.seq;
  const mark = openMark(path, lastIssued);
  const snapshots = openSnapshots(parts, writer, () =>
    // idle first: only between two writes has the file `size` bytes
    writer.idle().then(() => ownership.before(writer.size)),
  );
  let closing: Promise<void> | undefined;

  const append = async (drafts: readonly EntryDraft<M>[]): Promise<void> => {
    if (drafts.length === 0) return;
    const { bytes, last, snapshotPoint } = encodeDrafts(parts, lastIssued, drafts);
    lastIssued = last;
    await writer.write(bytes);
    durableSeq = last.seq;
    mark.write(last);
    snapshots?.addEvents(drafts.map(({ event }) => event));
    if (snapshotPoint !== null) snapshots?.offerState(snapshotPoint);
  };

  const close = async (): Promise<void> => {
    try {
      await snapshots?.close();
      await writer.close();
    } catch (error) {
      throw cannotWrite(path, error);
    } finally {
      mark.close();
      reserve.free();
      await lock.release();
    }
  };

  return {
    header,
    get seq() {
      return durableSeq;
    },
    append,
    get full() {
      return writer.full;
    },
    read: (from = 1) => readEntries<M>(machine.kind, path, from, writer.size),
    blobs,
    // system prompt and tool declarations, which never change in a session
    frozen: () => readFrozen(path, header, blobs),
    foreignUntil,
    ...(adopt === undefined ? {} : { adopt: () => adopt(durableSeq) }),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
};

/**
 * The lines of the drafts that follow the last line. `snapshotPoint`: the last draft with a state
 * check, for a snapshot; null: none has one, or the fold sums no messages. `crc`: a checksum that
 * continues that of the line before. `sum`: a checksum of all bytes of the file.
 */
const encodeDrafts = <M extends MachineTypes>(
  { fold, checkEvery }: Pick<FileJournalParts<M>, 'fold' | 'checkEvery'>,
  last: JournalEnd,
  drafts: readonly EntryDraft<M>[],
): {
  readonly bytes: Buffer;
  readonly last: JournalEnd;
  readonly snapshotPoint: SnapshotPoint<M> | null;
} => {
  const lines: Buffer[] = [];
  let { seq, crc, size, sum } = last;
  let snapshotPoint: SnapshotPoint<M> | null = null;
  for (const { event, state } of drafts) {
    seq += 1;
    const check = dueCheck(fold, seq, state, checkEvery);
    const line = encodeRecord({ entry: { seq, event }, check }, crc);
    lines.push(line.bytes);
    ({ crc } = line);
    const { length } = line.bytes;
    size += length;
    sum = crc32(line.bytes, sum);
    // `summed`: sums of the messages, so that a snapshot knows those it shares with an earlier one.
    // `hashedMessages` tells of the last state that was hashed, which is this one.
    if (check !== null && fold.hashedMessages !== undefined)
      snapshotPoint = { seq, crc, size, sum, length, state, check, summed: fold.hashedMessages() };
  }
  return { bytes: joinLines(lines), last: { seq, crc, size, sum }, snapshotPoint };
};

/**
 * Entries between two state checks. A check hashes all parts that grow within a turn, so a state
 * with more of them is checked less often: with `every` 50 and 120 parts, 150. The number changes
 * with the state, so the distances vary: each check stands alone.
 */
const checkStride = <M extends MachineTypes>(
  { growing }: JournaledMachine<M>,
  state: M['state'],
  every: number,
): number => every * Math.max(1, Math.ceil((growing?.(state) ?? 0) / every));

/**
 * The state check of entry `seq`, if it is due: every `every` entries, less often in a large state,
 * and at rest.
 */
export const dueCheck = <M extends MachineTypes>(
  { machine, hashState }: Pick<Fold<M>, 'machine' | 'hashState'>,
  seq: number,
  state: M['state'],
  every: number,
): string | null =>
  seq % checkStride(machine, state, every) === 0 || machine.isAtRest(state)
    ? hashState(state)
    : null;

const openSnapshots = <M extends MachineTypes>(
  { path, handle, header, plan, past, written, fold }: FileJournalParts<M>,
  writer: GroupWriter,
  checkOwnership: () => Promise<void>,
): SnapshotWriter<M> | null => {
  const isAllowed = (): Promise<boolean> =>
    checkOwnership().then(
      () => writer.full === null,
      () => false, // the next write, or the close, reports why
    );
  const { sessionId } = header;
  return writeSnapshots({
    ...plan,
    path,
    sessionId,
    fd: handle.fd,
    machine: fold.machine,
    isAllowed,
    past,
    written,
  });
};

/** The file operations that the writer needs. */
export type FileTarget = Pick<FileHandle, 'datasync' | 'truncate' | 'close'> & {
  /** Writes synchronously; returns the number of bytes written. */
  write(bytes: Buffer, offset: number, length: number, position: number): number;
};

/** Decides whether the file still belongs to the writer. */
type Ownership = {
  /** Checks before a write. Rejects if the file is not the writer's, or not `size` bytes long. */
  before(size: number): Promise<void>;
  /** Checks again when the bytes are on disk, before they are acknowledged. Throws likewise. */
  after(size: number): void;
  /**
   * Makes the error for a failed check; saves the file and the unwritten lines as far as possible.
   */
  explain(error: unknown, size: number, unwritten: Buffer): Promise<unknown>;
};

/** Ownership, and `freeSpace`, which frees the reserve on a full disk; false if there is none. */
export type WriterEnvironment = Ownership & { freeSpace(): boolean };

/** After a slower sync, the next one runs in another thread (see below). */
const FAST_SYNC_MS = 1;

const syncInThread = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => {
    fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
  });

/**
 * Wraps a file handle for the writer. A round trip to another thread takes longer than a write to
 * the system's cache, and as long as a sync to a fast disk. So a write is synchronous, and a sync
 * while the disk is fast; a slow disk blocks the event loop only once in a row.
 */
export const fileTarget = (handle: FileHandle): FileTarget => {
  let tookMs = 0;
  return {
    write: (bytes, offset, length, position) =>
      writeSync(handle.fd, bytes, offset, length, position),
    async datasync() {
      const startedAtMs = performance.now();
      if (tookMs > FAST_SYNC_MS) await syncInThread(handle.fd);
      else fdatasyncSync(handle.fd);
      tookMs = performance.now() - startedAtMs;
    },
    // synchronously: else another program could append lines meanwhile, which would be cut off
    truncate: async (size) => ftruncateSync(handle.fd, size),
    close: () => handle.close(),
  };
};

type PendingWrite = {
  readonly bytes: Buffer;
  readonly done: () => void;
  readonly refuse: (error: Error) => void;
};

const joinGroup = (group: readonly PendingWrite[]): Buffer =>
  joinLines(group.map(({ bytes }) => bytes));

const isFull = (error: unknown): boolean =>
  errorCode(error) === 'ENOSPC' || errorCode(error) === 'EDQUOT';

/** True if the file now belongs to another program, so it must not be changed. */
const belongsToOthers = (error: Error): boolean =>
  error instanceof JournalError && (error.kind === 'foreignChange' || error.kind === 'takenOver');

/**
 * Appends to a file, durably and in groups.
 *
 * 1. Lines that arrive while a group is being written form the next group: one write and one
 *    fdatasync for all.
 * 2. Groups are written in order, never two at once; a `write` resolves when its bytes are durable.
 * 3. After a failure nothing more is written, since the content of the disk is unknown until the
 *    file is read again. The file is truncated to the last durable byte, so that no complete line
 *    ever follows half a group.
 * 4. When the disk is full, reserved space is freed once, and the group is written again.
 * 5. A file that no longer belongs to the writer is not changed. A group counts as durable only if
 *    the file still belonged to the writer after the sync.
 */
export class GroupWriter {
  readonly #handle: FileTarget;
  readonly #environment: WriterEnvironment;
  readonly #path: string;
  #size: number;
  #pending: PendingWrite[] = [];
  #writing: Promise<void> | null = null;
  #refusal: Error | null = null;
  #full: Error | null = null;

  constructor(handle: FileTarget, environment: WriterEnvironment, path: string, size: number) {
    this.#handle = handle;
    this.#environment = environment;
    this.#path = path;
    this.#size = size;
  }

  /** Number of durable bytes. */
  get size(): number {
    return this.#size;
  }

  /** Resolves once nothing is being written. */
  async idle(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  /** Why the reserve was freed; later writes use its space. Null: the disk has space. */
  get full(): Error | null {
    return this.#full;
  }

  /** Resolves when `bytes` are durable; rejects with `cannotWrite`, or as `explain` says. */
  write(bytes: Buffer): Promise<void> {
    if (this.#refusal !== null) return Promise.reject(this.#refusal);
    return new Promise((done, refuse) => {
      this.#pending.push({ bytes, done, refuse });
      this.#writing ??= this.#writeGroups();
    });
  }

  /**
   * Refuses further writes, and closes the file after the pending ones. Rejects if the file is not
   * the writer's own and no write was refused for it.
   */
  async close(): Promise<void> {
    const end = closed(this.#path);
    this.#refusal ??= end;
    await this.#writing;
    try {
      // another refusal was reported, after a rescue if the file was not ours
      if (this.#refusal === end) await this.#environment.before(this.#size);
    } catch (error) {
      throw await this.#environment.explain(error, this.#size, Buffer.alloc(0));
    } finally {
      await this.#handle.close();
    }
  }

  async #writeGroups(): Promise<void> {
    // Waits so that everything appended in the same tick joins the group.
    await Promise.resolve();
    while (this.#pending.length > 0) {
      const group = this.#pending;
      this.#pending = [];
      try {
        await this.#writeDurably(joinGroup(group));
      } catch (error) {
        await this.#fail(group, error);
        break;
      }
      for (const { done } of group) done();
    }
    this.#writing = null;
  }

  async #writeDurably(bytes: Buffer): Promise<void> {
    await this.#environment.before(this.#size);
    try {
      await this.#writeSynced(bytes);
    } catch (error) {
      if (!isFull(error) || !this.#environment.freeSpace()) throw error;
      this.#full = cannotWrite(this.#path, error);
      await this.#handle.truncate(this.#size);
      await this.#writeSynced(bytes);
    }
    this.#environment.after(this.#size + bytes.length);
    this.#size += bytes.length;
  }

  async #writeSynced(bytes: Buffer): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      const tail = bytes.length - written;
      written += this.#handle.write(bytes, written, tail, this.#size + written);
    }
    await this.#handle.datasync();
  }

  async #fail(group: readonly PendingWrite[], fault: unknown): Promise<void> {
    const refused = [...group, ...this.#pending];
    this.#pending = [];
    const unwritten = joinGroup(refused);
    const error = cannotWrite(
      this.#path,
      await this.#environment.explain(fault, this.#size, unwritten),
    );
    this.#refusal = error;
    refused.push(...this.#pending); // that came meanwhile
    this.#pending = [];
    if (!belongsToOthers(error)) await this.#cutBack();
    for (const { refuse } of refused) refuse(error);
  }

  async #cutBack(): Promise<void> {
    try {
      await this.#handle.truncate(this.#size);
      await this.#handle.datasync();
    } catch {
      // No durable byte is lost: the next opening verifies the bytes after the last durable one.
    }
  }
}

/** Lines as one piece of bytes. Most writes are one line, which is not copied. */
const joinLines = (lines: readonly Buffer[]): Buffer => {
  const [first, ...others] = lines;
  return first !== undefined && others.length === 0 ? first : Buffer.concat(lines);
};

/**
 * Disk space that an open journal keeps for its end: a file of this size, removed when the disk is
 * full. The results of the calls of one reply and the end of the session fit into it.
 */
const RESERVE_BYTES = 256 * 1024;

let zeros: Buffer | null = null;

type DiskReserve = {
  /** Gives the space back to the disk; false if there is none to give. */
  free(): boolean;
};

const fillReserve = (path: string): boolean => {
  const descriptor = openSync(path, 'w', FILE_MODE);
  try {
    zeros ??= Buffer.alloc(RESERVE_BYTES); // once: zeroing this much takes longer than the write
    return writeSync(descriptor, zeros, 0, zeros.length, 0) === zeros.length;
  } finally {
    closeSync(descriptor);
  }
};

/** False: it is still there. That takes only its space, and the next opening tries again. */
const removeReserve = (path: string): boolean => {
  try {
    rmSync(path, { force: true });
    return true;
  } catch {
    return false;
  }
};

/** Reserves the space, unless the disk has too little. */
const openReserve = (journal: string): DiskReserve => {
  const path = reservePath(journal);
  let isReserved = false;
  try {
    isReserved = removeReserve(path) && fillReserve(path); // first that of a killed process
  } catch {
    // Nothing is lost: the session works without a reserve.
  }
  if (!isReserved) removeReserve(path);
  return {
    free: () => {
      const wasReserved = isReserved;
      isReserved = false;
      return wasReserved && removeReserve(path);
    },
  };
};

/**
 * How often an open journal is read again because its file's time was changed. Some network file
 * systems change the time late, and a journal must not be read again for each of its lines. After
 * that, content that another program overwrote with the same size stays unnoticed.
 */
const CONTENT_READS_MAX = 8;

type OpenFile = {
  readonly handle: FileHandle;
  readonly path: string;
  readonly lock: Pick<Lock, 'loss'>;
  /** The command that resumes the session, without its id. */
  readonly resume: string;
};

/**
 * Throws if the lock or the file is not the writer's own. A process that takes the lock over also
 * replaces the file, so a takeover is reported before a changed file, and any other loss after it.
 */
const refuseForeign = (lock: OpenFile['lock'], check: FileCheck): void => {
  const loss = lock.loss();
  if (loss?.kind === 'takenOver') throw loss;
  if (check.kind !== 'own' && check.kind !== 'touched') throw new NotOwnFile(check);
  if (loss !== null) throw loss;
};

/** True if the lines up to `size` are intact. */
const isIntact = async (handle: FileHandle, path: string, size: number): Promise<boolean> => {
  try {
    return (await scanIntact(handle, path, size)).size === size;
  } catch {
    return false; // the header is damaged, or it can't be read
  }
};

const COMPARED_BYTES = 4_096;

/**
 * True if the file at the path has the same lines up to `size`, and more: another process took the
 * session over and has ended since. The checksum of a line depends on all lines before, so the last
 * bytes are enough.
 */
const wasContinued = (handle: FileHandle, path: string, size: number): Promise<boolean> =>
  // opens the file at the path; rejects for a pipe or a folder
  withRegular(path, async (file, status) => {
    if (status.size <= size) return false;
    const length = Math.min(size, COMPARED_BYTES);
    // filled differently, so that a short read does not make them equal
    const written = Buffer.alloc(length);
    const other = Buffer.alloc(length, 1);
    await handle.read(written, 0, length, size - length);
    await file.read(other, 0, length, size - length);
    return written.equals(other);
  });

/**
 * The writer owns its file while it holds the lock, and the path leads to the file as the writer
 * left it.
 */
const watchOwnership = ({ handle, path, lock, resume }: OpenFile): Ownership => {
  const identity = new FileIdentity(handle, path);
  let reads = 0;
  return {
    before: async (size) => {
      const check = identity.check(size);
      refuseForeign(lock, check);
      if (check.kind !== 'touched' || reads >= CONTENT_READS_MAX) return;
      reads += 1;
      if (!(await isIntact(handle, path, size))) throw new NotOwnFile({ kind: 'overwritten' });
      identity.accept();
    },
    after: (size) => refuseForeign(lock, identity.checkAfterWrite(size)),
    explain: async (error, size, unwritten) => {
      if (!(error instanceof NotOwnFile)) return error;
      const { change } = error;
      if (change.kind === 'replaced' && (await wasContinued(handle, path, size).catch(() => false)))
        return takenOver(path, resume);
      return foreignChange(path, change, await rescue(handle, path, size, unwritten), resume);
    },
  };
};

/** A change of the file of an open journal by another program. */
type ForeignChange =
  | {
      readonly kind:
        | 'removed'
        | 'folderRemoved'
        | 'replaced'
        | 'readOnly'
        | 'truncated'
        | 'extended'
        | 'overwritten';
    }
  /**
   * `to` is null where the system does not tell the new path. `replaced`: another file is at the
   * old path.
   */
  | { readonly kind: 'moved'; readonly to: string | null; readonly replaced: 'yes' | 'no' };

/** `touched`: the size is right, but another program has written to the file or set its time. */
type FileCheck = { readonly kind: 'own' } | { readonly kind: 'touched' } | ForeignChange;

const OWNER_CAN_WRITE = 0o200;

/** Path of an open file that is no longer at its old path; null if it has none. */
const findNewPath = (handle: FileHandle): string | null => {
  if (!hasDescriptorPaths()) return null;
  const path = readlinkSync(descriptorPath(handle.fd));
  return path.endsWith(' (deleted)') ? null : path;
};

/**
 * Recognises the file of an open journal.
 *
 * The path must lead to the file that was opened, with the size that this process gave it. A file
 * system that reuses inode numbers can't hide an exchange, since the open file keeps its number.
 */
class FileIdentity {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #opened: Stats;
  #changedMs: number;

  constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.#path = path;
    this.#opened = fstatSync(handle.fd);
    this.#changedMs = this.#opened.mtimeMs;
  }

  /** Checks the file before a write of this process. */
  check(size: number): FileCheck {
    const status = this.#status();
    if ('kind' in status) return status;
    const wrong = this.#findChange(status, size);
    if (wrong !== null) return wrong;
    return { kind: status.mtimeMs === this.#changedMs ? 'own' : 'touched' };
  }

  /** Checks the file after a write of this process, and remembers its time. */
  checkAfterWrite(size: number): FileCheck {
    const status = this.#status();
    if ('kind' in status) return status;
    this.#changedMs = status.mtimeMs;
    return this.#findChange(status, size) ?? { kind: 'own' };
  }

  /** Accepts the time that the file has now. */
  accept(): void {
    this.#changedMs = fstatSync(this.#handle.fd).mtimeMs;
  }

  #status(): Stats | ForeignChange {
    const status = statSync(this.#path, { throwIfNoEntry: false });
    if (status?.ino === this.#opened.ino && status.dev === this.#opened.dev) return status;
    const replaced = status === undefined ? 'no' : 'yes';
    if (fstatSync(this.#handle.fd).nlink > 0)
      return { kind: 'moved', to: findNewPath(this.#handle), replaced };
    if (replaced === 'yes') return { kind: 'replaced' };
    return { kind: existsSync(dirname(this.#path)) ? 'removed' : 'folderRemoved' };
  }

  #findChange({ size, mode }: Stats, expected: number): ForeignChange | null {
    if (size < expected) return { kind: 'truncated' };
    if (size > expected) return { kind: 'extended' };
    return (mode & OWNER_CAN_WRITE) === 0 ? { kind: 'readOnly' } : null;
  }
}

/** A failed ownership check. After the rescue it becomes a JournalError. */
class NotOwnFile extends Error {
  override readonly name = 'NotOwnFile';
  readonly change: ForeignChange;

  constructor(change: ForeignChange) {
    super(change.kind);
    this.change = change;
  }
}

const describeChange = (change: ForeignChange): string => {
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
const isPathTaken = (change: ForeignChange): boolean =>
  change.kind === 'moved'
    ? change.replaced === 'yes'
    : change.kind !== 'removed' && change.kind !== 'folderRemoved';

const describeNextStep = (
  path: string,
  change: ForeignChange,
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

/** The error of a session that stopped because another program changed its file. */
const foreignChange = (
  path: string,
  change: ForeignChange,
  rescued: Rescued | null,
  resume: string,
): JournalError =>
  new JournalError(
    'foreignChange',
    path,
    `The journal ${path} ${describeChange(change)} while its session was running, so the ` +
      'session stopped. ' +
      describeNextStep(path, change, rescued, resume),
  );

/** The error of a session that another process has taken over, written to and closed. */
const takenOver = (path: string, resume: string): JournalError => {
  const sessionId = basename(path, '.jsonl');
  return new JournalError(
    'takenOver',
    path,
    `The session ${sessionId} was taken over by another process, which has ended since, so ` +
      'it was stopped here. ' +
      `All that was acknowledged is in the journal. To go on: ${resume} ${sessionId}`,
  );
};

/** The copy of a journal whose file was changed by another program. */
type Rescued = { readonly path: string; readonly entries: number };

const NAMES_MAX = 1_000;

/** Creates a file with an unused name. */
const createIn = async (
  folder: string,
  name: string,
): Promise<{ handle: FileHandle; path: string }> => {
  for (let number = 1; ; number++) {
    const path = join(
      folder,
      number === 1 ? name : `${name.replace(/\.jsonl$/, '')}.${number}.jsonl`,
    );
    try {
      return { handle: await open(path, 'wx', FILE_MODE), path };
    } catch (error) {
      if (errorCode(error) !== 'EEXIST' || number > NAMES_MAX) throw error;
    }
  }
};

/** Scans the intact lines of the open file, at most `size` bytes. */
const scanIntact = async (journal: FileHandle, path: string, size: number) => {
  const end = Math.min(size, (await journal.stat()).size);
  const scan = await JournalScan.begin(journal, path, end);
  await scan.readAll();
  return scan;
};

const linesIn = (bytes: Buffer): number => bytes.toString('latin1').split('\n').length - 1;

/** Leaves no file if it fails. */
const writeCopy = async (
  journal: FileHandle,
  { size, seq }: { readonly size: number; readonly seq: number },
  unwritten: Buffer,
  place: { readonly folder: string; readonly name: string },
): Promise<Rescued> => {
  const { handle, path } = await createIn(place.folder, place.name);
  try {
    for await (const block of readBlocks(journal, 0, size)) await handle.appendFile(block);
    await handle.appendFile(unwritten);
    await handle.sync();
    await syncFolder(place.folder);
  } catch (error) {
    rmSync(path, { force: true }); // half a copy under the session's name would look whole
    throw error;
  } finally {
    await handle.close();
  }
  return { path, entries: seq + linesIn(unwritten) };
};

/**
 * Copies the intact lines of an open journal to a new file, with the unwritten lines. A removed
 * file still has its content while it is open. The copy is made beside the sessions, or in the
 * folder for temporary files; null if neither works, or no line is intact.
 */
const rescue = async (
  journal: FileHandle,
  path: string,
  size: number,
  unwritten: Buffer,
): Promise<Rescued | null> => {
  try {
    const scan = await scanIntact(journal, path, size);
    const tail = scan.size === size ? unwritten : Buffer.alloc(0);
    const name = basename(path);
    const beside = async (): Promise<Rescued> => {
      const folder = rescueFolder(dirname(dirname(path)));
      await makeFolder(folder);
      return writeCopy(journal, scan, tail, { folder, name });
    };
    return await beside().catch(async () =>
      writeCopy(journal, scan, tail, {
        folder: await mkdtemp(join(tmpdir(), 'pawl-rescued-')),
        name,
      }),
    );
  } catch {
    // The error that stopped the session is the one to report; it then says that there is no copy.
    return null;
  }
};
