import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWatchBuffer } from '../../src/session/loop.js';

test('early items are delivered first, later ones at once, and none after the end', () => {
  const held = createWatchBuffer<string>();
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

test('the end of an earlier subscription does not end a later one', () => {
  const held = createWatchBuffer<string>();
  const told: string[] = [];
  const stopFirst = held.subscribe(() => undefined);
  held.subscribe((item) => told.push(item));
  stopFirst();
  held.push('one');
  assert.deepEqual(told, ['one']);
});
