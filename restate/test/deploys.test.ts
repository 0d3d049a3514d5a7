import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { atEnd } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import { startCluster } from './cluster/cluster.js';
import { NEXT_VERSION, runDeploy } from './cluster/deploy.js';

/** Nodes are replaced one after the other while sessions work. */

const cluster = await startCluster(3, 600, 60_000);
atEnd({ after: (hook) => after(hook) }, () => cluster.stop());

test('a rolling deploy of another version cuts no turn, refuses nothing for long and repeats nothing', async () => {
  const next = await cluster.plant(NEXT_VERSION);
  let replacedMs = 0;
  const figures = await runDeploy(cluster, {
    sessions: 6,
    turns: 3,
    async deploy(share) {
      for (const [index, node] of cluster.nodes.entries()) {
        await share((index + 1) / 6);
        const begin = performance.now();
        await node.drain();
        await node.start(next);
        replacedMs = Math.max(replacedMs, performance.now() - begin);
      }
    },
  });
  assert.deepEqual([figures.finished, figures.faults], [6, []], JSON.stringify(figures));
  assert.ok(figures.takenOver > 0, 'some sessions went on with the other version');
  assert.ok(figures.refusedMs <= replacedMs + 500, JSON.stringify({ figures, replacedMs }));
  await until('the engine has nothing left to do', async () =>
    (await cluster.pending()).length === 0 ? true : undefined,
  );
});
