import { type FileHandle, open } from 'node:fs/promises';
import type { Blobs, Draft, Entry, Header, Journal } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import { encodeRecord } from './codec.js';
import { cannotRead, cannotWrite } from './error.js';
import { checkOf, type Fold } from './fold.js';
import { readFrozen } from './frozen.js';
import { GroupWriter, targetOf } from './group-writer.js';
import type { Lock } from './lock.js';
import { Scan } from './scan.js';

/** Yields the entries of the first `end` bytes from seq `from` on; throws `damaged` where they end before that. */
export async function* readEntries<M extends MachineTypes>(
  kind: M['kind'],
  path: string,
  from: number,
  end?: number,
): AsyncGenerator<Entry<M>, undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, 'r');
    const scan = await Scan.beginOf<M>(kind, handle, path, end ?? (await handle.stat()).size);
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
  /** The last good line: its sum, and where it ends. */
  readonly crc: number;
  readonly size: number;
  /** The fold of what is in the file. */
  readonly fold: Fold<M>;
};

/** An open journal. It owns its file handle and its lock until it is closed. */
export const openFileJournal = <M extends MachineTypes>(parts: FileJournalParts<M>): Journal<M> => {
  const { path, header, blobs, checkEvery, lock } = parts;
  const { machine, check } = parts.fold;
  const writer = new GroupWriter(targetOf(parts.handle), path, parts.size);
  // Of the last line handed to the writer, and of the last one that is durable.
  let issued = { seq: parts.fold.seq, crc: parts.crc };
  let durable = parts.fold.seq;
  let closing: Promise<void> | undefined;

  const append = async (drafts: readonly Draft<M>[]): Promise<void> => {
    if (drafts.length === 0) return;
    const lines: Buffer[] = [];
    let { seq, crc } = issued;
    for (const { event, state } of drafts) {
      seq += 1;
      const recorded = {
        entry: { seq, event },
        check: checkOf({ machine, check }, seq, state, checkEvery),
      };
      const line = encodeRecord(recorded, crc);
      lines.push(line.bytes);
      crc = line.crc;
    }
    issued = { seq, crc };
    await writer.write(Buffer.concat(lines));
    durable = seq;
  };

  const close = async (): Promise<void> => {
    try {
      await writer.close();
    } catch (error) {
      throw cannotWrite(path, error);
    } finally {
      await lock.release();
    }
  };

  return {
    header,
    get seq() {
      return durable;
    },
    append,
    read: (from = 1) => readEntries<M>(machine.kind, path, from, writer.size),
    blobs,
    frozen: () => readFrozen(path, header, blobs),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
};
