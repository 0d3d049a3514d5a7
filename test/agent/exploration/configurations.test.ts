import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationsOf } from '../../../src/agent/exploration/configurations.js';
import { configurationNamed, smallBounds } from './small.js';

test('every configuration has a name of its own and says what it is about', () => {
  const all = configurationsOf(smallBounds);
  assert.equal(new Set(all.map(({ name }) => name)).size, all.length);
  for (const { name, about } of all) assert.match(`${name}: ${about}`, /^\w[\w ,-]*: \w.{10}/);
});

test('where no call may be made, none is asked for', () => {
  const { replies } = configurationNamed('everything', { ...smallBounds, reads: 0, edits: 0 });
  assert.deepEqual(
    replies.map(({ calls = '' }) => calls),
    ['', '', 'E', 'R'],
  );
});
