import { hash } from 'node:crypto';
import type { Message } from '../agent/message.js';
import type { Settings } from '../agent/settings.js';
import type { State } from '../agent/state.js';
import { Log } from '../kernel/log.js';

/**
 * The check of the agent's states.
 *
 * 1. Closed messages are summed in a chain, message by message: a check costs the new messages only.
 * 2. Settings are written out anew only when they are another object: they hardly ever change.
 * 3. Everything else is summed as canonical JSON, keys sorted: the order in which an object was built does not count.
 */
export const sha256 = (text: string): string => hash('sha256', text, 'hex');

/** The keys of objects that were built alike, sorted and ready to be written. */
type Shape = {
  readonly longer: Map<string, Shape>;
  fields: readonly { readonly key: string; readonly opening: string }[] | undefined;
};
const newShape = (): Shape => ({ longer: new Map(), fields: undefined });
const known = newShape();
/** Far more than states have; what a model invents as input of a tool must not fill the memory. */
const KNOWN_MAX = 2_000;
let knownCount = 0;

const sortFields = (keys: readonly string[]): NonNullable<Shape['fields']> =>
  keys.toSorted().map((key) => ({ key, opening: `${JSON.stringify(key)}:` }));

/** States are built in few ways, and checked often: the keys of each way are sorted once. */
const fieldsOf = (value: object): NonNullable<Shape['fields']> => {
  const keys = Object.keys(value);
  let shape = known;
  for (const key of keys) {
    let longer = shape.longer.get(key);
    if (longer === undefined) {
      if (knownCount === KNOWN_MAX) return sortFields(keys);
      knownCount += 1;
      longer = newShape();
      shape.longer.set(key, longer);
    }
    shape = longer;
  }
  shape.fields ??= sortFields(keys);
  return shape.fields;
};

/** Names, ids and most words: nothing in them needs an escape. */
const PLAIN = /^[\w .,:;/()-]{0,40}$/;
const quoted = (text: string): string => (PLAIN.test(text) ? `"${text}"` : JSON.stringify(text));

/** JSON with sorted keys. Like JSON.stringify it leaves out what is undefined. */
const canonical = (value: unknown): string => {
  if (typeof value === 'number' && Number.isFinite(value)) return `${value}`;
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  let text = '';
  if (Array.isArray(value)) {
    for (const item of value) text += text === '' ? canonical(item) : `,${canonical(item)}`;
    return `[${text}]`;
  }
  for (const { key, opening } of fieldsOf(value)) {
    const field: unknown = (value as Record<string, unknown>)[key]; // one of its keys
    if (field !== undefined) text += `${text === '' ? '' : ','}${opening}${canonical(field)}`;
  }
  return `{${text}}`;
};

/** Makes checks of one session's states; remembers how far the conversation is summed. */
export const createStateCheck = (): ((state: State) => string) => {
  let summed: Log<Message> = Log.empty();
  let chain = '';
  const sumMessages = (messages: Log<Message>): string => {
    const goesOn = messages.continues(summed);
    if (!goesOn) chain = '';
    for (const message of messages.toArray(goesOn ? summed.length : 0))
      chain = sha256(chain + canonical(message));
    summed = messages;
    return chain;
  };
  let settings: Settings | undefined;
  let settingsText = '';
  return (state) => {
    const { conversation, ...session } = state.session;
    if (session.settings !== settings) settingsText = canonical(session.settings);
    settings = session.settings;
    const rest = {
      ...state,
      session: { ...session, settings: null, conversation: { open: conversation.open } },
    };
    return sha256(sumMessages(conversation.closed) + settingsText + canonical(rest));
  };
};
