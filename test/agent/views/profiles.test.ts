import assert from 'node:assert/strict';
import { test } from 'node:test';
import { profiles } from '../../../src/agent/views/profiles.js';
import { views } from '../../../src/agent/views/views.js';

test('a profile by the name of a seed is what makes the agent behave as that seed says', () => {
  for (const name of ['minimal', 'loom', 'sketch', 'tools'] as const)
    assert.equal(profiles[name], views.find((view) => view.name === name)?.settings, name);
});

test('the full profile does everything that can be done after tools', () => {
  assert.deepEqual(profiles.full, { hooks: 'mutating', formatter: 'onChanges', autoCommit: 'on' });
});
