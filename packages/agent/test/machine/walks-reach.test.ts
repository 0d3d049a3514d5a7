import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forAll, roam } from '../../../../test/kit/agent/random.js';
import { nameOf } from '../../../../test/kit/agent/shown.js';

/** Walks that never leave the first states would prove nothing. The same walks every time: chance decides nothing here. */
test('such walks come to every resting state and phase', (t) => {
  const places = [
    'C[t]',
    'Er',
    'X',
    'X cancelling',
    'H[c]',
    'H[f]',
    'H[a]',
    'K[i]',
    'K[m]',
    'K[o]',
    'Z',
  ];
  const seen = new Set<string>();
  const look = (walked: Parameters<typeof roam>[0]): void => {
    for (const { state } of roam(walked).steps()) seen.add(nameOf(state));
  };
  forAll(t, 250, look, 1);
  assert.deepEqual(
    places.filter((place) => !seen.has(place)),
    [],
  );
});
