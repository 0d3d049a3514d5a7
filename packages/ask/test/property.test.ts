import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedEdges } from '../src/run/seed-projection.js';
import * as g from './given.js';
import { forAll, roam } from './random.js';
import { outcome, seedTraces, type Walker } from './walker.js';

/** Promises over random runs, with events that are late, doubled, stale or for runs that are gone (promises.ts). */

test('random runs keep all promises, and every path is legal in the seed’s words', (t) => {
  forAll(t, 400, (walked) => {
    roam(walked);
  });
});

/** A call that was aborted and has not ended yet: its reserve is held until the runtime tells its usage. */
const abortedCall = (walker: Walker): string | undefined => {
  const { calls, ledger } = walker.tree();
  return Object.keys(ledger.open).find((requestId) => calls[requestId] === undefined);
};

/** Answers whatever is under way, until nothing is. */
const bringToEnd = (walker: Walker): void => {
  if (walker.tree().name === 'ShutDown') walker.send(g.resumed(walker.tree().epoch + 1));
  for (let round = 0; round < 300 && walker.tree().name !== 'Ended'; round++) {
    const requestId = abortedCall(walker);
    if (requestId !== undefined) {
      walker.send(
        g.fails({ who: walker.tree().ledger.open[requestId]?.node ?? assert.fail(), requestId }),
      );
      continue;
    }
    const [node] =
      Object.entries(walker.tree().nodes)
        .filter(([, state]) => state.name !== 'DONE')
        .filter(([name, state]) => {
          const work = state.name === 'DONE' ? null : state.work;
          const waits =
            work?.kind === 'calling' && walker.tree().calls[work.requestId] === undefined;
          const asks = work?.kind === 'running' && work.open.length > 0;
          return !waits && (!asks || state.run.environment === 'starting') && name !== '';
        })
        .at(-1) ?? assert.fail('nobody is at work, and the root is not done');
    const state = walker.tree().nodes[node] ?? assert.fail();
    if (state.name === 'DONE') continue;
    if (state.run.environment === 'starting') walker.send(g.environmentIs('kept', node));
    else if (state.work.kind === 'new') walker.send({ ...g.started, node });
    else if (state.work.kind === 'calling') walker.send(g.says(g.program('go()'), { who: node }));
    else if (state.work.kind === 'running') walker.send(g.ends({ answer: 'in the end' }, node));
    else if (state.work.kind === 'reading') walker.send(g.holds('a value', node));
    else if (state.work.kind === 'asking') walker.send(g.judges({ kind: 'go' }, node));
    else if (state.work.kind === 'retrying') walker.send(g.rings(node));
    else assert.fail(`${node} rests in ${state.name} ${state.work.kind}`);
  }
};

test('from wherever a run is, a world that answers brings it to DONE', (t) => {
  forAll(t, 150, (walked) => {
    const walker = roam(walked);
    bringToEnd(walker);
    assert.equal(walker.tree().name, 'Ended');
    outcome(walker);
  });
});

test('from wherever a run is, a cancel ends it and all that it started', (t) => {
  forAll(t, 100, (walked) => {
    const walker = roam(walked);
    if (walker.tree().name === 'ShutDown') walker.send(g.resumed(walker.tree().epoch + 1));
    walker.send(g.cancels());
    assert.equal(walker.tree().name, 'Ended');
  });
});

/** The same walks every time: they are known to come everywhere. */
const KNOWN = 4;

test('random runs take every row of the seed’s table', (t) => {
  const rows = new Set<string>();
  forAll(
    t,
    300,
    (walked) => {
      for (const row of seedTraces(roam(walked)).flatMap((trace) => trace.split('; ')))
        rows.add(row);
    },
    KNOWN,
  );
  const untaken = seedEdges.filter(({ from, event, to }) => !rows.has(`${from} -${event}-> ${to}`));
  assert.deepEqual(untaken, []);
});
