import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ArcList } from '../src/explorer/explore.js';

// More nodes and arcs than the arcs begin with room for.

const LENGTH = 5_000;

/** A chain, each node with an arc to the next of mark 1 and one to the node itself of mark 2. */
const chain = (): ArcList => {
  const arcs = new ArcList();
  for (let node = 0; node < LENGTH; node++) {
    arcs.leave();
    arcs.add(Math.min(node + 1, LENGTH - 1), 1);
    arcs.add(node, 2);
  }
  return arcs;
};
const reached = (wanted: number, mark: number): number =>
  chain()
    .reaching(LENGTH, (node) => node === wanted, mark)
    .reduce((sum, one) => sum + one, 0);

test('from every node of a long chain its end can be reached', () => {
  assert.equal(reached(LENGTH - 1, 1), LENGTH);
});

test('the middle of a long chain can be reached from what stands before it', () => {
  assert.equal(reached(2_500, 1), 2_501);
});

test('over arcs of another mark nothing but the node itself can be reached', () => {
  assert.equal(reached(LENGTH - 1, 2), 1);
});

test('an arc leaves its own node alone, not the one before it', () => {
  const arcs = new ArcList();
  arcs.leave();
  arcs.leave();
  arcs.add(2, 1);
  arcs.leave();
  assert.deepEqual([...arcs.reaching(3, (node) => node === 2, 1)], [0, 1, 1]);
});

test('nothing is asked about a node that is not there', () => {
  const asked: number[] = [];
  new ArcList().reaching(2, (node) => asked.push(node) > 2, 1);
  assert.deepEqual(asked, [0, 1]);
});
