import {
  type Chart,
  type ChartBox,
  type ChartLine,
  LABEL_LINE_PIXELS,
  LABEL_PIXELS,
  NOTE_LINE_PIXELS,
  pathOf,
} from '../charts/chart.js';
import { type Hop, keyOfHop } from '../model/chart-trace.js';
import { draw } from './dom.js';

/** A chart as SVG, and the handles with which the way of a session is shown in it. */

export type DrawnArrow = {
  readonly hop: Hop;
  readonly group: SVGGElement;
  readonly count: SVGTextElement;
  readonly badge: SVGRectElement;
};

export type DrawnChart = {
  readonly svg: SVGSVGElement;
  readonly states: ReadonlyMap<string, SVGGElement>;
  readonly arrows: readonly DrawnArrow[];
  /** Holds arrows that the chart has no place for. */
  readonly others: SVGGElement;
};

/** What the pointer or the keyboard is at. */
export type Pointed = { readonly kind: 'state'; readonly name: string } | ({ readonly kind: 'arrow' } & Hop);
type Point = (pointed: Pointed | null) => void;

const MARKERS = ['onward', 'stopped', 'closed', 'taken', 'last'];

const heads = (): SVGDefsElement =>
  draw(
    'defs',
    {},
    ...MARKERS.map((name) =>
      draw(
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
        draw('path', { d: 'M0 .5 8 4 0 7.5z' }),
      ),
    ),
  );

const pointing = (group: SVGGElement, point: Point, pointed: Pointed): void => {
  group.addEventListener('pointerenter', () => point(pointed));
  group.addEventListener('pointerleave', () => point(null));
};

/** The middle of the longest straight part. */
const middleOf = (points: ChartLine['points']): readonly [number, number] => {
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

const drawCount = ([x, y]: readonly [number, number]) => ({
  badge: draw('rect', { class: 'badge', x: x - 9, y: y - 8, width: 18, height: 16, rx: 8 }),
  count: draw('text', { class: 'count', x, y: y + 3.5 }),
});

const drawLabel = ({ label, at }: ChartLine): SVGElement[] =>
  at === null
    ? []
    : label.map(({ text, kind }, row) =>
        draw(
          'text',
          { class: `label ${kind}`, x: at[0] + 2, y: at[1] + LABEL_PIXELS + row * LABEL_LINE_PIXELS },
          text,
        ),
      );

const drawArrow = (line: ChartLine, point: Point): DrawnArrow => {
  const { from, to, kind, points } = line;
  const d = pathOf(points);
  const { badge, count } = drawCount(middleOf(points));
  const group = draw(
    'g',
    { class: `arrow ${kind}`, 'data-arrow': keyOfHop(line) },
    draw('path', { class: 'hit', d }),
    draw('path', { class: 'line', d }),
    ...drawLabel(line),
    badge,
    count,
  );
  pointing(group, point, { kind: 'arrow', from, to });
  return { hop: { from, to }, group, badge, count };
};

const drawState = (
  { name, lines, x, y, width, height }: ChartBox,
  passed: boolean,
  point: Point,
): SVGGElement => {
  const middle = x + width / 2;
  const first = lines.length === 0 ? y + height / 2 + 5 : y + 23;
  const group = draw(
    'g',
    {
      class: `state${passed ? ' passing' : ''}`,
      'data-state': name,
      tabindex: 0,
      role: 'img',
      'aria-label': name,
    },
    draw('rect', { class: 'box', x, y, width, height, rx: passed ? height / 2 : 8 }),
    draw('text', { class: 'name', x: middle, y: first }, name),
    ...lines.map((text, row) =>
      draw('text', { class: 'note', x: middle, y: y + 40 + row * NOTE_LINE_PIXELS }, text),
    ),
  );
  pointing(group, point, { kind: 'state', name });
  group.addEventListener('focus', () => point({ kind: 'state', name }));
  group.addEventListener('blur', () => point(null));
  return group;
};

export const drawChart = (chart: Chart, passing: readonly string[], point: Point): DrawnChart => {
  const ordered = [
    ...chart.lines.filter(({ kind }) => kind !== 'onward'),
    ...chart.lines.filter(({ kind }) => kind === 'onward'),
  ];
  const arrows = ordered.map((line) => drawArrow(line, point));
  const states = new Map(
    chart.boxes.map((box) => [box.name, drawState(box, passing.includes(box.name), point)]),
  );
  const others = draw('g', {});
  const svg = draw(
    'svg',
    {
      viewBox: `0 0 ${Math.ceil(chart.width)} ${Math.ceil(chart.height)}`,
      class: 'chart',
      role: 'group',
      'aria-label': 'States and arrows of the machine',
    },
    heads(),
    ...arrows.map(({ group }) => group),
    others,
    ...states.values(),
  );
  return { svg, states, arrows, others };
};

/** Where a straight line from the middle of a box leaves it towards a point. */
const edgeOf = (
  { x, y, width, height }: ChartBox,
  towards: readonly [number, number],
): readonly [number, number] => {
  const [middleX, middleY] = [x + width / 2, y + height / 2];
  const [dx, dy] = [towards[0] - middleX, towards[1] - middleY];
  const share = Math.min(width / 2 / (Math.abs(dx) || 1), height / 2 / (Math.abs(dy) || 1), 1);
  return [middleX + dx * share, middleY + dy * share];
};

/** A straight arrow between two boxes, for a hop that was not laid out; null if a box is not there. */
export const straightArrow = (
  chart: Chart,
  { from, to }: Hop,
  count: number,
  last: boolean,
): SVGGElement | null => {
  const [start, end] = [from, to].map((name) => chart.boxes.find((box) => box.name === name));
  if (start === undefined || end === undefined || start === end) return null;
  const middle = (box: ChartBox): readonly [number, number] => [
    box.x + box.width / 2,
    box.y + box.height / 2,
  ];
  const points = [edgeOf(start, middle(end)), edgeOf(end, middle(start))];
  const badge = drawCount(middleOf(points));
  badge.count.textContent = String(count);
  return draw(
    'g',
    { class: `arrow closed taken${last ? ' last' : ''}`, 'data-arrow': keyOfHop({ from, to }) },
    draw('path', { class: 'line', d: pathOf(points) }),
    badge.badge,
    badge.count,
  );
};
