import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FingerprintSet } from '../src/explorer/explore.js';

test('texts are numbered in the order in which they come, and keep their number', () => {
  const known = new FingerprintSet();
  assert.deepEqual(
    ['a', 'b', 'a', '', 'b', 'ab', 'ba'].map((text) => known.add(text)),
    [0, 1, 0, 2, 1, 3, 4],
  );
  assert.equal(known.size, 5);
});

test('half a million texts that differ little are all told apart', () => {
  const known = new FingerprintSet();
  const text = (index: number): string => `W|${index % 71}s,${index}|y0|${index % 3}`;
  for (let index = 0; index < 500_000; index++) known.add(text(index));
  assert.equal(known.size, 500_000);
  for (let index = 0; index < 500_000; index += 997) assert.equal(known.add(text(index)), index);
});

test('the order of characters and the length count', () => {
  const known = new FingerprintSet();
  const texts = [
    '\u0000',
    '\u0000\u0000',
    '\u0001\u0000',
    '\u0000\u0001',
    'aab',
    'aba',
    'baa',
    '\ud83d\ude00',
  ];
  for (const text of texts) known.add(text);
  assert.equal(known.size, texts.length);
});

// Found by trying: their places in an empty set are the same, and so is one half of their 64 bits.
const half: readonly (readonly [which: string, one: string, other: string])[] = [
  ['first', 'node 242204', 'node 952055'],
  ['second', 'node 87750', 'node 15009906'],
];
for (const [which, one, other] of half) {
  test(`two texts whose ${which} half is the same are told apart`, () => {
    const known = new FingerprintSet();
    assert.deepEqual(
      [one, other, one].map((text) => known.add(text)),
      [0, 1, 0],
    );
  });
}
