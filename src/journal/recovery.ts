import type { FileHandle } from 'node:fs/promises';
import type { Header, OpenJournal } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import { misnamed } from './error.js';
import { beginFold, type Fold, foldOn, refuseMismatch } from './fold.js';
import type { Machine } from './machine.js';
import { Scan } from './scan.js';
import { cutTail } from './torn.js';

/** What opening a journal for writing found, with the file ready for the next line. */
type Recovered<M extends MachineTypes> = {
  readonly header: Header<M>;
  readonly fold: Fold<M>;
  /** The last good line: its sum, and where it ends. */
  readonly crc: number;
  readonly size: number;
  readonly tornTail: OpenJournal['tornTail'];
};

const repairEnd = async <M extends MachineTypes>(
  handle: FileHandle,
  path: string,
  { ending, size }: Scan<M>,
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

/** Reads, verifies and folds a whole journal and repairs its end; damage anywhere else is thrown, never repaired. */
export const recover = async <M extends MachineTypes>(
  handle: FileHandle,
  path: string,
  sessionId: string,
  machine: Machine<M>,
): Promise<Recovered<M>> => {
  const scan = await Scan.beginOf<M>(machine.kind, handle, path, (await handle.stat()).size);
  if (scan.header.sessionId !== sessionId) throw misnamed(path, scan.header.sessionId);
  const fold = beginFold(scan.header, machine);
  for await (const records of scan.records()) foldOn(fold, records, {});
  refuseMismatch(path, fold, scan.header);
  const repaired = await repairEnd(handle, path, scan);
  return { header: scan.header, fold, crc: scan.crc, ...repaired };
};
