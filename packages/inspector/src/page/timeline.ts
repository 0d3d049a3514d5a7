import { groupDigits } from '@pawl/agent/platform/base/group-digits';
import { MARKER_KINDS, type MarkerKind, nextMarker } from '../model/jump-markers.js';
import { button, draw, make } from './dom.js';
import { clockText } from './format-numbers.js';
import type { PageState, Panel } from './page-state.js';

/** The strip of all events with its slider, and the buttons that go from place to place. */

const BINS_MAX = 400;
const STRIP_PIXELS = 26;

/** The states of the strip, a bar for a run of equal ones. In a long session a bar stands for several events. */
const stripBars = (pageState: PageState): readonly SVGElement[] => {
  const { history } = pageState;
  const count = history.seq;
  const bins = Math.min(BINS_MAX, count);
  const bars: SVGElement[] = [];
  let begin = 0;
  for (let bin = 0; bin < bins; bin++) {
    const name = history.stateAt(Math.ceil(((bin + 1) / bins) * count)).name;
    const next = bin + 1 < bins ? history.stateAt(Math.ceil(((bin + 2) / bins) * count)).name : null;
    if (next === name) continue;
    bars.push(
      draw('rect', {
        class: `run ${name}`,
        x: (begin / bins) * 1_000,
        width: ((bin + 1 - begin) / bins) * 1_000,
        y: 0,
        height: STRIP_PIXELS,
      }),
    );
    begin = bin + 1;
  }
  return bars;
};

/** Marks for what can be jumped to, at most one for each kind in a bin. */
const stripMarks = (pageState: PageState): readonly SVGElement[] => {
  const { history } = pageState;
  const seen = new Set<string>();
  return history.markers.flatMap(({ seq, kind }) => {
    const x = Math.round(((seq - 0.5) / history.seq) * 1_000);
    const key = `${kind} ${Math.round(x / 3)}`;
    if (kind === 'prompt' || seen.has(key)) return [];
    seen.add(key);
    return [
      draw('rect', {
        class: `mark ${kind.replace(' ', '-')}`,
        x: x - 1.5,
        width: 3,
        y: 0,
        height: STRIP_PIXELS,
      }),
    ];
  });
};

export class TimeTravel implements Panel {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #strip = draw('svg', {
    class: 'strip',
    viewBox: `0 0 1000 ${STRIP_PIXELS}`,
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  });
  readonly #slider = make('input', {
    type: 'range',
    id: 'slider',
    min: 0,
    max: 0,
    step: 1,
    value: 0,
    'aria-label': 'Event',
  });
  readonly #where = make('output', { class: 'where', for: 'slider' });
  readonly #jump = make('select', { id: 'jump', 'aria-label': 'What to jump to' });
  readonly #live: HTMLButtonElement;
  #drawnSeq = -1;
  #jumpKey = '';

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    const step = (by: number) => () => pageState.go(pageState.seq + by);
    this.#live = button('Latest', { title: 'Go to the last event and follow (End)' }, () =>
      pageState.go(pageState.history.seq),
    );
    this.#slider.addEventListener('input', () => pageState.go(Number(this.#slider.value)));
    this.#jump.addEventListener('change', () =>
      pageState.update({ jump: MARKER_KINDS.find((kind) => kind === this.#jump.value) ?? null }),
    );
    this.element = make(
      'nav',
      { class: 'timeline', 'aria-label': 'Time travel' },
      make('div', { class: 'track' }, this.#strip, this.#slider),
      make(
        'div',
        { class: 'bar' },
        button('|◀', { 'aria-label': 'First event', title: 'First event (Home)' }, () => pageState.go(0)),
        button('◀', { 'aria-label': 'Previous event', title: 'Previous event (←)' }, step(-1)),
        button('▶', { 'aria-label': 'Next event', title: 'Next event (→)' }, step(1)),
        this.#live,
        this.#where,
        make('span', { class: 'spacer' }),
        this.#jump,
        button('Previous', { title: 'Jump back (p)' }, () => this.jump('back')),
        button('Next', { title: 'Jump on (n)' }, () => this.jump('forward')),
      ),
    );
  }

  /** Goes to the next error, retry, approval… */
  jump(direction: 'forward' | 'back'): void {
    const { history, jump, seq } = this.#pageState;
    const marker = nextMarker(history.markers, jump, seq, direction);
    if (marker !== null) this.#pageState.go(marker.seq);
  }

  render(): void {
    const { history, seq, following, connection } = this.#pageState;
    if (this.#drawnSeq !== history.seq) {
      this.#drawnSeq = history.seq;
      this.#strip.replaceChildren(...stripBars(this.#pageState), ...stripMarks(this.#pageState));
      this.#slider.max = String(history.seq);
      this.#fillJump();
    }
    this.#slider.value = String(seq);
    const step = history.stepAt(seq);
    const about =
      step === null ? 'before the first event' : `${step.event.type} · ${clockText(step.event.at)}`;
    const markers = history.markers.filter((marker) => marker.seq === seq).map(({ kind }) => kind);
    const named = markers.length === 0 ? '' : ` · ${markers.join(', ')}`;
    this.#where.replaceChildren(
      make('strong', {}, groupDigits(seq)),
      ` of ${groupDigits(history.seq)} · ${about}${named}`,
    );
    this.#slider.setAttribute(
      'aria-valuetext',
      `${seq} of ${history.seq}, ${about}, ${history.stateAt(seq).name}`,
    );
    this.#live.classList.toggle('on', following && connection === 'live');
    this.#live.setAttribute('aria-pressed', String(following));
    this.#jump.value = this.#pageState.jump ?? '';
  }

  #fillJump(): void {
    const counts = new Map<MarkerKind, number>();
    for (const { kind } of this.#pageState.history.markers) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const key = [...counts].join();
    if (key === this.#jumpKey) return;
    this.#jumpKey = key;
    const all = this.#pageState.history.markers.length;
    this.#jump.replaceChildren(
      make('option', { value: '' }, `anything (${groupDigits(all)})`),
      ...MARKER_KINDS.map((kind) =>
        make(
          'option',
          { value: kind, disabled: !counts.has(kind) },
          `${kind} (${groupDigits(counts.get(kind) ?? 0)})`,
        ),
      ),
    );
  }
}
