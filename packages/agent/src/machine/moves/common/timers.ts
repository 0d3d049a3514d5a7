import type { Action } from '../../action.js';
import type { Timer } from '../../state.js';

/**
 * The computer's clock may jump, so a timer counts only its delay. Times of events estimate how much of the delay is
 * over, clamped to the delay.
 */

export const clamp = (value: number, most: number): number => Math.min(Math.max(value, 0), most);

/** The action that schedules a timer. */
export const schedule = ({ timerId, dueAt, delayMs }: Timer): Action => ({
  type: 'ScheduleTimer',
  timerId,
  dueAt,
  delayMs,
});

export const timerFrom = (timerId: string, at: number, delayMs: number): Timer => ({
  timerId,
  dueAt: at + delayMs,
  delayMs,
});

/** The rest of a timer. After a resume, the time since `stoppedAt` does not count. */
export const remainingTimer = ({ timerId, dueAt, delayMs }: Timer, at: number, stoppedAt = at): Timer =>
  timerFrom(timerId, at, clamp(dueAt - stoppedAt, delayMs));
