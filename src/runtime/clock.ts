import type { Clock } from '../needs.js';

/** Timers of Node hold at most this much; longer waits are made of several. */
const LONGEST_MS = 2_147_483_647;

const after = (delayMs: number, ring: () => void): (() => void) => {
  let timer: NodeJS.Timeout;
  const arm = (leftMs: number): void => {
    const next = leftMs > LONGEST_MS ? () => arm(leftMs - LONGEST_MS) : ring;
    timer = setTimeout(next, Math.min(leftMs, LONGEST_MS));
  };
  arm(Math.max(0, delayMs));
  return () => clearTimeout(timer);
};

/** The time of the machine we run on. A timer that runs keeps the process alive. */
export const systemClock: Clock = { now: () => Date.now(), after };
