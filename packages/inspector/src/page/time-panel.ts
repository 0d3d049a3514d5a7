/** Use of time and money: highlights, the waterfall, and tables by request, tool and state. */

import { groupDigits } from '@pawl/agent/platform/text';
import {
  getCacheShare,
  type RequestFigures,
  type SessionFigures,
  type TimeSpan,
  type TimeSpanKind,
} from '../figures/session-figures.js';
import { findHighlights, type HighlightPart } from '../model/highlights.js';
import { type TimeAxis, timeAxis } from '../model/time-axis.js';
import { draw, durationText, make, moneyText, percentText, seqLink } from './elements.js';
import type { PageState, Panel } from './page-state.js';

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
      make(
        'tbody',
        {},
        ...rows.map((cells) => make('tr', {}, ...cells.map((cell) => make('td', {}, cell)))),
      ),
    ),
  );

const partText = (part: HighlightPart): string => {
  if (typeof part === 'string') return part;
  if ('ms' in part) return durationText(part.ms);
  if ('usd' in part) return moneyText(part.usd);
  return 'share' in part ? percentText(part.share) : groupDigits(part.count);
};

const getDurationMs = ({ startMs, endMs }: RequestFigures): number => endMs - startMs;
const getCostUsd = ({ usage }: RequestFigures): number => usage?.costUsd ?? 0;

const ordered = (requests: readonly RequestFigures[], order: Order): readonly RequestFigures[] => {
  if (order === 'in order') return requests;
  const size = order === 'by cost' ? getCostUsd : getDurationMs;
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
  if (ending === 'completed')
    return ENDINGS[why] ?? (why === '' ? 'completed' : `completed: ${why}`);
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
    const at = step === null ? 0 : this.#findTime(figures.spans);
    this.#drawn?.waterfall.place(at);
  }

  /**
   * The place of the selected entry on the axis: where the span begins or ends that it began or
   * ended.
   */
  #findTime(spans: readonly TimeSpan[]): number {
    const { seq } = this.#pageState;
    const ended = spans.findLast(({ endSeq }) => endSeq !== null && endSeq <= seq);
    const started = spans.findLast(({ startSeq }) => startSeq <= seq);
    return Math.max(ended?.endMs ?? 0, started?.startMs ?? 0);
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
    const highlights = findHighlights(figures);
    if (highlights.length === 0) return [];
    const items = highlights.map(({ question, seq, answer }) =>
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
          make(
            'span',
            { class: 'faint' },
            ` ${percentText(elapsedMs === 0 ? null : ms / elapsedMs)}`,
          ),
        ),
      ),
    );
  }

  #requests({ requests, usage: total }: SessionFigures): HTMLElement {
    const shown = ordered(requests, this.#order).slice(0, ROWS_MAX);
    const rows = shown.map((one): readonly (Node | string)[] => {
      const { usage, firstPieceMs, startMs } = one;
      return [
        seqLink(one.seq, this.#go),
        PURPOSES[one.purpose],
        String(one.attempt),
        firstPieceMs === null ? '–' : durationText(firstPieceMs - startMs),
        durationText(getDurationMs(one)),
        usage === null
          ? '–'
          : groupDigits(usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens),
        usage === null ? '–' : percentText(getCacheShare(usage)),
        usage === null ? '–' : groupDigits(usage.outputTokens),
        usage === null ? '–' : moneyText(usage.costUsd),
        endingText(one),
      ];
    });
    const all = total.inputTokens + total.cacheReadTokens + total.cacheWriteTokens;
    const sum = [
      '',
      'in all',
      '',
      '',
      '',
      groupDigits(all),
      percentText(getCacheShare(total)),
      groupDigits(total.outputTokens),
      moneyText(total.costUsd),
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
    const rows = states.map(({ state, entered, totalMs }) => [
      state,
      String(entered),
      durationText(totalMs),
    ]);
    return table('States', ['state', 'entered', 'time'], rows);
  }
}

export const timePanel = (pageState: PageState): Panel => new TimePanel(pageState);

/** The waterfall as SVG: a lane for each kind of work, more where several go on at once. */

const SPAN_WORDS: Readonly<Record<TimeSpanKind | 'other', string>> = {
  waiting: 'waiting for the model',
  streaming: 'reply streaming',
  request: 'model',
  retry: 'wait before a retry',
  compaction: 'compaction',
  approval: 'waiting for approval',
  tool: 'tools',
  hook: 'hooks',
  idle: 'waiting for you',
  between: 'no process',
  other: 'other',
};

type Lane = { readonly name: string; readonly kinds: readonly TimeSpanKind[] };
const LANES: readonly Lane[] = [
  { name: 'model', kinds: ['waiting', 'streaming', 'request'] },
  { name: 'retry', kinds: ['retry'] },
  { name: 'approval', kinds: ['approval'] },
  { name: 'tools', kinds: ['tool'] },
  { name: 'hooks', kinds: ['hook'] },
  { name: 'compaction', kinds: ['compaction'] },
  { name: 'you', kinds: ['idle', 'between'] },
];

const LANE_PIXELS = 20;
const NAME_PIXELS = 88;
const WIDTH = 1_000;
const ROWS_MAX_WATERFALL = 6;
/** Narrower bars are widened to this, so that they can be seen. */
const BAR_MIN = 1.5;

/** `count`: spans that are too narrow to tell apart are one bar. */
type Placed = { readonly span: TimeSpan; readonly row: number; readonly count: number };

const leftEdge = ({ startMs }: TimeSpan, axis: TimeAxis): number =>
  NAME_PIXELS + axis.position(startMs) * (WIDTH - NAME_PIXELS);

const rightEdge = ({ endMs }: TimeSpan, axis: TimeAxis): number =>
  NAME_PIXELS + axis.position(endMs) * (WIDTH - NAME_PIXELS);

/**
 * A session of thousands of spans has no more bars than there is room for: each of them costs time
 * in every frame.
 */
const asBars = (placed: readonly Placed[], axis: TimeAxis): readonly Placed[] => {
  const bars: Placed[] = [];
  const lastOfRow = new Map<number, number>();
  for (const one of placed) {
    const index = lastOfRow.get(one.row);
    const before = index === undefined ? undefined : bars[index];
    const fits =
      before?.span.kind === one.span.kind &&
      before.span.ending === one.span.ending &&
      rightEdge(one.span, axis) - leftEdge(before.span, axis) <= BAR_MIN;
    if (index !== undefined && before !== undefined && fits) {
      const endMs = Math.max(before.span.endMs, one.span.endMs);
      bars[index] = { ...before, span: { ...before.span, endMs }, count: before.count + 1 };
    } else {
      lastOfRow.set(one.row, bars.length);
      bars.push(one);
    }
  }
  return bars;
};

/** Spans of one lane in rows, so that none covers another. */
const inRows = (spans: readonly TimeSpan[]): readonly Placed[] => {
  const ends: number[] = [];
  return spans.map((span) => {
    const free = ends.findIndex((end) => end <= span.startMs);
    const row = free >= 0 ? free : Math.min(ends.length, ROWS_MAX_WATERFALL - 1);
    ends[row] = Math.max(ends[row] ?? 0, span.endMs);
    return { span, row, count: 1 };
  });
};

const bar = (
  { span, row, count }: Placed,
  top: number,
  axis: TimeAxis,
  go: (seq: number) => void,
): SVGRectElement => {
  const [start, end] = [leftEdge(span, axis), rightEdge(span, axis)];
  const about =
    `${SPAN_WORDS[span.kind]}: ` +
    `${[span.name, span.about].filter((text) => text !== '').join(' ')}, ` +
    `${durationText(span.endMs - span.startMs)}, from ` +
    `#${span.startSeq}${span.ending === 'interrupted' ? ', interrupted' : ''}${count > 1 ? `, and ${count - 1} more` : ''}`;
  const rect = draw(
    'rect',
    {
      class: `span ${span.kind} ${span.ending}`,
      x: start,
      y: top + row * LANE_PIXELS + 3,
      width: Math.max(BAR_MIN, end - start),
      height: LANE_PIXELS - 6,
      rx: 2,
    },
    draw('title', {}, about),
  );
  rect.addEventListener('click', () => go(span.startSeq));
  return rect;
};

type Waterfall = {
  readonly svg: SVGSVGElement;
  readonly cursor: SVGLineElement;
  place(ms: number): void;
};

const drawWaterfall = (
  spans: readonly TimeSpan[],
  axis: TimeAxis,
  go: (seq: number) => void,
): Waterfall => {
  let top = 0;
  const rows: SVGElement[] = [];
  for (const { name, kinds } of LANES) {
    const placed = inRows(spans.filter(({ kind }) => kinds.includes(kind)));
    if (placed.length === 0) continue;
    const height = (Math.max(...placed.map(({ row }) => row)) + 1) * LANE_PIXELS;
    rows.push(
      draw('line', { class: 'lane', x1: 0, x2: WIDTH, y1: top + height + 2, y2: top + height + 2 }),
      draw('text', { class: 'lane-name', x: 4, y: top + LANE_PIXELS - 6 }, name),
      ...asBars(placed, axis).map((one) => bar(one, top, axis, go)),
    );
    top += height + 5;
  }
  const cursor = draw('line', { class: 'cursor', x1: 0, x2: 0, y1: 0, y2: top });
  const svg = draw(
    'svg',
    {
      class: 'waterfall',
      viewBox: `0 0 ${WIDTH} ${Math.max(1, top)}`,
      role: 'img',
      'aria-label': 'Waterfall of the session; the tables below have its figures',
    },
    ...rows,
    cursor,
  );
  return {
    svg,
    cursor,
    place(ms) {
      const x = String(NAME_PIXELS + axis.position(ms) * (WIDTH - NAME_PIXELS));
      cursor.setAttribute('x1', x);
      cursor.setAttribute('x2', x);
    },
  };
};
