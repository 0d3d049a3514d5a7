import '../own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jobs, playJob } from '../../bench/model-side.js';
import { chooseRows } from '../tier.js';

/** What a model meets: rounds and refusals of ten jobs, with a scripted model and real tools. */

for (const job of chooseRows(jobs, undefined, 4)) {
  test(`in the fewest rounds: ${job.name}`, async () => {
    const { rounds, bound, fault, refusals } = await playJob(job);
    assert.equal(fault, null);
    assert.deepEqual(refusals, [], 'each refusal names a way');
    assert.equal(rounds, bound, job.chain.map(({ fact }) => fact).join('; '));
  });
}
