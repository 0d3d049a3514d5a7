import type { Clock } from '../ports/clock.js';

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

/** Where a clock gets its time and its timers from; milliseconds. */
export type TimeSources = {
  /** Since 1970; may jump, either way. */
  wall(): number;
  /** Since any moment; never goes back, and knows no jumps. */
  steady(): number;
  after(delayMs: number, ring: () => void): () => void;
};

/**
 * The time of the wall while nothing waits, and a steady one while something does: a clock that is set meanwhile neither
 * holds a wait nor ends it early. When the last timer is over the time is the wall's again.
 */
export const createClock = ({ wall, steady, after: wait }: TimeSources): Clock => {
  let waiting = 0;
  /** What a steady time is behind the wall's. */
  let offset = 0;
  const release = (): void => {
    waiting--;
  };
  return {
    now: () => (waiting === 0 ? wall() : Math.round(offset + steady())),
    after(delayMs, ring) {
      if (waiting === 0) offset = wall() - steady();
      waiting++;
      let over = false;
      const end = (): boolean => {
        if (over) return false;
        over = true;
        return true;
      };
      const cancel = wait(delayMs, () => {
        if (!end()) return;
        try {
          ring(); // what it does belongs to the wait: the time is steady until it has done it
        } finally {
          release();
        }
      });
      return () => {
        cancel();
        if (end()) release();
      };
    },
  };
};

/** The time of the machine we run on. A timer that runs keeps the process alive. */
export const systemClock: Clock = createClock({
  wall: () => Date.now(),
  steady: () => performance.now(),
  after,
});
