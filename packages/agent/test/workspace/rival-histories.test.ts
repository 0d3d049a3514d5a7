import assert from 'node:assert/strict';
import { test } from 'node:test';
import '../../../../test/own-process.js';
import { countCases, SEED } from '../../../../test/tier.js';
import { playHistory } from './rival-histories.js';

/**
 * Generated histories of one or two sessions and of a rival, who saves, makes, renames, removes, replaces, links and
 * chmods files while commands run, between calls, right after them, between turns and while a rewind runs. Nothing of the
 * rival's is lost for good, and no word about a change is untrue.
 *
 * PAWL_COUNT: how many histories; PAWL_SEED: the seed of the first, so that one can be repeated.
 */

const COUNT = countCases(3);

/** In it a rival changes only the mode of a file that a tool once wrote: it counted as the tool's. */
const MODE_ALONE = 21;

for (const seed of new Set([MODE_ALONE, ...Array.from({ length: COUNT }, (_, at) => SEED + at)]))
  test(`a rival loses nothing and no word is untrue, in history ${seed}`, async (t) => {
    const { faults, log, counts } = await playHistory(t, seed);
    t.diagnostic(JSON.stringify(counts));
    assert.deepEqual(faults, [], `${faults.join('\n')}\n${log.join('\n')}`);
    assert.ok(counts.rival > 0 && counts.rewinds > 0, 'control: something has happened');
  });
