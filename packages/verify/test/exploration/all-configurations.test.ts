import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createConfigurations } from '../../src/exploration/configurations.js';
import { configurationNamed, smallBounds } from './small.js';

test('every configuration has a name of its own and says what it is about', () => {
  const all = createConfigurations(smallBounds);
  assert.equal(new Set(all.map(({ name }) => name)).size, all.length);
  for (const { name, about } of all) assert.match(`${name}: ${about}`, /^\w[\w ,-]*: \w.{10}/);
});

test('where no call may be made, none is asked for', () => {
  const { replies } = configurationNamed('everything', { ...smallBounds, reads: 0, edits: 0 });
  assert.deepEqual(
    replies.map(({ calls = '' }) => calls),
    ['', '', 'E', 'R'],
  );
});

test('there is a configuration for each thing that is looked at in depth', () => {
  assert.deepEqual(
    createConfigurations(smallBounds).map(({ name }) => name),
    [
      ...['everything', 'replies', 'drain', 'time', 'drain out of time', 'compaction', 'policies'],
      'fallback',
      ...[
        'queue goes on',
        'queue goes back',
        'nobody to ask: deny',
        'nobody to ask: stop',
        'rules change',
      ],
      'previews',
      'questions and plans',
      ...['hooks', 'no hooks', 'outcomes', 'pictures', 'tools that spend'],
      ...['budget', 'budget that raises itself', 'reserves', 'reserves of tools', 'misplaced'],
    ],
  );
});

test('hooks answer as each configuration wants them to, and cleanly where it does not say', () => {
  const wanted: Readonly<Record<string, readonly string[]>> = {
    everything: ['clean', 'changed', 'veto', 'failed'],
    time: ['changed', 'veto'],
    'queue goes on': ['clean', 'veto'],
    hooks: ['clean', 'dirty', 'changed', 'committed', 'veto', 'failed'],
  };
  for (const { name, hooks } of createConfigurations(smallBounds))
    assert.deepEqual(hooks, wanted[name] ?? ['clean'], name);
});
