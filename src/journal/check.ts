import { createHash } from 'node:crypto';
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
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** JSON with sorted keys. Like JSON.stringify it leaves out what is undefined. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([left], [right]) => (left < right ? -1 : 1));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(',')}}`;
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
