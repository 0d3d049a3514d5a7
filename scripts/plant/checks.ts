/** Checks of a whole machine, bundled with each copy that has a fault. A finding is a sentence. */

import { AssertionError } from 'node:assert/strict';
import fc from 'fast-check';
import { agent } from '../../packages/agent/src/machine/machine.js';
import { defaultBounds } from '../../packages/verify/src/exploration/configuration.js';
import { createConfigurations } from '../../packages/verify/src/exploration/configurations.js';
import { exploreOne } from '../../packages/verify/src/exploration/explore.js';
import { projections } from '../../packages/verify/src/projections/all-projections.js';
import { roam, walks } from '../../test/kit/agent/random.js';

const SEED = 42;
const WALKS = 80;
/** The smallest bounds that have everything. */
const bounds = { ...defaultBounds, retries: 1, followUps: 0 };

/** Runs a check. A machine that throws counts as a finding. */
const runCheck = (look: () => string | null): string | null => {
  try {
    return look();
  } catch (error) {
    return sentenceOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
  }
};

/** The message of a failed assertion. For a list of faults it is the list, not the diff. */
const sentenceOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const [head = ''] = error.message.split('\n');
  return error instanceof AssertionError && Array.isArray(error.actual)
    ? `${head}: ${error.actual.join('; ')}`
    : head;
};

/** The finding of random walks; null if there is none. The first is enough: it is not shortened. */
export const walk = (): string | null =>
  runCheck(() => {
    const property = fc.property(walks, (walked) => void roam(walked));
    fc.assert(property, { seed: SEED, numRuns: WALKS, endOnFailure: true, verbose: 0 });
    return null;
  });

/** The finding of the explorer in a configuration; null if there is none. */
export const explore = (name: string, statesMax: number): string | null => {
  const configuration = createConfigurations(bounds).find((one) => one.name === name);
  if (configuration === undefined) throw new Error(`there is no configuration '${name}'`);
  return runCheck(() => {
    const { violation } = exploreOne(configuration, agent, projections, statesMax, () => undefined);
    return violation === null
      ? null
      : `${violation.faults.join('; ')}, after ${violation.events} events`;
  });
};
