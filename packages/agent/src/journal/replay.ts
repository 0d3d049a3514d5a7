/**
 * Folds entries to a state, and compares it with the state checks that some entries record.
 *
 * From top to bottom: `JournaledMachine`, what a journal needs of its machine; the version of a
 * journal; `Fold` and its steps, with the upgrade of a session that an earlier machine wrote; the
 * visitor that collects what is known of files; and `replayWith`. A state check is a hash of the
 * state. A carrier reads a session from its events alone, beside this machine: if this one has
 * missed something, because it refused an entry that an earlier one took, it goes on from that.
 */

import { createHash } from 'node:crypto';
import type { AppendList } from '@pawl/machine/kernel/append-list';
import type { Edge } from '@pawl/machine/kernel/table';
import type { CarriedSession, MachineUpgrade } from '../machine/event.js';
import type { Message } from '../machine/message.js';
import type { PastFiles } from '../machine/seen-files.js';
import type { AgentTypes, Entry, Header, MachineTypes, OpenJournal } from '../ports/journal.js';
import type { Recorded } from './codec.js';
import { JournalError, newerMachine } from './journal-error.js';
import { type JournalStep, type SteppedMachine, stepEntry } from './steps.js';

/** The parts of a machine that its journals need. */
export type JournaledMachine<M extends MachineTypes = AgentTypes> = SteppedMachine<M> & {
  readonly kind: M['kind'];
  /** Hash of the machine's edges, written into the headers of new journals. */
  readonly fingerprint: string;
  /**
   * Raised by hand when old events lead to other states. Recorded hashes count only for states of
   * the same version, and journals of a later one are refused.
   */
  readonly version: number;
  /** The version to which an event hands the session over; undefined if it does not. */
  upgradeIn?(event: M['event']): number | undefined;
  /** Reads a session of an earlier version beside this machine, which may come to other states. */
  carry?(settings: M['settings']): {
    /** Takes the next event. `taken`: this machine found it in its place. */
    see(event: M['event'], taken: boolean): void;
    /** A recorded check is equal: this machine has missed nothing so far. */
    agree(): void;
    /**
     * What this machine has missed up to entry `seq`, and the state that has it; null if it has
     * missed nothing.
     */
    missed(
      seq: number,
      state: M['state'],
    ): { readonly state: M['state']; readonly session: CarriedSession } | null;
  };
  /** True if nothing happens until the user acts. A state check is written for every such state. */
  isAtRest(state: M['state']): boolean;
  /**
   * Number of parts of the state that each check hashes again and that one reply of a model can
   * make large. Such states are checked less often, so that checks take linear time.
   */
  growing?(state: M['state']): number;
  /** Collects what a resumed session must know of files, while its entries are folded. */
  collectPast?(start?: PastFiles): { see(event: M['event']): void; past(): PastFiles };
  /**
   * Creates a function that hashes one session's states: SHA-256 (hex) of the whole state, compared
   * on replay.
   */
  createCheck(): (state: M['state']) => string;
  /**
   * Describes what is wrong with settings or an event from another program; null if nothing is.
   */
  readonly faultIn?: {
    settings(settings: unknown): string | null;
    event(event: unknown): string | null;
  };
  /** How states are stored in snapshots. Without it the machine has none. */
  readonly snapshots?: StateParts<M>;
};

/**
 * A state in two parts: its closed messages (those up to the last reply, which never change), of
 * which there are many, and the rest.
 */
export type StateParts<M extends MachineTypes = AgentTypes> = {
  /** The rest of the state, as JSON stores it. */
  restOf(state: M['state']): unknown;
  messagesOf(state: M['state']): AppendList<Message>;
  /** `rest` is what `restOf` gave, after a way through JSON. */
  join(rest: unknown, messages: AppendList<Message>): M['state'];
  /** Like `createCheck`; also tells which messages it has hashed. */
  createCheck(
    start?: SummedMessages,
  ): ((state: M['state']) => string) & { summed(): SummedMessages };
};

/** Closed messages that are hashed. `chain`: the last hash; each one covers the hash before it. */
export type SummedMessages = { readonly messages: AppendList<Message>; readonly chain: string };

/** The machine's fingerprint for headers: a hash of its edges. */
export const edgesFingerprint = (arrows: readonly Edge[]): string =>
  createHash('sha256').update(JSON.stringify(arrows)).digest('hex').slice(0, 16);

/** The version of the machine that began a journal. */
export const versionIn = <M extends MachineTypes>({ machineVersion = 1 }: Header<M>): number =>
  machineVersion;

/** The header of a new journal of this machine. */
export const ownHeader = <M extends MachineTypes>(
  header: Header<M>,
  { version }: Pick<JournaledMachine<M>, 'version'>,
): Header<M> => ({ ...header, machineVersion: version });

/** The machine of a journal. Journals of the agent have no `kind`. */
export const machineKind = <M extends MachineTypes>(header: Header<M>): MachineTypes['kind'] =>
  header.kind ?? 'agent';

/** A state check is written every CHECK_EVERY entries, and at rest. */
export const CHECK_EVERY = 64;

/** A recorded state check that differs from the fold's state. */
type Mismatch = { readonly seq: number; readonly recorded: string; readonly computed: string };

/**
 * The running fold of a journal: state and counts after the entries so far.
 *
 * A check that a machine of another version recorded is no promise about this one. If it is equal,
 * it counts; if it differs, that is no fault.
 */
export type Fold<M extends MachineTypes> = {
  readonly machine: JournaledMachine<M>;
  readonly path: string;
  state: M['state'];
  seq: number;
  /** Number of checks compared. */
  checks: number;
  readonly mismatches: Mismatch[];
  /** Version of the machine that wrote the entries so far. */
  version: number;
  /** Number of checks that an earlier machine recorded and that differ. */
  earlierChecks: number;
  /** Reads the session without its machine; null once this machine has written entries. */
  carrier: Carrier<M> | null;
  /** Hashes states incrementally; the journal's writer continues with the same function. */
  readonly hashState: (state: M['state']) => string;
  /** The messages that `hashState` has hashed, for snapshots. */
  readonly hashedMessages?: () => SummedMessages;
};

type Carrier<M extends MachineTypes> = ReturnType<NonNullable<JournaledMachine<M>['carry']>>;

/** Throws `newerVersion` if a later machine wrote the entries that follow. */
export const refuseNewer = <M extends MachineTypes>(
  {
    path,
    machine,
  }: { readonly path: string; readonly machine: Pick<JournaledMachine<M>, 'version'> },
  version: number,
): void => {
  if (version > machine.version) throw newerMachine(path, version, machine.version);
};

/** `path` is for messages. Throws `newerVersion` for a journal of a later machine. */
export const beginFold = <M extends MachineTypes>(
  header: Header<M>,
  machine: JournaledMachine<M>,
  path = `of session ${header.sessionId}`,
): Fold<M> => {
  const version = versionIn(header);
  refuseNewer({ path, machine }, version);
  const isEarlier = version < machine.version;
  const carrier = isEarlier ? (machine.carry?.(header.settings) ?? null) : null;
  return createFold(machine, {
    path,
    state: machine.initialState(header.settings),
    seq: 0,
    version,
    carrier,
  });
};

/**
 * A fold that goes on after entries that were folded before, of which this machine wrote the last
 * one.
 */
export const continueFold = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  { state, seq, path }: Pick<Fold<M>, 'state' | 'seq' | 'path'>,
  summed: SummedMessages,
): Fold<M> =>
  createFold(machine, { path, state, seq, version: machine.version, carrier: null }, summed);

const createFold = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  start: Pick<Fold<M>, 'path' | 'state' | 'seq' | 'version' | 'carrier'>,
  summed?: SummedMessages,
): Fold<M> => {
  const check = machine.snapshots?.createCheck(summed);
  const hashing =
    check === undefined
      ? { hashState: machine.createCheck() }
      : { hashState: check, hashedMessages: check.summed };
  return { machine, ...start, checks: 0, mismatches: [], earlierChecks: 0, ...hashing };
};

/** An entry of an earlier machine that this one can't step changes nothing. */
const stepEarlier = <M extends MachineTypes>(
  { machine, state }: Fold<M>,
  entry: Entry<M>,
): JournalStep<M> => {
  try {
    return stepEntry(machine, state, entry);
  } catch (error) {
    // Nothing is lost: the carrier has seen the entry, and its session takes the place of this
    // state.
    const why = error instanceof Error ? error.message : String(error);
    const diagnostic = { kind: 'fault', state: state.name, event: entry.event.type, why } as const;
    return { ...entry, before: state, state, actions: [], path: [], diagnostics: [diagnostic] };
  }
};

/** Applies one entry, and compares its check if it has one. */
const foldEntry = <M extends MachineTypes>(
  fold: Fold<M>,
  { entry, check }: Recorded<M>,
): JournalStep<M> => {
  const { machine } = fold;
  const upgrade = machine.upgradeIn?.(entry.event);
  if (upgrade !== undefined) refuseNewer(fold, upgrade);
  const isEarlier = fold.version < machine.version;
  const stepped = isEarlier ? stepEarlier(fold, entry) : stepEntry(machine, fold.state, entry);
  fold.carrier?.see(entry.event, stepped.diagnostics.length === 0);
  fold.state = stepped.state;
  fold.seq = entry.seq;
  fold.version = upgrade ?? fold.version;
  if (fold.version === machine.version) fold.carrier = null;
  if (check !== null) compareCheck(fold, check);
  return stepped;
};

const compareCheck = <M extends MachineTypes>(fold: Fold<M>, recorded: string): void => {
  const computed = fold.hashState(fold.state);
  if (computed !== recorded && fold.version < fold.machine.version) {
    fold.earlierChecks += 1;
    return;
  }
  fold.checks += 1;
  if (computed !== recorded) fold.mismatches.push({ seq: fold.seq, recorded, computed });
  else fold.carrier?.agree();
};

/**
 * The upgrade that a session of an earlier machine needs; undefined for one of this machine. If
 * this machine has missed something of the entries, the state of the fold is replaced: it goes on
 * from the session that the events tell.
 */
export const upgradeFold = <M extends MachineTypes>(fold: Fold<M>): MachineUpgrade | undefined => {
  const { version: from, machine, carrier } = fold;
  if (from === machine.version) return undefined;
  const missed = carrier?.missed(fold.seq, fold.state) ?? null;
  const upgrade = { from, to: machine.version };
  if (missed === null) return upgrade;
  fold.state = missed.state;
  return { ...upgrade, session: missed.session };
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

/** A visitor that also collects what the entries tell of files: `past` returns it. */
export const visitPast = <M extends MachineTypes>(
  machine: JournaledMachine<M>,
  visit: Visit<M> = () => undefined,
  start?: PastFiles,
): { readonly visit: Visit<M>; past(): Pick<OpenJournal<M>, 'past'> } => {
  const collector = machine.collectPast?.(start);
  if (collector === undefined) return { visit, past: () => ({}) };
  return {
    visit: (step) => {
      collector.see(step.event);
      visit(step);
    },
    past: () => ({ past: collector.past() }),
  };
};

/** Throws `damaged` if a state differed from its recorded check. */
export const refuseMismatch = <M extends MachineTypes>(
  path: string,
  { mismatches: [wrong], machine }: Pick<Replay<M>, 'mismatches'> & Pick<Fold<M>, 'machine'>,
  header: Header<M>,
): void => {
  if (wrong === undefined) return;
  // the header names the machine that began the journal, and after an upgrade not the last one
  const written = versionIn(header) < machine.version ? null : header.machine;
  throw explainMismatch(path, wrong, written, machine.fingerprint);
};

/** The error for a replay that reached another state: its meaning, and what to do. */
const explainMismatch = (
  path: string,
  { seq }: Mismatch,
  written: string | null,
  current: string,
): JournalError =>
  new JournalError(
    'damaged',
    path,
    `Replaying ${path} leads to another state at seq ${seq} than was recorded there. ` +
      (written === null || written === current
        ? 'The file was edited, or this Pawl was changed.'
        : `The machine has changed and has the same version (it was ${written}, now it is ` +
          `${current}): open the session with another build of Pawl.`),
  );

export type Replay<M extends MachineTypes> = {
  readonly state: M['state'];
  readonly seq: number;
  /** Number of checks compared; all matched if there are no mismatches. */
  readonly checks: number;
  readonly mismatches: readonly Mismatch[];
  /** Number of checks that an earlier machine recorded and that differ: no fault. */
  readonly earlierChecks: number;
};

/**
 * The result of a fold. A session of an earlier machine is shown as this one would go on with it.
 */
export const endReplay = <M extends MachineTypes>(fold: Fold<M>): Replay<M> => {
  upgradeFold(fold); // may replace the state
  const { state, seq, checks, mismatches, earlierChecks } = fold;
  return { state, seq, checks, mismatches, earlierChecks };
};

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
  else
    for await (const recorded of records) if (foldOn(fold, [recorded], options) === 'enough') break;
  return endReplay(fold);
};
