import { parentPort, workerData } from 'node:worker_threads';
import { simulate } from '../../src/testing/simulation/simulate.js';

/** Runs some sessions in a thread of its own, since simulations share the files and clocks of their thread. */

// what run-workers.ts hands over
const options = workerData as Parameters<typeof simulate>[0];

parentPort?.postMessage(await simulate(options));
