import { open } from 'node:fs/promises';
import type { Header, JournalStore } from '../needs.js';
import type { AgentTypes, MachineTypes } from '../needs-machine.js';
import type { Recorded } from './codec.js';
import { cannotRead, type JournalError } from './error.js';
import { beginFold, type Fold, foldOn, type Replay, type ReplayOptions, replayOf } from './fold.js';
import type { Machine } from './machine.js';
import { Scan } from './scan.js';

/** A journal as it lies there, read without the lock and without changing anything. */
type Look<M extends MachineTypes> = {
  readonly path: string;
  readonly header: Header<M>;
  /** Where it is damaged; null of a good one, and where it was not read so far. */
  readonly damage: JournalError | null;
  /** Bytes behind the last whole line: the next opening cuts them off (or they are just being written). */
  readonly tornBytes: number;
};

/** A look that keeps what it saw: every entry up to the end, or up to the damage. */
export type Inspection<M extends MachineTypes = AgentTypes> = Look<M> & {
  readonly records: readonly Recorded<M>[];
};

/** A look that folds what it sees, up to the end, to the damage, or as far as was wished. */
export type StoredReplay<M extends MachineTypes = AgentTypes> = Look<M> & Replay<M>;

/** A store that can also show a journal as it lies there, for replaying and verifying. */
export type InspectableStore<M extends MachineTypes = AgentTypes> = JournalStore<M> & {
  inspect(sessionId: string): Promise<Inspection<M>>;
  /** As `inspect` and then `replay`, but without ever holding all entries: for journals of any size. */
  replay(sessionId: string, options?: ReplayOptions<M>): Promise<StoredReplay<M>>;
};

type Take<M extends MachineTypes> = (records: readonly Recorded<M>[]) => 'more' | 'enough';

/** Rejects with `damaged` (the header itself), `newerVersion`, `otherMachine` or `cannotRead`. */
const lookAt = async <M extends MachineTypes>(
  kind: M['kind'],
  path: string,
  begin: (header: Header<M>) => Take<M>,
): Promise<Look<M>> => {
  try {
    const handle = await open(path, 'r');
    try {
      const scan = await Scan.beginOf<M>(kind, handle, path, (await handle.stat()).size);
      const take = begin(scan.header);
      for await (const records of scan.records()) if (take(records) === 'enough') break;
      const { header, ending } = scan;
      const damage = ending.kind === 'damaged' ? ending.error : null;
      return { path, header, damage, tornBytes: ending.kind === 'torn' ? ending.bytes : 0 };
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw cannotRead(path, error);
  }
};

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
  return { ...(await lookAt(kind, path, () => take)), records: all };
};

/** Rejects as `inspectFile` does; what does not fit is in the result. */
export const replayFile = async <M extends MachineTypes>(
  machine: Machine<M>,
  path: string,
  options: ReplayOptions<M>,
): Promise<StoredReplay<M>> => {
  let fold: Fold<M> | undefined;
  const look = await lookAt<M>(machine.kind, path, (header) => {
    const begun = beginFold(header, machine);
    fold = begun;
    return (records) => foldOn(begun, records, options);
  });
  return { ...look, ...replayOf(fold ?? beginFold(look.header, machine)) };
};
