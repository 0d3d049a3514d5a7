import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storySettings } from '../../../../test/contract/play-story.js';
import { agentMachine } from '../../src/journal/journaled-agent-machine.js';
import type { Entry } from '../../src/ports/journal.js';
import { SessionFollower } from '../../src/session/follow.js';

// A session that another process holds: its entries, and the deltas between them, of which some may be lost.

const start = agentMachine.initialState(storySettings('/work'));
const asked: Entry = { seq: 1, event: { type: 'UserInput', at: 1, mode: 'steer', text: 'hello' } };
const piece = (text: string, requestId = 'req-1') =>
  ({ type: 'TextDelta', at: 2, requestId, text }) as const;

const follow = () => {
  const seen: (readonly [number | null, string])[] = [];
  const follower = new SessionFollower(start, 0, ({ seq, event }) => {
    seen.push([seq, event.type === 'TextDelta' ? event.text : event.type]);
  });
  follower.entry(asked);
  return { follower, seen: () => seen.splice(0) };
};

test('text is shown once, whether it came in pieces, as one, or in part', () => {
  const rows: readonly (readonly [readonly string[], readonly string[]])[] = [
    [[], ['One two.']],
    [['One '], ['One ', 'two.']],
    [
      ['One ', 'two.'],
      ['One ', 'two.'],
    ],
  ];
  for (const [pieces, shown] of rows)
    for (const way of ['entry', 'pending'] as const) {
      const { follower, seen } = follow();
      for (const text of pieces) follower.delta(piece(text));
      if (way === 'entry') follower.entry({ seq: 2, event: piece('One two.') });
      else follower.pending({ seq: 1, event: piece('One two.') });
      const texts = shown.map((text) => [null, text]);
      assert.deepEqual(seen(), [[1, 'UserInput'], ...texts], `${way} after ${pieces}`);
    }
});

test('the next entry drops what deltas have shown, and a lost one harms nothing', () => {
  const { follower, seen } = follow();
  const entry: Entry = { seq: 2, event: piece('One two three.') };
  follower.delta(piece('One '));
  follower.delta(piece('three.')); // the second piece was lost
  follower.entry(entry);
  const whole = follow();
  whole.follower.entry(entry);
  assert.deepEqual(follower.state, whole.follower.state);
  assert.equal(seen().at(-1)?.[1], 'One two three.', 'it is told again as a whole');
});

test('an entry that was seen does nothing, and neither does a delta of another reply', () => {
  const { follower, seen } = follow();
  follower.entry(asked);
  assert.equal(follower.delta(piece('late', 'req-0')), false);
  assert.equal(follower.seq, 1);
  assert.deepEqual(seen(), [[1, 'UserInput']]);
});
