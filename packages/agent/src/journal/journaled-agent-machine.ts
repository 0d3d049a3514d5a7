/**
 * The agent's machine as a journal needs it: how its events are checked, folded, and hashed.
 *
 * A state check is the hash of a state; it stands beside entries, so that a replay shows at which
 * entry another machine comes to another state. Closed messages are those up to the last reply:
 * they never change. A snapshot is a stored state, from which a long session is opened. A carrier
 * reads a session of an earlier machine from its events alone, since this machine may not accept
 * them all. (To fold is to apply entries to a state, one after the other.)
 *
 * From top to bottom: the state check; the JSON that it hashes; and the machine, whose fields
 * `JournaledMachine` explains (replay.ts).
 */

import { hash } from 'node:crypto';
import { AppendList } from '@pawl/machine/kernel/append-list';
import { faultIn, trimmed } from '@pawl/machine/kernel/shape';
import { carrySession, stateFrom } from '../machine/carried-session.js';
import type { On } from '../machine/event.js';
import { recordedSettingsShape } from '../machine/incoming-shapes.js';
import { agent, initialState, MACHINE_VERSION } from '../machine/machine.js';
import type { Message } from '../machine/message.js';
import { collectPastFiles } from '../machine/seen-files.js';
import type { Settings } from '../machine/settings.js';
import { eventShape } from '../machine/shapes.js';
import type { SessionData, State } from '../machine/state.js';
import type { AgentTypes, Header, MachineTypes } from '../ports/journal.js';
import type { Recorded } from './codec.js';
import {
  edgesFingerprint,
  type JournaledMachine,
  machineKind,
  type Replay,
  type ReplayOptions,
  refuseNewer,
  replayWith,
  type SummedMessages,
  versionIn,
} from './replay.js';

// ---- The state check ----

type StateCheck = ((state: State) => string) & {
  /** The closed messages of the last state that was hashed. */
  summed(): SummedMessages;
};

/**
 * Creates the hash function for one session's states; it remembers which messages are already
 * hashed. With `start`, some are hashed already.
 *
 * 1. Closed messages are hashed as a chain, so a check costs only the new messages.
 * 2. Settings are serialized again only when they are another object, since they rarely change.
 * 3. Everything else is hashed as canonical JSON with sorted keys, so the order of an object's keys
 *    does not matter.
 * 4. Deeply nested values don't overflow the stack: older journals hold tool input of any depth.
 */
export const createStateCheck = (
  start: SummedMessages = { messages: AppendList.empty(), chain: '' },
): StateCheck => {
  let { messages: hashed, chain } = start;
  const hashMessages = (messages: AppendList<Message>): string => {
    const goesOn = messages.continues(hashed); // the same messages, perhaps with more behind them
    if (!goesOn) chain = '';
    for (const message of messages.toArray(goesOn ? hashed.length : 0))
      chain = sha256(appendJson(chain, message));
    hashed = messages;
    return chain;
  };
  let serialized: Settings | undefined;
  let settingsText = '';
  const check = (state: State): string => {
    const { settings, conversation } = state.session;
    if (settings !== serialized) settingsText = appendJson('', settings);
    serialized = settings;
    const prefix = hashMessages(conversation.closed) + settingsText;
    // the rest of the state: without the two parts that the prefix stands for
    return sha256(appendJson(prefix, state, 0, { settings, closed: conversation.closed }));
  };
  return Object.assign(check, { summed: () => ({ messages: hashed, chain }) });
};

export const sha256 = (text: string): string => hash('sha256', text, 'hex');

// ---- JSON with sorted keys ----

/** A key as JSON text: as the first field of an object, or after another field (with a comma). */
type Field = { readonly key: string; readonly first: string; readonly next: string };
/**
 * A node in a tree of key sequences: the sorted keys of objects with this sequence, and the nodes
 * with one key more.
 */
type KeyNode = { readonly longer: Map<string, KeyNode>; fields: readonly Field[] | undefined };
const newNode = (): KeyNode => ({ longer: new Map(), fields: undefined });
const rootNode = newNode();
/**
 * Limit of cached nodes: far more than states have, so that tool input with invented keys can't
 * fill the memory.
 */
const KNOWN_MAX = 2_000;
let knownCount = 0;

const sortFields = (keys: readonly string[]): readonly Field[] =>
  keys
    .toSorted()
    .map((key) => ({ key, first: `{${JSON.stringify(key)}:`, next: `,${JSON.stringify(key)}:` }));

/**
 * The sorted keys of an object. Cached by key sequence, since states have few and are hashed often.
 */
const sortedFields = (value: object): readonly Field[] => {
  const keys = Object.keys(value);
  let node = rootNode;
  for (const key of keys) {
    let longer = node.longer.get(key);
    if (longer === undefined) {
      if (knownCount === KNOWN_MAX) return sortFields(keys);
      knownCount += 1;
      longer = newNode();
      node.longer.set(key, longer);
    }
    node = longer;
  }
  node.fields ??= sortFields(keys);
  return node.fields;
};

/** Characters that JSON.stringify escapes; most texts have none. */
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

/**
 * Parts of a state that are hashed apart, found by their identity: settings are written as null,
 * closed messages are left out.
 */
type Apart = Pick<SessionData, 'settings'> & Pick<SessionData['conversation'], 'closed'>;

/** Depth above which an explicit stack replaces recursion. */
const RECURSION_MAX = 200;

/** JSON of a value that is neither array nor object; null for undefined. */
const plainJson = (value: unknown): string => {
  if (typeof value === 'string') return ESCAPED.test(value) ? JSON.stringify(value) : `"${value}"`;
  if (typeof value === 'number' && Number.isFinite(value)) return `${value}`;
  return JSON.stringify(value) ?? 'null';
};

/** The fields of an object that are written, in order. */
const writtenFields = (value: object): readonly (readonly [Field, unknown])[] =>
  sortedFields(value)
    // The key is one of the object's own.
    .map((field) => [field, (value as Record<string, unknown>)[field.key]] as const)
    .filter(([, inner]) => inner !== undefined);

/**
 * Appends a value to `text` as JSON with sorted keys. Like JSON.stringify it leaves out undefined
 * fields.
 */
const appendJson = (text: string, value: unknown, depth = 0, apart?: Apart): string => {
  if (typeof value !== 'object' || value === null) return text + plainJson(value);
  if (value === apart?.settings) return `${text}null`;
  if (depth === RECURSION_MAX) return text + deepJson(value);
  return Array.isArray(value)
    ? appendItems(text, value, depth + 1, apart)
    : appendFields(text, value, depth + 1, apart);
};

const appendItems = (
  text: string,
  items: readonly unknown[],
  depth: number,
  apart?: Apart,
): string => {
  let longer = `${text}[`;
  for (const [index, item] of items.entries())
    longer = appendJson(index === 0 ? longer : `${longer},`, item, depth, apart);
  return `${longer}]`;
};

const appendFields = (text: string, value: object, depth: number, apart?: Apart): string => {
  let longer = text;
  let isFirst = true;
  for (const { key, first, next } of sortedFields(value)) {
    const field: unknown = (value as Record<string, unknown>)[key]; // one of its keys
    if (field === undefined || field === apart?.closed) continue;
    longer = appendJson(longer + (isFirst ? first : next), field, depth, apart);
    isFirst = false;
  }
  return isFirst ? `${text}{}` : `${longer}}`;
};

/** A stack item that is still to be written: text, or a value. */
type Pending = { readonly text: string } | { readonly value: unknown };

const pendingPieces = (value: object): readonly Pending[] => {
  if (Array.isArray(value)) {
    const items = value.flatMap((item, index) => [
      { text: index === 0 ? '[' : ',' },
      { value: item },
    ]);
    return items.length === 0 ? [{ text: '[]' }] : [...items, { text: ']' }];
  }
  const fields = writtenFields(value).flatMap(([field, inner], index) => [
    { text: index === 0 ? field.first : field.next },
    { value: inner },
  ]);
  return fields.length === 0 ? [{ text: '{}' }] : [...fields, { text: '}' }];
};

/** The same text as `appendJson` writes, without recursion. */
const deepJson = (root: object): string => {
  const pieces: string[] = [];
  const waiting: Pending[] = [{ value: root }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if ('text' in next) pieces.push(next.text);
    else if (typeof next.value !== 'object' || next.value === null)
      pieces.push(plainJson(next.value));
    else for (const piece of pendingPieces(next.value).toReversed()) waiting.push(piece);
  }
  return pieces.join('');
};

// ---- The machine ----

export const agentMachine: JournaledMachine = {
  kind: 'agent',
  initialState,
  // events in a journal were validated when they were written
  step: agent.stepUnchecked,
  fingerprint: edgesFingerprint(agent.edges),
  version: MACHINE_VERSION,
  // the version of the machine that goes on with the session from this event
  upgradeIn: (event) => (event.type === 'Resumed' ? event.upgrade?.to : undefined),
  carry: ({ model }) => {
    const carrier = carrySession(model);
    return {
      see: carrier.see,
      agree: carrier.agree,
      // the session as its events tell it, and a state for it; null if this machine missed nothing
      missed: (seq, state) => {
        const session = carrier.missed(seq);
        return session === null ? null : { session, state: stateFrom(state, session) };
      },
    };
  },
  isAtRest: ({ name }) => name === 'WaitingForUserInput' || name === 'ShuttingDown',
  // each check hashes all calls of the batch again, and one reply may ask for thousands
  growing: (state) => (state.name === 'ExecutingTools' ? state.calls.length : 0),
  // what calls did to files, for a session that is resumed
  collectPast: collectPastFiles,
  createCheck: createStateCheck,
  faultIn: {
    settings: (settings) =>
      faultIn(recordedSettingsShape, trimmed(recordedSettingsShape, settings), 'they'),
    event: (event) => faultIn(eventShape, trimmed(eventShape, event), 'it'),
  },
  // a snapshot stores the closed messages apart from the rest of the state
  snapshots: {
    restOf: (state) => ({
      ...state,
      session: { ...state.session, conversation: openMessages(state) },
    }),
    messagesOf: (state) => state.session.conversation.closed,
    join: (rest, closed) => {
      const state = rest as State; // Safe: restOf has made it, but for the closed messages
      const conversation = { closed, open: state.session.conversation.open };
      return { ...state, session: { ...state.session, conversation } };
    },
    // with the hashes of a snapshot to begin with
    createCheck: createStateCheck,
  },
};

const openMessages = ({ session }: State) => ({ open: session.conversation.open });

/**
 * Folds an agent session's entries without performing any action; returns the state and the result
 * of its checks.
 */
export const replay = (
  header: Header,
  records: AsyncIterable<Recorded> | Iterable<Recorded>,
  options: ReplayOptions<AgentTypes> & { readonly machine?: JournaledMachine } = {},
): Promise<Replay<AgentTypes>> =>
  replayWith(options.machine ?? agentMachine, header, records, options);

/**
 * Throws `newerVersion` if a later machine wrote the journal, or took it over in one of these
 * entries. Journals of other machines pass.
 */
export const refuseNewerAgent = (
  path: string,
  header: Header<MachineTypes>,
  records: readonly Recorded<MachineTypes>[],
): void => {
  if (machineKind(header) !== agentMachine.kind) return;
  const place = { path, machine: agentMachine };
  refuseNewer(place, versionIn(header));
  for (const { entry } of records) {
    const event = entry.event as On<'Resumed'> | null; // only its type and `upgrade` are read
    if (event?.type === 'Resumed') refuseNewer(place, agentMachine.upgradeIn?.(event) ?? 0);
  }
};
