import { AppendList } from '@pawl/machine/kernel/append-list';
import { faultIn, isRecord, list, nullable } from '@pawl/machine/kernel/shape';
import { agent, initialState } from './machine.js';
import { MACHINE_VERSION } from './machine-version.js';
import type { Message } from './message.js';
import { defaultSettings } from './settings.js';
import { messageShape } from './shapes/value-shapes.js';
import type { RestingState, State } from './state.js';

/** States as plain JSON: a conversation is no plain value, so a state does not survive JSON or structuredClone by itself. */

export type EncodedState = {
  /** The version of the machine: only the same version can decode it. */
  readonly machineVersion: number;
  readonly state: { readonly name: string; readonly session: { readonly [field: string]: unknown } };
};

/** Never throws. `invalid`: it is no encoded state. `otherVersion`: fold the session's events again instead. */
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

type Kind = 'text' | 'number' | 'list' | 'object' | 'any';

/** The fields of each state, besides its name and its session. */
const FIELDS: { readonly [N in RestingState['name']]: Readonly<Record<string, Kind>> } = {
  Ready: {},
  WaitingForUserInput: { reason: 'object', next: 'text' },
  CallingLlm: { purpose: 'text', requestId: 'text', attempt: 'number', partial: 'text', call: 'object' },
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
  ShuttingDown: {},
};

const kindOf = (value: unknown): Kind => {
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'number';
  if (Array.isArray(value)) return 'list';
  return isRecord(value) ? 'object' : 'any';
};

const fieldFault = (
  place: string,
  value: Readonly<Record<string, unknown>>,
  kinds: Readonly<Record<string, Kind>>,
): string | null => {
  for (const [field, kind] of Object.entries(kinds))
    if (kind !== 'any' && kindOf(value[field]) !== kind)
      return `${place}.${field} must be ${kind === 'object' ? 'an' : 'a'} ${kind}`;
  return null;
};

const sessionKinds = (): Readonly<Record<string, Kind>> => {
  const { session } = initialState({ ...defaultSettings, model: '', workspace: '' });
  return Object.fromEntries(Object.entries(session).map(([field, value]) => [field, kindOf(value)]));
};

const messages = list(messageShape);
const openMessage = nullable(messageShape);

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

/** The state that `encodeState` made plain. Checks the form of what comes from outside, not its sense. */
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
  const conversation = { closed: AppendList.from<Message>([...plain.session.conversation.closed]), open };
  const decoded = { ...plain, session: { ...plain.session, conversation } };
  return { kind: 'state', state: decoded as State }; // safe for the same reason
};
