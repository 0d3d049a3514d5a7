import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEventBuffer } from '../../src/cli/interactive/event-buffer.js';

test('what comes early is told first, what comes later at once, and after the end nothing', () => {
  const held = createEventBuffer<string>();
  const told: string[] = [];
  const { push: give } = held;
  give('one');
  give('two');
  const stop = held.subscribe((item) => {
    told.push(item);
    if (item === 'one') give('one comes of one');
  });
  give('three');
  stop();
  give('four');
  assert.deepEqual(told, ['one', 'two', 'one comes of one', 'three']);
});
