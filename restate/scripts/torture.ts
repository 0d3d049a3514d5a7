import { startCluster } from '../test/cluster/cluster.js';
import { runCrowd } from '../test/cluster/crowd.js';

/**
 * `npm run torture [-- SESSIONS KILLS MS]`: many sessions on three nodes, which are killed all the time, and the engine too.
 * MS is the time between two kills. Prints figures.
 */

const [sessions = 200, kills = 40, everyMs = 1_000] = process.argv.slice(2).map(Number);
const cluster = await startCluster(3, 400, 5_000);
try {
  const figures = await runCrowd(cluster, {
    sessions,
    turns: 3,
    atOnce: 16,
    kills,
    everyMs,
    engineEvery: 5,
    progress: (text) => console.log(`${(performance.now() / 1000).toFixed(0)} s: ${text}`),
  });
  console.log(figures);
  const pending = await cluster.pending();
  console.log(`invocations left in the engine: ${pending.length}`);
  for (const one of pending.slice(0, 10)) console.log(one.slice(0, 400));
  const refused = pending.filter((one) => one.includes('Journal mismatch'));
  const { stuck, inputsLost, commandsTwice, silentCalls, finished } = figures;
  const faults =
    refused.length +
    stuck.length +
    inputsLost.length +
    commandsTwice.length +
    silentCalls.length +
    (sessions - finished);
  process.exitCode = faults === 0 ? 0 : 1;
} finally {
  await cluster.stop();
}
