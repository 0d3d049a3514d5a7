import { open } from 'node:fs/promises';
import type { Header, JournalStore } from '../needs.js';
import type { Recorded } from './codec.js';
import { cannotRead, type JournalError } from './error.js';
import { Scan } from './scan.js';

/** A journal as it lies there, read without the lock and without changing anything. */
export type Inspection = {
  readonly path: string;
  readonly header: Header;
  /** Every entry up to the end, or up to the damage. */
  readonly records: readonly Recorded[];
  /** Where it is damaged; null of a good one. */
  readonly damage: JournalError | null;
  /** Bytes behind the last whole line: the next opening cuts them off (or they are just being written). */
  readonly tornBytes: number;
};

/** A store that can also show a journal as it lies there, for replaying and verifying. */
export type InspectableStore = JournalStore & {
  inspect(sessionId: string): Promise<Inspection>;
};

/** Rejects with `damaged` (the header itself), `newerVersion` or `cannotRead`. */
export const inspectFile = async (path: string): Promise<Inspection> => {
  try {
    const handle = await open(path, 'r');
    try {
      const scan = await Scan.begin(handle, path, (await handle.stat()).size);
      const records: Recorded[] = [];
      for await (const block of scan.records()) for (const recorded of block) records.push(recorded);
      const { header, ending } = scan;
      const damage = ending.kind === 'damaged' ? ending.error : null;
      return { path, header, records, damage, tornBytes: ending.kind === 'torn' ? ending.bytes : 0 };
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw cannotRead(path, error);
  }
};
