/**
 * The trace: one row a round (a request to the model and the calls that it asked for), on one axis
 * of time. A round opens to a row for each of its parts. Dragging over the bars, or turning the
 * wheel over the ruler, shows a part of the time. Only the rows in view are drawn: a session may
 * have thousands.
 */

import { firstCharacters, groupDigits } from '@pawl/agent/platform/text';
import {
  getCacheShare,
  type RequestFigures,
  SPAN_WORDS,
  type TimeSpan,
} from '../figures/session-figures.js';
import { clockText, durationText, moneyText, percentText, plural } from '../model/figure-text.js';
import { isFailed, type TraceRound, traceRounds } from '../model/rounds.js';
import { type TimeAxis, timeAxis } from '../model/time-axis.js';
import { button, make, rowsInSight, scrollToRow } from './elements.js';
import type { PageState, Panel } from './page-state.js';

const ORDERS = ['in order', 'by time', 'by cost'] as const;
type Order = (typeof ORDERS)[number];

const ROW_PIXELS = 26;
/** Less of the axis than this can't be shown: a millisecond of a long session. */
const VIEW_MIN = 1e-6;
const WHOLE = { from: 0, to: 1 } as const;

/** The part of the axis that is shown, from 0 to 1. */
type View = { readonly from: number; readonly to: number };
type Row =
  | { readonly kind: 'round'; readonly round: TraceRound }
  | { readonly kind: 'part'; readonly span: TimeSpan; readonly round: TraceRound };

export const tracePanel = (pageState: PageState): Panel & { zoom(by: number): void } =>
  new TracePanel(pageState);

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
  const input = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return (
    `${groupDigits(input)} tokens in, ${percentText(getCacheShare(usage))} cached, ` +
    `${groupDigits(usage.outputTokens)} out${first}${again}${ending === 'failed' ? `, failed: ${why}` : ''}`
  );
};

class TracePanel implements Panel {
  readonly element = make('section', { class: 'trace' });
  readonly #pageState: PageState;
  readonly #rows = make('div', { class: 'trace-rows' });
  readonly #list = make(
    'div',
    { class: 'trace-list', tabindex: 0, role: 'region', 'aria-label': 'Rounds' },
    this.#rows,
  );
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
  #all: readonly Row[] = [];
  /** The selected entry at the last drawing. */
  #shownSeq = -1;
  /** The work of the longest shown round: the axis, if rounds are not in order. */
  #longestMs = 0;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    const zoom = (by: number) => () => this.zoom(by);
    this.element.append(
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
      this.#legend(),
      make('div', { class: 'trace-head' }, make('span', { class: 'faint' }, 'round'), this.#ruler),
      this.#list,
    );
    this.#list.addEventListener('scroll', () => this.#drawRows());
    this.#list.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      const round = this.#rounds.findLast((one) => this.#isCurrent(one) && one.kind !== 'pause');
      if (round !== undefined) this.#toggleRound(round.seq);
    });
    this.#ruler.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    this.#list.addEventListener(
      'wheel',
      (event) => {
        if (event.ctrlKey) this.#wheel(event);
      },
      { passive: false },
    );
    this.#drag(this.#ruler);
    this.#drag(this.#list);
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
    this.#drawRows();
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

  /** Dragging over the bars selects a part of the time; a short one is a click. */
  #drag(area: HTMLElement): void {
    let begin: number | null = null;
    const mark = (to: number): void => {
      if (begin === null) return;
      const { from, to: end } = this.#view;
      const [left, right] = [Math.min(begin, to), Math.max(begin, to)];
      this.#selection.hidden = false;
      this.#selection.style.left = `${((left - from) / (end - from)) * 100}%`;
      this.#selection.style.width = `${((right - left) / (end - from)) * 100}%`;
    };
    area.addEventListener('pointerdown', (event) => {
      const { left, right } = this.#ruler.getBoundingClientRect();
      if (!this.#hasOneAxis || event.button !== 0 || event.clientX < left || event.clientX > right)
        return;
      begin = this.#positionOf(event);
    });
    addEventListener('pointermove', (event) => {
      if (begin === null) return;
      if (Math.abs(this.#positionOf(event) - begin) * this.#axisPixels() > 4)
        mark(this.#positionOf(event));
    });
    addEventListener('pointerup', (event) => {
      if (begin === null) return;
      const [left, right] = [begin, this.#positionOf(event)].sort((one, other) => one - other);
      begin = null;
      this.#selection.hidden = true;
      if (left === undefined || right === undefined) return;
      if ((right - left) * this.#axisPixels() > 4)
        this.#setView({ from: left, to: Math.max(left + VIEW_MIN, right) });
    });
    addEventListener('pointercancel', () => {
      begin = null;
      this.#selection.hidden = true;
    });
  }

  /** Length of the whole axis at this zoom. */
  #axisPixels(): number {
    return this.#ruler.clientWidth / (this.#view.to - this.#view.from);
  }

  #orderChoice(): HTMLElement {
    const choice = make(
      'select',
      { 'aria-label': 'Order of the rounds' },
      ...ORDERS.map((value) => make('option', { value }, value)),
    );
    choice.addEventListener('change', () => {
      this.#order = ORDERS.find((one) => one === choice.value) ?? 'in order';
      this.#list.scrollTop = 0;
      this.#listRows();
      this.#drawRows();
    });
    return choice;
  }

  #legend(): HTMLElement {
    const words: Readonly<Record<string, string>> = SPAN_WORDS;
    const kinds = [
      'waiting',
      'streaming',
      'tool',
      'hook',
      'approval',
      'retry',
      'compaction',
      'idle',
    ];
    return make(
      'ul',
      { class: 'shares legend' },
      ...kinds.map((kind) =>
        make('li', {}, make('span', { class: `swatch ${kind}` }), words[kind] ?? kind),
      ),
      make('li', {}, make('span', { class: 'sign ok' }, '✓'), ' ended well'),
      make('li', {}, make('span', { class: 'sign bad' }, '✗'), ' failed'),
      make('li', {}, make('span', { class: 'swatch tool interrupted' }), 'cut by a crash'),
    );
  }

  render(): void {
    const { history, seq } = this.#pageState;
    if (this.#drawnFor !== history.figures) {
      this.#drawnFor = history.figures;
      this.#rounds = traceRounds(history);
      // Long waits take little of it.
      this.#axis = timeAxis(history.figures.spans, history.figures.elapsedMs, 'shortened');
      this.#listRows();
    }
    if (this.#shownSeq !== seq) {
      this.#shownSeq = seq;
      this.#scrollTo(seq);
    }
    this.#drawRows();
  }

  /** Lists the rows that overlap the shown part of the time. */
  #listRows(): void {
    const { from, to } = this.#view;
    const isIn = ({ startMs, endMs }: { startMs: number; endMs: number }): boolean =>
      this.#axis.position(endMs) >= from && this.#axis.position(startMs) <= to;
    const ordered = orderRounds(this.#rounds, this.#order);
    const shown = this.#hasOneAxis ? ordered.filter(isIn) : ordered;
    this.#longestMs = Math.max(0, ...shown.map(({ workMs }) => workMs));
    this.#all = shown.flatMap((round): readonly Row[] => [
      { kind: 'round', round },
      ...(this.#open.has(round.seq) && round.kind !== 'pause'
        ? round.spans.map((span) => ({ kind: 'part', span, round }) as const)
        : []),
    ]);
    this.#rows.style.height = `${this.#all.length * ROW_PIXELS}px`;
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
    const ticks: HTMLElement[] = [];
    let last = Number.NEGATIVE_INFINITY;
    for (const [place, text] of places) {
      if (place < 0 || place > 1 - apart || place - last < apart) continue;
      last = place;
      const tick = make('span', { class: 'tick' }, text);
      tick.style.left = `${place * 100}%`;
      ticks.push(tick);
    }
    return ticks;
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

  #scrollTo(seq: number): void {
    const index = this.#all.findLastIndex(
      (row) => row.kind === 'round' && row.round.seq <= seq && this.#hasOneAxis,
    );
    if (index < 0) return;
    scrollToRow(this.#list, index, ROW_PIXELS);
  }

  /** Draws the rows in view. */
  #drawRows(): void {
    const [first, last] = rowsInSight(this.#list, ROW_PIXELS);
    const focused = document.activeElement?.getAttribute('data-round');
    const rows = this.#all.slice(first, last).map((row, index) => {
      const element =
        row.kind === 'round' ? this.#roundRow(row.round) : this.#partRow(row.span, row.round);
      element.style.top = `${(first + index) * ROW_PIXELS}px`;
      return element;
    });
    this.#rows.replaceChildren(...rows);
    // Rows are drawn anew: the one that had the focus keeps it.
    if (focused != null)
      this.#rows
        .querySelector<HTMLElement>(`[data-round="${focused}"]`)
        ?.focus({ preventScroll: true });
  }

  #roundRow(round: TraceRound): HTMLElement {
    const { kind, number, seq, workMs, usd, failed, spans } = round;
    const isOpen = this.#open.has(seq);
    const name = kind === 'round' ? `${number}` : kind === 'summary' ? 'summary' : '';
    const calls = spans.filter((span) => span.kind === 'tool');
    const tools = [...new Set(calls.map((span) => span.name))].join(', ');
    const pause = spans[0]?.kind === 'between' ? SPAN_WORDS.between : SPAN_WORDS.idle;
    const label =
      kind === 'pause'
        ? make('span', { class: 'row-label faint' }, `${pause} ${durationText(workMs)}`)
        : this.#roundLabel(seq, isOpen, name, tools, failed);
    const facts = kind === 'pause' ? '' : `${durationText(workMs)} · ${moneyText(usd)}`;
    const isCurrent = this.#isCurrent(round);
    return make(
      'div',
      { class: `trace-row ${kind}${isCurrent ? ' selected' : ''}` },
      label,
      make('span', { class: 'figure' }, facts),
      make('div', { class: 'track' }, ...spans.map((span) => this.#bar(span, round))),
    );
  }

  #isCurrent({ seq, startMs, endMs }: TraceRound): boolean {
    const at = this.#pageState.seq;
    const ms = this.#pageState.history.index.msAt(at);
    return at >= seq && ms >= startMs && ms <= endMs;
  }

  #toggleRound(seq: number): void {
    if (!this.#open.delete(seq)) this.#open.add(seq);
    this.#listRows();
    this.#drawRows();
  }

  #roundLabel(
    seq: number,
    isOpen: boolean,
    name: string,
    tools: string,
    failed: number,
  ): HTMLElement {
    const label = button(
      '',
      { class: 'row-label', 'aria-expanded': String(isOpen), 'data-round': seq, tabindex: -1 },
      () => {
        this.#toggleRound(seq);
        this.#pageState.go(seq);
      },
    );
    label.append(
      make('span', { class: 'number' }, `${isOpen ? '▾' : '▸'} ${name}`),
      failed > 0
        ? make('span', { class: 'sign bad' }, `✗${failed > 1 ? failed : ''}`)
        : make('span', { class: 'sign ok' }, tools === '' ? '' : '✓'),
      make('span', { class: 'about' }, tools),
    );
    return label;
  }

  #partRow(span: TimeSpan, round: TraceRound): HTMLElement {
    const { kind, name, about, id, startMs, endMs, startSeq } = span;
    const request = this.#pageState.history.figures.requests.find((one) => one.id === id);
    const failed = isFailed(this.#pageState.history, span) || request?.ending === 'failed';
    const sign = failed ? '✗' : kind === 'tool' ? '✓' : '';
    const words = request === undefined ? [name, about].join(' ').trim() : requestWords(request);
    const label = button('', { class: 'row-label part', tabindex: -1 }, () =>
      this.#pageState.go(span.endSeq ?? startSeq),
    );
    label.append(
      make('span', { class: `sign ${failed ? 'bad' : 'ok'}` }, sign),
      make(
        'span',
        { class: 'about', title: words },
        firstCharacters(`${SPAN_WORDS[kind]}: ${words}`, 200),
      ),
    );
    return make(
      'div',
      { class: 'trace-row part' },
      label,
      make('span', { class: 'figure' }, durationText(endMs - startMs)),
      make('div', { class: 'track' }, this.#bar(span, round)),
    );
  }

  #bar(span: TimeSpan, round: TraceRound): HTMLElement | null {
    const left = this.#share(span.startMs, round);
    const right = this.#share(span.endMs, round);
    if (right < 0 || left > 1) return null;
    const failed = isFailed(this.#pageState.history, span);
    const about = [span.name, span.about].filter((text) => text !== '').join(' ');
    const bar = make('span', {
      class: `span-bar swatch ${span.kind} ${span.ending}${failed ? ' failed' : ''}`,
      title: `${SPAN_WORDS[span.kind]}: ${firstCharacters(about, 300)}, ${durationText(span.endMs - span.startMs)}`,
    });
    bar.style.left = `${Math.max(0, left) * 100}%`;
    bar.style.width = `${(Math.min(1, right) - Math.max(0, left)) * 100}%`;
    return bar;
  }
}
