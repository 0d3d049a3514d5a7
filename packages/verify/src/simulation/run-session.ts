import { startComputer } from './disk/kernel-files.js';
import { Choices } from './random-choices.js';
import { useClocks } from './replace-global-clocks.js';
import type { Situation } from './required-situations.js';
import { SimulatedSession } from './session-lives.js';
import { planFor } from './session-plan.js';
import { type Violation, World } from './world.js';

export type SessionResult = {
  readonly violations: readonly Violation[];
  readonly situations: ReadonlySet<Situation>;
  /** Every draw: gives the same session again. */
  readonly drawn: readonly number[];
  readonly trace: readonly string[];
  readonly events: number;
};

/** Runs one session by a seed, or by the draws of an earlier one. */
export const runSession = async (
  source: number | readonly number[],
  isTraced = false,
): Promise<SessionResult> => {
  const choices = new Choices(source);
  const world = new World(choices, planFor(choices), isTraced ? [] : null);
  useClocks({ wallNow: () => world.wallNow(), steadyNow: () => world.timeline.now });
  startComputer();
  await new SimulatedSession(world).run();
  return {
    violations: world.violations,
    situations: world.situations,
    drawn: choices.drawn,
    trace: world.trace ?? [],
    events: world.acknowledged.size,
  };
};
