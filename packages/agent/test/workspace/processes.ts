import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** A process that nobody has waited for yet has ended all the same. */
export const runs = (pid: number): boolean => {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false; // it is gone, which is the answer
  }
};

/** Waits for the end of processes, and fails where one does not end. */
export const assertGone = async (pids: readonly number[]): Promise<void> => {
  assert.ok(pids.length > 0);
  for (let round = 0; pids.some(runs) && round < 500; round++) await sleep(10);
  assert.deepEqual(pids.filter(runs), []);
};
