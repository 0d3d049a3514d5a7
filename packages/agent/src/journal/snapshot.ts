/**
 * Stored states of a session, beside its journal. The journal stays the only truth: a snapshot
 * that does not fit it exactly is ignored, and the journal is folded.
 *
 * From top to bottom: the lines of the snapshot file; `loadSnapshot`, which the store calls when
 * it opens a session; the journal's bytes, read in blocks; `writeSnapshots`, which the writer
 * calls; and the form of the values, in which long texts are references into the journal. A state
 * check is a hash of the state that some journal entries record. Closed messages are those up to
 * the last reply: they never change. The past is what the session's calls did to files: which they
 * saw, and the hashes before and after a change.
 */

import {
  closeSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { AppendList } from '@pawl/machine/kernel/append-list';
import type { SeenFile } from '../machine/call.js';
import type { Message } from '../machine/message.js';
import type { PastFiles } from '../machine/seen-files.js';
import { VERSION } from '../platform/environment.js';
import { readRegular } from '../platform/files.js';
import type { Header, MachineTypes } from '../ports/journal.js';
import { decodeHeader, type JournalEnd, NEWLINE, parse, readBlocks } from './codec.js';
import type { ScanPoint } from './reader.js';
import {
  continueFold,
  type Fold,
  type JournaledMachine,
  machineKind,
  type StateParts,
  type SummedMessages,
} from './replay.js';
import { FILE_MODE } from './state-folder.js';

/**
 * The file of a session's snapshots: states that were folded before, so that a session opens
 * without folding its whole journal again.
 *
 * 1. Each line is a snapshot. It holds the messages that were closed since the line before, and all
 *    else of the state.
 * 2. Long texts are not stored twice: a snapshot refers to the bytes of the journal that hold them.
 * 3. Each line ends in a checksum that is seeded with that of the line before, as lines of journals
 *    do. It is the CRC-32 of zlib, which costs less than a journal's.
 * 4. A snapshot counts only for the journal, the machine and the version of Pawl that it names. It
 *    is never needed.
 */
type SnapshotLine = {
  readonly version: 1;
  /** Version of Pawl, and fingerprint and version of the machine. */
  readonly pawl: string;
  readonly machine: string;
  readonly machineVersion: number;
  readonly session: string;
  /**
   * The last entry that the state contains, the CRC of its line in `line`, and the state check that
   * it recorded.
   */
  readonly seq: number;
  readonly line: number;
  readonly check: string;
  /** Size of the journal up to that entry, and the CRC of all its bytes. */
  readonly size: number;
  readonly sum: number;
  /**
   * Closed messages in the lines before (0: those lines are not needed), and the chain of hashes of
   * all closed messages.
   */
  readonly from: number;
  readonly chain: string;
  /** Offset in the journal of the texts of later messages. */
  readonly next: number;
  /** A SnapshotBody with references in place of long texts. */
  readonly body: unknown;
};

/** The messages that a snapshot adds to those before it, and all else of the state. */
type SnapshotBody = {
  readonly messages: readonly unknown[];
  readonly rest: unknown;
  /** The files that calls have read or changed: machine/seen-files.ts. */
  readonly past: {
    readonly hashes: readonly (readonly [
      string,
      { readonly before: string; readonly after?: string },
    ])[];
    readonly batchId: string | null;
    /** Snapshots of earlier versions lack the lines. */
    readonly seen: readonly (readonly [string, string, SeenFile['lines']?])[];
  };
};

/** The journal and the program that a snapshot must be of. */
type SnapshotOwner = {
  readonly session: string;
  readonly machine: string;
  readonly machineVersion: number;
};

export const snapshotPath = (journal: string): string => journal.replace(/\.jsonl$/, '.snapshot');

type SnapshotContent = Omit<SnapshotLine, 'version' | 'pawl' | keyof SnapshotOwner>;

const formatTrailer = (crc: number): string => `,"crc":"${crc.toString(16).padStart(8, '0')}"}`;
const TRAILER_BYTES = formatTrailer(0).length;

const seal = (json: string, seed: number): { readonly bytes: Buffer; readonly crc: number } => {
  const text = json.slice(0, -1);
  const crc = crc32(text, seed);
  return { bytes: Buffer.from(`${text}${formatTrailer(crc)}\n`), crc };
};

/** The checksum of a line if its trailer holds it; null otherwise. */
const verify = (line: Buffer, seed: number): number | null => {
  const at = line.length - TRAILER_BYTES;
  if (at <= 0) return null;
  const crc = crc32(line.subarray(0, at), seed);
  return line.toString('latin1', at) === formatTrailer(crc) ? crc : null;
};

export const encodeSnapshot = (
  { session, machine, machineVersion }: SnapshotOwner,
  content: SnapshotContent,
  seed: number,
): { readonly bytes: Buffer; readonly crc: number } =>
  seal(
    JSON.stringify({ version: 1, pawl: VERSION, machine, machineVersion, session, ...content }),
    seed,
  );

/**
 * The good snapshots of a file from its beginning, with the end and the checksum of the last one.
 */
type DecodedSnapshots = {
  readonly lines: readonly SnapshotLine[];
  readonly size: number;
  readonly crc: number;
};

const isOwnedBy = (
  line: SnapshotLine,
  { session, machine, machineVersion }: SnapshotOwner,
): boolean =>
  line.version === 1 &&
  line.pawl === VERSION &&
  line.session === session &&
  line.machine === machine &&
  line.machineVersion === machineVersion;

/** Decodes the snapshots up to the first bad line, or the first one of another owner. */
export const decodeSnapshots = (bytes: Buffer, owner: SnapshotOwner): DecodedSnapshots => {
  const lines: SnapshotLine[] = [];
  let [size, crc] = [0, 0];
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, size)) {
    const text = bytes.subarray(size, end);
    const sum = verify(text, crc);
    if (sum === null) break;
    // Safe: the checksum proves that encodeSnapshot wrote these bytes.
    const line = parse(text.toString()) as SnapshotLine;
    if (!isOwnedBy(line, owner)) break;
    lines.push(line);
    [size, crc] = [end + 1, sum];
  }
  return { lines, size, crc };
};

/** The last good snapshot of a file, to which the next one is appended. */
export type WrittenSnapshots = Pick<SnapshotLine, 'seq' | 'size' | 'sum' | 'next'> & {
  /** Size of the file of snapshots up to it, and its checksum. */
  readonly fileSize: number;
  readonly crc: number;
  /** The closed messages in the file, up to this snapshot. */
  readonly messages: AppendList<Message>;
  /** The files that it names: sha256 by path. */
  readonly seen: PastFiles['seen'];
};

export type LoadedSnapshot<M extends MachineTypes> = {
  /** A state, and where the journal goes on after it; null if no snapshot leaves enough to fold. */
  readonly start: {
    readonly point: ScanPoint<M>;
    readonly fold: Fold<M>;
    readonly past: PastFiles;
  } | null;
  /** `messages` are known once the fold has reached its `seq`. */
  readonly written: Omit<WrittenSnapshots, 'messages'>;
};

export type SnapshotRequest<M extends MachineTypes> = {
  readonly handle: FileHandle;
  /** The journal. */
  readonly path: string;
  readonly sessionId: string;
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
 * Loads the state of a session from its snapshots. Null if there is none that fits the journal
 * exactly: then the journal is folded.
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
  request: SnapshotRequest<M>,
  parts: StateParts<M>,
): Promise<LoadedSnapshot<M> | null> => {
  const { handle, path, machine, sessionId, entriesToVisit } = request;
  const file = await readRegular(snapshotPath(path), FILE_BYTES_MAX);
  if (file.kind !== 'file') return null;
  const { lines, ...end } = decodeSnapshots(file.bytes, {
    session: sessionId,
    machine: machine.fingerprint,
    machineVersion: machine.version,
  });
  const index = chooseSnapshot(lines, entriesToVisit);
  const [chosen, last] = [lines[index], lines.at(-1)];
  if (last === undefined || last.size > JOURNAL_BYTES_MAX) return null;
  if ((await sumBytes(handle, last.size)) !== last.sum) return null;
  const journal = new JournalBytes(handle, last.size);
  const header = headerIn(journal, request);
  if (header === null) return null;
  const { seq, size, sum, next } = last;
  // `seen` is empty unless the last snapshot is loaded: then the next one names all files again.
  const written = { seq, size, sum, next, fileSize: end.size, crc: end.crc, seen: new Map() };
  if (chosen === undefined) return { start: null, written };
  if (!isRecorded(journal, chosen)) return null;
  const bodies = readBodies(lines.slice(0, index + 1), journal);
  if (bodies === null) return null;
  const messages = AppendList.from(bodies.messages);
  const state = parts.join(bodies.rest, messages);
  const fold = continueFold(
    machine,
    { state, seq: chosen.seq, path },
    { messages, chain: chosen.chain },
  );
  if (fold.hashState(state) !== chosen.check) return null;
  return {
    start: {
      point: { header, seq: chosen.seq, crc: chosen.line, size: chosen.size, sum: chosen.sum },
      fold,
      past: bodies.past,
    },
    written: chosen === last ? { ...written, seen: bodies.past.seen } : written,
  };
};

/** The header, if the journal is one of this session and machine. */
const headerIn = <M extends MachineTypes>(
  journal: JournalBytes,
  { sessionId, machine }: SnapshotRequest<M>,
): Header<M> | null => {
  const decoded = decodeHeader<M>(journal.firstLine());
  if (decoded.kind !== 'header') return null;
  const { header } = decoded;
  return header.sessionId === sessionId && machineKind(header) === machine.kind ? header : null;
};

/** Whether the journal's line that ends at the snapshot records the same seq and state check. */
const isRecorded = (journal: JournalBytes, { seq, check, size }: SnapshotLine): boolean => {
  const line = parse(journal.lineBefore(size).toString());
  if (typeof line !== 'object' || line === null) return false;
  return Reflect.get(line, 'seq') === seq && Reflect.get(line, 'check') === check;
};

/** Index of the last snapshot with `entriesToVisit` entries after it; -1 if there is none. */
const chooseSnapshot = (lines: readonly SnapshotLine[], entriesToVisit: number): number => {
  const last = lines.at(-1)?.seq ?? 0;
  return lines.findLastIndex(({ seq }) => entriesToVisit === 0 || seq <= last - entriesToVisit);
};

const readBodies = (
  lines: readonly SnapshotLine[],
  journal: JournalBytes,
): { readonly messages: Message[]; readonly rest: unknown; readonly past: PastFiles } | null => {
  const messages: Message[] = [];
  const seen = new Map<string, SeenFile>();
  let body: SnapshotBody | undefined;
  const first = lines.findLastIndex(({ from }) => from === 0);
  for (const line of lines.slice(first)) {
    if (line.from !== messages.length) return null;
    // Safe: the checksums of the line and of the journal's bytes prove that this is what was
    // written; its lock is held.
    body = resolveReferences(line.body, journal) as SnapshotBody;
    // safe for the same reason
    for (const message of body.messages) messages.push(message as Message);
    for (const [path, sha256, lines = []] of body.past.seen)
      seen.set(path, { path, sha256, lines });
  }
  if (body === undefined) return null;
  const { hashes, batchId } = body.past;
  return {
    messages,
    rest: body.rest,
    past: { lastAt: null, hashes: new Map(hashes), batchId, seen },
  };
};

/**
 * The beginning of a journal, read in blocks. As one buffer it would count as so much garbage that
 * V8 collects all of its memory while a session is opened, which takes a fifth of the time.
 */

const BLOCK_BYTES = 1024 * 1024;

/** Checksum of the first `size` bytes; null if the file is shorter. */
export const sumBytes = async (handle: FileHandle, size: number): Promise<number | null> => {
  let [sum, bytes] = [0, 0];
  for await (const block of readBlocks(handle, 0, size, BLOCK_BYTES)) {
    sum = crc32(block, sum);
    bytes += block.length;
  }
  return bytes === size ? sum : null;
};

/** Reads at once: `sumBytes` has read the file before, so that the system holds it in memory. */
export class JournalBytes {
  readonly #descriptor: number;
  readonly #size: number;
  #block: Buffer;
  #start = 0;
  #end = 0;

  constructor({ fd }: FileHandle, size: number) {
    this.#descriptor = fd;
    this.#size = size;
    this.#block = Buffer.allocUnsafe(Math.min(size, BLOCK_BYTES));
  }

  /** Throws if the file is shorter. */
  toString(encoding: BufferEncoding, start: number, end: number): string {
    if (start < this.#start || end > this.#end) this.#read(start, end);
    return this.#block.toString(encoding, start - this.#start, end - this.#start);
  }

  firstLine(): Buffer {
    for (let length = BLOCK_BYTES; ; length *= 2) {
      const bytes = this.#read(0, Math.min(length, this.#size));
      const newline = bytes.indexOf(NEWLINE);
      if (newline >= 0 || length >= this.#size) return bytes.subarray(0, newline);
    }
  }

  /** The line that ends at byte `end`. */
  lineBefore(end: number): Buffer {
    for (let length = BLOCK_BYTES; ; length *= 2) {
      const bytes = this.#read(Math.max(0, end - length), end);
      const newline = bytes.lastIndexOf(NEWLINE, -2);
      if (newline >= 0 || length >= end) return bytes.subarray(newline + 1);
    }
  }

  /** Valid until the next call. */
  #read(start: number, end: number): Buffer {
    if (end > this.#size) throw new RangeError(`byte ${end} of ${this.#size}`);
    if (end - start > this.#block.length) this.#block = Buffer.allocUnsafe(end - start);
    [this.#start, this.#end] = [start, start];
    while (this.#end < end) {
      const free = Math.min(this.#block.length - (this.#end - start), this.#size - this.#end);
      const read = readSync(this.#descriptor, this.#block, this.#end - start, free, this.#end);
      if (read === 0) throw new Error('the journal is shorter than its snapshot says');
      this.#end += read;
    }
    return this.#block.subarray(0, end - start);
  }
}

/** An entry whose state check is in the journal, durably. */
export type SnapshotPoint<M extends MachineTypes> = JournalEnd & {
  readonly state: M['state'];
  readonly check: string;
  /** The closed messages that `check` covers, with their hash. */
  readonly summed: SummedMessages;
};

/**
 * Writes the snapshots of an open journal.
 *
 * A failure stops nothing but the snapshots: the journal holds everything. They are not synced,
 * since a reader recognises a snapshot that is not whole.
 */
export type SnapshotWriter<M extends MachineTypes> = {
  /** Whether the state after this entry is wanted. */
  isDue(seq: number): boolean;
  /** Takes the events of entries that are durable, for what they tell of files. */
  addEvents(events: readonly M['event'][]): void;
  /** Takes a state; it is written later if it is due. */
  offerState(point: SnapshotPoint<M>): void;
  /**
   * Writes the last state if enough was added since the last snapshot. The journal's file must
   * still be open.
   */
  close(): Promise<void>;
};

export type SnapshotPlan = {
  /** Entries after which a snapshot is written. */
  readonly every: number;
  /** Runs work once the session waits. */
  readonly later: (work: () => void) => void;
};

/** A close writes no snapshot for fewer new entries: folding them is cheap. */
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
   * False once the journal is no longer this process's own, since nothing is left beside a journal
   * that was removed; and once the disk was full, since the journal needs the space.
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
 * Writes the bytes at `position`; at 0 as a new file, which takes the place of the old one when it
 * is whole. What a full disk has taken is removed again, since the journal needs that space.
 */
const storeSnapshot = (path: string, bytes: Buffer, position: number): void => {
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

  addEvents(events: readonly M['event'][]): void {
    for (const event of events) this.#past?.see(event);
  }

  offerState(point: SnapshotPoint<M>): void {
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
    const isWorthwhile =
      this.#added(this.#point?.seq ?? 0) >= Math.min(AT_CLOSE_MIN, this.#journal.every);
    if (isWorthwhile) await this.#write();
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

  /**
   * Appends a snapshot; it names all messages again if a summary has replaced some since the last
   * one.
   */
  #append(point: SnapshotPoint<M>): WrittenSnapshots {
    const before = this.#written;
    const { messages } = point.summed;
    const { size: known, sum: knownSum, next, fileSize, crc: seed } = before ?? nothingWritten;
    const goesOn =
      before !== null && before.messages.length > 0 && messages.continues(before.messages);
    // Texts of the message that was open at the last snapshot lie between `next` and `known`.
    const start = Math.min(known, next);
    const bytes = readRange(this.#journal.fd, start, point.size);
    const sum = crc32(bytes.subarray(known - start), knownSum);
    // A snapshot must not vouch for bytes that were damaged in the file since: the next opening has
    // to find them.
    if (sum !== point.sum) throw new Error('the journal is not what was written to it');
    const content = this.#contentOf(point, { bytes, start }, goesOn ? before : null);
    const line = encodeSnapshot(this.#owner, { ...content, sum }, seed);
    storeSnapshot(snapshotPath(this.#journal.path), line.bytes, fileSize);
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
        message.role === 'assistant'
          ? references.replaceWhole(message)
          : references.replace(message),
      );
    const { next } = references;
    const rest = references.replace(this.#states.restOf(state));
    const past = this.#pastSince(before?.seen ?? new Map());
    return {
      seq,
      line: crc,
      check,
      size,
      from,
      chain: summed.chain,
      next,
      body: { messages, rest, past },
    };
  }

  #pastSince(known: PastFiles['seen']): SnapshotBody['past'] {
    const { hashes, batchId, seen }: PastFiles = this.#past?.past() ?? noPast;
    return {
      hashes: [...hashes],
      batchId,
      seen: [...seen]
        .filter(([path, file]) => known.get(path) !== file)
        .map(([path, { sha256, lines }]) => [path, sha256, lines]),
    };
  }
}

const nothingWritten = { size: 0, sum: 0, next: 0, fileSize: 0, crc: 0 };
const noPast: PastFiles = { lastAt: null, hashes: new Map(), batchId: null, seen: new Map() };

/** Null for a machine whose states are not stored. */
export const writeSnapshots = <M extends MachineTypes>(
  parts: WriterParts<M>,
): SnapshotWriter<M> | null => {
  const { snapshots } = parts.machine;
  return snapshots === undefined ? null : new Snapshots(parts, snapshots);
};

/**
 * Values as JSON whose long texts are not stored again: a reference to the bytes of the journal
 * stands in their place.
 *
 * A reference is a text that begins with NUL: its form, and offset and length of JSON in the
 * journal. Other texts that begin with NUL get another one before it.
 */
const NUL = '\u0000';

/**
 * How the bytes are read. Most are ASCII, and need no decoder; those of a text without escapes need
 * no parser either.
 */
const [JSON_FORM, ASCII_FORM, TEXT_FORM] = ['j', 'a', 't'];

const textForm = (json: string, bytes: number): string => {
  if (bytes !== json.length) return JSON_FORM;
  return json.startsWith('"') && !json.includes('\\') ? TEXT_FORM : ASCII_FORM;
};

/** A part of a journal that begins at byte `start`. */
type JournalPart = { readonly bytes: Buffer; readonly start: number };

/** Shorter texts are stored again: a reference would save little. */
const TEXT_MIN = 200;
/** How far a text is looked for. Texts follow each other in a journal as in the conversation. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** Replaces long texts by references. Texts of later values stand behind those of values before. */
export class References {
  readonly #part: JournalPart;
  /** Where texts are looked for, and the end of the last one found. */
  #from = 0;
  #end = 0;

  constructor(part: JournalPart) {
    this.#part = part;
  }

  /** Offset in the journal after the last text found. */
  get next(): number {
    return this.#part.start + this.#end;
  }

  /** Replaces within a value, or the whole value if the journal holds its JSON. */
  replaceWhole(value: object): unknown {
    const replaced = this.#find(JSON.stringify(value)) ?? this.#within(value);
    this.#from = this.#end;
    return replaced;
  }

  replace(value: unknown): unknown {
    const replaced = this.#within(value);
    this.#from = this.#end;
    return replaced;
  }

  #within(value: unknown): unknown {
    if (typeof value === 'string') return this.#text(value);
    if (typeof value !== 'object' || value === null) return value;
    const fields: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    const replaced = fields.map((field) => this.#within(field));
    // most values have no long text, and stay as they are
    if (replaced.every((field, index) => field === fields[index])) return value;
    if (Array.isArray(value)) return replaced;
    return Object.fromEntries(Object.keys(value).map((key, index) => [key, replaced[index]]));
  }

  #text(text: string): string {
    const reference = text.length < TEXT_MIN ? null : this.#find(JSON.stringify(text));
    return reference ?? (text.startsWith(NUL) ? NUL + text : text);
  }

  #find(json: string): string | null {
    if (json.length < TEXT_MIN) return null;
    const { bytes, start } = this.#part;
    const needle = Buffer.from(json);
    const index = bytes.subarray(this.#from, this.#from + WINDOW_BYTES).indexOf(needle);
    if (index < 0) return null;
    const offset = this.#from + index;
    this.#end = Math.max(this.#end, offset + needle.length);
    return `${NUL}${textForm(json, needle.length)}${start + offset}+${needle.length}`;
  }
}

/** A buffer, or what reads one part after the other. */
type Bytes = { toString(encoding: BufferEncoding, start: number, end: number): string };

const readText = (text: string, journal: Bytes): unknown => {
  const form = text[1];
  if (form === NUL) return text.slice(1);
  const plus = text.indexOf('+');
  const start = Number(text.slice(2, plus));
  const end = start + Number(text.slice(plus + 1));
  if (form === TEXT_FORM) return journal.toString('latin1', start + 1, end - 1);
  return JSON.parse(journal.toString(form === ASCII_FORM ? 'latin1' : 'utf8', start, end));
};

/**
 * Puts the texts back, within the value that is given. `journal` is the journal from its beginning.
 */
export const resolveReferences = (value: unknown, journal: Bytes): unknown => {
  if (typeof value === 'string') return value.startsWith(NUL) ? readText(value, journal) : value;
  if (typeof value !== 'object' || value === null) return value;
  const fields = value as Record<string, unknown>; // also an array's items
  for (const key of Object.keys(value)) {
    const field = fields[key];
    if (typeof field === 'object' || (typeof field === 'string' && field.startsWith(NUL)))
      fields[key] = resolveReferences(field, journal);
  }
  return value;
};
