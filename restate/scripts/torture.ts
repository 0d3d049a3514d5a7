import { setTimeout as pause } from 'node:timers/promises';
import { type Cluster, startCluster } from '../test/cluster/cluster.js';
import { runCrowd, wrongIn } from '../test/cluster/crowd.js';
import { NEXT_VERSION, runDeploy } from '../test/cluster/deploy.js';

/**
 * `npm run torture [-- KILLS SEED]`: many sessions on two nodes, while these and the engine are killed, stand still
 * until another node has taken over, and have no space on their disks. It needs root, for disks of their own.
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
  starting: Promise<Cluster>,
  work: (cluster: Cluster) => Promise<number>,
): Promise<void> => {
  const cluster = await starting;
  try {
    if ((await work(cluster)) > 0) process.exitCode = 1;
  } finally {
    await cluster.stop();
  }
};

const tortureWithFaults = async (cluster: Cluster): Promise<number> => {
  const [kills = 60, seed = Date.now() % 1_000_000] = [first, ...rest]
    .filter((word) => word !== '')
    .map(Number);
  say(`seed ${seed}`);
  const part = (share: number): number => Math.ceil(kills * share);
  const figures = await runCrowd(cluster, {
    turns: 3,
    atOnce: 8,
    faults: {
      nodeKilled: kills - part(0.2),
      engineKilled: part(0.2),
      nodeFrozen: part(0.1),
      engineFrozen: part(0.05),
      nodeFull: part(0.1),
      blobsFull: part(0.05),
      engineFull: part(0.05),
    },
    seed,
    progress: say,
  });
  console.log(figures);
  const refused = (await showPending(cluster)).filter((one) => one.includes('Journal mismatch'));
  return refused.length + wrongIn(figures).length;
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
    await inCluster(startCluster(3, 1_200, 5_000), deployOnce(sessions, isSame, run % 2 === 1));
} else await inCluster(startCluster(2, 400, 5_000, true), tortureWithFaults);
