import { hash } from 'node:crypto';
import type { Message } from '../agent/message.js';
import type { Settings } from '../agent/settings.js';
import type { Session, State } from '../agent/state.js';
import { Log } from '../kernel/log.js';

/**
 * The check of the agent's states.
 *
 * 1. Closed messages are summed in a chain, message by message: a check costs the new messages only.
 * 2. Settings are written out anew only when they are another object: they hardly ever change.
 * 3. Everything else is summed as canonical JSON, keys sorted: the order in which an object was built does not count.
 */
export const sha256 = (text: string): string => hash('sha256', text, 'hex');

/** A key of an object, ready to be written: as its first field, or behind another. */
type Field = { readonly key: string; readonly first: string; readonly next: string };
/** The keys of objects that were built alike, sorted; and of those that have one more. */
type Shape = { readonly longer: Map<string, Shape>; fields: readonly Field[] | undefined };
const newShape = (): Shape => ({ longer: new Map(), fields: undefined });
const known = newShape();
/** Far more than states have; what a model invents as input of a tool must not fill the memory. */
const KNOWN_MAX = 2_000;
let knownCount = 0;

const sortFields = (keys: readonly string[]): readonly Field[] =>
  keys
    .toSorted()
    .map((key) => ({ key, first: `{${JSON.stringify(key)}:`, next: `,${JSON.stringify(key)}:` }));

/** States are built in few ways, and checked often: the keys of each way are sorted once. */
const fieldsOf = (value: object): readonly Field[] => {
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

/** What JSON.stringify writes in another way than it stands; most text has none of it. */
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

/** Parts of a state that are summed apart: its settings are written as null, its closed messages are left out. */
type Apart = Pick<Session, 'settings'> & Pick<Session['conversation'], 'closed'>;

/** `text`, and behind it the JSON of a value with sorted keys. Like JSON.stringify it leaves out what is undefined. */
const append = (text: string, value: unknown, apart?: Apart): string => {
  if (typeof value === 'string')
    return ESCAPED.test(value) ? text + JSON.stringify(value) : `${text}"${value}"`;
  if (typeof value === 'number' && Number.isFinite(value)) return text + value;
  if (typeof value !== 'object' || value === null) return text + (JSON.stringify(value) ?? 'null');
  if (value === apart?.settings) return `${text}null`;
  return Array.isArray(value) ? appendItems(text, value, apart) : appendFields(text, value, apart);
};

const appendItems = (text: string, items: readonly unknown[], apart?: Apart): string => {
  let longer = `${text}[`;
  for (const [index, item] of items.entries())
    longer = append(index === 0 ? longer : `${longer},`, item, apart);
  return `${longer}]`;
};

const appendFields = (text: string, value: object, apart?: Apart): string => {
  let longer = text;
  let isFirst = true;
  for (const { key, first, next } of fieldsOf(value)) {
    const field: unknown = (value as Record<string, unknown>)[key]; // one of its keys
    if (field === undefined || field === apart?.closed) continue;
    longer = append(longer + (isFirst ? first : next), field, apart);
    isFirst = false;
  }
  return isFirst ? `${text}{}` : `${longer}}`;
};

/** Makes checks of one session's states; remembers how far the conversation is summed. */
export const createStateCheck = (): ((state: State) => string) => {
  let summed: Log<Message> = Log.empty();
  let chain = '';
  const sumMessages = (messages: Log<Message>): string => {
    const goesOn = messages.continues(summed);
    if (!goesOn) chain = '';
    for (const message of messages.toArray(goesOn ? summed.length : 0))
      chain = sha256(append(chain, message));
    summed = messages;
    return chain;
  };
  let written: Settings | undefined;
  let settingsText = '';
  return (state) => {
    const { settings, conversation } = state.session;
    if (settings !== written) settingsText = append('', settings);
    written = settings;
    const before = sumMessages(conversation.closed) + settingsText;
    return sha256(append(before, state, { settings, closed: conversation.closed }));
  };
};
