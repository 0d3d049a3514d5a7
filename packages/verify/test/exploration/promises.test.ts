import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent } from '@pawl/agent/machine/machine';
import { chooseRows, TIER } from '../../../../test/tier.js';
import { createConfigurations } from '../../src/exploration/configurations.js';
import { exploreOne } from '../../src/exploration/explore.js';
import { projections } from '../../src/projections/all-projections.js';
import { smallBounds } from './small.js';

const STATES_MAX = 100_000;
const least = { ...smallBounds, steers: 0, crashes: 0, late: 0, duplicates: 0 };

/**
 * Nearly all of the work. `pawl machine --check` explores every configuration within larger bounds, and
 * packages/pawl/test/e2e/machine-check.deep.test.ts runs it: here only mutation testing explores these too.
 */
const LARGE: readonly string[] = [
  'everything',
  'time',
  'drain out of time',
  'rules change',
  'previews',
];
const isMutation = TIER === 'quick';

const configurations = createConfigurations(least);

test('the large configurations are among all', () => {
  const names = configurations.map(({ name }) => name);
  assert.deepEqual(
    LARGE.filter((name) => !names.includes(name)),
    [],
  );
});

/** One of six; each night all of them. */
const COUNT = 4;

for (const configuration of chooseRows(configurations, undefined, COUNT)) {
  if (LARGE.includes(configuration.name) && !isMutation) continue;
  test(`'${configuration.name}' holds all its promises within small bounds`, () => {
    const { complete, violation, states } = exploreOne(
      configuration,
      agent,
      projections,
      STATES_MAX,
      () => undefined,
    );
    assert.equal(violation, null, violation?.trace);
    assert.equal(complete, true);
    assert.ok(states > 10);
  });
}
