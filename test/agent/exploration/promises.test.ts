import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationsOf } from '../../../src/agent/exploration/configurations/all-configurations.js';
import { exploreOne } from '../../../src/agent/exploration/explore-one.js';
import { agent } from '../../../src/agent/machine.js';
import { projections } from '../../../src/agent/projections/all-projections.js';
import { smallBounds } from './small.js';

const STATES_MAX = 100_000;
const least = { ...smallBounds, steers: 0, crashes: 0, late: 0, duplicates: 0 };

for (const configuration of configurationsOf(least)) {
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
