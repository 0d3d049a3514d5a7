/** A timer that can be paused: it rings once, after as much time has passed while it ran. */
export type Countdown = {
  pause(): void;
  resume(): void;
  /** Runs, with so much time left. */
  restart(leftMs: number): void;
  /** It never rings again. */
  cancel(): void;
};

export const startCountdown = (forMs: number, ring: () => void): Countdown => {
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
