import { createHash } from 'node:crypto';
import type { Edge } from '../kernel/step.js';
import type { Header, Stepped } from '../needs.js';
import type { AgentTypes, MachineTypes } from '../needs-machine.js';

/** What a journal needs of the machine that it is of. */
export type Machine<M extends MachineTypes = AgentTypes> = {
  readonly kind: M['kind'];
  initialState(settings: M['settings']): M['state'];
  step(state: M['state'], event: M['event']): Omit<Stepped<M>, 'seq' | 'event'>;
  /** As it stands in the headers of journals that it writes. */
  readonly fingerprint: string;
  /** Whether nothing happens until somebody acts: such a state is always checked. */
  isAtRest(state: M['state']): boolean;
  /** Makes checks of one session's states: SHA-256 (hex) of the whole state, by which a replay proves itself. */
  createCheck(): (state: M['state']) => string;
};

/** What stands in a header for a machine: a hash of its edges. */
export const fingerprintOf = (arrows: readonly Edge[]): string =>
  createHash('sha256').update(JSON.stringify(arrows)).digest('hex').slice(0, 16);

/** Headers of before there was another machine name none. */
export const kindOf = <M extends MachineTypes>(header: Header<M>): MachineTypes['kind'] =>
  header.kind ?? 'agent';
