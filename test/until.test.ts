import assert from 'node:assert/strict';
import { test } from 'node:test';
import './own-process.js';
import { startPatience, until } from './until.js';

test('a wait ends with what is found, and patience ends', async () => {
  const answers = [undefined, false, 'found'] as const;
  let looks = 0;
  const found = await until('a third look', () => {
    looks += 1;
    return answers[looks - 1];
  });
  assert.deepEqual([found, looks], ['found', 3]);
  const isOver = startPatience(0);
  await until('patience to end', isOver);
});
