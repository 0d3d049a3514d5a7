import type { Clock } from '../../ports/clock.js';

/** At most 25 times a second (docs/rules.md#merged-text). */
const EVERY_MS = 40;

export type Joiner = {
  /** Text with the same key keeps its order. Keys are emitted in the order of their first text. */
  add(key: string, text: string): void;
  /** Emits the held text now. */
  flush(): void;
  /** Drops the held text and stops. */
  drop(): void;
};

/** Joins streamed text: the first piece is emitted at once, the pieces of the following 40 ms together. */
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
