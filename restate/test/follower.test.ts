import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Entry, Stepped } from 'pawl/engine';
import { storySettings } from '../../test/contract/play-story.js';
import { localLive } from '../src/live.js';
import { Follower } from '../src/runtime.js';

const settings = storySettings('/work');
const header = { settings } as NonNullable<ConstructorParameters<typeof Follower>[1]['header']>; // all that is used of it
const hello: Entry = { seq: 1, event: { type: 'UserInput', at: 1, mode: 'steer', text: 'hello' } };
const delta = (requestId: string, text: string) =>
  ({ type: 'TextDelta', at: 2, requestId, text }) as const;

test('a delta that is faster than the entry that its reply began with is shown after it, and one that is late is not', async () => {
  const live = localLive();
  const store = {
    async *entries() {
      await new Promise(setImmediate); // the engine takes its time
      yield hello;
    },
  };
  const follower = new Follower('s1', {
    store,
    live,
    header,
    now: () => Promise.reject(new Error('it begins with the first entry')),
    missingNode: async () => null,
    report: (fault) => assert.fail(fault),
  });
  const seen: Stepped[] = [];
  follower.watch((stepped) => void seen.push(stepped));
  for (const event of [delta('req-0', 'late'), delta('req-1', 'One '), delta('req-1', 'two.')])
    live.publish('s1', { kind: 'delta', event });
  assert.equal(seen.length, 0);
  await follower.catchUp();
  await follower.catchUp();
  live.publish('s1', { kind: 'delta', event: delta('req-1', ' Three.') });
  const texts = seen.map(({ seq, event }) => [
    seq,
    event.type === 'TextDelta' ? event.text : event.type,
  ]);
  assert.deepEqual(texts, [
    [1, 'UserInput'],
    [null, 'One '],
    [null, 'two.'],
    [null, ' Three.'],
  ]);
  follower.stop();
});
