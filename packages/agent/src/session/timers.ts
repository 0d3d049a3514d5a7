import type { Clock } from '../ports/clock.js';

export type Timers = {
  /** Fires after `delayMs`, even if the computer's clock is set meanwhile. */
  after(timerId: string, delayMs: number): void;
  cancel(timerId: string): void;
  cancelAll(): void;
};

/** Performs ScheduleTimer and CancelTimer. */
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
