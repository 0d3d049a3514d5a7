import type { Header, Watcher } from '../needs.js';
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
const foldEntry = <M extends MachineTypes>(
  fold: Fold<M>,
  { entry, check }: Recorded<M>,
): ReturnType<Machine<M>['step']> => {
  const stepped = fold.machine.step(fold.state, entry.event);
  fold.state = stepped.state;
  fold.seq = entry.seq;
  if (check !== null) {
    const computed = fold.check(stepped.state);
    fold.checks += 1;
    if (computed !== check) fold.mismatches.push({ seq: entry.seq, recorded: check, computed });
  }
  return stepped;
};

/** How far to fold, and who looks on. */
export type ReplayOptions<M extends MachineTypes> = { readonly at?: number; readonly visit?: Watcher<M> };

/** Applies entries up to `at`; `enough` where one lies behind it. */
export const foldOn = <M extends MachineTypes>(
  fold: Fold<M>,
  records: Iterable<Recorded<M>>,
  { at = Number.POSITIVE_INFINITY, visit }: ReplayOptions<M>,
): 'more' | 'enough' => {
  for (const recorded of records) {
    const { seq, event } = recorded.entry;
    if (seq > at) return 'enough';
    const stepped = foldEntry(fold, recorded);
    visit?.({ ...stepped, seq, event });
  }
  return 'more';
};

/** The fold of whole records; throws `damaged` where it comes to another state than was recorded. */
export const foldRecords = <M extends MachineTypes>(
  path: string,
  header: Header<M>,
  records: readonly Recorded<M>[],
  machine: Machine<M>,
): Fold<M> => {
  const fold = beginFold(header, machine);
  foldOn(fold, records, {});
  refuseMismatch(path, fold, header);
  return fold;
};

/** Throws `damaged` where a fold came to another state than was recorded. */
export const refuseMismatch = <M extends MachineTypes>(
  path: string,
  { mismatches: [wrong], machine }: Pick<Replay<M>, 'mismatches'> & Pick<Fold<M>, 'machine'>,
  header: Header<M>,
): void => {
  if (wrong !== undefined) throw explainMismatch(path, wrong, header.machine, machine.fingerprint);
};

/** What it means that a replay came to another state, and what to do. */
const explainMismatch = (path: string, { seq }: Mismatch, written: string, current: string): JournalError =>
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
};

export const replayOf = <M extends MachineTypes>({ state, seq, checks, mismatches }: Fold<M>): Replay<M> => ({
  state,
  seq,
  checks,
  mismatches,
});

/**
 * Folds entries without performing anything: the state from before, and the proof that it is.
 *
 * Stops after entry `at`; `visit` is called with every step.
 */
export const replayWith = async <M extends MachineTypes>(
  machine: Machine<M>,
  header: Header<M>,
  records: AsyncIterable<Recorded<M>> | Iterable<Recorded<M>>,
  options: ReplayOptions<M> = {},
): Promise<Replay<M>> => {
  const fold = beginFold(header, machine);
  if (Symbol.iterator in records) foldOn(fold, records, options);
  else for await (const recorded of records) if (foldOn(fold, [recorded], options) === 'enough') break;
  return replayOf(fold);
};
