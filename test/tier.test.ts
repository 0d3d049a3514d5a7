import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseRows, isDeep, SEED } from './tier.js';

const rows = ['kill a', 'kill b', 'kill c', 'trap a', 'trap b', 'none'];
const classOf = (row: string): string => row.split(' ')[0] ?? '';

test('of each class as many rows as asked for, in their order; in the deep tier all', () => {
  const one = chooseRows(rows, classOf);
  const two = chooseRows(rows, classOf, 2);
  if (isDeep) return assert.deepEqual([one, two], [rows, rows]);
  assert.deepEqual(one.map(classOf), ['kill', 'trap', 'none']);
  assert.deepEqual(two.map(classOf), ['kill', 'kill', 'trap', 'trap', 'none']);
  assert.deepEqual(
    rows.filter((row) => two.includes(row)),
    two,
  );
  return undefined;
});

test('the same seed chooses the same rows', () => {
  assert.deepEqual(chooseRows(rows, classOf), chooseRows(rows, classOf), `PAWL_SEED=${SEED}`);
});
