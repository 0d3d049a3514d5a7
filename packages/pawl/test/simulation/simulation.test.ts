import '../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countCases } from '../../../../test/tier.js';
import { type SimulationReport, simulate } from '../../src/testing.js';

/** How many sessions are simulated: `PAWL_COUNT` makes it many. */
const SESSIONS = countCases(150);
/** Fixed, so that a run of all tests never depends on luck: `npm run simulate` looks for new sessions. */
const SEED = 1;

const explain = (failure: SimulationReport['failure']): string =>
  failure === null
    ? ''
    : `${failure.trace.join('\n')}\n${failure.checker}: ${failure.text}\nseed ${failure.seed} (npm run simulate -- --sessions 1 --seed)`;

test(`${SESSIONS} simulated sessions keep every promise`, async () => {
  const { failure, sessions } = await simulate({ seed: SEED, sessions: SESSIONS });
  assert.equal(failure, null, explain(failure));
  assert.equal(sessions, SESSIONS);
});

/** In the deep tier 100 and more; each switch is checked as a step of the machine, each dollar at the end. */
const STORIES = countCases(100);

test(`${STORIES} simulated sessions in which models take over keep every promise`, async () => {
  const { failure, situations } = await simulate({
    seed: SEED,
    sessions: STORIES,
    about: 'fallback',
  });
  assert.equal(failure, null, explain(failure));
  for (const situation of [
    'another model took over',
    'model passed over',
    'first model asked again',
    'crash while another model is called',
    'limit reached by another model',
  ])
    assert.ok((situations[situation] ?? 0) > 0, situation);
});

test('a seed gives the same sessions again', async () => {
  const one = await simulate({ seed: 7, sessions: 10 });
  const other = await simulate({ seed: 7, sessions: 10 });
  assert.deepEqual(one, other);
});
