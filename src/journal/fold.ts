import type { Edge } from '../kernel/step.js';
import type { Header, Stepped, Watcher } from '../needs.js';
import type { MachineTypes } from '../needs-machine.js';
import type { Recorded } from './codec.js';
import { JournalError } from './error.js';
import type { Machine } from './machine.js';

/** A state check is written every so many entries, and at rest. */
export const CHECK_EVERY = 64;

/** A recorded check that the fold did not come to. */
type Mismatch = { readonly seq: number; readonly recorded: string; readonly computed: string };

/** The fold of a journal, entry by entry. */
export type Fold<M extends MachineTypes> = {
  readonly machine: Machine<M>;
  state: M['state'];
  seq: number;
  /** Checks that were compared. */
  checks: number;
  readonly mismatches: Mismatch[];
  /** The fold's own sums: who goes on writing goes on with them. */
  readonly check: (state: M['state']) => string;
};

export const beginFold = <M extends MachineTypes>(header: Header<M>, machine: Machine<M>): Fold<M> => ({
  machine,
  state: machine.initialState(header.settings),
  seq: 0,
  checks: 0,
  mismatches: [],
  check: machine.createCheck(),
});

/** The check of the entry `seq` that led to `state`, if it carries one: every `every` entries, and at rest. */
export const checkOf = <M extends MachineTypes>(
  { machine, check }: Pick<Fold<M>, 'machine' | 'check'>,
  seq: number,
  state: M['state'],
  every: number,
): string | null => (seq % every === 0 || machine.isAtRest(state) ? check(state) : null);

/** Applies one entry, and compares its check if it has one. */
export const foldEntry = <M extends MachineTypes>(
  fold: Fold<M>,
  { entry, check }: Recorded<M>,
): Stepped<M> => {
  const stepped = fold.machine.step(fold.state, entry.event);
  fold.state = stepped.state;
  fold.seq = entry.seq;
  if (check !== null) {
    const computed = fold.check(stepped.state);
    fold.checks += 1;
    if (computed !== check) fold.mismatches.push({ seq: entry.seq, recorded: check, computed });
  }
  return { ...stepped, seq: entry.seq, event: entry.event };
};

/** The fold of whole records; throws `damaged` where it comes to another state than was recorded. */
export const foldRecords = <M extends MachineTypes>(
  path: string,
  header: Header<M>,
  records: readonly Recorded<M>[],
  machine: Machine<M>,
): Fold<M> => {
  const fold = beginFold(header, machine);
  for (const recorded of records) foldEntry(fold, recorded);
  const wrong = fold.mismatches[0];
  if (wrong === undefined) return fold;
  throw explainMismatch(path, wrong, header.machine, machine.fingerprint);
};

/** What it means that a replay came to another state, and what to do. */
export const explainMismatch = (
  path: string,
  { seq }: Mismatch,
  written: string,
  current: string,
): JournalError =>
  new JournalError(
    'damaged',
    path,
    `Replaying ${path} leads to another state at seq ${seq} than was recorded there. ` +
      (written === current
        ? 'The machine is the same, so the file was edited, or this Pawl was changed.'
        : `The machine has changed since (it was ${written}, now it is ${current}): open the session with the Pawl that wrote it.`),
  );

export type Replay<M extends MachineTypes> = {
  readonly state: M['state'];
  readonly seq: number;
  /** Checks that were compared; all of them fitted if there are no mismatches. */
  readonly checks: number;
  readonly mismatches: readonly Mismatch[];
  /** The edges taken, one list an entry. */
  readonly paths: readonly (readonly Edge[])[];
};

/** How far to fold, and who looks on. */
export type ReplayOptions<M extends MachineTypes> = { readonly at?: number; readonly visit?: Watcher<M> };

/**
 * Folds entries without performing anything: the state from before, and the proof that it is.
 *
 * Stops after entry `at`; `visit` is called with every step.
 */
export const replayWith = async <M extends MachineTypes>(
  machine: Machine<M>,
  header: Header<M>,
  records: AsyncIterable<Recorded<M>> | Iterable<Recorded<M>>,
  { at = Number.POSITIVE_INFINITY, visit }: ReplayOptions<M> = {},
): Promise<Replay<M>> => {
  const fold = beginFold(header, machine);
  const paths: (readonly Edge[])[] = [];
  for await (const recorded of records) {
    if (recorded.entry.seq > at) break;
    const stepped = foldEntry(fold, recorded);
    paths.push(stepped.path);
    visit?.(stepped);
  }
  return { state: fold.state, seq: fold.seq, checks: fold.checks, mismatches: fold.mismatches, paths };
};
