import assert from 'node:assert/strict';
import { test } from 'node:test';
import { step } from '../../src/agent/machine.js';
import type { State } from '../../src/agent/state.js';
import { begun, forAll, roam } from './random.js';
import { nameOf } from './shown.js';

// Conformance cases 179 and 181: any sequence of events.

test('case 179: a log of events replayed twice gives the same states, actions and ids', (t) => {
  forAll(t, 60, (walked) => {
    const walker = roam(walked);
    let state: State = begun(walked.settings);
    walker.events().forEach((event, index) => {
      const taken = step(state, event);
      assert.equal(JSON.stringify(taken), JSON.stringify(walker.steps()[index + 1]));
      state = taken.state;
    });
  });
});

test('case 181: random, late, duplicate, stale and misplaced events break no invariant', (t) => {
  forAll(t, 200, (walked) => void roam(walked));
});

/** Walks that never leave the first states would prove nothing. The same walks every time: chance decides nothing here. */
test('such walks come to every resting state and phase', (t) => {
  const places = ['C[t]', 'Er', 'X', 'X cancelling', 'H[c]', 'H[f]', 'H[a]', 'K[i]', 'K[m]', 'K[o]', 'Z'];
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
