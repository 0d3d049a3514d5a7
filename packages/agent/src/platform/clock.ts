/**
 * The clock of sessions, its timers, and waits with a limit; also key presses, the joiner of
 * streamed text, and durations as people read them.
 */

/** Source of time and timers. */
export type Clock = {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, ring: () => void): () => void;
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
 * Shows the wall time while no timer runs, and a steady time while one does. Setting the computer's
 * clock therefore neither delays a wait nor ends it early. After the last timer the wall time
 * counts again: until then, times are late by what a computer slept, where its steady time stood.
 */
export const createClock = ({ wall, steady, after: wait }: TimeSources): Clock => {
  /** Number of timers that run. */
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
      let hasEnded = false;
      /** Returns whether it had not ended before: it may ring or be cancelled, not both. */
      const end = (): boolean => {
        if (hasEnded) return false;
        hasEnded = true;
        return true;
      };
      const cancel = wait(delayMs, () => {
        if (!end()) return;
        try {
          // the callback still belongs to the wait, so the time stays steady until it returns
          ring();
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

/** Longest wait of a Node timer. Longer waits use several timers. */
const LONGEST_MS = 2_147_483_647;

/** A timer of any length. */
const after = (delayMs: number, ring: () => void): (() => void) => {
  let timer: NodeJS.Timeout;
  const arm = (leftMs: number): void => {
    const next = leftMs > LONGEST_MS ? () => arm(leftMs - LONGEST_MS) : ring;
    timer = setTimeout(next, Math.min(leftMs, LONGEST_MS));
  };
  arm(Math.max(0, delayMs));
  return () => clearTimeout(timer);
};

/** The clock of this computer. A running timer keeps the process alive. */
export const systemClock: Clock = createClock({
  wall: () => Date.now(),
  steady: () => performance.now(),
  after,
});

/** Waits for work at most so long: null if it has not ended by then. */
export const waitAtMost = async <T>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
): Promise<T | null> => {
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

/** Timers by their names: a new one replaces another of the same name. */
export type Timers = {
  /** Fires after `delayMs`, even if the computer's clock is set meanwhile. */
  after(timerId: string, delayMs: number): void;
  cancel(timerId: string): void;
  cancelAll(): void;
};

/** Performs the machine's actions ScheduleTimer and CancelTimer. */
export const createTimers = (clock: Clock, fired: (timerId: string) => void): Timers => {
  const waiting = new Map<string, () => void>();
  const cancel = (timerId: string): void => {
    waiting.get(timerId)?.();
    waiting.delete(timerId);
  };
  const after = (timerId: string, delayMs: number): void => {
    cancel(timerId);
    const ring = (): void => {
      waiting.delete(timerId);
      fired(timerId);
    };
    waiting.set(timerId, clock.after(Math.max(0, delayMs), ring));
  };
  return {
    after,
    cancel,
    cancelAll() {
      for (const timerId of [...waiting.keys()]) cancel(timerId);
    },
  };
};

/**
 * Whether a second key press belongs to an earlier one. False if the clock was set back in between,
 * so that one press does not count as two.
 */
export const isSoonAfter = (earlierAt: number, now: number, withinMs: number): boolean =>
  now >= earlierAt && now - earlierAt < withinMs;

/** Text is emitted at most 25 times a second (rules.md#merged-text). */
const EVERY_MS = 40;

export type Joiner = {
  /** Text with the same key keeps its order. Keys are emitted in the order of their first text. */
  add(key: string, text: string): void;
  /** Emits the held text now. */
  flush(): void;
  /** Drops the held text and stops. */
  drop(): void;
};

/**
 * Joins streamed text: the first piece is emitted at once, the pieces of the following 40 ms
 * together.
 */
export const createJoiner = (clock: Clock, emit: (key: string, text: string) => void): Joiner => {
  const held = new Map<string, string>();
  let cancelTimer: (() => void) | null = null;
  const release = (): void => {
    const pieces = [...held];
    held.clear();
    for (const [key, text] of pieces) emit(key, text);
  };
  const ring = (): void => {
    cancelTimer = null;
    if (held.size === 0) return;
    cancelTimer = clock.after(EVERY_MS, ring);
    release();
  };
  const stop = (): void => {
    cancelTimer?.();
    cancelTimer = null;
  };
  return {
    add(key, text) {
      held.set(key, (held.get(key) ?? '') + text);
      if (cancelTimer !== null) return;
      cancelTimer = clock.after(EVERY_MS, ring);
      release();
    },
    flush() {
      stop();
      release();
    },
    drop() {
      stop();
      held.clear();
    },
  };
};

// ---- Durations as people read them ----

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;

const twoDigits = (part: number): string => String(part).padStart(2, '0');

/** With tenths below ten seconds, whole seconds above. */
export const secondsText = (durationMs: number): string => {
  if (durationMs < 9_950) return `${(Math.max(0, durationMs) / 1_000).toFixed(1)}s`;
  const seconds = Math.round(durationMs / 1_000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${twoDigits(seconds % 60)}s`;
};

/** `40ms`, `1.4s`, `12s`, `3m05s`, `2h10m`, `3d04h`. */
export const durationText = (durationMs: number): string => {
  if (durationMs < 999.5) return `${Math.round(durationMs)}ms`;
  const seconds = Math.round(durationMs / 1_000);
  if (seconds < HOUR_S) return secondsText(durationMs);
  const [large, small, big, rest] =
    seconds < DAY_S ? (['h', 'm', HOUR_S, 60] as const) : (['d', 'h', DAY_S, HOUR_S] as const);
  const remainder = twoDigits(Math.floor((seconds % big) / rest));
  return `${Math.floor(seconds / big)}${large}${remainder}${small}`;
};
