/**
 * The statechart: where the machine is, the arrows that were taken and how often, and what each of
 * them means. A hop leads from one state of a chart to another; the trace of a session has all its
 * hops on a chart, by entry (`seq`).
 *
 * From top to bottom: `MachinePanel`, with a chart to choose and an explanation; `smallMachine`,
 * the chart beside other panels; and `ChartView`, a chart as SVG.
 */

import { agent } from '@pawl/agent/machine/machine';
import { projections } from '@pawl/verify/projections/all-projections';
import charts from '../charts/charts.json' with { type: 'json' };
import {
  type Chart,
  type ChartBox,
  type ChartLine,
  type ChartName,
  type ChartTrace,
  type Hop,
  hopKey,
  LABEL_LINE_PIXELS,
  LABEL_PIXELS,
  NOTE_LINE_PIXELS,
  svgPath,
} from '../model/chart.js';
import {
  type Explanation,
  explainArrow,
  explainState,
  type MachineRule,
} from '../model/explain-state-and-arrow.js';
import { plural } from '../model/figure-text.js';
import { button, make, makeSvg, scrolled } from './elements.js';
import type { PageState, Panel } from './page-state.js';

// Safe: a test holds the file to the type.
const allCharts = charts as unknown as Readonly<Record<ChartName, Chart>>;

/** The build writes them from docs/design/rules.md into the page. */
const machineRules: readonly MachineRule[] = JSON.parse(
  document.getElementById('rules')?.textContent ?? '[]',
);

const CHOICES: readonly (readonly [ChartName, string])[] = [
  ['whole', 'every state'],
  ['resting', 'states in which it waits'],
  ...projections.map(({ name, title }) => [name, `as ${title}`] as const),
];

/** The first fits the whole chart into its place; the others are factors of its own size. */
const ZOOMS = ['fit', 1, 1.5, 2.25] as const;

/** A list below a heading that closes it; nothing for no items. */
const drawList = (
  heading: string,
  items: readonly (readonly (Node | string)[])[],
): readonly Node[] =>
  items.length === 0
    ? []
    : [
        make(
          'details',
          { open: true },
          make('summary', {}, heading),
          make('ul', {}, ...items.map((item) => make('li', {}, ...item))),
        ),
      ];

const explanationView = (
  { title, about, branches, rules }: Explanation,
  more: string,
): readonly Node[] => [
  make('h3', {}, title),
  make('p', {}, [about, more].filter((text) => text !== '').join(' ')),
  ...drawList(
    'Branches, tried in this order',
    branches.map((branch) => [make('code', {}, branch)]),
  ),
  ...drawList(
    'Rules (docs/design/rules.md)',
    rules.map(({ anchor, text }) => [make('code', {}, anchor), ` ${text}`]),
  ),
];

export class MachinePanel implements Panel {
  readonly element: HTMLElement;
  readonly #pageState: PageState;
  readonly #place = scrolled('Chart');
  readonly #explained = scrolled('Explanation');
  readonly #choice = make(
    'select',
    {
      id: 'chart-choice',
      'aria-label': 'Chart',
      onchange: () =>
        this.#pageState.update({
          chart: CHOICES.find(([name]) => name === this.#choice.value)?.[0] ?? 'whole',
        }),
    },
    ...CHOICES.map(([value, text]) => make('option', { value }, text)),
  );
  #chart: ChartView | null = null;
  #drawnName: ChartName | null = null;
  /** What is explained; null: the current state. */
  #pointed: Pointed | null = null;
  /** The key of the last explanation, which is not written again. */
  #explainedFor = '';
  /** Index in `ZOOMS`. */
  #zoom = 1;
  /** The state that was scrolled into view last. */
  #revealed: SVGGElement | null = null;

  constructor(pageState: PageState) {
    this.#pageState = pageState;
    this.#place.classList.add('chart-place');
    this.#explained.classList.add('explained');
    const [smaller, larger] = [
      { 'aria-label': 'Smaller chart', title: 'Smaller, down to the whole chart (-)' },
      { 'aria-label': 'Larger chart', title: 'Larger (+)' },
    ];
    this.element = make(
      'section',
      { class: 'machine' },
      make(
        'div',
        { class: 'bar' },
        make('h2', {}, 'Machine'),
        this.#choice,
        make('span', { class: 'spacer' }),
        button('−', smaller, () => this.zoom(-1)),
        button('+', larger, () => this.zoom(1)),
      ),
      this.#place,
      this.#explained,
    );
  }

  render(): void {
    const { chart, trace, seq } = this.#pageState;
    if (this.#drawnName !== chart) this.#draw(chart);
    this.#choice.value = chart;
    this.#chart?.show(trace, seq);
    this.#explain();
    this.#reveal();
  }

  /** Makes the chart larger or smaller by a step, and keeps the current state in view. */
  zoom(by: 1 | -1): void {
    this.#zoom = Math.max(0, Math.min(ZOOMS.length - 1, this.#zoom + by));
    this.#applyZoom();
    this.#revealed = null;
    this.#reveal();
  }

  #applyZoom(): void {
    const zoom = ZOOMS[this.#zoom] ?? 'fit';
    const { width } = allCharts[this.#pageState.chart];
    this.#place.classList.toggle('fit', zoom === 'fit');
    const chartWidth = zoom === 'fit' ? '100%' : `${Math.ceil(width * zoom)}px`;
    this.#place.style.setProperty('--chart-width', chartWidth);
  }

  /** Scrolls the chart so that the current state is in view. */
  #reveal(): void {
    const { trace, seq } = this.#pageState;
    const current = this.#chart?.stateNamed(trace.stateAt(seq));
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
    const transient = name === 'whole' ? agent.transient : [];
    this.#pointed = null;
    this.#chart = new ChartView(allCharts[name], transient, (pointed) => {
      this.#pointed = pointed;
      this.#explain();
    });
    this.#drawnName = name;
    this.#place.replaceChildren(this.#chart.svg);
    this.#applyZoom();
  }

  #explain(): void {
    // `projection`: the chart shows the session as another agent; null: as ours.
    const { projection, trace, seq } = this.#pageState;
    const pointed = this.#pointed ?? { kind: 'state' as const, name: trace.stateAt(seq) };
    const times = pointed.kind === 'state' ? null : (trace.countsAt(seq).get(hopKey(pointed)) ?? 0);
    const taken = times === 0 ? 'Not taken so far.' : `Taken ${plural(times ?? 0, 'time')} so far.`;
    const more = times === null ? '' : taken;
    const key = JSON.stringify([this.#drawnName, pointed, more]);
    if (key === this.#explainedFor) return;
    this.#explainedFor = key;
    const explanation =
      pointed.kind === 'state'
        ? explainState(pointed.name, projection, machineRules)
        : explainArrow(pointed, projection, machineRules);
    this.#explained.replaceChildren(...explanationView(explanation, more));
  }
}

// ---- The small chart ----

/** The states in which it waits, two in a row, for the place beside the panels. */
const SMALL_ORDER = [
  'WaitingForUserInput',
  'Ready',
  'CallingLlm',
  'Error',
  'ExecutingTools',
  'Compacting',
  'PostToolsHook',
  'Rewinding',
];
const SMALL_BOX = { width: 132, height: 24 } as const;
const SMALL_ROW_PIXELS = 54;
const SMALL_WIDTH = 284;

const smallChart = (): Chart => {
  const names = allCharts.resting.boxes.map(({ name }) => name);
  const ordered = [
    ...SMALL_ORDER.filter((name) => names.includes(name)),
    ...names.filter((name) => !SMALL_ORDER.includes(name)),
  ];
  const boxes = ordered.map((name, index) => ({
    name,
    lines: [],
    x: index % 2 === 0 ? 2 : SMALL_WIDTH - SMALL_BOX.width - 2,
    y: 6 + Math.floor(index / 2) * SMALL_ROW_PIXELS,
    ...SMALL_BOX,
  }));
  const height = Math.ceil(names.length / 2) * SMALL_ROW_PIXELS - 16;
  return { boxes, lines: [], width: SMALL_WIDTH, height };
};

/** The small chart: where it is, and the arrows that were taken up to the selected entry. */
export const smallMachine = (pageState: PageState): Panel => {
  // Nothing is explained here, so what is under the pointer does not matter.
  const chart = new ChartView(smallChart(), [], () => undefined);
  const about = make('p', { class: 'faint' });
  const title = make('h2');
  const whole = button('Whole chart', { title: 'Every state and arrow (5)' }, () =>
    pageState.update({ panel: 'machine' }),
  );
  const element = make('div', { class: 'small-machine' }, title, chart.svg, about, whole);
  return {
    element,
    render() {
      const trace = pageState.traceOf('resting');
      const current = trace.stateAt(pageState.seq);
      chart.show(trace, pageState.seq);
      title.textContent = current;
      about.textContent = explainState(current, null, machineRules).about;
    },
  };
};

// ---- A chart as SVG ----

type DrawnArrow = {
  readonly hop: Hop;
  readonly group: SVGGElement;
  readonly count: SVGTextElement;
  readonly badge: SVGRectElement;
};

/** The state or arrow under the pointer or the keyboard. */
type Pointed =
  | { readonly kind: 'state'; readonly name: string }
  | ({ readonly kind: 'arrow' } & Hop);
type OnPoint = (pointed: Pointed | null) => void;

/** A chart, and the way of a session through it. */
class ChartView {
  readonly svg: SVGSVGElement;
  readonly #chart: Chart;
  readonly #onPoint: OnPoint;
  readonly #states: ReadonlyMap<string, SVGGElement>;
  readonly #arrows: readonly DrawnArrow[];
  /** Holds arrows that the chart has no place for. */
  readonly #others = makeSvg('g');
  /** The trace and the entry that are shown. */
  #shown: readonly [ChartTrace, number] | null = null;

  /** `onPoint`: what is under the pointer now, or null. */
  constructor(chart: Chart, transient: readonly string[], onPoint: OnPoint) {
    this.#chart = chart;
    this.#onPoint = onPoint;
    // What is drawn later lies above: the usual way (`onward`) over early ends (`stopped`, `closed`).
    const isOnward = ({ kind }: ChartLine): number => (kind === 'onward' ? 1 : 0);
    this.#arrows = chart.lines
      .toSorted((one, other) => isOnward(one) - isOnward(other))
      .map((line) => drawArrow(line, onPoint));
    this.#states = new Map(
      chart.boxes.map((box) => [box.name, drawState(box, transient.includes(box.name), onPoint)]),
    );
    this.svg = makeSvg(
      'svg',
      {
        viewBox: `0 0 ${Math.ceil(chart.width)} ${Math.ceil(chart.height)}`,
        class: 'chart',
        role: 'group',
        'aria-label': 'States and arrows of the machine',
      },
      arrowHeads(),
      ...this.#arrows.map(({ group }) => group),
      this.#others,
      ...this.#states.values(),
    );
  }

  stateNamed(name: string): SVGGElement | undefined {
    return this.#states.get(name);
  }

  /** Shows the state after an entry, and how often each arrow was taken until then. */
  show(trace: ChartTrace, seq: number): void {
    if (this.#shown?.[0] === trace && this.#shown[1] === seq) return;
    this.#shown = [trace, seq];
    const counts = new Map(trace.countsAt(seq));
    const last = new Set(trace.hopsAt(seq).map(hopKey));
    const passed = new Set(trace.hopsAt(seq).flatMap(({ from, to }) => [from, to]));
    const current = trace.stateAt(seq);
    for (const [name, group] of this.#states) {
      group.classList.toggle('current', name === current);
      group.classList.toggle('passed', passed.has(name));
      group.setAttribute('aria-label', name === current ? `${name}: the machine is here` : name);
    }
    for (const arrow of this.#arrows) {
      const key = hopKey(arrow.hop);
      showTimes(arrow, counts.get(key) ?? 0, last.has(key));
      counts.delete(key);
    }
    const others = [...counts].flatMap(([key, times]) => {
      const [from = '', to = ''] = key.split(' ');
      const line = straightLine(this.#chart, { from, to });
      if (line === null) return [];
      const arrow = drawArrow(line, this.#onPoint);
      showTimes(arrow, times, last.has(key));
      return [arrow.group];
    });
    this.#others.replaceChildren(...others);
  }
}

/** Shows how often an arrow was taken, and whether the selected step took it. */
const showTimes = ({ group, count, badge }: DrawnArrow, times: number, isLast: boolean): void => {
  group.classList.toggle('taken', times > 0);
  group.classList.toggle('last', isLast);
  const text = times > 0 ? String(times) : '';
  // Each write lays the chart out again, also one that changes nothing.
  if (count.textContent === text) return;
  count.textContent = text;
  const width = 10 + 7 * text.length;
  badge.setAttribute('width', String(width));
  badge.setAttribute('x', String(Number(count.getAttribute('x')) - width / 2));
};

const arrowHeads = (): SVGDefsElement =>
  makeSvg(
    'defs',
    {},
    ...['onward', 'stopped', 'closed', 'last'].map((name) =>
      makeSvg(
        'marker',
        {
          id: `head-${name}`,
          class: `head ${name}`,
          viewBox: '0 0 8 8',
          refX: 7,
          refY: 4,
          markerWidth: 8,
          markerHeight: 8,
          markerUnits: 'userSpaceOnUse',
          orient: 'auto',
        },
        makeSvg('path', { d: 'M0 .5 8 4 0 7.5z' }),
      ),
    ),
  );

/** The middle of the longest straight part. */
const findMiddle = (points: ChartLine['points']): readonly [number, number] => {
  let best: readonly [number, number] = points[0] ?? [0, 0];
  let longest = -1;
  for (const [index, [x, y]] of points.entries()) {
    const before = points[index - 1];
    if (before === undefined) continue;
    const length = Math.hypot(x - before[0], y - before[1]);
    if (length <= longest) continue;
    longest = length;
    best = [(x + before[0]) / 2, (y + before[1]) / 2];
  }
  return best;
};

const drawLabel = ({ label, at }: ChartLine): SVGElement[] =>
  at === null
    ? []
    : label.map(({ text, kind }, row) => {
        const y = at[1] + LABEL_PIXELS + row * LABEL_LINE_PIXELS;
        return makeSvg('text', { class: `label ${kind}`, x: at[0] + 2, y }, text);
      });

const drawArrow = (line: ChartLine, onPoint: OnPoint): DrawnArrow => {
  const { from, to, kind, points } = line;
  const d = svgPath(points);
  const [x, y] = findMiddle(points);
  const badge = makeSvg('rect', {
    class: 'badge',
    x: x - 9,
    y: y - 8,
    width: 18,
    height: 16,
    rx: 8,
  });
  const count = makeSvg('text', { class: 'count', x, y: y + 3.5 });
  const group = makeSvg(
    'g',
    {
      class: `arrow ${kind}`,
      'data-arrow': hopKey(line),
      onpointerenter: () => onPoint({ kind: 'arrow', from, to }),
      onpointerleave: () => onPoint(null),
    },
    makeSvg('path', { class: 'hit', d }),
    makeSvg('path', { class: 'line', d }),
    ...drawLabel(line),
    badge,
    count,
  );
  return { hop: { from, to }, group, badge, count };
};

const drawState = (
  { name, lines, x, y, width, height }: ChartBox,
  isTransient: boolean,
  onPoint: OnPoint,
): SVGGElement => {
  const middle = x + width / 2;
  const first = lines.length === 0 ? y + height / 2 + 5 : y + 23;
  const point = (): void => onPoint({ kind: 'state', name });
  const leave = (): void => onPoint(null);
  return makeSvg(
    'g',
    {
      class: `state${isTransient ? ' passing' : ''}`,
      'data-state': name,
      tabindex: 0,
      role: 'img',
      'aria-label': name,
      onpointerenter: point,
      onpointerleave: leave,
      onfocus: point,
      onblur: leave,
    },
    makeSvg('rect', { class: 'box', x, y, width, height, rx: isTransient ? height / 2 : 8 }),
    makeSvg('text', { class: 'name', x: middle, y: first }, name),
    ...lines.map((text, row) =>
      makeSvg('text', { class: 'note', x: middle, y: y + 40 + row * NOTE_LINE_PIXELS }, text),
    ),
  );
};

/** The point on the edge of a box, in a straight line from its middle to another point. */
const findEdge = (
  { x, y, width, height }: ChartBox,
  towards: readonly [number, number],
): readonly [number, number] => {
  const [middleX, middleY] = [x + width / 2, y + height / 2];
  const [dx, dy] = [towards[0] - middleX, towards[1] - middleY];
  const share = Math.min(width / 2 / (Math.abs(dx) || 1), height / 2 / (Math.abs(dy) || 1), 1);
  return [middleX + dx * share, middleY + dy * share];
};

/** A straight line between two boxes, for a hop that was not laid out; null if a box is not there. */
const straightLine = ({ boxes }: Chart, { from, to }: Hop): ChartLine | null => {
  const [start, end] = [from, to].map((name) => boxes.find((box) => box.name === name));
  if (start === undefined || end === undefined || start === end) return null;
  const middle = (box: ChartBox): readonly [number, number] => [
    box.x + box.width / 2,
    box.y + box.height / 2,
  ];
  const points = [findEdge(start, middle(end)), findEdge(end, middle(start))];
  return { from, to, kind: 'closed', label: [], at: null, points };
};
