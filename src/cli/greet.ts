import { messagesOf } from '../agent/conversation.js';
import type { State } from '../agent/state.js';
import { type Look, paint } from '../terminal/print.js';
import type { Opened } from './open-session.js';
import { messageLines } from './show-message.js';
import { tornText } from './torn-text.js';

/** Messages of a resumed session that are shown again, and lines of each. */
const SHOWN_MESSAGES = 4;
const SHOWN_LINES = 10;

const lastMessages = (look: Look, sessionId: string, state: State): readonly string[] => {
  const messages = messagesOf(state.session.conversation);
  const left = messages.length - SHOWN_MESSAGES;
  const shown = messages.slice(-SHOWN_MESSAGES).map((message) => {
    const lines = messageLines(look, message).split('\n');
    return lines.length > SHOWN_LINES + 2
      ? [
          ...lines.slice(0, SHOWN_LINES),
          paint(look, 'dim', `… ${lines.length - SHOWN_LINES} more lines`),
        ].join('\n')
      : lines.join('\n');
  });
  return left > 0
    ? [paint(look, 'dim', `… ${left} earlier messages: pawl show ${sessionId}`), ...shown]
    : shown;
};

/** What is said when a session is there: which, and of one that is gone on with, where it stood. */
export const greeting = (look: Look, { session, settings, resumed }: Opened, state: State): string => {
  const head = paint(
    look,
    'dim',
    `${settings.model} · ${settings.workspace} · session ${session.id} · /help`,
  );
  if (!resumed) return head;
  const { tornTail } = session;
  const torn = tornTail === null ? [] : [paint(look, 'yellow', tornText(tornTail))];
  const waits = state.session.queue.length;
  const queue =
    waits === 0 ? [] : [paint(look, 'dim', `${waits} of your texts wait; they go with your next one`)];
  return [head, ...torn, ...lastMessages(look, session.id, state), ...queue].join('\n');
};
