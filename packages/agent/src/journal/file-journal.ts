import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { PastFiles } from '../machine/file-hashes-from-events.js';
import { openRegular } from '../platform/files/regular-file.js';
import type { Blobs, Entry, EntryDraft, Header, Journal } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import { readMark } from './format/acknowledged-mark.js';
import { joinLines } from './format/join-lines.js';
import { encodeRecord } from './format/line-codec.js';
import { cannotRead, cannotWrite, resumeCommand } from './journal-error.js';
import { checkOf, type Fold } from './read/fold.js';
import { readFrozen } from './read/frozen-prompt.js';
import { JournalScan } from './read/scan.js';
import type { WrittenSnapshots } from './snapshot/load-snapshot.js';
import {
  type SnapshotPlan,
  type SnapshotPoint,
  type SnapshotWriter,
  writeSnapshots,
} from './snapshot/write-snapshots.js';
import { ownershipOf } from './write/check-ownership.js';
import { openReserve } from './write/disk-reserve.js';
import { GroupWriter, targetOf } from './write/group-writer.js';
import type { Lock } from './write/lock.js';
import { openMark } from './write/mark-file.js';

/** Yields the entries from seq `from` on, up to byte `end`; throws `damaged` if the file ends before that. */
export async function* readEntries<M extends MachineTypes>(
  kind: M['kind'],
  path: string,
  from: number,
  end?: number,
): AsyncGenerator<Entry<M>, undefined> {
  let handle: FileHandle | undefined;
  try {
    const mark = end === undefined ? await readMark(path) : null; // before the size: a writer may be at work
    const { file, status } = await openRegular(path);
    handle = file;
    const scan = await JournalScan.beginOf<M>(kind, file, path, end ?? status.size);
    for await (const records of scan.records()) {
      for (const { entry } of records) if (entry.seq >= from) yield entry;
    }
    scan.compare(mark);
    if (scan.ending.kind === 'damaged') throw scan.ending.error;
  } catch (error) {
    throw cannotRead(path, error);
  } finally {
    await handle?.close();
  }
}

type FileJournalParts<M extends MachineTypes> = {
  readonly path: string;
  readonly handle: FileHandle;
  readonly lock: Lock;
  readonly header: Header<M>;
  readonly blobs: Blobs;
  readonly checkEvery: number;
  /** Checksum and end offset of the last good line. */
  readonly crc: number;
  readonly size: number;
  /** CRC-32 of all bytes up to there, as they were verified or written. */
  readonly sum: number;
  /** The fold of the file's entries. */
  readonly fold: Fold<M>;
  readonly plan: SnapshotPlan;
  readonly past?: PastFiles;
  /** Makes a foreign session one of this folder. */
  readonly adopt?: () => Promise<void>;
  /** The snapshots that are there already. */
  readonly written: WrittenSnapshots | null;
};

/** The last line: its entry, its checksum, its end, and the CRC-32 of all bytes up to there. */
type LastLine = {
  readonly seq: number;
  readonly crc: number;
  readonly size: number;
  readonly sum: number;
};

/** The lines of the drafts that follow the last line. The last one records its state for a snapshot if that is due. */
const encodeDrafts = <M extends MachineTypes>(
  { fold, checkEvery }: Pick<FileJournalParts<M>, 'fold' | 'checkEvery'>,
  last: LastLine,
  drafts: readonly EntryDraft<M>[],
  snapshots: Pick<SnapshotWriter<M>, 'isDue'> | null,
): { readonly bytes: Buffer; readonly last: LastLine; readonly point: SnapshotPoint<M> | null } => {
  const lines: Buffer[] = [];
  let [{ seq, crc, size, sum }, point]: [LastLine, SnapshotPoint<M> | null] = [last, null];
  for (const [index, { event, state }] of drafts.entries()) {
    seq += 1;
    const isWanted = index === drafts.length - 1 && snapshots?.isDue(seq) === true;
    const check = checkOf(fold, seq, state, checkEvery) ?? (isWanted ? fold.check(state) : null);
    const line = encodeRecord({ entry: { seq, event }, check }, crc);
    lines.push(line.bytes);
    ({ crc } = line);
    size += line.bytes.length;
    sum = crc32(line.bytes, sum);
    if (check !== null && fold.summed !== undefined)
      point = { seq, crc, size, sum, state, check, summed: fold.summed() };
  }
  return { bytes: joinLines(lines), last: { seq, crc, size, sum }, point };
};

const snapshotsOf = <M extends MachineTypes>(
  { path, handle, header, plan, past, written, fold }: FileJournalParts<M>,
  writer: GroupWriter,
  look: () => Promise<void>,
): SnapshotWriter<M> | null => {
  const isAllowed = (): Promise<boolean> =>
    look().then(
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

/** An open journal. It owns its file handle and its lock until it is closed. */
export const openFileJournal = <M extends MachineTypes>(parts: FileJournalParts<M>): Journal<M> => {
  const { path, handle, header, blobs, lock } = parts;
  const { machine } = parts.fold;
  const ownership = ownershipOf({ handle, path, lock, resume: resumeCommand(machine.kind) });
  const reserve = openReserve(path);
  const writer = new GroupWriter(
    targetOf(handle),
    { ...ownership, freeSpace: reserve.free },
    path,
    parts.size,
  );
  // seq and checksum of the last line handed to the writer, and of the last durable one
  let issued: LastLine = { seq: parts.fold.seq, crc: parts.crc, size: parts.size, sum: parts.sum };
  let durable = parts.fold.seq;
  const mark = openMark(path, issued);
  const snapshots = snapshotsOf(parts, writer, () => writer.idle().then(() => ownership.before(writer.size)));
  let closing: Promise<void> | undefined;

  const append = async (drafts: readonly EntryDraft<M>[]): Promise<void> => {
    if (drafts.length === 0) return;
    const { bytes, last, point } = encodeDrafts(parts, issued, drafts, snapshots);
    issued = last;
    await writer.write(bytes);
    durable = last.seq;
    mark.write(last);
    snapshots?.see(drafts.map(({ event }) => event));
    if (point !== null) snapshots?.offer(point);
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
      return durable;
    },
    append,
    get full() {
      return writer.full;
    },
    read: (from = 1) => readEntries<M>(machine.kind, path, from, writer.size),
    blobs,
    frozen: () => readFrozen(path, header, blobs),
    ...(parts.adopt === undefined ? {} : { adopt: parts.adopt }),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
};
