import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { groupDigits } from '../../src/platform/text.js';

test('digits are grouped as the platform groups them', () => {
  const counts = [0, 7, 12, 999, 1_000, 12_345, 999_999, 1_000_000, Number.MAX_SAFE_INTEGER];
  for (const count of counts.flatMap((one) => [one, -one || 0])) {
    assert.equal(groupDigits(count), count.toLocaleString('en-US'));
  }
});

test('no source asks the platform to group digits', () => {
  const files = readdirSync('packages', { recursive: true, encoding: 'utf8' }).filter((file) =>
    /^[^/]+\/src\/.*\.ts$/.test(file),
  );
  const asking = files.filter((file) =>
    readFileSync(path.join('packages', file), 'utf8').includes('toLocaleString('),
  );
  assert.deepEqual(asking, []);
});
