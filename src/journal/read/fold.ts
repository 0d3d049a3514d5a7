import type { PastFiles } from '../../agent/file-hashes-from-events.js';
import type { Header, OpenJournal } from '../../ports/journal.js';
import type { MachineTypes } from '../../ports/machine-types.js';
import type { Recorded } from '../format/line-codec.js';
import { JournalError } from '../journal-error.js';
import type { JournaledMachine, SummedMessages } from '../journaled-machine.js';
import { type JournalStep, stepEntry } from './steps.js';

/** A state check is written every CHECK_EVERY entries, and at rest. */
export const CHECK_EVERY = 64;

/** A recorded state check that differs from the fold's state. */
type Mismatch = { readonly seq: number; readonly recorded: string; readonly computed: string };

/** The running fold of a journal: state and counts after the entries so far. */
export type Fold<M extends MachineTypes> = {
  readonly machine: JournaledMachine<M>;
  state: M['state'];
  seq: number;
  /** Number of checks compared. */
  checks: number;
  readonly mismatches: Mismatch[];
  /** Hashes states incrementally; the journal's writer continues with the same function. */
  readonly check: (state: M['state']) => string;
  /** The messages that `check` has hashed, for snapshots. */
  readonly summed?: () => SummedMessages;
};

const checkFrom = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  begun?: SummedMessages,
): Pick<Fold<M>, 'check' | 'summed'> => {
  const check = machine.snapshots?.createCheck(begun);
  return check === undefined ? { check: machine.createCheck() } : { check, summed: check.summed };
};

export const beginFold = <M extends MachineTypes>(
  header: Header<M>,
  machine: JournaledMachine<M>,
): Fold<M> => ({
  machine,
  state: machine.initialState(header.settings),
  seq: 0,
  checks: 0,
  mismatches: [],
  ...checkFrom(machine),
});

/** A fold that goes on after entries that were folded before. */
export const continueFold = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  { state, seq }: Pick<Fold<M>, 'state' | 'seq'>,
  begun: SummedMessages,
): Fold<M> => ({ machine, state, seq, checks: 0, mismatches: [], ...checkFrom(machine, begun) });

/**
 * Entries between two state checks of such a state, a multiple of `every`: as many as the state has parts that grow
 * within a turn, since a check hashes them all.
 */
const strideOf = <M extends MachineTypes>(
  { growing }: JournaledMachine<M>,
  state: M['state'],
  every: number,
): number => every * Math.max(1, Math.ceil((growing?.(state) ?? 0) / every));

/** The state check of entry `seq`, if it is due: every `every` entries, less often in a large state, and at rest. */
export const checkOf = <M extends MachineTypes>(
  { machine, check }: Pick<Fold<M>, 'machine' | 'check'>,
  seq: number,
  state: M['state'],
  every: number,
): string | null =>
  seq % strideOf(machine, state, every) === 0 || machine.isAtRest(state) ? check(state) : null;

/** Applies one entry, and compares its check if it has one. */
const foldEntry = <M extends MachineTypes>(fold: Fold<M>, { entry, check }: Recorded<M>): JournalStep<M> => {
  const stepped = stepEntry(fold.machine, fold.state, entry);
  fold.state = stepped.state;
  fold.seq = entry.seq;
  if (check !== null) {
    const computed = fold.check(stepped.state);
    fold.checks += 1;
    if (computed !== check) fold.mismatches.push({ seq: entry.seq, recorded: check, computed });
  }
  return stepped;
};

/** The seq to stop at, and a visitor of every step. */
export type ReplayOptions<M extends MachineTypes> = {
  readonly at?: number;
  readonly visit?: (step: JournalStep<M>) => void;
};

/** Applies entries up to `at`; returns `enough` if there is an entry after it. */
export const foldOn = <M extends MachineTypes>(
  fold: Fold<M>,
  records: Iterable<Recorded<M>>,
  { at = Number.POSITIVE_INFINITY, visit }: ReplayOptions<M>,
): 'more' | 'enough' => {
  for (const recorded of records) {
    if (recorded.entry.seq > at) return 'enough';
    const stepped = foldEntry(fold, recorded);
    visit?.(stepped);
  }
  return 'more';
};

/** A visitor of the steps of a session that is opened. */
export type Visit<M extends MachineTypes> = (step: JournalStep<M>) => void;

/** A visitor that also collects what the entries tell of files. */
export const visitPast = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  visit: Visit<M> = () => undefined,
  begun?: PastFiles,
): { readonly visit: Visit<M>; past(): Pick<OpenJournal<M>, 'past'> } => {
  const collector = machine.collectPast?.(begun);
  if (collector === undefined) return { visit, past: () => ({}) };
  return {
    visit: (step) => {
      collector.see(step.event);
      visit(step);
    },
    past: () => ({ past: collector.past() }),
  };
};

/** Folds records; throws `damaged` at the first state that differs from its recorded check. */
export const foldRecords = <M extends MachineTypes>(
  path: string,
  header: Header<M>,
  records: readonly Recorded<M>[],
  machine: JournaledMachine<M>,
  options: ReplayOptions<M> = {},
): Fold<M> => {
  const fold = beginFold(header, machine);
  foldOn(fold, records, options);
  refuseMismatch(path, fold, header);
  return fold;
};

/** Throws `damaged` if a state differed from its recorded check. */
export const refuseMismatch = <M extends MachineTypes>(
  path: string,
  { mismatches: [wrong], machine }: Pick<Replay<M>, 'mismatches'> & Pick<Fold<M>, 'machine'>,
  header: Header<M>,
): void => {
  if (wrong !== undefined) throw explainMismatch(path, wrong, header.machine, machine.fingerprint);
};

/** The error for a replay that reached another state: its meaning, and what to do. */
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
  /** Number of checks compared; all matched if there are no mismatches. */
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
 * Folds entries without performing any action; returns the state and the result of its checks.
 *
 * Stops after entry `at`; calls `visit` with every step.
 */
export const replayWith = async <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  header: Header<M>,
  records: AsyncIterable<Recorded<M>> | Iterable<Recorded<M>>,
  options: ReplayOptions<M> = {},
): Promise<Replay<M>> => {
  const fold = beginFold(header, machine);
  if (Symbol.iterator in records) foldOn(fold, records, options);
  else for await (const recorded of records) if (foldOn(fold, [recorded], options) === 'enough') break;
  return replayOf(fold);
};
