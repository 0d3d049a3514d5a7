import { messagesOf } from '../agent/conversation.js';
import type { State } from '../agent/state.js';
import { formatWhen, type Look, oneLine, paint } from '../terminal/print.js';
import { grantText } from './approval.js';
import type { Opened } from './open-session.js';
import { messageLines } from './show-message.js';
import { storedJournals } from './stored.js';
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
  const { grants } = state.session;
  const allowed =
    grants.length === 0
      ? []
      : [
          paint(
            look,
            'dim',
            `still allowed: ${grants.map(grantText).join(', ')} (/permissions takes it back)`,
          ),
        ];
  return [head, ...torn, ...lastMessages(look, session.id, state), ...queue, ...allowed].join('\n');
};

/** Of the newest sessions so many are looked at: what is older is found by `/resume`. */
const LOOKED_AT = 50;

/** Where a session is new: the last one of this folder that something was said in, and the way back to it. */
export const tellEarlier = async (look: Look, workspace: string, sessionId: string): Promise<string> => {
  let left = LOOKED_AT;
  for await (const info of storedJournals().list()) {
    const { kind, title, changedAt } = info;
    const isOther = info.sessionId !== sessionId && kind === 'agent' && title !== '';
    if (isOther && info.workspace === workspace)
      return paint(
        look,
        'dim',
        oneLine(
          `last here: "${oneLine(title, 30)}", ${formatWhen(changedAt)} · /resume goes on with it`,
          look.columns,
        ),
      );
    if (--left === 0) return '';
  }
  return '';
};
