import type { UsageTotals } from '@pawl/agent/machine/state';
import type { SessionFigures, ToolFigures } from './session-figures.js';

const usageSince = (before: UsageTotals, after: UsageTotals): UsageTotals => ({
  inputTokens: after.inputTokens - before.inputTokens,
  outputTokens: after.outputTokens - before.outputTokens,
  cacheReadTokens: after.cacheReadTokens - before.cacheReadTokens,
  cacheWriteTokens: after.cacheWriteTokens - before.cacheWriteTokens,
  costUsd: after.costUsd - before.costUsd,
  unpriced: after.unpriced - before.unpriced,
});

/** What a session did after a part of it: for a fork what it did itself, without what it has copied. */
export type LaterFigures = Pick<SessionFigures, 'usage' | 'requests' | 'spending' | 'turns' | 'state'> & {
  /** Time in which it did something: neither idle nor closed. */
  readonly activeMs: number;
  readonly events: number;
  readonly tools: readonly Pick<ToolFigures, 'tool' | 'calls' | 'totalMs' | 'endings'>[];
};

const activeOf = ({ elapsedMs, time }: SessionFigures): number => elapsedMs - time.idle - time.between;

const toolsSince = (before: SessionFigures, after: SessionFigures): LaterFigures['tools'] => {
  const known = new Map(before.tools.map((one) => [one.tool, one]));
  return after.tools.flatMap(({ tool, calls, totalMs, endings }) => {
    const earlier = known.get(tool);
    if (earlier === undefined) return [{ tool, calls, totalMs, endings }];
    if (calls === earlier.calls && totalMs === earlier.totalMs) return [];
    const left = Object.entries(endings).map(([status, count]) => [
      status,
      count - (earlier.endings[status] ?? 0),
    ]);
    return [
      {
        tool,
        calls: calls - earlier.calls,
        totalMs: totalMs - earlier.totalMs,
        endings: Object.fromEntries(left),
      },
    ];
  });
};

/** The figures of a session without those of its first part. A request that ended later belongs to the later part. */
export const figuresSince = (before: SessionFigures, after: SessionFigures): LaterFigures => ({
  usage: usageSince(before.usage, after.usage),
  requests: after.requests.filter(({ endSeq }) => endSeq === null || endSeq > before.seq),
  spending: after.spending.slice(before.spending.length),
  turns: after.turns - before.turns,
  state: after.state,
  activeMs: activeOf(after) - activeOf(before),
  events: after.seq - before.seq,
  tools: toolsSince(before, after),
});
