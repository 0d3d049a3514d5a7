import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHeld } from '../../src/cli/held.js';

test('what comes early is told first, what comes later at once, and after the end nothing', () => {
  const held = createHeld<string>();
  const told: string[] = [];
  const { give } = held;
  give('one');
  give('two');
  const stop = held.hear((item) => {
    told.push(item);
    if (item === 'one') give('one comes of one');
  });
  give('three');
  stop();
  give('four');
  assert.deepEqual(told, ['one', 'two', 'one comes of one', 'three']);
});
