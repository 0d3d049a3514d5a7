import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import type { Entry } from 'pawl/engine';
import { atEnd } from '../../test/temporary-folder.js';
import { until } from '../../test/until.js';
import { clusterSettings, startCluster } from './cluster/cluster.js';
import { BROKEN_VERSION, faultsIn, NEXT_VERSION, runDeploy } from './cluster/deploy.js';

/** Nodes are replaced one after the other while sessions work. */

const cluster = await startCluster(3, 600, 60_000);
atEnd({ after: (hook) => after(hook) }, () => cluster.stop());

const [first, second, third] = cluster.nodes;
assert.ok(first !== undefined && second !== undefined && third !== undefined);

const untilNothingIsLeft = () =>
  until('the engine has nothing left to do', async () =>
    (await cluster.pending()).length === 0 ? true : undefined,
  );

test('a version that does not start, or reads no session, cuts nothing, and a roll back goes on', async () => {
  const broken = await cluster.plant(BROKEN_VERSION);
  const figures = await runDeploy(cluster, {
    sessions: 6,
    turns: 2,
    async deploy(share) {
      await share(1 / 6);
      await first.drain();
      await assert.rejects(first.start('/nowhere.mjs'));
      await first.start(broken);
      await share(2 / 3); // those of the other nodes go on
      await first.kill();
      await first.start(cluster.program);
    },
  });
  assert.deepEqual([figures.finished, figures.faults, figures.takenOver], [6, [], 0]);
  await untilNothingIsLeft();
});

/** A node that answers nothing meanwhile. */
const STOPPED_MS = 2_000;

test('a rolling deploy of another version cuts no turn, refuses nothing for long and repeats nothing', async () => {
  const next = await cluster.plant(NEXT_VERSION);
  let replacedMs = 0;
  const settings = clusterSettings(cluster.folder);
  const held = String(await first.ask({ kind: 'create', settings }));
  const say = (text: string) => first.ask({ kind: 'send', id: held, text, requestId: text });
  await say('session with a first turn');
  await first.ask({ kind: 'rest', id: held });
  const figures = await runDeploy(cluster, {
    first: 7,
    sessions: 6,
    turns: 3,
    async deploy(share) {
      second.signal('SIGSTOP');
      setTimeout(() => second.signal('SIGCONT'), STOPPED_MS);
      for (const [index, node] of cluster.nodes.entries()) {
        await share((index + 1) / 6);
        const begin = performance.now();
        await node.drain();
        await node.start(next);
        replacedMs = Math.max(replacedMs, performance.now() - begin);
        if (node !== first) continue;
        // the calls of the old version meet a new node from now on, and this turn outlives that version
        cluster.prefer(first);
        await say('session with a held turn');
      }
    },
  });
  writeFileSync(path.join(cluster.folder, 'release'), '');
  await first.ask({ kind: 'rest', id: held });
  const entries = (await first.ask({ kind: 'entries', id: held })) as readonly Entry[];
  assert.deepEqual(faultsIn(held, 2, entries), []);
  assert.deepEqual([figures.finished, figures.faults], [6, []], JSON.stringify(figures));
  assert.ok(figures.takenOver > 0, 'some sessions went on with the other version');
  assert.ok(figures.refusedMs <= replacedMs + STOPPED_MS, JSON.stringify({ figures, replacedMs }));
  await untilNothingIsLeft();
});
