import type { Clock } from '../ports/clock.js';

/** Longest wait of a Node timer. Longer waits use several timers. */
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

/** The sources of a clock's time and timers, in milliseconds. */
export type TimeSources = {
  /** Time since 1970. It may jump in either direction. */
  wall(): number;
  /** Time since any moment. It never goes back and never jumps. */
  steady(): number;
  after(delayMs: number, ring: () => void): () => void;
};

/**
 * Shows the wall time while no timer runs, and a steady time while one does. Setting the computer's clock therefore
 * neither delays a wait nor ends it early. After the last timer the wall time counts again.
 */
export const createClock = ({ wall, steady, after: wait }: TimeSources): Clock => {
  let waiting = 0;
  /** Wall time minus steady time. */
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
          ring(); // the callback still belongs to the wait, so the time stays steady until it returns
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

/** The clock of this computer. A running timer keeps the process alive. */
export const systemClock: Clock = createClock({
  wall: () => Date.now(),
  steady: () => performance.now(),
  after,
});

/** Waits for work at most so long: null if it has not ended by then. */
export const waitAtMost = async <T>(clock: Clock, limitMs: number, work: Promise<T>): Promise<T | null> => {
  let cancel = (): void => undefined;
  const timeIsUp = new Promise<null>((resolve) => {
    cancel = clock.after(limitMs, () => resolve(null));
  });
  try {
    return await Promise.race([work, timeIsUp]);
  } finally {
    cancel();
  }
};
