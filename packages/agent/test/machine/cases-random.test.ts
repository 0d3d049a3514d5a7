import assert from 'node:assert/strict';
import { test } from 'node:test';
import { begun, forAll, roam } from '../../../../test/kit/agent/random.js';
import { step } from '../../src/machine/machine.js';
import type { State } from '../../src/machine/state.js';

// Any sequence of events.

test('deterministic: a log of events replayed twice gives the same states, actions and ids', (t) => {
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

test('never-stuck: random, late, duplicate, stale and misplaced events break no invariant', (t) => {
  forAll(t, 200, (walked) => void roam(walked));
});
