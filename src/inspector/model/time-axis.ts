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
  // Each cut: the wait, what remains of it, and how much was left out before it.
  let leftBefore = 0;
  const cuts = waits
    .toSorted((left, right) => left.startMs - right.startMs)
    .map(({ startMs, endMs }) => {
      const cut = { startMs, endMs, keptMs: Math.min(endMs - startMs, longestMs), leftBefore };
      leftBefore += endMs - startMs - cut.keptMs;
      return cut;
    });
  const lengthTo = (ms: number): number => {
    // A session has thousands of waits: the last one that begins before is found by halving.
    let [low, high] = [0, cuts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((cuts[middle]?.startMs ?? 0) < ms) low = middle + 1;
      else high = middle;
    }
    const cut = cuts[low - 1];
    if (cut === undefined) return ms;
    const whole = cut.endMs - cut.startMs;
    const passed = Math.min(ms, cut.endMs) - cut.startMs;
    return ms - cut.leftBefore - (whole === 0 ? 0 : passed - (passed / whole) * cut.keptMs);
  };
  const length = Math.max(1, lengthTo(elapsedMs));
  return { position: (ms) => lengthTo(Math.max(0, Math.min(elapsedMs, ms))) / length };
};
