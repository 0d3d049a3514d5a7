import { faultIn, trimmed } from '@pawl/machine/kernel/shape';
import { carrySession, stateFrom } from '../../machine/carried-session.js';
import { collectPastFiles } from '../../machine/file-hashes-from-events.js';
import { agent, initialState } from '../../machine/machine.js';
import { MACHINE_VERSION } from '../../machine/machine-version.js';
import { eventShape } from '../../machine/shapes/event-shapes.js';
import { recordedSettingsShape } from '../../machine/shapes/settings-shapes.js';
import type { State } from '../../machine/state.js';
import type { Header } from '../../ports/journal.js';
import type { AgentTypes } from '../../ports/machine-types.js';
import type { Recorded } from '../format/line-codec.js';
import { fingerprintOf, type JournaledMachine } from '../journaled-machine.js';
import { type Replay, type ReplayOptions, replayWith } from './fold.js';
import { createStateCheck } from './hash-state.js';

export const agentMachine: JournaledMachine = {
  kind: 'agent',
  initialState,
  // events in a journal were validated when they were written
  step: agent.stepUnchecked,
  fingerprint: fingerprintOf(agent.edges),
  version: MACHINE_VERSION,
  upgradeIn: (event) => (event.type === 'Resumed' ? event.upgrade?.to : undefined),
  carry: ({ model }) => {
    const carrier = carrySession(model);
    return {
      see: carrier.see,
      missed: (seq, state) => {
        const session = carrier.missed(seq);
        return session === null ? null : { session, state: stateFrom(state, session) };
      },
    };
  },
  isAtRest: ({ name }) => name === 'WaitingForUserInput' || name === 'ShuttingDown',
  growing: (state) => (state.name === 'ExecutingTools' ? state.calls.length : 0),
  collectPast: collectPastFiles,
  createCheck: createStateCheck,
  faultIn: {
    settings: (settings) => faultIn(recordedSettingsShape, trimmed(recordedSettingsShape, settings), 'they'),
    event: (event) => faultIn(eventShape, trimmed(eventShape, event), 'it'),
  },
  snapshots: {
    restOf: (state) => ({ ...state, session: { ...state.session, conversation: openOf(state) } }),
    messagesOf: (state) => state.session.conversation.closed,
    join: (rest, closed) => {
      const state = rest as State; // Safe: restOf has made it, but for the closed messages
      const conversation = { closed, open: state.session.conversation.open };
      return { ...state, session: { ...state.session, conversation } };
    },
    createCheck: createStateCheck,
  },
};

const openOf = ({ session }: State) => ({ open: session.conversation.open });

/** Folds an agent session's entries without performing any action; returns the state and the result of its checks. */
export const replay = (
  header: Header,
  records: AsyncIterable<Recorded> | Iterable<Recorded>,
  options: ReplayOptions<AgentTypes> & { readonly machine?: JournaledMachine } = {},
): Promise<Replay<AgentTypes>> => replayWith(options.machine ?? agentMachine, header, records, options);
