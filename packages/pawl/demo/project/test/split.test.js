import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCents, parseCents } from '../src/money.js';
import { splitBill } from '../src/split.js';

test('an even bill is split evenly', () => {
  assert.deepEqual(splitBill(9000, 3), [3000, 3000, 3000]);
});

test('no cent is lost when the bill is odd', () => {
  const shares = splitBill(10000, 3);
  assert.equal(shares.reduce((sum, share) => sum + share, 0), 10000);
});

test('shares differ by at most one cent', () => {
  const shares = splitBill(10001, 4);
  assert.ok(Math.max(...shares) - Math.min(...shares) <= 1);
});

test('amounts survive parsing and formatting', () => {
  assert.equal(formatCents(parseCents('12.30')), '12.30');
});
