import { agent, initialState, step } from '../agent/machine.js';
import type { Header } from '../needs.js';
import type { AgentTypes } from '../needs-machine.js';
import { createStateCheck } from './check.js';
import type { Recorded } from './codec.js';
import { type Replay, type ReplayOptions, replayWith } from './fold.js';
import { fingerprintOf, type Machine } from './machine.js';

export const agentMachine: Machine = {
  kind: 'agent',
  initialState,
  step,
  fingerprint: fingerprintOf(agent.edges),
  isAtRest: ({ name }) => name === 'WaitingForUserInput' || name === 'ShuttingDown',
  createCheck: createStateCheck,
};

/** Folds the entries of an agent's session without performing anything: the state from before, and the proof that it is. */
export const replay = (
  header: Header,
  records: AsyncIterable<Recorded> | Iterable<Recorded>,
  options: ReplayOptions<AgentTypes> & { readonly machine?: Machine } = {},
): Promise<Replay<AgentTypes>> => replayWith(options.machine ?? agentMachine, header, records, options);
