/**
 * The agent's machine: its step, its first state, its version, and its states as plain JSON.
 *
 * The journal stores events, not states. `encodeState` is for users of the library who keep states
 * themselves.
 */

import { AppendList } from '@pawl/machine/kernel/append-list';
import { type Machine, refuseEvent } from '@pawl/machine/kernel/machine';
import { faultIn, isRecord, list, nullable } from '@pawl/machine/kernel/shape';
import type { Step } from '@pawl/machine/kernel/table';
import type { Action } from './action.js';
import { stateFrom } from './carried-session.js';
import { type Conversation, emptyConversation } from './conversation.js';
import type { Event } from './event.js';
import type { Message } from './message.js';
import { noStreaks } from './moves/budget.js';
import { usageWarnings } from './moves/request.js';
import { agentMachine } from './names.js';
import { defaultSettings, nothingSpent, readLimits, type Settings } from './settings.js';
import { messageShape } from './shapes.js';
import {
  type In,
  NOTHING_COUNTED,
  type RestingState,
  type SessionData,
  type State,
} from './state.js';
import { table } from './table.js';

/** The machine of the table; `agent` below also takes over sessions of earlier machines. */
const plain = agentMachine(table);

const NO_STATE =
  'the state is a plain copy, or none: carry states through JSON with encodeState and decodeState';

/**
 * Whether it is a state of the machine: the conversation of a copy that went through JSON is no
 * conversation.
 */
const isState = (state: State): boolean => {
  const { session } = (state ?? {}) as Partial<State>; // any value is possible
  return session?.conversation?.closed instanceof AppendList;
};

/** The state before an event: an upgrade replaces it by the session that it carries. */
export const stateBefore = (state: State, event: Event): State =>
  // Stryker disable next-line ConditionalExpression: asked for the compiler
  event.type === 'Resumed' &&
  event.upgrade?.session !== undefined &&
  event.epoch > state.session.epoch
    ? stateFrom(state, event.upgrade.session)
    : state;

/**
 * The agent's machine: pure and total. `step` never throws for a state of `initialState` or `step`,
 * or one that went through `encodeState` and `decodeState`; a copy of a state changes nothing and
 * leaves a diagnostic of the kind `malformed`. A `Resumed` that hands the session over from an
 * earlier machine is applied to the session that it carries.
 */
export const agent: Machine<State, Event, Action> = {
  ...plain,
  step: (state, event) => {
    // the value as it is, with a diagnostic
    // Stryker disable next-line ObjectLiteral: a step of no state is one of no name
    if (!isState(state)) return refuseEvent(state ?? { name: '' }, event, NO_STATE);
    // The checked step comes first: only it tells whether the event has the form of one.
    const next = plain.step(state, event);
    // Stryker disable next-line ConditionalExpression: it is the only diagnostic
    const isMalformed = next.diagnostics.some(({ kind }) => kind === 'malformed');
    const before = isMalformed ? state : stateBefore(state, event);
    return withWarnings(before, before === state ? next : plain.stepUnchecked(before, event));
  },
  stepUnchecked: (state, event) => {
    const before = stateBefore(state, event);
    return withWarnings(before, plain.stepUnchecked(before, event));
  },
};

/** Usage counts in many cells of the table: what it needs to say is said here for all of them. */
const withWarnings = (before: State, next: Step<State, Action>): Step<State, Action> => {
  const { usage, reserved } = before.session;
  const isSame = next.state.session.usage.estimated === usage.estimated;
  if (next.state.session.usage === usage || (isSame && reserved.length === 0)) return next;
  const warnings = usageWarnings(before.session, next.state.session);
  return warnings.length === 0 ? next : { ...next, actions: [...next.actions, ...warnings] };
};

/** One step of the machine: the same state and event give the same result. */
export const step = agent.step;

/**
 * The conversation of a state as closing the session now would leave it: each call has its result,
 * and text of a reply that broke off is stored.
 */
export const settledConversation = (state: State): Conversation =>
  agent.stepUnchecked(state, { type: 'ShutdownRequested', at: 0 }).state.session.conversation;

/** The state of a new session, before Start. */
export const initialState = (settings: Settings): In<'Ready'> => {
  const limits = readLimits(settings.limits);
  return { name: 'Ready', session: initialSession({ ...settings, limits }) };
};

const initialSession = (settings: Settings): SessionData => ({
  conversation: emptyConversation,
  queue: [],
  settings,
  grants: [],
  usage: nothingSpent,
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
    objections: 0,
  },
  counters: { request: 0, batch: 0, timer: 0, hook: 0, compaction: 0, input: 0, turn: 0 },
  epoch: 0,
  reserved: [],
  measured: NOTHING_COUNTED,
  refusedPictures: [],
});

/**
 * Version of the agent's machine. Journals, snapshots and calls of the engine name it.
 *
 * Raise it by hand when old events lead to other states than before: when states, events, ids,
 * limits or texts in states change. A test compares the table and the shapes with it, and golden
 * journals of this version must lead to their states. Journals without a version are of version 1.
 */
export const MACHINE_VERSION = 5;

/*
 * ---- States as plain JSON ----
 *
 * A conversation is no plain value, so a state does not survive JSON or structuredClone by itself.
 */

/** A state as plain JSON, with the version of its machine. */
export type EncodedState = {
  /** The version of the machine: only the same version can decode it. */
  readonly machineVersion: number;
  readonly state: {
    readonly name: string;
    readonly session: { readonly [field: string]: unknown };
  };
};

/**
 * Never throws. `invalid`: it is no encoded state. `otherVersion`: fold the session's events again
 * instead.
 */
export type DecodedState =
  | { readonly kind: 'state'; readonly state: State }
  | { readonly kind: 'invalid'; readonly why: string }
  | { readonly kind: 'otherVersion'; readonly version: number };

/** A state as plain JSON. `decodeState` gives it back. */
export const encodeState = (state: State): EncodedState => {
  const { closed, open } = state.session.conversation;
  const conversation = { closed: closed.toArray(), open };
  return {
    machineVersion: MACHINE_VERSION,
    state: { ...state, session: { ...state.session, conversation } },
  };
};

/** What a field may hold. */
type Kind = 'text' | 'number' | 'list' | 'object' | 'any';

/** The fields of each state, besides its name and its session. */
const FIELDS: { readonly [N in RestingState['name']]: Readonly<Record<string, Kind>> } = {
  Ready: {},
  WaitingForUserInput: { reason: 'object', next: 'text' },
  CallingLlm: {
    purpose: 'text',
    requestId: 'text',
    attempt: 'number',
    partial: 'text',
    call: 'object',
  },
  Error: {
    purpose: 'text',
    attempt: 'number',
    error: 'object',
    timerId: 'text',
    dueAt: 'number',
    delayMs: 'number',
  },
  ExecutingTools: { batchId: 'text', calls: 'list', phase: 'object' },
  PostToolsHook: { phase: 'text', hookId: 'text', mutated: 'list', tree: 'text' },
  Compacting: { compactionId: 'text', length: 'number', mode: 'object' },
  Rewinding: { rewindId: 'text', to: 'number', plan: 'text' },
  ShuttingDown: {},
};

const valueKind = (value: unknown): Kind => {
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'number';
  if (Array.isArray(value)) return 'list';
  return isRecord(value) ? 'object' : 'any';
};

/** The first field of another kind; null if all fit. */
const fieldFault = (
  place: string,
  value: Readonly<Record<string, unknown>>,
  kinds: Readonly<Record<string, Kind>>,
): string | null => {
  for (const [field, kind] of Object.entries(kinds)) {
    // Stryker disable next-line ConditionalExpression: no field is null at the beginning
    if (kind !== 'any' && valueKind(value[field]) !== kind)
      return `${place}.${field} must be ${kind === 'object' ? 'an' : 'a'} ${kind}`;
  }
  return null;
};

const sessionKinds = (): Readonly<Record<string, Kind>> => {
  // Stryker disable next-line ObjectLiteral: only the kinds of its fields are looked at
  const { session } = initialState({ ...defaultSettings, model: '', workspace: '' });
  return Object.fromEntries(
    Object.entries(session).map(([field, value]) => [field, valueKind(value)]),
  );
};

const messages = list(messageShape);
const openMessage = nullable(messageShape);

/** Why a value is not an encoded state; null if it is one. */
const stateFault = (state: unknown): string | null => {
  if (!isRecord(state) || typeof state.name !== 'string') return 'state.name must be a text';
  const { name, session } = state;
  if (!Object.hasOwn(FIELDS, name) || !Object.hasOwn(agent.states, name))
    return `state.name must be one of ${Object.keys(FIELDS).join(', ')}`;
  if (!isRecord(session)) return 'state.session must be an object';
  const { conversation } = session;
  const closed = isRecord(conversation) ? conversation.closed : null;
  const open = isRecord(conversation) ? conversation.open : undefined;
  return (
    fieldFault('state', state, FIELDS[name as RestingState['name']]) ?? // one of its keys
    fieldFault('state.session', session, sessionKinds()) ??
    faultIn(messages, closed, 'state.session.conversation.closed') ??
    faultIn(openMessage, open, 'state.session.conversation.open')
  );
};

/**
 * The state that `encodeState` made plain. Checks the form of what comes from outside, not its
 * sense.
 */
export const decodeState = (value: unknown): DecodedState => {
  if (!isRecord(value) || typeof value.machineVersion !== 'number')
    return { kind: 'invalid', why: 'it has no machineVersion: encode a state with encodeState' };
  const { machineVersion, state } = value;
  if (machineVersion !== MACHINE_VERSION) return { kind: 'otherVersion', version: machineVersion };
  const why = stateFault(state);
  if (why !== null) return { kind: 'invalid', why };
  // Safe: stateFault has looked at the parts that are used here.
  const plain = state as State & {
    readonly session: { readonly conversation: { readonly closed: readonly Message[] } };
  };
  const { open } = plain.session.conversation;
  const conversation = {
    closed: AppendList.from<Message>([...plain.session.conversation.closed]),
    open,
  };
  const decoded = { ...plain, session: { ...plain.session, conversation } };
  return { kind: 'state', state: decoded as State }; // safe for the same reason
};
