import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppendList } from '@pawl/machine/kernel/append-list';
import { deepEqual } from '../../src/exploration/exploration-model.js';

// Whether two answers of the machine are one: rules.md#deterministic stands on it.

const rows: readonly [title: string, one: unknown, other: unknown, same: boolean][] = [
  ['a value and itself', 'x', 'x', true],
  ['two texts', 'x', 'y', false],
  ['a text and a list', 'x', ['x'], false],
  ['a list and a text', ['x'], 'x', false],
  ['nothing and an object', null, {}, false],
  ['an object and nothing', {}, null, false],
  ['objects of the same fields', { a: { b: 1 } }, { a: { b: 1 } }, true],
  ['objects that differ deep down', { a: { b: 1 } }, { a: { b: 2 } }, false],
  ['a field more on the left', { a: 1, b: undefined }, { a: 1 }, false],
  ['a field more on the right', { a: 1 }, { a: 1, b: undefined }, false],
  ['lists of the same items', [1, 2], [1, 2], true],
  ['lists of different lengths', [1, 2], [1], false],
  ['logs of the same items', AppendList.from([{ a: 1 }]), AppendList.from([{ a: 1 }]), true],
  ['a log and a list', AppendList.from([1]), [1], false],
  ['logs that differ at the end', AppendList.from([1, 2]), AppendList.from([1, 3]), false],
  ['logs that differ before the end', AppendList.from([1, 2]), AppendList.from([3, 2]), false],
  ['logs of which one goes on', AppendList.from([1, 2]), AppendList.from([1, 2, 3]), false],
  ['logs of different lengths', AppendList.from([2, 1, 2]), AppendList.from([1, 2]), false],
];

for (const [title, one, other, same] of rows) {
  test(`${title} are ${same ? '' : 'not '}the same`, () => {
    assert.equal(deepEqual(one, other), same);
  });
}
