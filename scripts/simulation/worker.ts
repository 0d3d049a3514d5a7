/**
 * Runs sessions in a thread of its own, since simulations share the files and clocks of their
 * thread.
 */

import { parentPort } from 'node:worker_threads';
import { simulate } from '../../packages/verify/src/simulation/simulate.js';

// what run-workers.ts hands over
parentPort?.on('message', async (options: Parameters<typeof simulate>[0]) => {
  parentPort?.postMessage(await simulate(options));
});
