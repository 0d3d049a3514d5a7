import type { TimeSpan, TimeSpanKind } from '../../figures/session-figures.js';
import type { TimeAxis } from '../../model/time-axis.js';
import { draw } from '../dom.js';
import { durationText } from '../format-numbers.js';

/** The waterfall as SVG: a lane for each kind of work, more where several go on at once. */

export const SPAN_WORDS: Readonly<Record<TimeSpanKind | 'other', string>> = {
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
const ROWS_MAX = 6;
/** Narrower bars are widened to this, so that they can be seen. */
const BAR_MIN = 1.5;

/** `count`: spans that are too narrow to be told apart are one bar. */
type Placed = { readonly span: TimeSpan; readonly row: number; readonly count: number };

const leftOf = ({ startMs }: TimeSpan, axis: TimeAxis): number =>
  NAME_PIXELS + axis.position(startMs) * (WIDTH - NAME_PIXELS);

const rightOf = ({ endMs }: TimeSpan, axis: TimeAxis): number =>
  NAME_PIXELS + axis.position(endMs) * (WIDTH - NAME_PIXELS);

/** A session of thousands of spans has no more bars than there is room for: each of them costs time in every frame. */
const asBars = (placed: readonly Placed[], axis: TimeAxis): readonly Placed[] => {
  const bars: Placed[] = [];
  const lastOfRow = new Map<number, number>();
  for (const one of placed) {
    const index = lastOfRow.get(one.row);
    const before = index === undefined ? undefined : bars[index];
    const fits =
      before?.span.kind === one.span.kind &&
      before.span.ending === one.span.ending &&
      rightOf(one.span, axis) - leftOf(before.span, axis) <= BAR_MIN;
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
    const row = free >= 0 ? free : Math.min(ends.length, ROWS_MAX - 1);
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
  const [start, end] = [leftOf(span, axis), rightOf(span, axis)];
  const about = `${SPAN_WORDS[span.kind]}: ${[span.name, span.about].filter((text) => text !== '').join(' ')}, ${durationText(span.endMs - span.startMs)}, from #${span.startSeq}${span.ending === 'interrupted' ? ', interrupted' : ''}${count > 1 ? `, and ${count - 1} more` : ''}`;
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

export type Waterfall = {
  readonly svg: SVGSVGElement;
  readonly cursor: SVGLineElement;
  place(ms: number): void;
};

export const drawWaterfall = (
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
