/** A timer that can be paused. It calls `ring` once, when its running time has reached the limit. */
export type PausableTimer = {
  pause(): void;
  resume(): void;
  /** Runs again, with `leftMs` left. */
  restart(leftMs: number): void;
  /** Stops the timer for good. */
  cancel(): void;
};

export const startPausableTimer = (forMs: number, ring: () => void): PausableTimer => {
  let leftMs = forMs;
  let startedAtMs = 0;
  let timer: NodeJS.Timeout | 'paused' | 'over' = 'paused';
  const pause = (): void => {
    if (typeof timer === 'string') return;
    clearTimeout(timer);
    timer = 'paused';
    leftMs -= performance.now() - startedAtMs;
  };
  const resume = (): void => {
    if (timer !== 'paused') return;
    startedAtMs = performance.now();
    timer = setTimeout(
      () => {
        timer = 'over';
        ring();
      },
      Math.max(0, leftMs),
    );
  };
  resume();
  return {
    pause,
    resume,
    restart(nextMs) {
      pause();
      leftMs = nextMs;
      resume();
    },
    cancel() {
      if (typeof timer !== 'string') clearTimeout(timer);
      timer = 'over';
    },
  };
};
