import type { Header } from '../../ports/journal.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import type { Mark } from '../format/acknowledged-mark.js';
import type { ByteSource } from '../format/read-lines.js';
import { JournalError } from '../journal-error.js';
import { JournalScan } from '../read/scan.js';

/** The first fault of a journal: its line, and the byte at which that line begins. */
export type JournalFault = {
  readonly line: number;
  readonly byte: number;
  readonly why: string;
  /** Last entry before it. */
  readonly seq: number;
};

export type ScannedFile = {
  /** null if the header is not readable. */
  readonly header: Header<MachineTypes> | null;
  readonly seq: number;
  /** Bytes of the good lines. */
  readonly size: number;
  readonly fault: JournalFault | null;
  /** The fault is a torn end: nothing that was acknowledged is missing. */
  readonly isTorn: boolean;
};

const faultOf = ({ ending, line, size, seq }: JournalScan<MachineTypes>): JournalFault | null => {
  const at = { line: line + 1, byte: size, seq };
  if (ending.kind === 'damaged') return { ...at, why: ending.error.why };
  if (ending.kind === 'torn')
    return { ...at, why: `it is incomplete: the last ${ending.bytes} bytes were never acknowledged` };
  return null;
};

/**
 * Reads and verifies all lines of a journal of any machine, and compares its end with the mark. Rejects with `newerVersion`.
 */
export const scanFile = async (
  source: ByteSource,
  path: string,
  end: number,
  mark: Mark | null,
): Promise<ScannedFile> => {
  try {
    const scan = await JournalScan.begin(source, path, end);
    for await (const _ of scan.records());
    scan.compare(mark);
    const { header, seq, size, ending } = scan;
    return { header, seq, size, fault: faultOf(scan), isTorn: ending.kind === 'torn' };
  } catch (error) {
    if (!(error instanceof JournalError) || error.kind !== 'damaged') throw error;
    const fault = { line: 1, byte: 0, why: error.why, seq: 0 };
    return { header: null, seq: 0, size: 0, fault, isTorn: false };
  }
};
