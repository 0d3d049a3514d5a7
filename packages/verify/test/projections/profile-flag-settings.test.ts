import assert from 'node:assert/strict';
import { test } from 'node:test';
import { profiles, projections } from '../../src/projections/all-projections.js';

test('a profile by the name of a seed is what makes the agent behave as that seed says', () => {
  for (const name of ['minimal', 'loom', 'sketch', 'tools'] as const)
    assert.equal(profiles[name], projections.find((view) => view.name === name)?.settings, name);
});

test('the full profile does everything that can be done after tools', () => {
  assert.deepEqual(profiles.full, { hooks: 'mutating', formatter: 'onChanges', autoCommit: 'on' });
});
