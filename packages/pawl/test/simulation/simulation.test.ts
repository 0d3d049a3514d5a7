import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countCases } from '../../../../test/tier.js';
import { simulate } from '../../src/testing.js';

/** How many sessions are simulated: `PAWL_COUNT` makes it many. */
const SESSIONS = countCases(150);
/** Fixed, so that a run of all tests never depends on luck: `npm run simulate` looks for new sessions. */
const SEED = 1;

test(`${SESSIONS} simulated sessions keep every promise`, async () => {
  const { failure, sessions } = await simulate({ seed: SEED, sessions: SESSIONS });
  const said =
    failure === null
      ? ''
      : `${failure.trace.join('\n')}\n${failure.checker}: ${failure.text}\nnpm run simulate -- --sessions 1 --seed ${failure.seed}`;
  assert.equal(failure, null, said);
  assert.equal(sessions, SESSIONS);
});

test('a seed gives the same sessions again', async () => {
  const one = await simulate({ seed: 7, sessions: 10 });
  const other = await simulate({ seed: 7, sessions: 10 });
  assert.deepEqual(one, other);
});
