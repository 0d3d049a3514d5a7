/**
 * The conversation as it was after the selected entry (a line of the journal), with the time and
 * cost of each message. The last messages are drawn at once, earlier ones on demand.
 */

import { messagesOf } from '@pawl/agent/machine/conversation';
import type { Message } from '@pawl/agent/machine/message';
import { moneyText } from '@pawl/agent/machine/settings';
import { durationText } from '@pawl/agent/platform/clock';
import { groupDigits } from '@pawl/agent/platform/text';
import { clockText, plural } from '../model/figure-text.js';
import type { SessionHistory } from '../model/session-history.js';
import type { BatchChanges, CallLife, MessageRecord } from '../model/session-index.js';
import { drawCommand, drawDiff, drawMarkdown, longText } from './drawn-text.js';
import { arrange, button, make, seqLink } from './elements.js';
import type { PageState, Panel } from './page-state.js';

type Part = Message['parts'][number];
type CallPart = Extract<Part, { readonly type: 'call' }>;

const MESSAGES_AT_ONCE = 40;

export const conversationPanel = (pageState: PageState): Panel => {
  const nothing = make('p', { class: 'faint' }, 'Nothing has been said yet.');
  const earlier = button('', {}, () => {
    from = Math.max(0, from - MESSAGES_AT_ONCE);
    fill();
  });
  const list = make('div', { class: 'messages' });
  const title = make('h2', { class: 'hidden' }, 'Conversation');
  const element = make('section', { class: 'conversation' }, title, nothing, earlier, list);
  let messages: readonly Message[] = [];
  /** The first message that is drawn. */
  let from = 0;
  /** States share their messages: one that is drawn stays as it is, until more is known of it. */
  let views: ReadonlyMap<Message, DrawnMessage> = new Map();

  const fill = (): void => {
    const view = new MessageView(pageState);
    const before = views;
    views = new Map(
      messages.slice(from).map((message) => {
        const known = before.get(message);
        const key = describeKnown(pageState.history, message);
        return [message, known?.key === key ? known : { key, element: view.draw(message) }];
      }),
    );
    nothing.hidden = messages.length > 0;
    earlier.hidden = from === 0;
    const count = plural(Math.min(from, MESSAGES_AT_ONCE), 'earlier message');
    earlier.textContent = `Show ${count} of ${groupDigits(from)}`;
    arrange(
      list,
      [...views.values()].map((one) => one.element),
    );
  };

  return {
    element,
    render() {
      const { history, seq } = pageState;
      const shown = messages;
      messages = messagesOf(history.stateAt(seq).session.conversation);
      const isSame = messages.length === shown.length && messages.at(-1) === shown.at(-1);
      if (!isSame) from = Math.max(0, messages.length - MESSAGES_AT_ONCE);
      fill();
      // The newest message stands at the end.
      const scrolled = element.parentElement;
      if (!isSame && scrolled !== null) scrolled.scrollTop = scrolled.scrollHeight;
    },
  };
};

type DrawnMessage = { readonly key: string; readonly element: HTMLElement };

/**
 * What becomes known of a message later, as a key: ends of its calls, changes of files. The message
 * is drawn again when the key changes.
 */
const describeKnown = ({ index }: SessionHistory, message: Message): string => {
  const batchId = index.messages.get(message)?.batchId ?? null;
  if (batchId === null) return '';
  const ends = message.parts.filter(
    (part) => part.type === 'call' && index.call(batchId, part.callId)?.end != null,
  );
  return `${batchId} ${ends.length} ${index.changes.has(batchId)}`;
};

/** Draws messages. */
class MessageView {
  readonly #pageState: PageState;
  readonly #history: SessionHistory;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    this.#history = pageState.history;
  }

  draw(message: Message): HTMLElement {
    const record = this.#history.index.messages.get(message) ?? null;
    const speaker = getSpeaker(message);
    const changes = record?.batchId != null && this.#history.index.changes.get(record.batchId);
    return make(
      'article',
      { class: `message ${speaker}` },
      make(
        'h3',
        {},
        SPEAKERS[speaker],
        message.role === 'assistant' && message.cut ? ' (cut off)' : null,
        ...(record === null ? [] : this.#facts(record, message)),
      ),
      ...message.parts.map((part) => this.#part(part, record)),
      speaker === 'tools' && changes ? this.#changes(changes) : null,
    );
  }

  /** Time of day, duration and cost of a message, with its entry. */
  #facts({ seq, at }: MessageRecord, { role }: Message): readonly HTMLElement[] {
    const step = this.#history.stepAt(seq);
    const event = step?.event;
    const texts = [clockText(at)];
    if (role === 'assistant' && event?.type === 'LlmCompleted') {
      const request = this.#history.figures.requests.find(({ endSeq }) => endSeq === seq);
      if (request !== undefined) texts.push(durationText(request.endMs - request.startMs));
      texts.push(moneyText(event.usage.costUsd));
    }
    return [
      make('span', { class: 'faint' }, ` ${texts.join(' · ')} `),
      seqLink(seq, (to) => this.#pageState.go(to)),
    ];
  }

  #call(part: { readonly callId: string }, record: MessageRecord | null): CallLife | undefined {
    return record?.batchId == null
      ? undefined
      : this.#history.index.call(record.batchId, part.callId);
  }

  #part(part: Part, record: MessageRecord | null): HTMLElement {
    switch (part.type) {
      case 'text': {
        const origin = 'origin' in part && part.origin !== 'user' ? part.origin : null;
        const heading = origin === null ? null : make('span', { class: 'tag' }, origin);
        const isTyped = 'origin' in part && origin === null;
        const text = isTyped ? longText(part.text, 'prose') : drawMarkdown(part.text);
        return make('div', { class: 'part text' }, heading, text, ...drawImages(part));
      }
      case 'reasoning':
        return make(
          'details',
          { class: 'part reasoning' },
          make('summary', {}, 'Reasoning'),
          longText(part.text, 'prose'),
        );
      case 'call': {
        const call = this.#call(part, record);
        const heading =
          call?.title === undefined || call.title === '' ? shortInput(part) : call.title;
        const shown = textField(part.input, 'command') === null ? heading : '';
        const diff = call?.end?.diff ?? null;
        return make(
          'div',
          { class: 'part call' },
          make('strong', { class: 'tool' }, part.tool),
          ' ',
          make('code', { class: 'title' }, shown),
          ...inputView(part, heading, diff),
        );
      }
      case 'result': {
        const call = this.#call(part, record);
        const status = call?.end?.status ?? (part.failed ? 'failed' : 'ok');
        const time = call === undefined ? '' : callTime(this.#history, call);
        return make(
          'div',
          { class: `part result${part.failed ? ' failed' : ''}` },
          statusSign(status),
          make('strong', { class: 'tool' }, ` ${part.tool} `),
          make('span', { class: 'faint' }, time),
          longText(part.text, 'code'),
          ...drawImages(part),
        );
      }
      default:
        return part satisfies never;
    }
  }

  /** The files that a batch changed. Its diffs stand at its calls; the rest is in the store. */
  #changes({ created, changed, deleted, files, from, to }: BatchChanges): HTMLElement {
    const count = created + changed + deleted;
    const rows = files.map(({ path, change, added, removed }) =>
      make(
        'li',
        {},
        make('span', { class: `change ${change}` }, `${change} `),
        make('code', {}, path),
        added === undefined ? null : make('span', { class: 'plus' }, ` +${added}`),
        removed === undefined ? null : make('span', { class: 'minus' }, ` −${removed}`),
      ),
    );
    const rest = count - files.length;
    return make(
      'details',
      { class: 'part changes' },
      make('summary', {}, plural(count, 'file'), ' changed'),
      make('ul', {}, ...rows, rest > 0 ? make('li', {}, `and ${groupDigits(rest)} more`) : null),
      make(
        'p',
        { class: 'faint' },
        'All rows: ',
        make('code', {}, `pawl diff ${this.#pageState.id} --at ${from}..${to}`),
      ),
    );
  }
}

const getSpeaker = ({ role, parts }: Message): 'model' | 'tools' | 'user' => {
  if (role === 'assistant') return 'model';
  return parts[0]?.type === 'result' ? 'tools' : 'user';
};

const SPEAKERS = { model: 'Pawl', tools: 'Results', user: 'You' };

const drawImages = (part: Part): readonly HTMLElement[] =>
  'images' in part
    ? (part.images ?? []).map(({ mediaType, sha256 }) =>
        make('p', { class: 'faint' }, `${mediaType}, blob ${sha256.slice(0, 12)}…`),
      )
    : [];

const textField = (input: CallPart['input'], name: string): string | null => {
  const value = input[name];
  return typeof value === 'string' ? value : null;
};

/** What a call wants, as one reads it: a command, a change, or its input. */
const inputView = (
  part: CallPart,
  heading: string,
  diff: string | null,
): readonly HTMLElement[] => {
  if (part.rawInput !== undefined) return [longText(part.rawInput, 'code')];
  if (diff !== null && diff !== '') return [drawDiff(diff)];
  const command = textField(part.input, 'command');
  const { command: _, ...others } = part.input;
  const rest = command === null ? part.input : others;
  const isSaid = Object.values(rest).every((value) => value === heading);
  return [
    ...(command === null ? [] : [drawCommand(command)]),
    ...(isSaid ? [] : [longText(JSON.stringify(rest, null, 2), 'code')]),
  ];
};

/** The file or the pattern of a call whose record has no title. */
const shortInput = ({ input }: CallPart): string => {
  for (const name of ['path', 'pattern', 'url', 'query', 'name']) {
    const text = textField(input, name);
    if (text !== null && text.length <= 200) return text;
  }
  return '';
};

/** ✓ or ✗ with the status, for readers who can't see colours. */
const statusSign = (status: string): HTMLElement => {
  if (status === 'ok' || status === 'open')
    return make('span', { class: `sign ${status}` }, status === 'ok' ? '✓' : '…');
  return make('span', { class: 'sign bad' }, `✗ ${status}`);
};

/** How long a call ran, as far as anybody watched; empty if it never started. */
const callTime = ({ figures }: SessionHistory, { starts, end }: CallLife): string => {
  const start = starts.at(-1);
  if (start === undefined || end === null) return '';
  // A gap: no process had the session open, so nobody saw the end.
  const isRecovered = figures.gaps.some(({ seq }) => seq > start.seq && seq <= end.seq);
  return isRecovered
    ? `found at ${clockText(end.at)}, by a later process`
    : durationText(Math.max(0, end.at - start.at));
};
