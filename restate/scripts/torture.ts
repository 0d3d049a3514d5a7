import { setTimeout as pause } from 'node:timers/promises';
import { type Cluster, startCluster } from '../test/cluster/cluster.js';
import { runCrowd } from '../test/cluster/crowd.js';
import { NEXT_VERSION, runDeploy } from '../test/cluster/deploy.js';

/**
 * `npm run torture [-- SESSIONS KILLS MS]`: many sessions on three nodes, which are killed all the time, and the engine too.
 * MS is the time between two kills.
 * `npm run torture -- deploy [same] [RUNS] [SESSIONS]`: the nodes are replaced one after the other while sessions work, by nodes of
 * another version or of the same; from the second run on the engine is killed meanwhile in every other run.
 * Both print figures.
 */

const [first = '', ...rest] = process.argv.slice(2);
const say = (text: string): void =>
  console.log(`${(performance.now() / 1000).toFixed(0)} s: ${text}`);

const showPending = async (cluster: Cluster): Promise<readonly string[]> => {
  const pending = await cluster.pending();
  console.log(`invocations left in the engine: ${pending.length}`);
  for (const one of pending.slice(0, 10)) console.log(one.slice(0, 400));
  return pending;
};

const inCluster = async (
  delayMs: number,
  work: (cluster: Cluster) => Promise<number>,
): Promise<void> => {
  const cluster = await startCluster(3, delayMs, 5_000);
  try {
    if ((await work(cluster)) > 0) process.exitCode = 1;
  } finally {
    await cluster.stop();
  }
};

const tortureWithKills = async (cluster: Cluster): Promise<number> => {
  const [sessions = 200, kills = 40, everyMs = 1_000] = [first, ...rest]
    .filter((word) => word !== '')
    .map(Number);
  const figures = await runCrowd(cluster, {
    sessions,
    turns: 3,
    atOnce: 16,
    kills,
    everyMs,
    engineEvery: 5,
    progress: say,
  });
  console.log(figures);
  const refused = (await showPending(cluster)).filter((one) => one.includes('Journal mismatch'));
  const { stuck, inputsLost, commandsTwice, silentCalls, finished } = figures;
  const wrong = [refused, stuck, inputsLost, commandsTwice, silentCalls];
  return wrong.flat().length + (sessions - finished);
};

const deployOnce =
  (sessions: number, isSame: boolean, isKilling: boolean) =>
  async (cluster: Cluster): Promise<number> => {
    const next = await cluster.plant(isSame ? [] : NEXT_VERSION);
    const replacedMs: number[] = [];
    const late = setInterval(() => void showPending(cluster).catch(() => undefined), 60_000);
    const figures = await runDeploy(cluster, {
      sessions,
      turns: 3,
      async deploy(share) {
        for (const [index, node] of cluster.nodes.entries()) {
          await share((index + 1) / 6);
          const begin = performance.now();
          await node.drain();
          await node.start(next);
          replacedMs.push(Math.round(performance.now() - begin));
          say(`${node.name} is replaced`);
          if (!isKilling || index !== 1) continue;
          await cluster.engine.kill();
          await cluster.engine.restart();
          say('the engine was killed, and is there again');
        }
      },
    });
    clearInterval(late);
    await pause(3_000);
    const left = await showPending(cluster);
    console.log({ ...figures, replacedMs });
    return figures.faults.length + left.length + (sessions - figures.finished);
  };

if (first === 'deploy') {
  const isSame = rest[0] === 'same';
  const [runs = 5, sessions = 30] = rest.filter((word) => word !== 'same').map(Number);
  for (let run = 0; run < runs; run++)
    await inCluster(1_200, deployOnce(sessions, isSame, run % 2 === 1));
} else await inCluster(400, tortureWithKills);
