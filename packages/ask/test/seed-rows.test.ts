import assert from 'node:assert/strict';
import { test } from 'node:test';
import { projectEdges, seedEdges } from '../src/run/seed-projection.js';
import { codeMode } from '../src/run/table.js';
import * as g from './given.js';
import { allOf, begin } from './walker.js';

/** Seed 004, code mode: its table and ours. That each of its rows is taken: property.test.ts. */

test('every edge of ours between two states has a name of the seed, or ends its trace in DONE', () => {
  for (const { from, to, as } of codeMode.edges) {
    if (from === to || (as === '' && to === 'DONE')) continue;
    const row = seedEdges.find((edge) => edge.from === from && edge.event === as && edge.to === to);
    assert.ok(row !== undefined, `${from} -${as}-> ${to}`);
  }
});

test('a step that the table of the seed does not have is seen', () => {
  const illegal =
    codeMode.edges.find(({ as }) => as === 'CodeExecuted') ?? assert.fail('no such edge');
  const { cursor, steps } = projectEdges('INIT', [illegal, illegal]);
  assert.equal(cursor, 'ended');
  assert.deepEqual(steps, [{ from: 'INIT', event: 'CodeExecuted', to: 'PROMPTING', edge: null }]);
});

test('root calls are iterations + 1', () => {
  const walker = begin({ ...g.asSeed, iterationsMax: 3 });
  for (const code of ['a()', 'b()', 'c()']) walker.send(g.writes(code), g.prints(code));
  walker.send(g.says('the answer'));
  assert.equal(allOf(walker, 'CallModel').length, 4);
  assert.deepEqual(
    allOf(walker, 'CallModel').map(({ purpose }) => purpose),
    ['iteration', 'iteration', 'iteration', 'answer'],
  );
});
