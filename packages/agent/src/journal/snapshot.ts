/**
 * Stored states of a session, beside its journal: a session opens without folding its whole journal
 * again. The journal stays the only truth: a file that does not fit it exactly is ignored, and the
 * journal is folded.
 *
 * From top to bottom: the content of the file; `loadSnapshot`, which the store calls when it opens
 * a session; and `writeSnapshots`, which the writer calls. A state check is a hash of the state
 * that some journal entries record. Closed messages are those up to the last reply: they never
 * change. The past is what the session's calls did to files: which they saw, and the hashes before
 * and after a change.
 */

import { closeSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { AppendList } from '@pawl/machine/kernel/append-list';
import { isRecord } from '@pawl/machine/kernel/shape';
import type { SeenFile } from '../machine/call.js';
import type { Message } from '../machine/message.js';
import type { PastFiles } from '../machine/seen-files.js';
import { VERSION } from '../platform/environment.js';
import { readRegular } from '../platform/files.js';
import type { Header, MachineTypes } from '../ports/journal.js';
import { formatCrc, type JournalEnd, parse } from './codec.js';
import type { ScanPoint } from './reader.js';
import {
  continueFold,
  type Fold,
  type JournaledMachine,
  machineKind,
  type StateParts,
  type SummedMessages,
} from './replay.js';
import { FILE_MODE, readMark } from './state-folder.js';

/** The program and the session that a file must be of. */
type SnapshotOwner = {
  readonly version: 2;
  /** Version of Pawl, and fingerprint and version of the machine. */
  readonly pawl: string;
  readonly machine: string;
  readonly machineVersion: number;
  readonly session: string;
};

/** A state, after the entry that ends at byte `size` of the journal and has `length` bytes. */
type StoredState = JournalEnd & {
  readonly length: number;
  /** The state check that the entry records. */
  readonly check: string;
  /** The chain of hashes of its closed messages. */
  readonly chain: string;
  /** How many of its closed messages are those of the state before it in the file. */
  readonly shared: number;
  /** Its other closed messages. */
  readonly messages: readonly Message[];
  /** All else of the state. */
  readonly rest: unknown;
};

type SnapshotContent = {
  /** The newest state last; before it one for a reader of the last steps, if there is one. */
  readonly states: readonly StoredState[];
  /**
   * The files that calls have read or changed until the newest state (machine/seen-files.ts). To
   * see the entries after an earlier state once more does not change them.
   */
  readonly past: {
    readonly hashes: readonly (readonly [
      string,
      { readonly before: string; readonly after?: string },
    ])[];
    readonly batchId: string | null;
    readonly seen: readonly SeenFile[];
  };
};

export const snapshotPath = (journal: string): string =>
  `${journal.replace(/\.jsonl$/, '')}.snapshot`;

export const snapshotOwner = <M extends MachineTypes>(
  { fingerprint, version }: Pick<JournaledMachine<M>, 'fingerprint' | 'version'>,
  session: string,
): SnapshotOwner => ({
  version: 2,
  pawl: VERSION,
  machine: fingerprint,
  machineVersion: version,
  session,
});

/** The last field of the file: CRC-32 of all bytes before it. */
const formatTrailer = (crc: number): string => `,"crc":"${formatCrc(crc)}"}\n`;
const TRAILER_BYTES = formatTrailer(0).length;

export const encodeSnapshot = (owner: SnapshotOwner, content: SnapshotContent): Buffer => {
  const text = JSON.stringify({ ...owner, ...content }).slice(0, -1);
  return Buffer.from(`${text}${formatTrailer(crc32(text))}`);
};

/** The content of a file that is whole; null for any other, and for that of another owner. */
export const decodeSnapshot = (bytes: Buffer, owner: SnapshotOwner): SnapshotContent | null => {
  const end = bytes.length - TRAILER_BYTES;
  if (end <= 0 || bytes.toString('latin1', end) !== formatTrailer(crc32(bytes.subarray(0, end))))
    return null;
  const content = parse(bytes.toString());
  if (!isRecord(content)) return null;
  const isOwn = Object.entries(owner).every(([field, value]) => content[field] === value);
  // Safe: the checksum proves that encodeSnapshot of this version wrote these bytes.
  return isOwn ? (content as SnapshotContent) : null;
};

/** An entry whose state check is in the journal, durably. */
export type SnapshotPoint<M extends MachineTypes> = Pick<StoredState, 'check' | 'length'> &
  JournalEnd & {
    readonly state: M['state'];
    /** The closed messages that `check` covers, with their hash. */
    readonly summed: SummedMessages;
  };

/** What a file holds, for the one that takes its place. */
export type WrittenSnapshot<M extends MachineTypes> = {
  /** The last entry that it covers, and the size of the journal up to there. */
  readonly seq: number;
  readonly size: number;
  /** Its states, up to the one that was loaded. */
  readonly points: readonly SnapshotPoint<M>[];
};

/** A state, and where the journal goes on after it. */
export type LoadedSnapshot<M extends MachineTypes> = {
  readonly point: ScanPoint<M>;
  readonly fold: Fold<M>;
  readonly past: PastFiles;
  readonly written: WrittenSnapshot<M>;
};

export type SnapshotRequest<M extends MachineTypes> = {
  readonly handle: FileHandle;
  /** The journal. */
  readonly path: string;
  readonly header: Header<MachineTypes>;
  readonly machine: JournaledMachine<M>;
  /**
   * The last so many entries are folded even if a snapshot holds them, since the caller looks at
   * each of their steps. 0: none; infinite: all, so that no snapshot is used.
   */
  readonly entriesToVisit: number;
};

/** Larger journals are folded instead. */
const JOURNAL_BYTES_MAX = 512 * 1024 * 1024;
const FILE_BYTES_MAX = JOURNAL_BYTES_MAX;

/**
 * Loads a state of a session from the file beside its journal. Null if there is none that fits the
 * journal exactly: then the journal is folded.
 */
export const loadSnapshot = async <M extends MachineTypes>(
  request: SnapshotRequest<M>,
): Promise<LoadedSnapshot<M> | null> => {
  const { snapshots } = request.machine;
  if (snapshots === undefined) return null;
  try {
    return await loadFrom(request, snapshots);
  } catch {
    return null; // nothing is lost: the journal holds everything
  }
};

const loadFrom = async <M extends MachineTypes>(
  { handle, path, header, machine, entriesToVisit }: SnapshotRequest<M>,
  parts: StateParts<M>,
): Promise<LoadedSnapshot<M> | null> => {
  if (machineKind(header) !== machine.kind) return null;
  const file = await readRegular(snapshotPath(path), FILE_BYTES_MAX);
  if (file.kind !== 'file') return null;
  const content = decodeSnapshot(file.bytes, snapshotOwner(machine, header.sessionId));
  const last = content?.states.at(-1);
  if (content === null || last === undefined) return null;
  const end = Math.max(last.seq, (await readMark(path))?.seq ?? 0);
  const index = content.states.findLastIndex(({ seq }) => seq <= end - entriesToVisit);
  const points = readPoints(content.states.slice(0, index + 1), parts);
  const chosen = points.at(-1);
  if (chosen === undefined || !isOfJournal(handle.fd, chosen)) return null;
  const { seq, crc, size, sum, check, state, summed } = chosen;
  const fold = continueFold(machine, { state, seq, path }, summed);
  if (fold.hashState(state) !== check) return null;
  const { hashes, batchId, seen } = content.past;
  return {
    point: { header: header as Header<M>, seq, crc, size, sum }, // its kind is that of the machine
    fold,
    past: {
      lastAt: null,
      hashes: new Map(hashes),
      batchId,
      seen: new Map(seen.map((each) => [each.path, each])),
    },
    written: { seq: last.seq, size: last.size, points },
  };
};

/** The states with all their closed messages. Those of the same messages share a list. */
const readPoints = <M extends MachineTypes>(
  states: readonly StoredState[],
  parts: StateParts<M>,
): readonly SnapshotPoint<M>[] => {
  let before = AppendList.empty<Message>();
  return states.map(({ chain, shared, messages, rest, ...entry }) => {
    if (shared > 0 && shared !== before.length) throw new Error('messages are missing');
    let list = shared === 0 ? AppendList.from(messages) : before;
    if (shared > 0) for (const message of messages) list = list.append(message);
    before = list;
    return { ...entry, state: parts.join(rest, list), summed: { messages: list, chain } };
  });
};

/** Whether the journal up to the entry is unchanged, and the entry records this state check. */
const isOfJournal = (
  fd: number,
  { seq, crc, check, size, sum, length }: Omit<SnapshotPoint<MachineTypes>, 'state' | 'summed'>,
): boolean => {
  if (sumBytes(fd, size) !== sum) return false;
  const bytes = Buffer.alloc(length);
  const read = readSync(fd, bytes, 0, length, size - length);
  const line = parse(bytes.toString('utf8', 0, read));
  return isRecord(line) && line.seq === seq && line.check === check && line.crc === formatCrc(crc);
};

const BLOCK_BYTES = 1024 * 1024;

/**
 * Checksum of the first `size` bytes; null if the file is shorter. It reads in blocks: as one
 * buffer a journal would count as so much garbage that V8 collects all of its memory while a
 * session is opened, which takes a fifth of the time.
 */
const sumBytes = (fd: number, size: number): number | null => {
  const block = Buffer.allocUnsafe(Math.min(size, BLOCK_BYTES));
  let sum = 0;
  for (let at = 0; at < size; ) {
    const read = readSync(fd, block, 0, Math.min(block.length, size - at), at);
    if (read === 0) return null;
    sum = crc32(block.subarray(0, read), sum);
    at += read;
  }
  return sum;
};

/**
 * Writes the snapshots of an open journal.
 *
 * A failure stops nothing but the snapshots: the journal holds everything. They are not synced,
 * since a reader recognises a file that is not whole.
 */
export type SnapshotWriter<M extends MachineTypes> = {
  /** Takes the events of entries that are durable, for what they tell of files. */
  addEvents(events: readonly M['event'][]): void;
  /** Takes a state; it is written later if enough was added since the last one. */
  offerState(point: SnapshotPoint<M>): void;
  /**
   * Writes the last state if enough was added since the last one. The journal's file must still be
   * open.
   */
  close(): Promise<void>;
};

export type SnapshotPlan = {
  /**
   * Entries after which a snapshot is written, if the journal has also grown by an eighth: so all
   * snapshots of a session take time in proportion to its journal. And how far the earlier state
   * of a file lies behind at least.
   */
  readonly every: number;
  /** Runs work once the session waits. */
  readonly later: (work: () => void) => void;
};

/** A close writes no snapshot for fewer new entries: folding them is cheap. */
const AT_CLOSE_MIN = 128;
const EVERY = 512;
const GROWTH = 1.125;

export const defaultSnapshotPlan: SnapshotPlan = {
  every: EVERY,
  later: (work) => void setTimeout(work, 0),
};

type WriterParts<M extends MachineTypes> = SnapshotPlan & {
  readonly machine: JournaledMachine<M>;
  readonly sessionId: string;
  /** The journal, and its open descriptor. */
  readonly path: string;
  readonly fd: number;
  /**
   * False once the journal is no longer this process's own, since nothing is left beside a journal
   * that was removed; and once the disk was full, since the journal needs the space.
   */
  readonly isAllowed: () => Promise<boolean>;
  readonly past: PastFiles | undefined;
  readonly written: WrittenSnapshot<M> | null;
};

/**
 * Writes a new file, which takes the place of the old one when it is whole. What a full disk has
 * taken is removed again, since the journal needs that space.
 */
const storeSnapshot = (path: string, bytes: Buffer): void => {
  const draft = `${path}.new`;
  rmSync(draft, { force: true });
  const fd = openSync(draft, 'wx', FILE_MODE);
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
  renameSync(draft, path);
};

const storedState = <M extends MachineTypes>(
  { state, summed, ...entry }: SnapshotPoint<M>,
  before: SnapshotPoint<M> | undefined,
  parts: StateParts<M>,
): StoredState => {
  const { messages, chain } = summed;
  const goesOn = before !== undefined && messages.continues(before.summed.messages);
  const shared = goesOn ? before.summed.messages.length : 0;
  const rest = parts.restOf(state);
  return { ...entry, chain, shared, messages: messages.toArray(shared), rest };
};

class Snapshots<M extends MachineTypes> implements SnapshotWriter<M> {
  readonly #journal: WriterParts<M>;
  readonly #states: StateParts<M>;
  readonly #past: { see(event: M['event']): void; past(): PastFiles } | undefined;
  #written: Pick<WrittenSnapshot<M>, 'seq' | 'size'>;
  /** States of the last entries, the newest included, and one before them, oldest first. */
  #points: SnapshotPoint<M>[];
  #isPlanned = false;
  #isOver = false;

  constructor(journal: WriterParts<M>, states: StateParts<M>) {
    const { machine, past, written } = journal;
    this.#journal = journal;
    this.#states = states;
    this.#past = machine.collectPast?.(past);
    this.#written = written ?? { seq: 0, size: 0 };
    this.#points = [...(written?.points ?? [])];
  }

  addEvents(events: readonly M['event'][]): void {
    for (const event of events) this.#past?.see(event);
  }

  offerState(point: SnapshotPoint<M>): void {
    const { every, later } = this.#journal;
    this.#points.push(point);
    const first = this.#points.findLastIndex(({ seq }) => seq <= point.seq - every);
    this.#points = this.#points.slice(Math.max(0, first));
    if (this.#isPlanned || !this.#hasGrown(every) || point.size < this.#written.size * GROWTH)
      return;
    this.#isPlanned = true;
    later(() => void this.#write());
  }

  async close(): Promise<void> {
    if (this.#hasGrown(Math.min(AT_CLOSE_MIN, this.#journal.every))) await this.#write();
    this.#isOver = true;
  }

  #hasGrown(by: number): boolean {
    return (this.#points.at(-1)?.seq ?? 0) - this.#written.seq >= by;
  }

  async #write(): Promise<void> {
    const isAllowed = !this.#isOver && (await this.#journal.isAllowed());
    const point = this.#points.at(-1);
    this.#isPlanned = false;
    if (!isAllowed || this.#isOver || point === undefined || !this.#hasGrown(1)) return;
    try {
      // A snapshot must not vouch for bytes that were damaged in the file since: the next opening
      // has to find them.
      if (point.size <= JOURNAL_BYTES_MAX && isOfJournal(this.#journal.fd, point)) {
        this.#store(point);
        this.#written = point;
      } else this.#isOver = true;
    } catch {
      this.#isOver = true; // nothing is lost: the journal holds everything
    }
  }

  #store(newest: SnapshotPoint<M>): void {
    const { path, machine, sessionId } = this.#journal;
    const first = this.#points[0];
    const earlier = first === newest ? undefined : first;
    const states = [
      ...(earlier === undefined ? [] : [storedState(earlier, undefined, this.#states)]),
      storedState(newest, earlier, this.#states),
    ];
    const { hashes, batchId, seen }: PastFiles = this.#past?.past() ?? noPast;
    const past = { hashes: [...hashes], batchId, seen: [...seen.values()] };
    const bytes = encodeSnapshot(snapshotOwner(machine, sessionId), { states, past });
    storeSnapshot(snapshotPath(path), bytes);
  }
}

const noPast: PastFiles = { lastAt: null, hashes: new Map(), batchId: null, seen: new Map() };

/** Null for a machine whose states are not stored. */
export const writeSnapshots = <M extends MachineTypes>(
  parts: WriterParts<M>,
): SnapshotWriter<M> | null => {
  const { snapshots } = parts.machine;
  return snapshots === undefined ? null : new Snapshots(parts, snapshots);
};
