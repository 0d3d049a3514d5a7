/**
 * The trace: one row a round (a request to the model and the calls that it asked for), on one axis
 * of time. A round opens to a row for each of its parts. Dragging over the bars, or turning the
 * wheel over the ruler, shows a part of the time.
 */

import { moneyText, shareText } from '@pawl/agent/machine/settings';
import { durationText } from '@pawl/agent/platform/clock';
import { firstCharacters, groupDigits } from '@pawl/agent/platform/text';
import {
  getCacheShare,
  promptTokens,
  type RequestFigures,
  SPAN_WORDS,
  spanText,
  type TimeSpan,
} from '../figures/session-figures.js';
import { clockText, plural } from '../model/figure-text.js';
import { isFailed, type TraceRound, traceRounds } from '../model/rounds.js';
import { type TimeAxis, timeAxis } from '../model/time-axis.js';
import { button, make, RowList } from './elements.js';
import type { PageState, Panel } from './page-state.js';

const ORDERS = ['in order', 'by time', 'by cost'] as const;
type Order = (typeof ORDERS)[number];

const ROW_PIXELS = 26;
/** Less of the axis than this can't be shown: a millisecond of a long session. */
const VIEW_MIN = 1e-6;
const WHOLE = { from: 0, to: 1 } as const;
/** A shorter drag is a click. */
const DRAG_PIXELS_MIN = 4;

/** The part of the axis that is shown, from 0 to 1. */
type View = { readonly from: number; readonly to: number };
/** A round, or a part of it; null for the round itself. */
type Row = { readonly round: TraceRound; readonly span: TimeSpan | null };

const orderRounds = (rounds: readonly TraceRound[], order: Order): readonly TraceRound[] => {
  if (order === 'in order') return rounds;
  const size = ({ workMs, usd }: TraceRound): number => (order === 'by cost' ? usd : workMs);
  return rounds
    .filter(({ kind }) => kind !== 'pause')
    .toSorted((left, right) => size(right) - size(left));
};

/** A request in words, for its row. */
const requestWords = ({ usage, ending, why, attempt, firstPieceMs, startMs }: RequestFigures) => {
  const first =
    firstPieceMs === null ? '' : `, first piece after ${durationText(firstPieceMs - startMs)}`;
  const again = attempt > 1 ? `, attempt ${attempt}` : '';
  if (usage === null) return `${ending}${why === '' ? '' : `: ${why}`}${again}`;
  return (
    `${groupDigits(promptTokens(usage))} tokens in, ${shareText(getCacheShare(usage))} cached, ` +
    `${groupDigits(usage.outputTokens)} out${first}${again}${ending === 'failed' ? `, failed: ${why}` : ''}`
  );
};

/** ✓, or ✗ for a failure; empty for what neither fails nor succeeds. */
const drawSign = (failed: number, hasEnded: boolean): HTMLElement =>
  failed > 0
    ? make('span', { class: 'sign bad' }, `✗${failed > 1 ? failed : ''}`)
    : make('span', { class: 'sign ok' }, hasEnded ? '✓' : '');

const drawLegend = (): HTMLElement => {
  const kinds = [
    'waiting',
    'streaming',
    'tool',
    'hook',
    'approval',
    'retry',
    'compaction',
    'idle',
  ] as const;
  return make(
    'ul',
    { class: 'shares' },
    ...kinds.map((kind) =>
      make('li', {}, make('span', { class: `swatch ${kind}` }), SPAN_WORDS[kind]),
    ),
    make('li', {}, drawSign(0, true), ' ended well'),
    make('li', {}, drawSign(1, true), ' failed'),
    make('li', {}, make('span', { class: 'swatch tool interrupted' }), 'cut by a crash'),
  );
};

export class TracePanel implements Panel {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #list = new RowList<Row>('Rounds', ROW_PIXELS, (row) => this.#row(row));
  readonly #ruler = make('div', { class: 'ruler' });
  readonly #selection = make('div', { class: 'selection', hidden: true });
  readonly #shown = make('span', { class: 'faint', role: 'status' });
  /** The rounds that are open, by the number of their first entry in the journal. */
  readonly #open = new Set<number>();
  #order: Order = 'in order';
  #view: View = WHOLE;
  /** The figures from which rounds and axis were computed. */
  #drawnFor: unknown = null;
  #rounds: readonly TraceRound[] = [];
  #axis: TimeAxis = { position: () => 0 };
  /** All rows of the list, also those that are not in view. */
  #rows: readonly Row[] = [];
  /** The selected entry at the last drawing. */
  #shownSeq = -1;
  /** The time of the longest shown round: the axis, if rounds are not sorted. */
  #longestMs = 0;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    const zoom = (by: number) => () => this.zoom(by);
    const list = this.#list.element;
    this.element = make(
      'section',
      { class: 'trace' },
      make('h2', { class: 'hidden' }, 'Trace'),
      make(
        'div',
        { class: 'bar' },
        button('−', { 'aria-label': 'Show more time', title: 'Show more time (-)' }, zoom(-1)),
        button('+', { 'aria-label': 'Show less time', title: 'Show less time (+)' }, zoom(1)),
        button('Whole session', {}, () => this.#setView(WHOLE)),
        this.#orderChoice(),
        this.#shown,
      ),
      drawLegend(),
      make('div', { class: 'trace-head' }, make('span', { class: 'faint' }, 'round'), this.#ruler),
      list,
    );
    list.addEventListener('keydown', ({ key, target }) => {
      // of a button the browser makes a click
      if (key !== 'Enter' || target instanceof HTMLButtonElement) return;
      const round = this.#rounds.findLast((one) => this.#isCurrent(one) && one.kind !== 'pause');
      if (round !== undefined) this.#toggleRound(round.seq);
    });
    this.#ruler.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    list.addEventListener('wheel', (event) => event.ctrlKey && this.#wheel(event), {
      passive: false,
    });
    this.#drag(this.#ruler);
    this.#drag(list);
  }

  /** Shows half or twice the time, around the middle. */
  zoom(by: number): void {
    this.#zoomAround((this.#view.from + this.#view.to) / 2, by > 0 ? 0.5 : 2);
  }

  #zoomAround(middle: number, factor: number): void {
    if (!this.#hasOneAxis) return;
    const length = Math.max(VIEW_MIN, Math.min(1, (this.#view.to - this.#view.from) * factor));
    const share = (middle - this.#view.from) / (this.#view.to - this.#view.from);
    const from = Math.max(0, Math.min(1 - length, middle - share * length));
    this.#setView({ from, to: from + length });
  }

  #setView(view: View): void {
    this.#view = view;
    this.#listRows();
    this.#list.draw();
  }

  /** Where on the axis a pointer is, 0 to 1. */
  #positionOf(event: MouseEvent): number {
    const { left, width } = this.#ruler.getBoundingClientRect();
    const share = Math.max(0, Math.min(1, (event.clientX - left) / Math.max(1, width)));
    return this.#view.from + share * (this.#view.to - this.#view.from);
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault();
    this.#zoomAround(this.#positionOf(event), event.deltaY > 0 ? 1.25 : 0.8);
  }

  /** Dragging over the bars selects a part of the time. */
  #drag(area: HTMLElement): void {
    let begin: number | null = null;
    /** The part from the beginning of the drag to the pointer; null if that is a click. */
    const dragged = (event: MouseEvent): View | null => {
      if (begin === null) return null;
      const to = this.#positionOf(event);
      const pixels = this.#ruler.clientWidth / (this.#view.to - this.#view.from);
      return Math.abs(to - begin) * pixels > DRAG_PIXELS_MIN
        ? { from: Math.min(begin, to), to: Math.max(begin, to) }
        : null;
    };
    const end = (): void => {
      begin = null;
      this.#selection.hidden = true;
    };
    area.addEventListener('pointerdown', (event) => {
      const { left, right } = this.#ruler.getBoundingClientRect();
      const isInside = event.clientX >= left && event.clientX <= right;
      if (this.#hasOneAxis && event.button === 0 && isInside) begin = this.#positionOf(event);
    });
    addEventListener('pointermove', (event) => {
      const part = dragged(event);
      if (part === null) return;
      const { from, to } = this.#view;
      this.#selection.hidden = false;
      this.#selection.style.left = `${((part.from - from) / (to - from)) * 100}%`;
      this.#selection.style.width = `${((part.to - part.from) / (to - from)) * 100}%`;
    });
    addEventListener('pointerup', (event) => {
      const part = dragged(event);
      end();
      if (part !== null) this.#setView(part);
    });
    addEventListener('pointercancel', end);
  }

  #orderChoice(): HTMLElement {
    const choice = make(
      'select',
      {
        'aria-label': 'Order of the rounds',
        onchange: () => {
          this.#order = ORDERS.find((one) => one === choice.value) ?? 'in order';
          this.#list.element.scrollTop = 0;
          this.#setView(this.#view);
        },
      },
      ...ORDERS.map((value) => make('option', { value }, value)),
    );
    return choice;
  }

  render(): void {
    const { history, seq } = this.#pageState;
    if (this.#drawnFor !== history.figures) {
      this.#drawnFor = history.figures;
      this.#rounds = traceRounds(history);
      this.#axis = timeAxis(history.figures.spans, history.figures.elapsedMs);
      this.#listRows();
    }
    if (this.#shownSeq !== seq) {
      this.#shownSeq = seq;
      const index = this.#rows.findLastIndex(
        ({ round, span }) => span === null && round.seq <= seq,
      );
      if (this.#hasOneAxis && index >= 0) this.#list.scrollTo(index);
    }
    this.#list.draw();
  }

  /** Lists the rows that overlap the shown part of the time. */
  #listRows(): void {
    const { from, to } = this.#view;
    const isIn = ({ startMs, endMs }: TraceRound): boolean =>
      this.#axis.position(endMs) >= from && this.#axis.position(startMs) <= to;
    const ordered = orderRounds(this.#rounds, this.#order);
    const shown = this.#hasOneAxis ? ordered.filter(isIn) : ordered;
    this.#longestMs = shown.reduce(
      (longest, { startMs, endMs }) => Math.max(longest, endMs - startMs),
      0,
    );
    this.#rows = shown.flatMap((round): readonly Row[] => {
      const isOpen = this.#open.has(round.seq) && round.kind !== 'pause';
      return [
        { round, span: null },
        ...(isOpen ? round.spans : []).map((span) => ({ round, span })),
      ];
    });
    this.#list.rows = this.#rows;
    this.#shown.textContent = this.#viewWords(shown);
    this.#ruler.replaceChildren(this.#selection, ...this.#ticks());
  }

  #viewWords(shown: readonly TraceRound[]): string {
    const rounds = plural(shown.filter(({ kind }) => kind === 'round').length, 'round');
    if (!this.#hasOneAxis) return `${rounds}, each from its beginning`;
    const isWhole = this.#view.from === 0 && this.#view.to === 1;
    return isWhole ? `${rounds}; drag to zoom` : `${rounds} in the part that is shown`;
  }

  /** Times of day at the beginnings of rounds; where rounds begin together, durations. */
  #ticks(): readonly HTMLElement[] {
    const apart = 90 / Math.max(1, this.#ruler.clientWidth);
    const places = this.#hasOneAxis
      ? this.#rounds.map(({ startMs, at }) => [this.#share(startMs), clockText(at)] as const)
      : [0, 0.25, 0.5, 0.75].map(
          (share) => [share, durationText(share * this.#longestMs)] as const,
        );
    let last = Number.NEGATIVE_INFINITY;
    return places.flatMap(([place, text]) => {
      if (place < 0 || place > 1 - apart || place - last < apart) return [];
      last = place;
      return [make('span', { class: 'tick', style: { left: `${place * 100}%` } }, text)];
    });
  }

  /** Whether all rows share one axis, that of the session; else each begins at the left. */
  get #hasOneAxis(): boolean {
    return this.#order === 'in order';
  }

  /** The place of a moment in the shown part, 0 to 1. */
  #share(ms: number, round?: TraceRound): number {
    if (round !== undefined && !this.#hasOneAxis)
      return (ms - round.startMs) / Math.max(1, this.#longestMs);
    const { from, to } = this.#view;
    return (this.#axis.position(ms) - from) / (to - from);
  }

  #isCurrent({ seq, startMs, endMs }: TraceRound): boolean {
    const at = this.#pageState.seq;
    const ms = this.#pageState.history.index.msAt(at);
    return at >= seq && ms >= startMs && ms <= endMs;
  }

  #toggleRound(seq: number): void {
    if (!this.#open.delete(seq)) this.#open.add(seq);
    this.#setView(this.#view);
  }

  #row({ round, span }: Row): HTMLElement {
    const { kind, workMs, usd, spans } = round;
    const facts = kind === 'pause' ? '' : `${durationText(workMs)} · ${moneyText(usd)}`;
    const isCurrent = span === null && this.#isCurrent(round);
    return make(
      'div',
      { class: `row ${span === null ? kind : 'part'}${isCurrent ? ' selected' : ''}` },
      span === null ? this.#roundLabel(round) : this.#partLabel(span),
      make(
        'span',
        { class: 'figure' },
        span === null ? facts : durationText(span.endMs - span.startMs),
      ),
      make(
        'div',
        { class: 'track' },
        ...(span === null ? spans : [span]).map((one) => this.#bar(one, round)),
      ),
    );
  }

  #roundLabel({ kind, number, seq, workMs, failed, spans }: TraceRound): HTMLElement {
    if (kind === 'pause') {
      const pause = spans[0]?.kind === 'between' ? SPAN_WORDS.between : SPAN_WORDS.idle;
      return make('span', { class: 'row-label faint' }, `${pause} ${durationText(workMs)}`);
    }
    const isOpen = this.#open.has(seq);
    const calls = spans.filter((span) => span.kind === 'tool');
    const tools = [...new Set(calls.map((span) => span.name))].join(', ');
    const press = (): void => {
      this.#toggleRound(seq);
      this.#pageState.go(seq);
    };
    return make(
      'button',
      {
        type: 'button',
        class: 'row-label',
        'aria-expanded': String(isOpen),
        'data-row': seq,
        tabindex: -1,
        onclick: press,
      },
      make(
        'span',
        { class: 'number' },
        `${isOpen ? '▾' : '▸'} ${kind === 'round' ? number : kind}`,
      ),
      drawSign(failed, calls.length > 0 && calls.every(({ ending }) => ending === 'done')),
      make('span', { class: 'about' }, tools),
    );
  }

  #partLabel(span: TimeSpan): HTMLElement {
    const { kind, id, endSeq, startSeq, ending } = span;
    const { history } = this.#pageState;
    const request = history.figures.requests.find((one) => one.id === id);
    const failed = isFailed(history, span) || request?.ending === 'failed';
    const words = request === undefined ? spanText(span) : requestWords(request);
    const text = firstCharacters(`${SPAN_WORDS[kind]}: ${words}`, 200);
    return make(
      'button',
      {
        type: 'button',
        class: 'row-label',
        tabindex: -1,
        onclick: () => this.#pageState.go(endSeq ?? startSeq),
      },
      drawSign(failed ? 1 : 0, kind === 'tool' && ending === 'done'),
      make('span', { class: 'about', title: words }, text),
    );
  }

  #bar(span: TimeSpan, round: TraceRound): HTMLElement | null {
    const left = this.#share(span.startMs, round);
    const right = this.#share(span.endMs, round);
    if (right < 0 || left > 1) return null;
    const failed = isFailed(this.#pageState.history, span);
    const about = firstCharacters(spanText(span), 300);
    return make('span', {
      class: `swatch ${span.kind} ${span.ending}${failed ? ' failed' : ''}`,
      title: `${SPAN_WORDS[span.kind]}: ${about}, ${durationText(span.endMs - span.startMs)}`,
      style: {
        left: `${Math.max(0, left) * 100}%`,
        width: `${(Math.min(1, right) - Math.max(0, left)) * 100}%`,
      },
    });
  }
}
