import { AppendList } from '@pawl/machine/kernel/append-list';
import type { Machine } from '@pawl/machine/kernel/make-machine';
import { refuseEvent } from '@pawl/machine/kernel/step-function';
import type { Action } from './action.js';
import { stateBefore } from './carried-session.js';
import { emptyConversation } from './conversation.js';
import type { Event } from './event.js';
import { noStreaks } from './moves/tools/count-streaks.js';
import { readLimits, type Settings } from './settings.js';
import type { In, SessionData, State } from './state.js';
import { agentMachine } from './state-and-event-names.js';
import { table } from './table.js';

const plain = agentMachine(table);

const NO_STATE =
  'the state is a plain copy, or none: carry states through JSON with encodeState and decodeState';

/** Whether it is a state of the machine: the conversation of a copy that went through JSON is no conversation. */
const isState = (state: State): boolean => {
  const { session } = (state ?? {}) as Partial<State>; // anything may be given
  return session?.conversation?.closed instanceof AppendList;
};

/**
 * The agent's machine: pure and total. `step` never throws for a state of `initialState`, `step` or `decodeState`; any
 * other value, such as a copy of a state, changes nothing and leaves a diagnostic of the kind `malformed`. A `Resumed`
 * that hands the session over from an earlier machine is applied to the session that it carries.
 */
export const agent: Machine<State, Event, Action> = {
  ...plain,
  step: (state, event) => {
    if (!isState(state)) return refuseEvent(state ?? { name: '' }, event, NO_STATE);
    const next = plain.step(state, event);
    const before = isMalformed(next) ? state : stateBefore(state, event);
    return before === state ? next : plain.stepUnchecked(before, event);
  },
  stepUnchecked: (state, event) => plain.stepUnchecked(stateBefore(state, event), event),
};

const isMalformed = ({ diagnostics }: ReturnType<typeof plain.step>): boolean =>
  diagnostics.some(({ kind }) => kind === 'malformed');

/** One step of the machine: the same state and event give the same result. */
export const step = agent.step;

/** The state of a new session, before Start. */
export const initialState = (given: Settings): In<'Ready'> => {
  const limits = readLimits(given.limits);
  return { name: 'Ready', session: initialSession({ ...given, limits }) };
};

const initialSession = (settings: Settings): SessionData => ({
  conversation: emptyConversation,
  queue: [],
  settings,
  grants: [],
  usage: {
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: 0,
    unpriced: 0,
  },
  unaccounted: [],
  contextTokens: 0,
  slices: { usd: settings.limits.usd, tokens: settings.limits.tokens },
  emptyReplies: 0,
  mayCompact: 'yes',
  notes: [],
  turn: {
    turnId: '',
    rounds: 0,
    truncations: 0,
    streaks: noStreaks,
    finishing: 'no',
    startedAt: 0,
    timeLimit: null,
    warned: [],
  },
  counters: { request: 0, batch: 0, timer: 0, hook: 0, compaction: 0, input: 0, turn: 0 },
  epoch: 0,
});
