import type { FileHandle } from 'node:fs/promises';
import type { Header, OpenJournal } from '../../ports/journal.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import { readMark } from '../format/mark.js';
import { misnamed } from '../journal-error.js';
import type { JournaledMachine } from '../journaled-machine.js';
import { beginFold, type Fold, foldOn, refuseMismatch, type Visit } from '../read/fold.js';
import { JournalScan } from '../read/scan.js';
import { cutTail } from './cut-tail.js';

/** Result of opening a journal for writing; the file is ready for the next line. */
type Recovered<M extends MachineTypes> = {
  readonly header: Header<M>;
  readonly fold: Fold<M>;
  /** Checksum and end offset of the last good line. */
  readonly crc: number;
  readonly size: number;
  readonly tornTail: OpenJournal['tornTail'];
};

const repairEnd = async <M extends MachineTypes>(
  handle: FileHandle,
  path: string,
  { ending, size }: JournalScan<M>,
): Promise<Pick<Recovered<M>, 'size' | 'tornTail'>> => {
  switch (ending.kind) {
    case 'torn':
      return { size, tornTail: await cutTail(handle, path, size, ending.bytes) };
    case 'unended':
      await handle.write('\n', size);
      await handle.sync();
      return { size: size + 1, tornTail: null };
    case 'whole':
      return { size, tornTail: null };
    case 'damaged':
      throw ending.error;
    default:
      return ending satisfies never;
  }
};

/** Reads, verifies and folds a whole journal and repairs a torn end. Throws on any other damage, never repairs it. */
export const recover = async <M extends MachineTypes>(
  handle: FileHandle,
  path: string,
  sessionId: string,
  machine: JournaledMachine<M>,
  visit: Visit<M>,
): Promise<Recovered<M>> => {
  const scan = await JournalScan.beginOf<M>(machine.kind, handle, path, (await handle.stat()).size);
  if (scan.header.sessionId !== sessionId) throw misnamed(path, scan.header.sessionId);
  const fold = beginFold(scan.header, machine);
  for await (const records of scan.records()) foldOn(fold, records, { visit });
  refuseMismatch(path, fold, scan.header);
  scan.compare(await readMark(path));
  const repaired = await repairEnd(handle, path, scan);
  return { header: scan.header, fold, crc: scan.crc, ...repaired };
};
