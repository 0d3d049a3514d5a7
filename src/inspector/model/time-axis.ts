import type { TimeSpan } from '../../figures/session-figures.js';

/**
 * The axis of the waterfall. Waiting for the user and the time between processes can take hours; shortened, each such
 * stretch takes at most a small share of the axis, so that the work can be seen.
 */
export type TimeAxis = {
  /** From milliseconds of the session to 0…1. */
  position(ms: number): number;
};

const STRETCH_SHARE = 0.03;
const STRETCHED: readonly TimeSpan['kind'][] = ['idle', 'between'];

export const timeAxis = (
  spans: readonly TimeSpan[],
  elapsedMs: number,
  scale: 'real' | 'shortened',
): TimeAxis => {
  const waits = scale === 'real' ? [] : spans.filter(({ kind }) => STRETCHED.includes(kind));
  const waitMs = waits.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
  const longestMs = Math.max(1, (elapsedMs - waitMs) * STRETCH_SHARE);
  // Each cut: from where on so much of the axis was left out, and what remains of the wait.
  const cuts = waits
    .toSorted((left, right) => left.startMs - right.startMs)
    .map(({ startMs, endMs }) => ({ startMs, endMs, keptMs: Math.min(endMs - startMs, longestMs) }));
  const lengthTo = (ms: number): number => {
    let left = 0;
    for (const { startMs, endMs, keptMs } of cuts) {
      if (ms <= startMs) break;
      const whole = endMs - startMs;
      const passed = Math.min(ms, endMs) - startMs;
      left += whole === 0 ? 0 : passed - (passed / whole) * keptMs;
    }
    return ms - left;
  };
  const length = Math.max(1, lengthTo(elapsedMs));
  return { position: (ms) => lengthTo(Math.max(0, Math.min(elapsedMs, ms))) / length };
};
