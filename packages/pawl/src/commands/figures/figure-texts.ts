import type { UsageTotals } from '@pawl/agent/machine/state';
import { tokensOf, type Usage } from '@pawl/agent/machine/values/usage';
import { cacheShareOf, type TimeSpanKind } from '@pawl/inspector/figures/session-figures';
import { formatCost, formatSeconds, formatTokens } from '@pawl/terminal/paint-text';
import { joinSafe, makeSafe, type Safe, safe } from '@pawl/terminal/safe-text';
import { columnsOf, cutLine } from '@pawl/terminal/width';

/** Figures as text: durations, shares, dollars, and tables that fit the window. */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** `40ms`, `1.4s`, `12s`, `3m05s`, `2h10m`, `3d04h`. */
export const formatDuration = (milliseconds: number): Safe => {
  if (milliseconds < 1_000) return makeSafe(`${Math.round(milliseconds)}ms`);
  if (milliseconds < HOUR_MS) return formatSeconds(milliseconds);
  const [large, small, big, rest] =
    milliseconds < DAY_MS ? (['h', 'm', HOUR_MS, 60_000] as const) : (['d', 'h', DAY_MS, HOUR_MS] as const);
  const whole = Math.floor(milliseconds / big);
  const left = String(Math.floor((milliseconds % big) / rest)).padStart(2, '0');
  return makeSafe(`${whole}${large}${left}${small}`);
};

export const formatShare = (part: number, whole: number): Safe =>
  makeSafe(whole === 0 ? '0%' : `${Math.round((100 * part) / whole)}%`);

/** Dollars of sums; the unpriced calls are named. */
export const formatTotal = ({ costUsd, unpriced }: UsageTotals): Safe => {
  if (unpriced === 0) return formatCost(costUsd);
  return safe`${formatCost(costUsd)} and ${makeSafe(unpriced === 1 ? '1 call' : `${unpriced} calls`)} of unknown price`;
};

/** `12.0k in (61% cached), 340 out`. */
export const formatUsage = (usage: Omit<Usage, 'costUsd'>): Safe => {
  const prompt = tokensOf(usage) - usage.outputTokens;
  const share = cacheShareOf(usage);
  const cached = share === null || share === 0 ? safe`` : safe` (${formatShare(share, 1)} cached)`;
  return safe`${formatTokens(prompt)} in${cached}, ${formatTokens(usage.outputTokens)} out`;
};

export const kindWords: Readonly<Record<TimeSpanKind | 'other', string>> = {
  waiting: 'waiting for the model',
  streaming: 'the model writes',
  request: 'the model',
  retry: 'waiting to retry',
  compaction: 'summaries',
  approval: 'your approvals',
  tool: 'tools',
  hook: 'after tools',
  idle: 'idle',
  between: 'not open',
  other: 'other',
};

/** A cell that keeps its width, at the left or the right of its column. */
export type TableCell = { readonly text: Safe; readonly align: 'left' | 'right' };
export const left = (text: Safe): TableCell => ({ text, align: 'left' });
export const right = (text: Safe): TableCell => ({ text, align: 'right' });

const aligned = ({ text, align }: TableCell, columns: number): Safe => {
  const space = safe` `.repeat(Math.max(0, columns - columnsOf(text)));
  return align === 'left' ? safe`${text}${space}` : safe`${space}${text}`;
};

/** Rows with columns of equal width; each row is cut to the window. */
export const tableLines = (rows: readonly (readonly TableCell[])[], columns: number): readonly Safe[] => {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, { text }] of row.entries())
      widths[index] = Math.max(widths[index] ?? 0, columnsOf(text));
  return rows.map((row) => {
    const cells = row.map((cell, index) => aligned(cell, widths[index] ?? 0));
    return cutLine(safe`  ${joinSafe(cells, safe`  `)}`, columns).trimEnd();
  });
};
