/**
 * The time axis of the waterfall, a row of bars for the work of a session. Long waits, the
 * stretches, are shortened on it.
 */

import type { TimeSpan } from '../figures/session-figures.js';

/**
 * Waiting for the user, also for an approval, and the time between processes can take hours. Each
 * such stretch takes at most a small share of the axis, so that the work can be seen.
 */
export type TimeAxis = {
  /** The place of a moment of the session, from 0 to 1. */
  position(ms: number): number;
};

export const timeAxis = (spans: readonly TimeSpan[], elapsedMs: number): TimeAxis => {
  const waits = stretchesIn(spans);
  const waitMs = waits.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
  const workMs = Math.max(0, elapsedMs - waitMs);
  // Each cut: the wait, what remains of it, and the sum of the cuts before it.
  let cutBefore = 0;
  const cuts = waits
    .toSorted((left, right) => left.startMs - right.startMs)
    .map(({ startMs, endMs, share }) => {
      const shownMs = Math.min(endMs - startMs, Math.max(1, workMs * share));
      const cut = { startMs, endMs, shownMs, cutBefore };
      cutBefore += endMs - startMs - cut.shownMs;
      return cut;
    });
  /** The length of the axis up to a moment. */
  const lengthTo = (ms: number): number => {
    // A session has thousands of waits: a binary search finds the last one that begins before.
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
    return ms - cut.cutBefore - (whole === 0 ? 0 : passed - (passed / whole) * cut.shownMs);
  };
  const length = Math.max(1, lengthTo(elapsedMs));
  return { position: (ms) => lengthTo(Math.max(0, Math.min(elapsedMs, ms))) / length };
};

/**
 * The largest share of the work's time that one stretch takes. An approval delays a turn: it stays
 * longer than the others.
 */
const STRETCH_SHARE = 0.03;
const APPROVAL_SHARE = 0.15;
/** Kinds of spans that are stretches as they are. */
const STRETCHED: readonly TimeSpan['kind'][] = ['idle', 'between'];

/** `share`: how much of the work's time it may take on the axis. */
type Stretch = Pick<TimeSpan, 'startMs' | 'endMs'> & { readonly share: number };

/** The times in which approvals were waited for and nothing else went on. */
export const approvalStretches = (spans: readonly TimeSpan[]): readonly Stretch[] => {
  if (!spans.some(({ kind }) => kind === 'approval')) return [];
  // Each beginning and end of work changes how much of it goes on.
  const changes = spans
    .filter(({ startMs, endMs }) => endMs > startMs)
    .flatMap(({ kind, startMs, endMs }) => [
      { ms: startMs, approvals: kind === 'approval' ? 1 : 0, others: kind === 'approval' ? 0 : 1 },
      { ms: endMs, approvals: kind === 'approval' ? -1 : 0, others: kind === 'approval' ? 0 : -1 },
    ])
    .sort((left, right) => left.ms - right.ms);
  const stretches: Stretch[] = [];
  let [approvals, others] = [0, 0];
  for (const [index, change] of changes.entries()) {
    approvals += change.approvals;
    others += change.others;
    const endMs = changes[index + 1]?.ms ?? change.ms;
    if (approvals === 0 || others > 0 || endMs === change.ms) continue;
    const last = stretches.at(-1);
    if (last?.endMs === change.ms) stretches[stretches.length - 1] = { ...last, endMs };
    else stretches.push({ startMs: change.ms, endMs, share: APPROVAL_SHARE });
  }
  return stretches;
};

const stretchesIn = (spans: readonly TimeSpan[]): readonly Stretch[] => {
  const idle = spans.filter(({ kind }) => STRETCHED.includes(kind));
  const waits = idle.map(({ startMs, endMs }) => ({ startMs, endMs, share: STRETCH_SHARE }));
  return [...waits, ...approvalStretches(spans)];
};
