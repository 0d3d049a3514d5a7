import assert from 'node:assert/strict';
import test from 'node:test';
import { AppendList } from '@pawl/machine/kernel/append-list';
import { createTreeCheck } from '../src/journaled-ask-machine.js';
import type { Tree } from '../src/tree/tree-state.js';

/** The check looks at no field by name: any plain value with logs in it stands for a tree here. */
const treeOf = (value: unknown): Tree => value as Tree; // see above

const fresh = (value: unknown): string => createTreeCheck()(treeOf(value));

/** Counts how often its field is read, which happens when it is written out. */
const counted = (text: string, reads: { count: number }) => ({
  get text() {
    reads.count += 1;
    return text;
  },
});

test('the same state has the same check, whether its parts were summed before or not', () => {
  const check = createTreeCheck();
  const shared = { long: 'x'.repeat(1_000), list: [1, 2, { deep: 'y'.repeat(1_000) }] };
  const states = [1, 2, 3].map((number) => ({
    shared,
    number,
    log: AppendList.from([shared, number]),
  }));
  for (const state of states) assert.equal(check(treeOf(state)), fresh(state));
  assert.equal(new Set(states.map(fresh)).size, 3);
});

const long = 'z'.repeat(2_000);
const differing: readonly (readonly [string, unknown, unknown])[] = [
  ['a long text', { a: `${long}1` }, { a: `${long}2` }],
  ['a text deep inside', { a: { b: [{ c: `${long}1` }] } }, { a: { b: [{ c: `${long}2` }] } }],
  ['a text that moved to its neighbour', { a: ['ab', 'c'] }, { a: ['a', 'bc'] }],
  ['an item of a log', { a: AppendList.from([1, 2]) }, { a: AppendList.from([1, 3]) }],
  ['the order of a log', { a: AppendList.from([long, 1]) }, { a: AppendList.from([1, long]) }],
  ['null and nothing', { a: null }, {}],
  ['a sum and the text of that sum', { a: '#00' }, { a: { b: '#00' } }],
];

for (const [what, one, other] of differing) {
  test(`${what} makes another check`, () => assert.notEqual(fresh(one), fresh(other)));
}

test('the order of fields and fields that are undefined do not count', () => {
  assert.equal(
    fresh({ a: 1, b: { c: 2, d: 3 } }),
    fresh({ b: { d: 3, c: 2, e: undefined }, a: 1 }),
  );
});

test('what did not change is written out once, however many states hold it', () => {
  const reads = { count: 0 };
  const check = createTreeCheck();
  let log = AppendList.empty<object>();
  for (let index = 0; index < 50; index++) {
    log = log.append(counted(`${index}${long}`, reads));
    check(treeOf({ index, log }));
  }
  assert.equal(reads.count, 50);
});
