import type { State } from '@pawl/agent/machine/state';
import type { Life } from '../process-life.js';

const DAY_MS = 86_400_000;

/** The clock of the wall is set, or the computer sleeps. `state`: the session's, or the one that is being written. */
export const disturbClock = ({ world }: Life, state: State | null): void => {
  const isRetrying = state?.name === 'Error';
  if (!world.plan.clockJumps || world.isHealed || !world.choices.chance(isRetrying ? 0.5 : 0.02)) return;
  const by = world.choices.pick(7_200_000, -DAY_MS, 3_650 * DAY_MS, -3_650 * DAY_MS);
  world.say(`the clock is set by ${by / 1000} s`);
  world.setWallClock(by);
  if (isRetrying)
    world.meet(by < 0 ? 'clock set back while waiting to retry' : 'clock set forward while waiting to retry');
};
