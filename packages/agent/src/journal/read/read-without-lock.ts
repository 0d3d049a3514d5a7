import { openRegular } from '../../platform/files/regular-file.js';
import type { Header, JournalStore, OpenJournal, OpenJournalOptions } from '../../ports/journal.js';
import type { AgentTypes, MachineTypes } from '../../ports/machine-types.js';
import { readMark } from '../format/acknowledged-mark.js';
import type { Recorded } from '../format/line-codec.js';
import { cannotRead, type JournalError } from '../journal-error.js';
import type { JournaledMachine } from '../journaled-machine.js';
import { isOwnJournal } from '../session-owner.js';
import { checkHeader, checkRecords } from './check-shapes.js';
import { beginFold, type Fold, foldOn, type Replay, type ReplayOptions, replayOf } from './fold.js';
import { JournalScan } from './scan.js';

/** A journal as it is on disk, read without the lock and without changing anything. */
type Look<M extends MachineTypes> = {
  readonly path: string;
  readonly header: Header<M>;
  /** The damage; null if the journal is good as far as it was read. */
  readonly damage: JournalError | null;
  /** Bytes after the last complete line. The next opening cuts them off, unless a writer is just completing them. */
  readonly tornBytes: number;
};

/** A journal with all its entries, up to the end or the damage. */
export type Inspection<M extends MachineTypes = AgentTypes> = Look<M> & {
  readonly records: readonly Recorded<M>[];
};

/** A journal with the fold of its entries, up to the end, the damage or the requested seq. */
export type StoredReplay<M extends MachineTypes = AgentTypes> = Look<M> & Replay<M>;

export type VisitedOpening<M extends MachineTypes> = OpenJournalOptions &
  Pick<ReplayOptions<M>, 'visit'> & {
    /** Visit at least so many of the last steps, or all there are. Without it, all steps are visited. */
    readonly visitLast?: number;
  };

/** A store that can also read a journal as it is on disk, for replay and verification. */
export type InspectableStore<M extends MachineTypes = AgentTypes> = Omit<JournalStore<M>, 'open'> & {
  /**
   * Also calls `visit` with the steps of the session, in order, while it is folded. If a snapshot proves wrong in the middle,
   * it begins again with the first step.
   */
  open(sessionId: string, options?: VisitedOpening<M>): Promise<OpenJournal<M>>;
  inspect(sessionId: string): Promise<Inspection<M>>;
  /**
   * Deletes a session that nobody has open, with the tasks that it started; resolves with its id and theirs. Rejects with
   * `notFound`, `locked` or `cannotWrite`.
   */
  delete(sessionId: string): Promise<readonly string[]>;
  /** Like `inspect` followed by `replay`, without holding all entries in memory: for journals of any size. */
  replay(sessionId: string, options?: ReplayOptions<M>): Promise<StoredReplay<M>>;
};

type Take<M extends MachineTypes> = (records: readonly Recorded<M>[]) => 'more' | 'enough';

/** Rejects with `damaged` (the header itself), `newerVersion`, `otherMachine` or `cannotRead`. */
const lookAt = async <M extends MachineTypes>(
  kind: M['kind'],
  path: string,
  begin: (header: Header<M>) => Promise<Take<M>>,
): Promise<Look<M>> => {
  try {
    const mark = await readMark(path); // before the size: a writer may be at work
    const { file, status } = await openRegular(path);
    try {
      const scan = await JournalScan.beginOf<M>(kind, file, path, status.size);
      const take = await begin(scan.header);
      let extent: 'more' | 'enough' = 'more';
      for await (const records of scan.records()) {
        extent = take(records);
        if (extent === 'enough') break;
      }
      if (extent === 'more') scan.compare(mark);
      const { header, ending } = scan;
      const damage = ending.kind === 'damaged' ? ending.error : null;
      return { path, header, damage, tornBytes: ending.kind === 'torn' ? ending.bytes : 0 };
    } finally {
      await file.close();
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
  return { ...(await lookAt(kind, path, async () => take)), records: all };
};

/** Rejects as `inspectFile` does; mismatches are part of the result. */
export const replayFile = async <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  path: string,
  options: ReplayOptions<M>,
): Promise<StoredReplay<M>> => {
  let fold: Fold<M> | undefined;
  const look = await lookAt<M>(machine.kind, path, async (header) => {
    const isForeign = !(await isOwnJournal(path, header));
    if (isForeign) checkHeader(path, machine, header);
    const begun = beginFold(header, machine, path);
    fold = begun;
    return (records) => {
      if (isForeign) checkRecords(path, machine, records);
      return foldOn(begun, records, options);
    };
  });
  return { ...look, ...replayOf(fold ?? beginFold(look.header, machine, path)) };
};
