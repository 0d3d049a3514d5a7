import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arrowRows, createArrows, stepFinder } from '../../src/projections/projection.js';

// How the arrow of a step is found in a seed's table.

const edges = createArrows(
  arrowRows(
    'text',
    ['A', 'go', '', 'B', 'Do'],
    ['A', 'go', 'late', 'B', 'Wait'],
    ['B', null, '', 'A', null],
  ),
);
const [does, waits, back] = edges;
const find = stepFinder(edges);

test('arrows between the same states by the same event are numbered', () => {
  assert.deepEqual(
    edges.map(({ id }) => id),
    ['A/go/B/1', 'A/go/B/2', 'B//A'],
  );
});

test('an arrow is found by its action', () => {
  assert.equal(find('A', { event: 'go', to: 'B', action: 'Do' }).edge, does);
  assert.equal(find('A', { event: 'go', to: 'B', action: 'Wait' }).edge, waits);
  assert.equal(find('A', { event: 'go', to: 'B', action: 'Run' }).edge, null);
});

test('an arrow that names no action is found whatever is done', () => {
  assert.equal(find('B', { event: null, to: 'A', action: 'Do' }).edge, back);
  assert.equal(find('B', { event: null, to: 'A', action: null }).edge, back);
});

test('no arrow is found for another event, another end, or a state that nothing leaves', () => {
  assert.equal(find('B', { event: 'go', to: 'A', action: null }).edge, null);
  assert.equal(find('B', { event: null, to: 'B', action: null }).edge, null);
  assert.equal(find('C', { event: 'go', to: 'B', action: 'Do' }).edge, null);
});
