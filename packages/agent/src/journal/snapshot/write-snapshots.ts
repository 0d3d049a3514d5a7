import { closeSync, ftruncateSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { PastFiles } from '../../machine/file-hashes-from-events.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import type { JournaledMachine, StateParts, SummedMessages } from '../journaled-machine.js';
import { FILE_MODE } from '../paths-and-durable-writes.js';
import { JOURNAL_BYTES_MAX, type WrittenSnapshots } from './load-snapshot.js';
import {
  encodeSnapshot,
  type SnapshotBody,
  type SnapshotContent,
  type SnapshotOwner,
  snapshotPath,
} from './snapshot-format.js';
import { type JournalPart, References } from './text-references.js';

/** An entry whose state check is in the journal, durably. */
export type SnapshotPoint<M extends MachineTypes> = {
  readonly seq: number;
  /** Checksum and end of its line. */
  readonly crc: number;
  readonly size: number;
  /** CRC-32 of the journal up to there, as its bytes were verified or written. */
  readonly sum: number;
  readonly state: M['state'];
  readonly check: string;
  readonly summed: SummedMessages;
};

/**
 * Writes the snapshots of an open journal.
 *
 * A failure stops nothing but the snapshots: the journal holds everything. They are not synced, since a reader recognises
 * a snapshot that is not whole.
 */
export type SnapshotWriter<M extends MachineTypes> = {
  /** Whether the state after this entry is wanted. */
  isDue(seq: number): boolean;
  /** Takes entries that are durable. */
  see(events: readonly M['event'][]): void;
  /** Takes a state; it is written later if it is due. */
  offer(point: SnapshotPoint<M>): void;
  /** Writes the last state if enough was added since the last snapshot. The journal's file must still be open. */
  close(): Promise<void>;
};

export type SnapshotPlan = {
  /** Entries after which a snapshot is written. */
  readonly every: number;
  /** Runs work once the session waits. */
  readonly later: (work: () => void) => void;
};

/** Opening folds fewer entries than this without a snapshot. */
const AT_CLOSE_MIN = 128;
const EVERY = 512;

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
   * False once the journal is no longer this process's own, since nothing is left beside a journal that was removed; and
   * once the disk was full, since the journal needs the space.
   */
  readonly isAllowed: () => Promise<boolean>;
  readonly past: PastFiles | undefined;
  readonly written: WrittenSnapshots | null;
};

const readRange = (fd: number, start: number, end: number): Buffer => {
  const bytes = Buffer.allocUnsafe(end - start);
  for (let filled = 0; filled < bytes.length; ) {
    const read = readSync(fd, bytes, filled, bytes.length - filled, start + filled);
    if (read === 0) throw new Error('the journal is shorter than what was written to it');
    filled += read;
  }
  return bytes;
};

const writeAll = (fd: number, bytes: Buffer, start: number): void => {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, start + done);
};

/**
 * Writes the bytes at `position`; at 0 as a new file, which takes the place of the old one when it is whole. What a full
 * disk has taken is removed again, since the journal needs that space.
 */
const store = (path: string, bytes: Buffer, position: number): void => {
  const draft = `${path}.new`;
  if (position === 0) rmSync(draft, { force: true });
  const fd = position === 0 ? openSync(draft, 'wx', FILE_MODE) : openSync(path, 'r+');
  try {
    writeAll(fd, bytes, position);
    ftruncateSync(fd, position + bytes.length);
  } catch (error) {
    if (position === 0) rmSync(draft, { force: true });
    else ftruncateSync(fd, position);
    throw error;
  } finally {
    closeSync(fd);
  }
  if (position === 0) renameSync(draft, path);
};

class Snapshots<M extends MachineTypes> implements SnapshotWriter<M> {
  readonly #journal: WriterParts<M>;
  readonly #states: StateParts<M>;
  readonly #owner: SnapshotOwner;
  readonly #past: { see(event: M['event']): void; past(): PastFiles } | undefined;
  #written: WrittenSnapshots | null;
  #point: SnapshotPoint<M> | null = null;
  #isPlanned = false;
  #isOver = false;

  constructor(journal: WriterParts<M>, states: StateParts<M>) {
    const { machine, sessionId, past, written } = journal;
    this.#journal = journal;
    this.#states = states;
    const { fingerprint, version } = machine;
    this.#owner = { session: sessionId, machine: fingerprint, machineVersion: version };
    this.#past = machine.collectPast?.(past);
    this.#written = written;
  }

  isDue(seq: number): boolean {
    return !this.#isOver && !this.#isPlanned && this.#added(seq) >= this.#journal.every;
  }

  see(events: readonly M['event'][]): void {
    for (const event of events) this.#past?.see(event);
  }

  offer(point: SnapshotPoint<M>): void {
    this.#point = point;
    if (!this.isDue(point.seq)) return;
    this.#isPlanned = true;
    this.#journal.later(() => {
      void this.#write().then(() => {
        this.#isPlanned = false;
      });
    });
  }

  async close(): Promise<void> {
    const isWorth = this.#added(this.#point?.seq ?? 0) >= Math.min(AT_CLOSE_MIN, this.#journal.every);
    if (isWorth) await this.#write();
    this.#isOver = true;
  }

  #added(seq: number): number {
    return seq - (this.#written?.seq ?? 0);
  }

  async #write(): Promise<void> {
    const isAllowed = !this.#isOver && (await this.#journal.isAllowed());
    const point = this.#point;
    if (!isAllowed || this.#isOver || point === null || this.#added(point.seq) <= 0) return;
    try {
      if (point.size > JOURNAL_BYTES_MAX) this.#isOver = true;
      else this.#written = this.#append(point);
    } catch {
      this.#isOver = true; // what was written so far is still good; what is torn is not read
    }
  }

  /** Appends a snapshot; it names all messages again if a summary has replaced some since the last one. */
  #append(point: SnapshotPoint<M>): WrittenSnapshots {
    const before = this.#written;
    const { messages } = point.summed;
    const { size: known, sum: begun, next, fileSize, crc: seed } = before ?? nothingWritten;
    const goesOn = before !== null && before.messages.length > 0 && messages.continues(before.messages);
    const start = Math.min(known, next);
    const bytes = readRange(this.#journal.fd, start, point.size);
    const sum = crc32(bytes.subarray(known - start), begun);
    // A snapshot must not vouch for bytes that were damaged in the file since: the next opening has to find them.
    if (sum !== point.sum) throw new Error('the journal is not what was written to it');
    const content = this.#contentOf(point, { bytes, start }, goesOn ? before : null);
    const line = encodeSnapshot(this.#owner, { ...content, sum }, seed);
    store(snapshotPath(this.#journal.path), line.bytes, fileSize);
    return {
      seq: point.seq,
      size: point.size,
      sum,
      next: content.next,
      messages,
      fileSize: fileSize + line.bytes.length,
      crc: line.crc,
      seen: new Map(this.#past?.past().seen),
    };
  }

  #contentOf(
    { seq, size, crc, check, state, summed }: SnapshotPoint<M>,
    part: JournalPart,
    before: WrittenSnapshots | null,
  ): Omit<SnapshotContent, 'sum'> {
    const references = new References(part);
    const from = before?.messages.length ?? 0;
    const messages = summed.messages
      .toArray(from)
      .map((message) =>
        message.role === 'assistant' ? references.replaceWhole(message) : references.replace(message),
      );
    const { next } = references;
    const rest = references.replace(this.#states.restOf(state));
    const past = this.#pastSince(before?.seen ?? new Map());
    return { seq, line: crc, check, size, from, chain: summed.chain, next, body: { messages, rest, past } };
  }

  #pastSince(known: ReadonlyMap<string, string>): SnapshotBody['past'] {
    const { hashes, batchId, seen }: PastFiles = this.#past?.past() ?? noPast;
    return {
      hashes: [...hashes],
      batchId,
      seen: [...seen].filter(([path, sha256]) => known.get(path) !== sha256),
    };
  }
}

const nothingWritten = { size: 0, sum: 0, next: 0, fileSize: 0, crc: 0 };
const noPast: PastFiles = { lastAt: null, hashes: new Map(), batchId: null, seen: new Map() };

/** Null for a machine whose states are not stored. */
export const writeSnapshots = <M extends MachineTypes>(parts: WriterParts<M>): SnapshotWriter<M> | null => {
  const { snapshots } = parts.machine;
  return snapshots === undefined ? null : new Snapshots(parts, snapshots);
};
