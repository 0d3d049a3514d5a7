import type { TimeSpan, TimeSpanKind } from '@pawl/inspector/figures/session-figures';
import { type Look, paint } from '@pawl/terminal/paint-text';
import { makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import type { Style } from '@pawl/terminal/theme';
import { columnsOf, cutLine } from '@pawl/terminal/width';
import { formatDuration, kindWords } from './figure-texts.js';

/** The spans of a session as rows of bars, in order. */

const ROWS_MAX = 80;
/** Below this width there is no room for bars. */
const BARS_FROM_COLUMNS = 60;
const LABEL_SHARE = 0.4;
const DURATION_COLUMNS = 8;

const styles: Readonly<Record<TimeSpanKind, Style>> = {
  waiting: 'dim',
  streaming: 'cyan',
  request: 'cyan',
  retry: 'red',
  compaction: 'blue',
  approval: 'yellow',
  tool: 'green',
  hook: 'blue',
  idle: 'dim',
  between: 'dim',
};

const isQuiet = ({ kind }: TimeSpan): boolean => kind === 'idle' || kind === 'between';

/** Places on an axis without the quiet times, in which nothing of the session ran. */
const activeAxis = (spans: readonly TimeSpan[]): { place(ms: number): number; readonly length: number } => {
  const quiet = spans.filter(isQuiet).toSorted((one, other) => one.startMs - other.startMs);
  const end = spans.reduce((last, { endMs }) => Math.max(last, endMs), 0);
  const starts: number[] = [];
  const before: number[] = [];
  let sum = 0;
  for (const { startMs, endMs } of quiet) {
    starts.push(startMs);
    before.push(sum);
    sum += endMs - startMs;
  }
  const place = (ms: number): number => {
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= ms) low = middle + 1;
      else high = middle;
    }
    const last = quiet[low - 1];
    if (last === undefined) return ms;
    return ms - (before[low - 1] ?? 0) - (Math.min(ms, last.endMs) - last.startMs);
  };
  return { place, length: place(end) };
};

const labelOf = ({ kind, name, about, ending }: TimeSpan): Safe => {
  const what = kind === 'tool' || kind === 'approval' || kind === 'retry' ? ` ${name} ${about}` : '';
  const hook = kind === 'hook' ? ` ${name}` : '';
  const state = ending === 'done' ? '' : ` (${ending === 'open' ? 'goes on' : 'interrupted'})`;
  const words = kind === 'between' ? `${kindWords.between} (${about})` : kindWords[kind];
  const lead = kind === 'tool' ? what.trim() : `${words}${what}${hook}`;
  return makeSafe(`${lead}${state}`.replace(/\s+/g, ' '));
};

const bar = (look: Look, span: TimeSpan, from: number, to: number, columns: number): Safe => {
  const start = Math.min(columns - 1, Math.floor(from * columns));
  const length = Math.max(1, Math.round(to * columns) - start);
  const mark = span.kind === 'waiting' ? safe`░` : safe`█`;
  const space = safe` `.repeat(start);
  return safe`${space}${paint(look, styles[span.kind], mark.repeat(Math.min(length, columns - start)))}`;
};

/** The longest spans, in their order, and how many others there are. */
const longest = (
  spans: readonly TimeSpan[],
): { readonly rows: readonly TimeSpan[]; readonly others: readonly TimeSpan[] } => {
  const lengthOf = ({ startMs, endMs }: TimeSpan): number => endMs - startMs;
  const ranked = spans.toSorted((one, other) => lengthOf(other) - lengthOf(one));
  const kept = new Set(ranked.slice(0, ROWS_MAX));
  return { rows: spans.filter((span) => kept.has(span)), others: ranked.slice(ROWS_MAX) };
};

/** A row for each span: what it was, how long it took and, where there is room, a bar on the axis of active time. */
export const waterfallLines = (look: Look, spans: readonly TimeSpan[]): readonly Safe[] => {
  const { rows, others } = longest(spans.filter((span) => !isQuiet(span) || span.endMs > span.startMs));
  const { place, length } = activeAxis(spans);
  const columns = Math.max(20, look.columns);
  const bars = columns >= BARS_FROM_COLUMNS && look.plain !== 'yes' && length > 0;
  const labelColumns = bars
    ? Math.floor(columns * LABEL_SHARE)
    : Math.max(8, columns - 2 - DURATION_COLUMNS - 1);
  const barColumns = columns - 2 - labelColumns - 1 - DURATION_COLUMNS - 1;
  const lines = rows.map((span) => {
    const label = cutLine(labelOf(span), labelColumns);
    const took = formatDuration(span.endMs - span.startMs).padStart(DURATION_COLUMNS);
    const space = safe` `.repeat(labelColumns - columnsOf(label));
    const drawn =
      bars && !isQuiet(span)
        ? safe` ${bar(look, span, place(span.startMs) / length, place(span.endMs) / length, barColumns)}`
        : safe``;
    return safe`  ${isQuiet(span) ? paint(look, 'dim', label) : label}${space} ${took}${drawn}`;
  });
  if (others.length === 0) return lines;
  const leftOut = others.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
  const note = safe`  … ${others.length} shorter ones, ${formatDuration(leftOut)} in all: --json has them`;
  return [...lines, paint(look, 'dim', cutLine(note, columns))];
};
