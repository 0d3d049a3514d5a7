import { groupDigits } from '@pawl/agent/platform/base/group-digits';
import {
  cacheShareOf,
  type RequestFigures,
  type SessionFigures,
  type TimeSpan,
} from '../../figures/session-figures.js';
import { type HighlightPart, highlightsOf } from '../../model/highlights.js';
import { timeAxis } from '../../model/time-axis.js';
import { make, seqLink } from '../dom.js';
import { durationText, moneyText, percentText } from '../format-numbers.js';
import type { PageState, Panel } from '../page-state.js';
import { drawWaterfall, SPAN_WORDS, type Waterfall } from './waterfall.js';

/** Where time and money went: what stands out, the waterfall, and tables by request, tool and state. */

const ROWS_MAX = 200;
type Order = 'in order' | 'by cost' | 'by time';
const ORDERS: readonly Order[] = ['in order', 'by cost', 'by time'];

const table = (
  label: string,
  head: readonly string[],
  rows: readonly (readonly (Node | string)[])[],
): HTMLElement =>
  make(
    'div',
    { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': label },
    make(
      'table',
      { class: 'figures' },
      make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col' }, text)))),
      make('tbody', {}, ...rows.map((cells) => make('tr', {}, ...cells.map((cell) => make('td', {}, cell))))),
    ),
  );

const partText = (part: HighlightPart): string => {
  if (typeof part === 'string') return part;
  if ('ms' in part) return durationText(part.ms);
  if ('usd' in part) return moneyText(part.usd);
  return 'share' in part ? percentText(part.share) : groupDigits(part.count);
};

const durationOf = ({ startMs, endMs }: RequestFigures): number => endMs - startMs;
const costOf = ({ usage }: RequestFigures): number => usage?.costUsd ?? 0;

const ordered = (requests: readonly RequestFigures[], order: Order): readonly RequestFigures[] => {
  if (order === 'in order') return requests;
  const size = order === 'by cost' ? costOf : durationOf;
  return requests.toSorted((left, right) => size(right) - size(left));
};

const PURPOSES: Readonly<Record<RequestFigures['purpose'], string>> = {
  user: 'your message',
  toolResults: 'tool results',
  compaction: 'a summary',
};

const ENDINGS: Readonly<Record<string, string>> = {
  end: 'answered',
  toolUse: 'asked for tools',
  maxTokens: 'cut off at its greatest length',
  refusal: 'refused',
  contentFilter: 'stopped by a filter',
};

const endingText = ({ ending, why }: RequestFigures): string => {
  if (ending === 'completed') return ENDINGS[why] ?? (why === '' ? 'completed' : `completed: ${why}`);
  return why === '' ? ending : `${ending}: ${why}`;
};

class TimePanel implements Panel {
  readonly element = make('section', { class: 'time', 'aria-label': 'Time and money' });
  readonly #pageState: PageState;
  #order: Order = 'in order';
  #scale: 'real' | 'shortened' = 'shortened';
  #drawn: { readonly figures: SessionFigures; readonly waterfall: Waterfall } | null = null;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
  }

  render(): void {
    const { figures } = this.#pageState.history;
    if (this.#drawn?.figures !== figures) this.#draw(figures);
    const step = this.#pageState.history.stepAt(this.#pageState.seq);
    const at = step === null ? 0 : this.#timeOf(figures.spans);
    this.#drawn?.waterfall.place(at);
  }

  /** The place of the selected entry on the axis: where the span begins or ends that it began or ended. */
  #timeOf(spans: readonly TimeSpan[]): number {
    const { seq } = this.#pageState;
    const ended = spans.findLast(({ endSeq }) => endSeq !== null && endSeq <= seq);
    const begun = spans.findLast(({ startSeq }) => startSeq <= seq);
    return Math.max(ended?.endMs ?? 0, begun?.startMs ?? 0);
  }

  #go = (seq: number): void => this.#pageState.go(seq);

  #redraw(): void {
    this.#drawn = null;
    this.render();
  }

  #draw(figures: SessionFigures): void {
    const axis = timeAxis(figures.spans, figures.elapsedMs, this.#scale);
    const waterfall = drawWaterfall(figures.spans, axis, this.#go);
    this.#drawn = { figures, waterfall };
    this.element.replaceChildren(
      make('h2', {}, 'Where time and money went'),
      ...this.#highlights(figures),
      make('div', { class: 'bar' }, make('h3', {}, 'Waterfall'), this.#scaleChoice()),
      make(
        'div',
        { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Waterfall' },
        waterfall.svg,
      ),
      this.#share(figures),
      make('div', { class: 'bar' }, make('h3', {}, 'Requests'), this.#orderChoice()),
      this.#requests(figures),
      make('h3', {}, 'Tools'),
      this.#tools(figures),
      make('h3', {}, 'States'),
      this.#states(figures),
    );
  }

  #highlights(figures: SessionFigures): readonly HTMLElement[] {
    const found = highlightsOf(figures);
    if (found.length === 0) return [];
    const items = found.map(({ question, seq, answer }) =>
      make(
        'li',
        {},
        make('strong', {}, question),
        ' ',
        seqLink(seq, this.#go),
        ` ${answer.map(partText).join('')}`,
      ),
    );
    return [make('ul', { class: 'highlights' }, ...items)];
  }

  #scaleChoice(): HTMLElement {
    const box = make('input', { type: 'checkbox', checked: this.#scale === 'shortened' });
    box.addEventListener('change', () => {
      this.#scale = box.checked ? 'shortened' : 'real';
      this.#redraw();
    });
    return make('label', { class: 'faint' }, box, ' shorten the time in which nothing was done');
  }

  #orderChoice(): HTMLElement {
    const choice = make(
      'select',
      { 'aria-label': 'Order of the requests' },
      ...ORDERS.map((value) => make('option', { value }, value)),
    );
    choice.value = this.#order;
    choice.addEventListener('change', () => {
      this.#order = ORDERS.find((one) => one === choice.value) ?? 'in order';
      this.#redraw();
    });
    return choice;
  }

  #share({ time, elapsedMs }: SessionFigures): HTMLElement {
    const words: Readonly<Record<string, string>> = SPAN_WORDS;
    const parts = Object.entries(time).filter(([, ms]) => ms > 0);
    return make(
      'ul',
      { class: 'shares' },
      ...parts.map(([kind, ms]) =>
        make(
          'li',
          {},
          make('span', { class: `swatch ${kind}` }),
          `${words[kind] ?? kind} `,
          make('strong', {}, durationText(ms)),
          make('span', { class: 'faint' }, ` ${percentText(elapsedMs === 0 ? null : ms / elapsedMs)}`),
        ),
      ),
    );
  }

  #requests({ requests, usage }: SessionFigures): HTMLElement {
    const shown = ordered(requests, this.#order).slice(0, ROWS_MAX);
    const rows = shown.map((one): readonly (Node | string)[] => {
      const { usage: own, firstPieceMs, startMs } = one;
      return [
        seqLink(one.seq, this.#go),
        PURPOSES[one.purpose],
        String(one.attempt),
        firstPieceMs === null ? '–' : durationText(firstPieceMs - startMs),
        durationText(durationOf(one)),
        own === null ? '–' : groupDigits(own.inputTokens + own.cacheReadTokens + own.cacheWriteTokens),
        own === null ? '–' : percentText(cacheShareOf(own)),
        own === null ? '–' : groupDigits(own.outputTokens),
        own === null ? '–' : moneyText(own.costUsd),
        endingText(one),
      ];
    });
    const all = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
    const sum = [
      '',
      'in all',
      '',
      '',
      '',
      groupDigits(all),
      percentText(cacheShareOf(usage)),
      groupDigits(usage.outputTokens),
      moneyText(usage.costUsd),
      requests.length > ROWS_MAX ? `${ROWS_MAX} of ${requests.length} are shown` : '',
    ];
    const head = [
      'sent after',
      'because of',
      'attempt',
      'first piece',
      'time',
      'tokens in',
      'cache',
      'out',
      'cost',
      'ending',
    ];
    return table('Requests', head, [...rows, sum]);
  }

  #tools({ tools }: SessionFigures): HTMLElement {
    const head = ['tool', 'calls', 'endings', 'time', 'longest', 'approval', 'cost'];
    const rows = tools.map(({ tool, calls, endings, totalMs, longestMs, approvalMs, usage }) => [
      tool,
      String(calls),
      Object.entries(endings)
        .map(([ending, count]) => `${count} ${ending}`)
        .join(', '),
      durationText(totalMs),
      durationText(longestMs),
      durationText(approvalMs),
      usage.costUsd === 0 ? '–' : moneyText(usage.costUsd),
    ]);
    return table('Tools', head, rows);
  }

  #states({ states }: SessionFigures): HTMLElement {
    const rows = states.map(({ state, entered, totalMs }) => [state, String(entered), durationText(totalMs)]);
    return table('States', ['state', 'entered', 'time'], rows);
  }
}

export const timePanel = (pageState: PageState): Panel => new TimePanel(pageState);
