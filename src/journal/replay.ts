import { createHash } from 'node:crypto';
import type { Event } from '../agent/event.js';
import { agent, initialState, step } from '../agent/machine.js';
import type { Settings } from '../agent/settings.js';
import type { State } from '../agent/state.js';
import type { Edge } from '../kernel/step.js';
import type { Header, Stepped, Watcher } from '../needs.js';
import { createStateCheck } from './check.js';
import type { Recorded } from './codec.js';
import { JournalError } from './error.js';

/** What a fold needs of a machine. */
export type Machine = {
  initialState(settings: Settings): State;
  step(state: State, event: Event): Omit<Stepped, 'seq' | 'event'>;
  /** As it stands in the headers of journals that it writes. */
  readonly fingerprint: string;
};

/** What stands in a header for a machine: a hash of its edges. */
export const fingerprintOf = (arrows: readonly Edge[]): string =>
  createHash('sha256').update(JSON.stringify(arrows)).digest('hex').slice(0, 16);

export const agentMachine: Machine = { initialState, step, fingerprint: fingerprintOf(agent.edges) };

/** A recorded check that the fold did not come to. */
type Mismatch = { readonly seq: number; readonly recorded: string; readonly computed: string };

/** The fold of a journal, entry by entry. */
export type Fold = {
  state: State;
  seq: number;
  /** Checks that were compared. */
  checks: number;
  readonly mismatches: Mismatch[];
  /** The fold's own sums: who goes on writing goes on with them. */
  readonly check: (state: State) => string;
};

export const beginFold = (header: Header, machine: Machine): Fold => ({
  state: machine.initialState(header.settings),
  seq: 0,
  checks: 0,
  mismatches: [],
  check: createStateCheck(),
});

/** Applies one entry, and compares its check if it has one. */
export const foldEntry = (fold: Fold, { entry, check }: Recorded, machine: Machine): Stepped => {
  const stepped = machine.step(fold.state, entry.event);
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
export const foldRecords = (
  path: string,
  header: Header,
  records: readonly Recorded[],
  machine: Machine,
): Fold => {
  const fold = beginFold(header, machine);
  for (const recorded of records) foldEntry(fold, recorded, machine);
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

export type Replay = {
  readonly state: State;
  readonly seq: number;
  /** Checks that were compared; all of them fitted if there are no mismatches. */
  readonly checks: number;
  readonly mismatches: readonly Mismatch[];
  /** The edges taken, one list an entry. */
  readonly paths: readonly (readonly Edge[])[];
};

/**
 * Folds entries without performing anything: the state from before, and the proof that it is.
 *
 * Stops after entry `at`; `visit` is called with every step.
 */
export const replay = async (
  header: Header,
  records: AsyncIterable<Recorded> | Iterable<Recorded>,
  options: { readonly at?: number; readonly visit?: Watcher; readonly machine?: Machine } = {},
): Promise<Replay> => {
  const { at = Number.POSITIVE_INFINITY, visit, machine = agentMachine } = options;
  const fold = beginFold(header, machine);
  const paths: (readonly Edge[])[] = [];
  for await (const recorded of records) {
    if (recorded.entry.seq > at) break;
    const stepped = foldEntry(fold, recorded, machine);
    paths.push(stepped.path);
    visit?.(stepped);
  }
  return { state: fold.state, seq: fold.seq, checks: fold.checks, mismatches: fold.mismatches, paths };
};
