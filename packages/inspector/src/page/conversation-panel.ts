/**
 * The conversation after the selected entry. The last messages are drawn at once, earlier ones on
 * demand.
 */

import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { groupDigits } from '@pawl/agent/platform/text';
import { arrange, button, make, plural } from './elements.js';
import type { PageState, Panel } from './page-state.js';

type Part = Message['parts'][number];

const MESSAGES_AT_ONCE = 40;
const CHARACTERS_AT_ONCE = 4_000;

const longText = (text: string, kind: string): HTMLElement => {
  const pre = make(
    'pre',
    { class: kind, tabindex: kind === 'code' ? 0 : null },
    text.slice(0, CHARACTERS_AT_ONCE),
  );
  if (text.length <= CHARACTERS_AT_ONCE) return pre;
  const rest = text.length - CHARACTERS_AT_ONCE;
  const more = button(`Show ${groupDigits(rest)} more characters`, { class: 'more' }, () => {
    pre.textContent = text;
    more.remove();
  });
  return make('div', {}, pre, more);
};

const drawImages = (part: Part): readonly HTMLElement[] =>
  'images' in part
    ? (part.images ?? []).map(({ mediaType, sha256 }) =>
        make('p', { class: 'faint' }, `${mediaType}, blob ${sha256.slice(0, 12)}…`),
      )
    : [];

const partView = (part: Part): HTMLElement => {
  switch (part.type) {
    case 'text': {
      const origin = 'origin' in part && part.origin !== 'user' ? part.origin : null;
      const heading = origin === null ? null : make('span', { class: 'tag' }, origin);
      return make(
        'div',
        { class: 'part text' },
        heading,
        longText(part.text, 'prose'),
        ...drawImages(part),
      );
    }
    case 'reasoning':
      return make(
        'details',
        { class: 'part reasoning' },
        make('summary', {}, 'Reasoning'),
        longText(part.text, 'prose'),
      );
    case 'call':
      return make(
        'div',
        { class: 'part call' },
        make('span', { class: 'tag' }, `calls ${part.tool}`),
        longText(part.rawInput ?? JSON.stringify(part.input, null, 2), 'code'),
      );
    case 'result':
      return make(
        'div',
        { class: `part result${part.failed ? ' failed' : ''}` },
        make('span', { class: 'tag' }, `${part.tool} ${part.failed ? 'failed' : 'answered'}`),
        longText(part.text, 'code'),
        ...drawImages(part),
      );
    default:
      return part satisfies never;
  }
};

const getSpeaker = ({ role, parts }: Message): 'model' | 'tools' | 'user' => {
  if (role === 'assistant') return 'model';
  return parts[0]?.type === 'result' ? 'tools' : 'user';
};
const SPEAKERS = { model: 'Pawl', tools: 'Results', user: 'You' };

const messageView = (message: Message): HTMLElement => {
  const speaker = getSpeaker(message);
  return make(
    'article',
    { class: `message ${speaker}` },
    make(
      'h3',
      {},
      SPEAKERS[speaker],
      message.role === 'assistant' && message.cut ? ' (cut off)' : null,
    ),
    ...message.parts.map(partView),
  );
};

export const conversationPanel = (pageState: PageState): Panel => {
  const list = make('div', { class: 'messages' });
  const element = make('section', { class: 'conversation', 'aria-label': 'Conversation' }, list);
  const nothing = make('p', { class: 'faint' }, 'Nothing has been said yet.');
  let drawn: readonly Message[] = [];
  let from = 0;
  /** States share their messages: one that is drawn stays as it is. */
  let views: ReadonlyMap<Message, HTMLElement> = new Map();

  const earlier = (): HTMLElement =>
    button(
      `Show ${plural(Math.min(from, MESSAGES_AT_ONCE), 'earlier message')} of ${groupDigits(from)}`,
      { class: 'more' },
      () => {
        from = Math.max(0, from - MESSAGES_AT_ONCE);
        fill(drawn);
      },
    );

  const fill = (messages: readonly Message[]): void => {
    const shown = messages.slice(from);
    const before = views;
    views = new Map(shown.map((message) => [message, before.get(message) ?? messageView(message)]));
    drawn = messages;
    const none = messages.length === 0 ? [nothing] : [];
    arrange(list, [...(from > 0 ? [earlier()] : []), ...none, ...views.values()]);
  };

  return {
    element,
    render() {
      const messages = messagesOf(pageState.history.stateAt(pageState.seq).session.conversation);
      const isSame =
        messages.length === drawn.length && messages.every((one, index) => one === drawn[index]);
      if (isSame && messages.length > 0) return;
      from = Math.max(0, messages.length - MESSAGES_AT_ONCE);
      fill(messages);
      const scrolled = element.parentElement;
      if (scrolled !== null) scrolled.scrollTop = scrolled.scrollHeight;
    },
  };
};
