import { agent } from '@pawl/agent/machine/machine';
import { projections } from '@pawl/verify/projections/all-projections';
import type { Chart, ChartName } from '../../charts/chart.js';
import charts from '../../charts/charts.json' with { type: 'json' };
import { type Hop, keyOfHop } from '../../model/chart-trace.js';
import { type Explanation, explainArrow, explainState } from '../../model/explain-state-and-arrow.js';
import { type DrawnChart, drawChart, type Pointed, straightArrow } from '../chart-drawing.js';
import { button, make } from '../dom.js';
import { plural } from '../format-numbers.js';
import type { PageState, Panel } from '../page-state.js';

/** The statechart: where the machine is, the arrows that were taken and how often, and what each of them means. */

const allCharts = charts as unknown as Readonly<Record<ChartName, Chart>>; // Safe: a test holds the file to the type.

const CHOICES: readonly (readonly [ChartName, string])[] = [
  ['whole', 'every state'],
  ['resting', 'states in which it waits'],
  ...projections.map(({ name, title }) => [name, `as ${title}`] as const),
];

/** The first fits the whole chart into its place where the window is wide; the others are parts of the place's width. */
const ZOOMS = ['fit', '100%', '150%', '225%'] as const;

const listOf = (heading: string, items: readonly (Node | string)[]): HTMLElement | null =>
  items.length === 0
    ? null
    : make(
        'details',
        { open: true },
        make('summary', {}, heading),
        make('ul', {}, ...items.map((item) => make('li', {}, item))),
      );

const explanationView = ({ title, about, branches, rules }: Explanation, more: string): readonly Node[] => {
  const lists = [
    listOf(
      'Branches, tried in this order',
      branches.map((branch) => make('code', {}, branch)),
    ),
    listOf(
      'Rules (docs/rules.md)',
      rules.map(({ anchor, text }) => make('span', {}, make('code', {}, anchor), ` ${text}`)),
    ),
  ];
  return [
    make('h3', {}, title),
    make('p', {}, [about, more].filter((text) => text !== '').join(' ')),
    ...lists.filter((list) => list !== null),
  ];
};

class MachinePanel implements Panel {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #place = make('div', {
    class: 'chart-place fit',
    tabindex: 0,
    role: 'region',
    'aria-label': 'Chart',
  });
  readonly #explained = make('div', {
    class: 'explained',
    tabindex: 0,
    role: 'region',
    'aria-label': 'Explanation',
  });
  readonly #choice: HTMLSelectElement;
  #drawn: DrawnChart | null = null;
  #drawnName: ChartName | null = null;
  #pointed: Pointed | null = null;
  #explainedFor = '';
  #zoom = 0;
  #revealed: SVGGElement | null = null;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    this.#choice = make(
      'select',
      { id: 'chart-choice', 'aria-label': 'Chart' },
      ...CHOICES.map(([value, text]) => make('option', { value }, text)),
    );
    this.#choice.addEventListener('change', () =>
      pageState.update({ chart: CHOICES.find(([name]) => name === this.#choice.value)?.[0] ?? 'whole' }),
    );
    this.element = make(
      'section',
      { class: 'machine', 'aria-label': 'Machine' },
      make(
        'div',
        { class: 'bar' },
        make('h2', {}, 'Machine'),
        this.#choice,
        make(
          'span',
          { class: 'zoom' },
          button('−', { 'aria-label': 'Smaller chart', title: 'Smaller, down to the whole chart (-)' }, () =>
            this.zoom(-1),
          ),
          button('+', { 'aria-label': 'Larger chart', title: 'Larger (+)' }, () => this.zoom(1)),
        ),
      ),
      this.#place,
      this.#explained,
    );
  }

  render(): void {
    const { chart } = this.#pageState;
    if (this.#drawnName !== chart) this.#draw(chart);
    this.#choice.value = chart;
    this.#mark();
    this.#explain();
    this.#reveal();
  }

  /** Makes the chart larger or smaller by a step, and keeps the current state in view. */
  zoom(by: 1 | -1): void {
    this.#zoom = Math.max(0, Math.min(ZOOMS.length - 1, this.#zoom + by));
    const zoom = ZOOMS[this.#zoom] ?? 'fit';
    this.#place.classList.toggle('fit', zoom === 'fit');
    this.#place.style.setProperty('--chart-width', zoom === 'fit' ? '100%' : zoom);
    this.#revealed = null;
    this.#reveal();
  }

  /** Scrolls the chart so that the current state is in view. */
  #reveal(): void {
    const { trace, seq } = this.#pageState;
    const current = this.#drawn?.states.get(trace.stateAt(seq));
    if (current === undefined || current === this.#revealed) return;
    this.#revealed = current;
    const [state, place] = [current.getBoundingClientRect(), this.#place.getBoundingClientRect()];
    const margin = 40;
    if (state.top < place.top + margin || state.bottom > place.bottom - margin)
      this.#place.scrollTop += (state.top + state.bottom - place.top - place.bottom) / 2;
    if (state.left < place.left || state.right > place.right)
      this.#place.scrollLeft += (state.left + state.right - place.left - place.right) / 2;
  }

  #draw(name: ChartName): void {
    const passing = name === 'whole' ? agent.transient : [];
    this.#pointed = null;
    this.#drawn = drawChart(allCharts[name], passing, (pointed) => {
      this.#pointed = pointed;
      this.#explain();
    });
    this.#drawnName = name;
    this.#place.replaceChildren(this.#drawn.svg);
  }

  #mark(): void {
    const { trace, seq } = this.#pageState;
    const counts = trace.countsAt(seq);
    const last = new Set(trace.hopsAt(seq).map(keyOfHop));
    const passed = new Set(trace.hopsAt(seq).flatMap(({ from, to }) => [from, to]));
    const current = trace.stateAt(seq);
    for (const [name, group] of this.#drawn?.states ?? []) {
      group.classList.toggle('current', name === current);
      group.classList.toggle('passed', passed.has(name));
      group.setAttribute('aria-label', name === current ? `${name}: the machine is here` : name);
    }
    const known = new Set<string>();
    for (const { hop, group, count, badge } of this.#drawn?.arrows ?? []) {
      const key = keyOfHop(hop);
      const times = counts.get(key) ?? 0;
      known.add(key);
      group.classList.toggle('taken', times > 0);
      group.classList.toggle('last', last.has(key));
      const text = times > 0 ? String(times) : '';
      // Each write lays the chart out again, also one that changes nothing.
      if (count.textContent === text) continue;
      count.textContent = text;
      const width = 10 + 7 * String(times).length;
      badge.setAttribute('width', String(width));
      badge.setAttribute('x', String(Number(count.getAttribute('x')) - width / 2));
    }
    this.#markOthers(counts, known, last);
  }

  #markOthers(
    counts: ReadonlyMap<string, number>,
    known: ReadonlySet<string>,
    last: ReadonlySet<string>,
  ): void {
    const chart = allCharts[this.#pageState.chart];
    const hops = [...counts].filter(([key]) => !known.has(key));
    const arrows = hops.map(([key, times]) => {
      const [from = '', to = ''] = key.split(' ');
      return straightArrow(chart, { from, to }, times, last.has(key));
    });
    this.#drawn?.others.replaceChildren(...arrows.filter((arrow) => arrow !== null));
  }

  #timesOf({ from, to }: Hop): string {
    const { trace, seq } = this.#pageState;
    const times = trace.countsAt(seq).get(keyOfHop({ from, to })) ?? 0;
    return times === 0 ? 'Not taken so far.' : `Taken ${plural(times, 'time')} so far.`;
  }

  #explain(): void {
    const { projection, trace, seq } = this.#pageState;
    const pointed = this.#pointed ?? { kind: 'state' as const, name: trace.stateAt(seq) };
    const more = pointed.kind === 'state' ? '' : this.#timesOf(pointed);
    const key = JSON.stringify([this.#drawnName, pointed, more]);
    if (key === this.#explainedFor) return;
    this.#explainedFor = key;
    const nodes =
      pointed.kind === 'state'
        ? explanationView(explainState(pointed.name, projection), '')
        : explanationView(explainArrow(pointed.from, pointed.to, projection), more);
    this.#explained.replaceChildren(...nodes);
  }
}

export const machinePanel = (pageState: PageState): Panel & { zoom(by: 1 | -1): void } =>
  new MachinePanel(pageState);
