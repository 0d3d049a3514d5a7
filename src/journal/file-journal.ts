import type { FileHandle } from 'node:fs/promises';
import { openRegular } from '../files/regular-file.js';
import type { Blobs, Entry, EntryDraft, Header, Journal } from '../ports/journal.js';
import type { MachineTypes } from '../ports/machine-types.js';
import { encodeRecord } from './format/line-codec.js';
import { cannotRead, cannotWrite, resumeCommand } from './journal-error.js';
import { checkOf, type Fold } from './read/fold.js';
import { readFrozen } from './read/prompt-blobs.js';
import { JournalScan } from './read/scan.js';
import { GroupWriter, targetOf } from './write/group-writer.js';
import type { Lock } from './write/lock.js';
import { openMark } from './write/mark-file.js';
import { ownershipOf } from './write/ownership.js';
import { openReserve } from './write/reserve.js';

/** Yields the entries from seq `from` on, up to byte `end`; throws `damaged` if the file ends before that. */
export async function* readEntries<M extends MachineTypes>(
  kind: M['kind'],
  path: string,
  from: number,
  end?: number,
): AsyncGenerator<Entry<M>, undefined> {
  let handle: FileHandle | undefined;
  try {
    const { file, status } = await openRegular(path);
    handle = file;
    const scan = await JournalScan.beginOf<M>(kind, file, path, end ?? status.size);
    for await (const records of scan.records()) {
      for (const { entry } of records) if (entry.seq >= from) yield entry;
    }
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
  /** The fold of the file's entries. */
  readonly fold: Fold<M>;
};

/** The lines of the drafts that follow the last line, and seq and checksum of the last of them. */
const encodeDrafts = <M extends MachineTypes>(
  { fold, checkEvery }: Pick<FileJournalParts<M>, 'fold' | 'checkEvery'>,
  last: { readonly seq: number; readonly crc: number },
  drafts: readonly EntryDraft<M>[],
): { readonly bytes: Buffer; readonly seq: number; readonly crc: number } => {
  const lines: Buffer[] = [];
  let { seq, crc } = last;
  for (const { event, state } of drafts) {
    seq += 1;
    const recorded = { entry: { seq, event }, check: checkOf(fold, seq, state, checkEvery) };
    const line = encodeRecord(recorded, crc);
    lines.push(line.bytes);
    crc = line.crc;
  }
  return { bytes: Buffer.concat(lines), seq, crc };
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
  let issued = { seq: parts.fold.seq, crc: parts.crc };
  let durable = parts.fold.seq;
  const mark = openMark(path, issued);
  let closing: Promise<void> | undefined;

  const append = async (drafts: readonly EntryDraft<M>[]): Promise<void> => {
    if (drafts.length === 0) return;
    const { bytes, seq, crc } = encodeDrafts(parts, issued, drafts);
    issued = { seq, crc };
    await writer.write(bytes);
    durable = seq;
    mark.write({ seq, crc });
  };

  const close = async (): Promise<void> => {
    try {
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
    close: () => {
      closing ??= close();
      return closing;
    },
  };
};
