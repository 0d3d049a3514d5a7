/** Public test support for agents: a scripted model, a fake clock, journals in memory. */

import type { Clock } from '@pawl/agent/platform/clock';
import type { SimulationOptions, SimulationReport } from '@pawl/verify/simulation/report-types';

export { memoryJournals } from '@pawl/agent/journal/memory-store';
export {
  type Script,
  type ScriptedOptions,
  scriptedModel,
} from '@pawl/agent/models/scripted-model';
export type {
  SimulationFailure,
  SimulationOptions,
  SimulationReport,
} from '@pawl/verify/simulation/report-types';

/** A clock that stands still until it is told to advance. */
export type FakeClock = Clock & {
  /** Advances the time and fires due timers, ordered by due time, then by creation. */
  advance(ms: number): void;
  /** How many timers are set. */
  waiting(): number;
};

type Alarm = { readonly dueAt: number; readonly ring: () => void };

/**
 * `startAt` is in ms since 1970. A timer that is set while another fires can still fire in the same
 * `advance`.
 */
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

/**
 * Runs sessions of the real runtime and journal on a simulated computer: their disk, processes,
 * clock, model, tools and user follow from the seed, with many more faults and crashes than in
 * life. Every step is checked; the first session that breaks a promise ends the run. Until it
 * resolves, the process has simulated files below `/@pawl/`, simulated local sockets and clocks:
 * run nothing else beside it.
 */
export const simulate = async (options: SimulationOptions): Promise<SimulationReport> => {
  const { simulate: run } = await import('@pawl/verify/simulation/simulate');
  return run(options);
};
