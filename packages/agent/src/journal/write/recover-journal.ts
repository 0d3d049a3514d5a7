import { type FileHandle, rm } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { MachineUpgrade } from '../../machine/event.js';
import type { PastFiles } from '../../machine/file-hashes-from-events.js';
import type { Header, OpenJournal } from '../../ports/journal.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import { readMark } from '../format/acknowledged-mark.js';
import { misnamed } from '../journal-error.js';
import type { JournaledMachine } from '../journaled-machine.js';
import { checkHeader, checkRecords } from '../read/check-shapes.js';
import {
  beginFold,
  type Fold,
  foldOn,
  refuseMismatch,
  upgradeFold,
  type Visit,
  visitPast,
} from '../read/fold.js';
import { JournalScan } from '../read/scan.js';
import {
  type LoadedSnapshot,
  loadSnapshot,
  type WantedSnapshot,
  type WrittenSnapshots,
} from '../snapshot/load-snapshot.js';
import { snapshotPath } from '../snapshot/snapshot-format.js';
import { cutTail } from './cut-tail.js';

/** Result of opening a journal for writing; the file is ready for the next line. */
type Recovered<M extends MachineTypes> = {
  readonly header: Header<M>;
  readonly fold: Fold<M>;
  /** Checksum and end offset of the last good line. */
  readonly crc: number;
  readonly size: number;
  /** CRC-32 of all bytes up to there. */
  readonly sum: number;
  readonly tornTail: OpenJournal['tornTail'];
  readonly past?: PastFiles;
  readonly upgrade?: MachineUpgrade;
  /** The snapshots beside the journal, if they are good. */
  readonly written: WrittenSnapshots | null;
};

type RecoveryParts<M extends MachineTypes> = WantedSnapshot<M> & {
  readonly visit: Visit<M> | undefined;
  /** Snapshots of a foreign session are not believed, and the shapes of its entries are checked. */
  readonly isForeign: boolean;
};

const repairEnd = async <M extends MachineTypes>(
  handle: FileHandle,
  path: string,
  { ending, size, sum }: JournalScan<M>,
): Promise<Pick<Recovered<M>, 'size' | 'sum' | 'tornTail'>> => {
  switch (ending.kind) {
    case 'torn':
      return { size, sum, tornTail: await cutTail(handle, path, size, ending.bytes) };
    case 'unended':
      await handle.write('\n', size);
      await handle.sync();
      return { size: size + 1, sum: crc32('\n', sum), tornTail: null };
    case 'whole':
      return { size, sum, tornTail: null };
    case 'damaged':
      throw ending.error;
    default:
      return ending satisfies never;
  }
};

const recoverFrom = async <M extends MachineTypes>(
  { handle, path, sessionId, machine, visit: wanted, isForeign }: RecoveryParts<M>,
  loaded: LoadedSnapshot<M> | null,
): Promise<Recovered<M>> => {
  const { size: end } = await handle.stat();
  const start = loaded?.start ?? null;
  const scan =
    start === null
      ? await JournalScan.beginOf<M>(machine.kind, handle, path, end)
      : JournalScan.after(handle, path, end, start.point);
  if (scan.header.sessionId !== sessionId) throw misnamed(path, scan.header.sessionId);
  if (isForeign) checkHeader(path, machine, scan.header);
  const fold = start?.fold ?? beginFold(scan.header, machine, path);
  const { visit, past } = visitPast(machine, wanted, start?.past);
  const written = rememberMessages(loaded, machine);
  for await (const records of scan.records()) {
    if (isForeign) checkRecords(path, machine, records);
    foldOn(fold, records, {
      visit: (step) => {
        written.see(step.seq, step.state);
        visit(step);
      },
    });
  }
  refuseMismatch(path, fold, scan.header);
  const upgrade = upgradeFold(fold);
  scan.compare(await readMark(path));
  const repaired = await repairEnd(handle, path, scan);
  const { header, crc } = scan;
  const found = { header, fold, crc, ...repaired, ...past(), written: written.found() };
  return upgrade === undefined ? found : { ...found, upgrade };
};

/** Finds the messages of the last snapshot, which may stand behind the one that was loaded. */
const rememberMessages = <M extends MachineTypes>(
  loaded: LoadedSnapshot<M> | null,
  { snapshots }: JournaledMachine<M>,
): { see(seq: number, state: M['state']): void; found(): WrittenSnapshots | null } => {
  let messages: WrittenSnapshots['messages'] | undefined;
  const see = (seq: number, state: M['state']): void => {
    if (seq === loaded?.written.seq) messages = snapshots?.messagesOf(state);
  };
  if (loaded !== null && loaded.start !== null) see(loaded.start.fold.seq, loaded.start.fold.state);
  return {
    see,
    found: () => (loaded === null || messages === undefined ? null : { ...loaded.written, messages }),
  };
};

/**
 * Reads, verifies and folds a journal from its last snapshot on, or whole, and repairs a torn end. Throws on any other
 * damage, never repairs it. If the journal does not go on from the snapshot, the journal alone counts.
 */
export const recover = async <M extends MachineTypes>(parts: RecoveryParts<M>): Promise<Recovered<M>> => {
  if (parts.isForeign) await rm(snapshotPath(parts.path), { force: true });
  const loaded = parts.isForeign ? null : await loadSnapshot(parts);
  if (loaded === null || loaded.start === null) return recoverFrom(parts, loaded);
  try {
    return await recoverFrom(parts, loaded);
  } catch {
    return recoverFrom(parts, null);
  }
};
