import { createHash } from 'node:crypto';
import type { AppendList } from '@pawl/machine/kernel/append-list';
import type { Edge } from '@pawl/machine/kernel/step-types';
import type { CarriedSession } from '../machine/event.js';
import type { PastFiles } from '../machine/file-hashes-from-events.js';
import type { Message } from '../machine/message.js';
import type { Header } from '../ports/journal.js';
import type { AgentTypes, MachineTypes } from '../ports/machine-types.js';
import type { Stepped } from '../ports/session-input-output.js';

/** The parts of a machine that its journals need. */
export type JournaledMachine<M extends MachineTypes = AgentTypes> = {
  readonly kind: M['kind'];
  initialState(settings: M['settings']): M['state'];
  step(state: M['state'], event: M['event']): Omit<Stepped<M>, 'seq' | 'event'>;
  /** Hash of the machine's edges, written into the headers of new journals. */
  readonly fingerprint: string;
  /**
   * Raised by hand when old events lead to other states. Recorded hashes count only for states of the same version, and
   * journals of a later one are refused.
   */
  readonly version: number;
  /** The version to which an event hands the session over; undefined if it does not. */
  upgradeIn?(event: M['event']): number | undefined;
  /** Reads a session of an earlier version beside this machine, which may come to other states. */
  carry?(settings: M['settings']): {
    see(event: M['event'], taken: boolean): void;
    /** What this machine has missed up to entry `seq`, and the state that has it; null if it has missed nothing. */
    missed(
      seq: number,
      state: M['state'],
    ): { readonly state: M['state']; readonly session: CarriedSession } | null;
  };
  /** True if nothing happens until the user acts. A state check is written for every such state. */
  isAtRest(state: M['state']): boolean;
  /**
   * Number of parts of the state that each check hashes again and that one reply of a model can make large. Such states
   * are checked less often, so that checks take linear time.
   */
  growing?(state: M['state']): number;
  /** Collects what a resumed session must know of files, while its entries are folded. */
  collectPast?(begun?: PastFiles): { see(event: M['event']): void; past(): PastFiles };
  /** Creates a function that hashes one session's states: SHA-256 (hex) of the whole state, compared on replay. */
  createCheck(): (state: M['state']) => string;
  /** Describes what is wrong with settings or an event that somebody else wrote; null if nothing is. */
  readonly faultIn?: {
    settings(settings: unknown): string | null;
    event(event: unknown): string | null;
  };
  /** How states are stored in snapshots. Without it the machine has none. */
  readonly snapshots?: StateParts<M>;
};

/** A state in two parts: its closed messages, of which there are many, and the rest. */
export type StateParts<M extends MachineTypes = AgentTypes> = {
  /** The rest of the state, as JSON stores it. */
  restOf(state: M['state']): unknown;
  messagesOf(state: M['state']): AppendList<Message>;
  /** `rest` is what `restOf` gave, after a way through JSON. */
  join(rest: unknown, messages: AppendList<Message>): M['state'];
  /** Like `createCheck`; also tells which messages it has hashed. */
  createCheck(begun?: SummedMessages): ((state: M['state']) => string) & { summed(): SummedMessages };
};

/** Closed messages that are hashed, and the chain of their hashes. */
export type SummedMessages = { readonly messages: AppendList<Message>; readonly chain: string };

/** The machine's fingerprint for headers: a hash of its edges. */
export const fingerprintOf = (arrows: readonly Edge[]): string =>
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
export const kindOf = <M extends MachineTypes>(header: Header<M>): MachineTypes['kind'] =>
  header.kind ?? 'agent';
