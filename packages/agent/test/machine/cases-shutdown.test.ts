import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { labels } from '../../../../test/kit/agent/pairs.js';
import { check } from '../../../../test/kit/agent/rows.js';
import { a, bad, nameOf, u, use } from '../../../../test/kit/agent/shown.js';
import {
  bring,
  faultsOf,
  PLACES,
  start,
  take,
  type Walker,
} from '../../../../test/kit/agent/walker.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { State } from '../../src/machine/state.js';

// Shutdown, and what is late after it. Any sequence of events: cases-random.test.ts.

const { edit, grep } = g;
const asked = [u('hi'), a(use('1'), use('2'))];
const INTERRUPTED = /interrupted while running.*effects unknown/i;

/** All but the epoch, and whether a request that was cut off may have cost something. */
const asText = ({ session, ...own }: State): string => {
  const { epoch, usage, ...rest } = session;
  const { atLeast, ...sums } = usage;
  return JSON.stringify({ own: 'partial' in own ? { ...own, partial: '' } : own, rest, sums });
};
const sameAsBefore = (walker: Walker): void => {
  const before = walker.steps().at(-2)?.state ?? assert.fail('no step before');
  assert.equal(asText(walker.state()), asText(before));
};

check([
  {
    rule: 'shutdown',
    title: 'shutdown kills what runs and settles',
    given: 'X',
    send: [g.shutdown],
    state: 'Z',
    does: ['CancelTools 1 force', 'Shutdown'],
    talk: [...asked, u(bad('1', INTERRUPTED), bad('2', /not run.*session closed/i))],
  },
  {
    rule: 'after-shutdown',
    title: 'a timer after shutdown is late',
    given: 'Z',
    send: [g.rings('timer-1')],
    state: 'Z',
    quiet: true,
  },
  {
    rule: 'shutdown',
    title: 'shutdown a second time does it again and changes nothing',
    given: 'X',
    send: [g.shutdown, g.shutdown],
    state: 'Z',
    does: ['Shutdown'],
    also: sameAsBefore,
  },
  {
    rule: 'resume-request',
    title: 'a session cut off in the middle of a reply asks again under the same id and attempt',
    given: 'Er',
    send: [g.rings(), g.delta('y'), g.resumed],
    state: 'C[u] 2',
    does: ['RetractPartial', 'SendLlmRequest'],
    talk: [u('hi')],
    also: sameAsBefore,
  },
  {
    rule: 'resume-rest',
    title: 'a session cut off while waiting for a retry still waits',
    given: 'Er',
    send: [g.resumed],
    state: 'Er',
    talk: [u('hi')],
    also: sameAsBefore,
  },
  {
    rule: 'resume-rest',
    title: 'a session cut off in a compaction still compacts',
    given: 'K[o]',
    send: [g.resumed],
    state: 'K[o]',
    also: sameAsBefore,
  },
]);

/** One walk into each state that can be told apart by what waits in it. */
const everywhere = (): readonly Walker[] => {
  const draining = bring('C[u]', { cancelMode: 'drain', limits: { timeMs: 60_000 } });
  draining.send(g.delta('y'), g.cancel);
  const approving = start({
    rules: [{ decision: 'ask', tool: '*', where: 'anywhere', touches: 'mutates', why: 'asks' }],
  });
  approving.send(g.begin, g.input('hi'), g.wants(edit('1'), edit('2'), edit('3')));
  const cancelling = bring('X');
  cancelling.send(g.cancel);
  const stopped = bring('C[u]', { limits: { usd: 1 }, autoRearm: 'off' });
  stopped.send(g.completed({ calls: [grep('1')], usage: g.usage(2) }), g.input('held'));
  const failed = bring('C[t]');
  failed.send(g.refusedRequest);
  const timed = PLACES.map((place) => bring(place, { limits: { timeMs: 60_000 } }));
  return [
    ...PLACES.map((place) => bring(place)),
    ...timed,
    draining,
    approving,
    cancelling,
    stopped,
    failed,
  ];
};

for (const walker of everywhere()) {
  const before = walker.state();
  test(`shutdown: every event in ${nameOf(before)} leaves a defined state and throws nothing`, () => {
    for (const { given } of labels) {
      const { state } = take(before, g.eventOf(given, before));
      assert.equal(typeof state.name, 'string');
    }
  });
}

test('shutdown: every state can be left by shutdown in one step with a valid conversation', () => {
  for (const walker of everywhere()) {
    const { state } = walker.send(g.shutdown);
    assert.equal(state.name, 'ShuttingDown');
    assert.deepEqual(faultsOf(messagesOf(state.session.conversation)), []);
  }
});
