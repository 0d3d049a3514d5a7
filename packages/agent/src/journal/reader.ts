/**
 * Reads a journal from disk and verifies it: every line, its shapes, and what its end means.
 *
 * From top to bottom: `JournalScan`, which verifies line by line; reading entries, inspecting and
 * replaying a file without its lock; the checks of headers and entries of foreign journals, which
 * came from another state folder; and `readFrozen`, the system prompt and tools of a session. The
 * mark is a small file beside the journal that names its last acknowledged entry (state-folder.ts).
 * To fold is to apply entries to a state, one after the other; a snapshot is a stored state.
 */

import { crc32 } from 'node:zlib';
import {
  count,
  faultIn,
  finite,
  nullable,
  object,
  optional,
  type Shape,
  shapeFault,
  text,
  trimmed,
} from '@pawl/machine/kernel/shape';
import { openRegular, withRegular } from '../platform/files.js';
import type {
  AgentTypes,
  Blobs,
  Entry,
  FrozenPrompt,
  Header,
  JournalStore,
  MachineTypes,
  OpenJournal,
  OpenJournalOptions,
} from '../ports/journal.js';
import {
  type ByteSource,
  chunkLines,
  decodeHeader,
  decodeRecord,
  decodeRecords,
  type JournalEnd,
  type Lines,
  type Recorded,
  readLines,
  splitFirst,
} from './codec.js';
import { cannotRead, damaged, JournalError, newerVersion, otherMachine } from './journal-error.js';
import {
  beginFold,
  endReplay,
  type Fold,
  foldOn,
  type JournaledMachine,
  machineKind,
  type Replay,
  type ReplayOptions,
  refuseNewer,
  versionIn,
} from './replay.js';
import { isOwnJournal, type Mark, readMark } from './state-folder.js';

/** Read block size, and lines decoded per batch. A batch stays in memory until it is folded. */
const BLOCK_BYTES = 1 << 20;
const LINES_AT_ONCE = 256;

/**
 * How a journal ends. `whole`: as it was written. `unended`: the last entry is complete, only its
 * line feed is missing. `torn`: the last write was interrupted, so it was never confirmed as
 * durable; `bytes` from the bad line to the end. `damaged`: a line that was complete has changed;
 * nothing after it can be trusted.
 *
 * `zeros`: the bad line holds zeros, at the end of the file or before other lines. A power loss
 * leaves them in the place of lost sectors, and no line ever holds one. They are damage unless
 * `compare` finds that nothing acknowledged lies under them.
 */
type ScanEnding =
  | { readonly kind: 'whole' }
  | { readonly kind: 'unended' }
  | { readonly kind: 'torn'; readonly bytes: number }
  | {
      readonly kind: 'damaged';
      readonly error: JournalError;
      readonly zeros: 'none' | 'atEnd' | 'beforeLines';
    };

const ZEROS = 'it was overwritten with zeros';

/** Where a scan goes on: a good line, and the header of its journal. */
export type ScanPoint<M extends MachineTypes> = JournalEnd & { readonly header: Header<M> };

type ScanStart<M extends MachineTypes> = Omit<ScanPoint<M>, 'size'>;

const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** What editors and transfers in text mode do to a file. */
const explainHeader = (line: Buffer, why: string): string => {
  if (line.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK))
    return (
      `${why}: another program has put a byte order mark before it. Remove the first three ` +
      'bytes of the file'
    );
  if (line.at(-1) === CARRIAGE_RETURN)
    return `${why}: another program has changed its line ends to CR LF. Change them back to LF`;
  return why;
};

/**
 * Reads a journal once and verifies every line. `M` is the machine of the journal; `MachineTypes`
 * stands for any.
 *
 * 1. `records` yields verified entries only: checksums, order and seq are right, from the header
 *    on.
 * 2. It stops at the first bad line, and `ending` says why. A bad line counts as torn only if it is
 *    the last one, has no line feed and is not a complete line with bytes added; or if it holds
 *    zeros, and was never acknowledged. A line that was complete is never cut off.
 */
export class JournalScan<M extends MachineTypes> {
  readonly header: Header<M>;
  /** seq, checksum, line number and end offset of the last good line. */
  seq: number;
  crc: number;
  line: number;
  size: number;
  /** CRC-32 of all bytes up to `size`, for snapshots. */
  sum: number;
  ending: ScanEnding;
  readonly #path: string;
  readonly #end: number;
  readonly #first: Lines;
  readonly #rest: AsyncGenerator<Lines, undefined>;

  private constructor(
    { path, end }: { readonly path: string; readonly end: number },
    { header, crc, seq, sum }: ScanStart<M>,
    first: Lines,
    rest: AsyncGenerator<Lines, undefined>,
    // The header ends where `first` begins, but for the line feed that a file of one line may lack.
    size = first.start - (first.ended === 'yes' ? 0 : 1),
  ) {
    this.#path = path;
    this.#end = end;
    this.header = header;
    this.crc = crc;
    this.seq = seq;
    this.sum = sum;
    this.line = seq + 1;
    this.#first = first;
    this.#rest = rest;
    this.size = size;
    this.ending = { kind: first.ended === 'yes' ? 'whole' : 'unended' };
  }

  /**
   * Starts a scan of any machine's journal: reads the header. Throws `damaged` at line 1, or
   * `newerVersion`.
   */
  static begin(
    handle: ByteSource,
    path: string,
    end: number,
    blockBytes = BLOCK_BYTES,
  ): Promise<JournalScan<MachineTypes>> {
    return JournalScan.#begin<MachineTypes>(handle, path, end, blockBytes);
  }

  /** Starts a scan of one machine's journal; also throws `otherMachine`. */
  static async beginOf<M extends MachineTypes>(
    kind: M['kind'],
    handle: ByteSource,
    path: string,
    end: number,
  ): Promise<JournalScan<M>> {
    const scan = await JournalScan.#begin<M>(handle, path, end, BLOCK_BYTES);
    const actual = machineKind(scan.header);
    if (actual !== kind) throw otherMachine(path, scan.header.sessionId, actual);
    return scan;
  }

  /** Starts a scan after an entry that is known to be good, as all before it are. */
  static after<M extends MachineTypes>(
    handle: ByteSource,
    path: string,
    end: number,
    { size, ...start }: ScanPoint<M>,
  ): JournalScan<M> {
    const none: Lines = { bytes: Buffer.alloc(0), start: 0, ends: [], ended: 'yes' };
    const rest = readLines(handle, end, BLOCK_BYTES, size);
    return new JournalScan({ path, end }, start, none, rest, size);
  }

  static async #begin<M extends MachineTypes>(
    handle: ByteSource,
    path: string,
    end: number,
    blockBytes: number,
  ): Promise<JournalScan<M>> {
    const blocks = readLines(handle, end, blockBytes);
    const block = await blocks.next();
    if (block.done === true) throw damaged(path, { line: 1, seq: 0 }, 'it is empty');
    const { first, rest } = splitFirst(block.value);
    const decoded = decodeHeader<M>(first);
    switch (decoded.kind) {
      case 'newer':
        throw newerVersion(path, decoded.version);
      case 'bad':
        throw damaged(path, { line: 1, seq: 0 }, explainHeader(first, decoded.why));
      case 'header': {
        const { header, crc } = decoded;
        const fault = faultInHeader(header);
        if (fault !== null) throw damaged(path, { line: 1, seq: 0 }, fault);
        const sum = crc32(block.value.bytes.subarray(0, rest.start));
        return new JournalScan({ path, end }, { header, crc, seq: 0, sum }, rest, blocks);
      }
      default:
        return decoded satisfies never;
    }
  }

  /** The entries in order, in batches. */
  async *records(): AsyncGenerator<readonly Recorded<M>[], undefined> {
    yield* this.#decodeAll(this.#first);
    for await (const lines of this.#rest) yield* this.#decodeAll(lines);
  }

  /** Verifies all lines, for what they say of the journal's end. */
  async readAll(): Promise<void> {
    for await (const _ of this.records());
  }

  /**
   * Compares the end with the mark of the journal, after all records were read. After a power loss
   * the mark can be old: then lines behind zeros may have been acknowledged, unless the mark says
   * that the last good line was the last one.
   */
  compare(mark: Mark | null): void {
    const { ending } = this;
    if (mark === null || (ending.kind === 'damaged' && ending.zeros === 'none')) return;
    const why = this.#differsFrom(mark);
    if (why !== null) this.ending = this.#damaged(why);
    else if (ending.kind === 'damaged' && (ending.zeros === 'atEnd' || mark.seq === this.seq))
      this.ending = { kind: 'torn', bytes: this.#end - this.size };
  }

  #differsFrom({ seq, crc }: Mark): string | null {
    if (this.seq === seq && this.crc !== crc)
      return `the mark beside it says that another entry ${seq} was written last`;
    if (this.seq >= seq) return null;
    const missing = seq - this.seq === 1 ? `entry ${seq}` : `entries ${this.seq + 1} to ${seq}`;
    return this.ending.kind === 'whole' || this.ending.kind === 'unended'
      ? `the file was cut: ${missing} stood here when last written`
      : `${missing} stood here when last written, and the file was cut or overwritten since`;
  }

  #damaged(why: string, zeros: 'none' | 'atEnd' | 'beforeLines' = 'none'): ScanEnding {
    const place = { line: this.line + 1, seq: this.seq };
    return { kind: 'damaged', error: damaged(this.#path, place, why), zeros };
  }

  *#decodeAll(lines: Lines): Generator<readonly Recorded<M>[], undefined> {
    for (const piece of chunkLines(lines, LINES_AT_ONCE)) {
      if (this.ending.kind === 'whole') yield this.#decode(piece);
    }
  }

  #decode(lines: Lines): readonly Recorded<M>[] {
    const { records, crc, bad } = decodeRecords<M>(lines, this.crc, this.seq + 1);
    const end = lines.ends[records.length - 1];
    this.crc = crc;
    this.seq += records.length;
    this.line += records.length;
    // A line without a line feed comes alone (`Lines` of codec.ts).
    if (end !== undefined)
      this.#pass(lines.bytes.subarray(lines.start, lines.ended === 'yes' ? end + 1 : end));
    if (bad !== null) this.ending = this.#judge(lines, records.length, bad);
    else if (lines.ended === 'no') this.ending = { kind: 'unended' };
    return records;
  }

  /** Moves the end of the good lines behind these bytes. */
  #pass(good: Buffer): void {
    this.size += good.length;
    this.sum = crc32(good, this.sum);
  }

  /** How the journal ends, given that the line at `index` is bad. */
  #judge({ bytes, start, ends, ended }: Lines, index: number, why: string): ScanEnding {
    const line = bytes.subarray((ends[index - 1] ?? start - 1) + 1, ends[index]);
    if (line.includes(0)) return this.#damaged(ZEROS, ended === 'yes' ? 'beforeLines' : 'atEnd');
    if (ended === 'yes') return this.#damaged(why);
    // A complete line, with a byte added at its end?
    const shorter = decodeRecord(line.subarray(0, -1), this.crc, this.seq + 1);
    if (shorter.kind === 'bad') return { kind: 'torn', bytes: this.#end - this.size };
    return this.#damaged('the line feed at its end was overwritten');
  }
}

/** A journal as it is on disk, read without the lock and without changing anything. */
type Look<M extends MachineTypes> = {
  readonly path: string;
  readonly header: Header<M>;
  /** The damage; null if the journal is good as far as it was read. */
  readonly damage: JournalError | null;
  /**
   * Bytes after the last complete line. The next opening cuts them off, unless a writer is just
   * completing them.
   */
  readonly tornBytes: number;
};

/** A journal with all its entries, up to the end or the damage. */
type Inspection<M extends MachineTypes = AgentTypes> = Look<M> & {
  readonly records: readonly Recorded<M>[];
};

/** A journal with the fold of its entries, up to the end, the damage or the requested seq. */
export type StoredReplay<M extends MachineTypes = AgentTypes> = Look<M> & Replay<M>;

export type VisitedOpening<M extends MachineTypes> = OpenJournalOptions &
  Pick<ReplayOptions<M>, 'visit'> & {
    /**
     * Visit at least so many of the last steps, or all there are. Without it, all steps are
     * visited.
     */
    readonly visitLast?: number;
  };

/** `visitLast`: see VisitedOpening. What lies before these steps is believed, not verified. */
export type RecentReplay<M extends MachineTypes> = ReplayOptions<M> &
  Pick<VisitedOpening<M>, 'visitLast'>;

/** A store that can also read a journal as it is on disk, for replay and verification. */
export type InspectableStore<M extends MachineTypes = AgentTypes> = Omit<
  JournalStore<M>,
  'open'
> & {
  /**
   * Also calls `visit` with the steps of the session, in order, while it is folded. If a snapshot
   * proves wrong in the middle, it begins again with the first step.
   */
  open(sessionId: string, options?: VisitedOpening<M>): Promise<OpenJournal<M>>;
  inspect(sessionId: string): Promise<Inspection<M>>;
  /**
   * Deletes a session that is not open, with the tasks that it started; resolves with its id and
   * theirs. Rejects with `notFound`, `locked` or `cannotWrite`.
   */
  delete(sessionId: string): Promise<readonly string[]>;
  /**
   * Like `inspect` followed by `replay`, without holding all entries in memory: for journals of any
   * size. With `visitLast` it begins with a snapshot, if one fits.
   */
  replay(sessionId: string, options?: RecentReplay<M>): Promise<StoredReplay<M>>;
};

/** Takes a batch of entries; `enough` ends the reading. */
type Take<M extends MachineTypes> = (records: readonly Recorded<M>[]) => 'more' | 'enough';

/**
 * Reads a journal without its lock; `begin` gets the header and says who takes the entries. Rejects
 * with `damaged` (the header itself), `newerVersion`, `otherMachine` or `cannotRead`.
 */
const lookAt = async <M extends MachineTypes>(
  kind: M['kind'],
  path: string,
  begin: (header: Header<M>) => Promise<Take<M>>,
): Promise<Look<M>> => {
  try {
    const mark = await readMark(path); // before the size: a writer may be at work
    // opens the file; rejects for a pipe or a folder
    return await withRegular(path, async (file, status) => {
      const scan = await JournalScan.beginOf<M>(kind, file, path, status.size);
      const take = await begin(scan.header);
      let extent: 'more' | 'enough' = 'more';
      for await (const records of scan.records()) {
        extent = take(records);
        if (extent === 'enough') break;
      }
      if (extent === 'more') scan.compare(mark);
      const { header, ending } = scan;
      const damage = ending.kind === 'damaged' ? ending.error : null;
      return { path, header, damage, tornBytes: ending.kind === 'torn' ? ending.bytes : 0 };
    });
  } catch (error) {
    throw cannotRead(path, error);
  }
};

/**
 * Yields the entries from seq `from` on, up to byte `end`; throws `damaged` if the file ends before
 * that.
 */
export async function* readEntries<M extends MachineTypes>(
  kind: M['kind'],
  path: string,
  from: number,
  end?: number,
): AsyncGenerator<Entry<M>, undefined> {
  let opened: Awaited<ReturnType<typeof openRegular>> | undefined;
  try {
    // before the size: a writer may be at work
    const mark = end === undefined ? await readMark(path) : null;
    opened = await openRegular(path);
    const scan = await JournalScan.beginOf<M>(kind, opened.file, path, end ?? opened.status.size);
    for await (const records of scan.records()) {
      for (const { entry } of records) if (entry.seq >= from) yield entry;
    }
    scan.compare(mark);
    if (scan.ending.kind === 'damaged') throw scan.ending.error;
    const place = { line: scan.line + 1, seq: scan.seq };
    if (end !== undefined && scan.size < end) throw damaged(path, place, 'the file was cut');
  } catch (error) {
    throw cannotRead(path, error);
  } finally {
    await opened?.file.close();
  }
}

/** Rejects with `damaged` (the header itself), `newerVersion`, `otherMachine` or `cannotRead`. */
export const inspectFile = async <M extends MachineTypes>(
  kind: M['kind'],
  path: string,
): Promise<Inspection<M>> => {
  const all: Recorded<M>[] = [];
  const take: Take<M> = (records) => {
    for (const recorded of records) all.push(recorded);
    return 'more';
  };
  return { ...(await lookAt(kind, path, async () => take)), records: all };
};

/** Rejects as `inspectFile` does; mismatches are part of the result. */
export const replayFile = async <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  path: string,
  options: ReplayOptions<M>,
): Promise<StoredReplay<M>> => {
  let fold: Fold<M> | undefined;
  const look = await lookAt<M>(machine.kind, path, async (header) => {
    const isForeign = !(await isOwnJournal(path, header));
    if (isForeign) checkHeader(path, machine, header);
    const started = beginFold(header, machine, path);
    fold = started;
    return (records) => {
      if (isForeign) checkRecords(path, machine, records);
      return foldOn(started, records, options);
    };
  });
  return { ...look, ...endReplay(fold ?? beginFold(look.header, machine, path)) };
};

/*
 * Checks what a journal says, in addition to its checksums: anybody can compute those.
 *
 * The shape of each header is checked. Settings and events are checked in journals that came from
 * elsewhere, since those of this state folder were checked when they were written. Unknown fields
 * pass: nothing reads them.
 */

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Settings of any machine: the model is shown in lists. */
const anySettings: Shape<Header<MachineTypes>['settings']> = {
  check(value) {
    if (!isObject(value)) return shapeFault(value, 'an object');
    const fault = text.check(Reflect.get(value, 'model'));
    if (fault !== null) return { ...fault, path: ['model'] };
    const question: unknown = Reflect.get(value, 'question');
    return question === undefined || typeof question === 'string'
      ? null
      : { ...shapeFault(question, 'a text'), path: ['question'] };
  },
};

/** The fields of a header that lists and openings read. */
type ReadFields = Pick<
  Header<MachineTypes>,
  | 'sessionId'
  | 'createdAt'
  | 'workspace'
  | 'parent'
  | 'startedBy'
  | 'settings'
  | 'instructions'
  | 'tools'
>;

const headerShape: Shape<ReadFields> = object<ReadFields>({
  sessionId: text,
  createdAt: finite,
  workspace: text,
  parent: nullable(object<NonNullable<Header['parent']>>({ sessionId: text, seq: count })),
  startedBy: optional(
    object<NonNullable<Header['startedBy']>>({ sessionId: text, batchId: text, callId: text }),
  ),
  settings: anySettings,
  instructions: text,
  tools: text,
});

/** Describes what is wrong with a header of any machine; null if nothing is. */
const faultInHeader = (header: unknown): string | null =>
  faultIn(headerShape, trimmed(headerShape, header), 'the header');

/**
 * Throws `damaged` if the settings of a journal from elsewhere are none of this machine,
 * `newerVersion` if it is of a later one.
 */
export const checkHeader = <M extends MachineTypes>(
  path: string,
  machine: Pick<JournaledMachine<M>, 'faultIn' | 'version'>,
  header: Header<M>,
): void => {
  refuseNewer({ path, machine }, versionIn(header));
  const why = machine.faultIn?.settings(header.settings) ?? null;
  if (why !== null) throw damaged(path, { line: 1, seq: 0 }, `its settings are odd: ${why}`);
};

/**
 * Throws `damaged` at the first entry of a journal from elsewhere that is no event of this machine,
 * `newerVersion` where a later one took it over.
 */
export const checkRecords = <M extends MachineTypes>(
  path: string,
  machine: Pick<JournaledMachine<M>, 'faultIn' | 'version' | 'upgradeIn'>,
  records: readonly Recorded<M>[],
): void => {
  if (machine.faultIn === undefined) return;
  for (const { entry } of records) {
    const why = machine.faultIn.event(entry.event);
    // The event of a take-over is read first, so that what a later machine wrote is not called
    // damage.
    if (isObject(entry.event) && why === null)
      refuseNewer({ path, machine }, machine.upgradeIn?.(entry.event) ?? 0);
    if (why === null) continue;
    const { seq } = entry;
    throw damaged(path, { line: seq + 1, seq: seq - 1 }, `it is no event of this machine: ${why}`);
  }
};

/**
 * Reads the system prompt and the tool declarations that the header names. Rejects with `damaged`
 * if one is missing.
 */
export const readFrozen = async <M extends MachineTypes>(
  path: string,
  header: Header<M>,
  blobs: Blobs,
): Promise<FrozenPrompt> => {
  const [instructions, tools] = await Promise.all([
    blobs.get(header.instructions),
    blobs.get(header.tools),
  ]);
  if (instructions !== undefined && tools !== undefined) return { instructions, tools };
  const missing = instructions === undefined ? header.instructions : header.tools;
  throw new JournalError(
    'damaged',
    path,
    `Session ${header.sessionId} (${path}) can't go on: the blob ${missing}, what the model ` +
      'was told, is missing. ' +
      'Restore the blobs from a backup, or begin a new session.',
  );
};
