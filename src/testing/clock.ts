import type { Clock } from '../needs.js';

/** A clock that stands still until it is told to advance. */
export type FakeClock = Clock & {
  /** Moves the time on and rings what falls due, in the order of due times, then of setting. */
  advance(ms: number): void;
  /** How many timers are set. */
  waiting(): number;
};

type Alarm = { readonly dueAt: number; readonly ring: () => void };

/** `startAt` in milliseconds since 1970. A timer set while another rings falls due in the same `advance` if it is time. */
export const fakeClock = (startAt = 1_000_000): FakeClock => {
  let time = startAt;
  const alarms = new Set<Alarm>();
  const nextDue = (until: number): Alarm | undefined => {
    let first: Alarm | undefined;
    for (const alarm of alarms) {
      if (alarm.dueAt <= until && (first === undefined || alarm.dueAt < first.dueAt)) first = alarm;
    }
    return first;
  };
  return {
    now: () => time,
    after(delayMs, ring) {
      const alarm = { dueAt: time + Math.max(0, delayMs), ring };
      alarms.add(alarm);
      return () => void alarms.delete(alarm);
    },
    advance(ms) {
      const until = time + ms;
      for (let alarm = nextDue(until); alarm !== undefined; alarm = nextDue(until)) {
        alarms.delete(alarm);
        time = Math.max(time, alarm.dueAt);
        alarm.ring();
      }
      time = until;
    },
    waiting: () => alarms.size,
  };
};
