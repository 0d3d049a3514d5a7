import type { Clock } from '../needs.js';

export type Timers = {
  schedule(timerId: string, dueAt: number): void;
  cancel(timerId: string): void;
  cancelAll(): void;
};

/** Performs ScheduleTimer and CancelTimer: a timer whose time has passed rings at once. */
export const createTimers = (clock: Clock, fired: (timerId: string) => void): Timers => {
  const waiting = new Map<string, () => void>();
  const cancel = (timerId: string): void => {
    waiting.get(timerId)?.();
    waiting.delete(timerId);
  };
  return {
    schedule(timerId, dueAt) {
      cancel(timerId);
      const ring = (): void => {
        waiting.delete(timerId);
        fired(timerId);
      };
      waiting.set(timerId, clock.after(Math.max(0, dueAt - clock.now()), ring));
    },
    cancel,
    cancelAll() {
      for (const timerId of [...waiting.keys()]) cancel(timerId);
    },
  };
};
