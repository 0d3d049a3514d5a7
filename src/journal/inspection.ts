import { open } from 'node:fs/promises';
import type { Header, JournalStore } from '../needs.js';
import type { AgentTypes, MachineTypes } from '../needs-machine.js';
import type { Recorded } from './codec.js';
import { cannotRead, type JournalError } from './error.js';
import { Scan } from './scan.js';

/** A journal as it lies there, read without the lock and without changing anything. */
export type Inspection<M extends MachineTypes = AgentTypes> = {
  readonly path: string;
  readonly header: Header<M>;
  /** Every entry up to the end, or up to the damage. */
  readonly records: readonly Recorded<M>[];
  /** Where it is damaged; null of a good one. */
  readonly damage: JournalError | null;
  /** Bytes behind the last whole line: the next opening cuts them off (or they are just being written). */
  readonly tornBytes: number;
};

/** A store that can also show a journal as it lies there, for replaying and verifying. */
export type InspectableStore<M extends MachineTypes = AgentTypes> = JournalStore<M> & {
  inspect(sessionId: string): Promise<Inspection<M>>;
};

/** Rejects with `damaged` (the header itself), `newerVersion`, `otherMachine` or `cannotRead`. */
export const inspectFile = async <M extends MachineTypes>(
  kind: M['kind'],
  path: string,
): Promise<Inspection<M>> => {
  try {
    const handle = await open(path, 'r');
    try {
      const scan = await Scan.beginOf<M>(kind, handle, path, (await handle.stat()).size);
      const records: Recorded<M>[] = [];
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
