import { AssertionError } from 'node:assert/strict';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import { exploreOne } from '../../src/agent/exploration/check.js';
import { defaultBounds } from '../../src/agent/exploration/configuration.js';
import { configurationsOf } from '../../src/agent/exploration/configurations.js';
import { agent } from '../../src/agent/machine.js';
import { views } from '../../src/agent/views/views.js';
import { forAll, roam } from '../../test/agent/random.js';

/** What looks at a machine as a whole. It is bundled with each faulty copy; whatever it finds is a sentence. */

const SEED = 179;
const WALKS = 40;
/** The smallest bounds that have everything, and as many states of them as a moment allows. */
const bounds = { ...defaultBounds, retries: 1, followUps: 0 };
const STATES_MAX = 500;

/** A shortest walk is not needed: to find none is what takes time. */
fc.configureGlobal({ endOnFailure: true, verbose: 0 });

const quietly = { diagnostic: () => undefined };

/** What is found by looking; a machine that throws is found out, too. */
const said = (look: () => string | null): string | null => {
  try {
    return look();
  } catch (error) {
    return sentenceOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
  }
};

/** Of an assertion about a list of faults the list is told, not how it differs from none. */
const sentenceOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const [head = ''] = error.message.split('\n');
  return error instanceof AssertionError && Array.isArray(error.actual)
    ? `${head}: ${error.actual.join('; ')}`
    : head;
};

/** What random walks find; null for nothing. */
export const walk = (): string | null =>
  said(() => {
    // Of a test's context only the diagnostics are used.
    forAll(quietly as unknown as TestContext, WALKS, (walked) => void roam(walked), SEED);
    return null;
  });

export const configurations = (): readonly string[] => configurationsOf(bounds).map(({ name }) => name);

/** What the explorer finds in a configuration; null for nothing. */
export const explore = (name: string): string | null => {
  const configuration = configurationsOf(bounds).find((one) => one.name === name);
  if (configuration === undefined) throw new Error(`there is no configuration '${name}'`);
  return said(() => {
    const { violation } = exploreOne(configuration, agent, views, STATES_MAX, () => undefined);
    return violation === null ? null : `${violation.faults.join('; ')}, after ${violation.events} events`;
  });
};
