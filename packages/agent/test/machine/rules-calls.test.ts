import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { check, spentBy } from '../../../../test/kit/agent/rows.js';
import {
  a,
  assertTalk,
  bad,
  good,
  note,
  summary,
  think,
  u,
  use,
} from '../../../../test/kit/agent/shown.js';
import { bring, type Walker } from '../../../../test/kit/agent/walker.js';
import { messagesOf } from '../../src/machine/conversation.js';

// Replies and failed requests: corners that the cases leave out.

const { edit, grep } = g;
const cut = (...calls: readonly ReturnType<typeof grep>[]) =>
  g.completed({ calls, stopReason: 'maxTokens' });
/** The same of the first request. */
const old =
  (given: g.Given): g.Given =>
  (state) => {
    const event = g.eventOf(given, state);
    return 'requestId' in event ? { ...event, requestId: 'req-1' } : event;
  };
const draining = () => {
  const walker = bring('C[u]', { cancelMode: 'drain' });
  walker.send(g.cancel);
  return walker;
};
const overflowsTwice = [g.overflows, g.compacts(), g.overflows];
const WAY_OUT = 'C Processing ToolUseRequested CheckingForCancellation';

check([
  {
    rule: 'streamed-text',
    title: 'blank text that was streamed and is not stored is taken back',
    given: 'C[u]',
    send: [g.delta(' '), g.says(' ')],
    state: 'W(endOfTurn empty)',
    does: ['RetractPartial'],
  },
  ...[g.thought, g.halfCall].map((given) => ({
    rule: 'display-only' as const,
    title: 'pieces for display alone change nothing',
    given: 'C[u]' as const,
    send: [given],
    state: 'C[u]',
    does: [],
    talk: [u('hi')],
  })),
  {
    rule: 'malformed-reply',
    title: 'a reply without a message is malformed, its usage counts',
    given: 'C[u]',
    send: [g.completed({ message: null, usage: g.usage(0.5) })],
    state: 'W(error malformed)',
    does: [],
    shows: ['DisplayError'],
    path: 'C Processing Failed W',
    talk: [u('hi')],
    also: (walker) => assert.equal(spentBy(walker), 0.5),
  },
  {
    rule: 'empty-reply',
    title: 'reasoning alone is an empty reply',
    given: 'C[u]',
    send: [g.completed({ reasoning: 'hm' })],
    state: 'W(endOfTurn empty)',
    shows: ['DisplayWarning empty'],
    talk: [u('hi')],
  },
  {
    rule: 'empty-reply',
    title: 'empty replies are counted apart from attempts',
    given: 'Er',
    settings: { emptyRetries: 1 },
    send: [g.rings(), g.empty, g.rings()],
    state: 'C[u]',
    does: ['SendLlmRequest'],
  },
  {
    rule: 'calls-decide',
    title: 'tool use announced with text alone is an answer and leaves a diagnostic',
    given: 'C[u]',
    send: [g.completed({ text: 'yo', stopReason: 'toolUse' })],
    state: 'W(endOfTurn answer)',
    says: true,
    talk: [u('hi'), a('yo')],
  },
  {
    rule: 'cut-reply',
    title: 'an answer that was cut off is kept and warned about',
    given: 'C[u]',
    send: [g.completed({ text: 'and th', stopReason: 'maxTokens' })],
    state: 'W(endOfTurn truncated)',
    does: [],
    shows: ['DisplayText and th', 'DisplayWarning truncated'],
    talk: [u('hi'), a('and th')],
  },
  {
    rule: 'cut-reply',
    title: 'the second cut reply in a row ends the turn',
    given: 'C[u]',
    send: [cut(edit('1')), cut(edit('2'))],
    state: 'W(budget truncation)',
    does: [],
    shows: ['DisplayNotice budget'],
    path: `${WAY_OUT} X H CheckingBudget BudgetExceeded W`,
  },
  ...(['refusal', 'contentFilter'] as const).map((stopReason) => ({
    rule: 'refused-reply' as const,
    title: `calls of a reply that ends with ${stopReason} are answered, not executed`,
    given: 'C[u]' as const,
    send: [g.completed({ text: 'no', calls: [edit('1')], stopReason })],
    state: 'W(endOfTurn refused)',
    does: [],
    shows: ['DisplayWarning refused'],
    talk: [u('hi'), a('no', use('1')), u(bad('1'))],
  })),
  ...['x', '\u{1F600}'].map((letter) => ({
    rule: 'overflow-cuts-results' as const,
    title: `after a second overflow results of ${letter} are cut to 4 kB with a note and sent once more`,
    given: 'C[u] long' as const,
    send: [g.wants(grep('1')), g.ended('1', 'ok', letter.repeat(5_000)), ...overflowsTwice],
    state: 'C[t]',
    does: ['SendLlmRequest'],
    talk: [u(summary()), a(use('1')), u(good('1', /cut/))],
    also: (walker: Walker) => {
      const part = walker.state().session.conversation.open?.parts[0];
      assert.ok(
        part !== undefined && Buffer.byteLength(part.text) <= 4_096 + 200,
        'longer than 4 kB and a note',
      );
      assert.doesNotMatch(part.text, /\p{Surrogate}/u, 'half a character');
    },
  })),
  {
    rule: 'overflow-gives-input-back',
    title: 'user text that is too long for the window is handed back',
    given: 'C[u]',
    send: [g.overflows],
    state: 'W(error contextOverflow)',
    does: ['RestoreQueue hi'],
    shows: ['DisplayError'],
    talk: [],
    queue: [],
  },
  {
    rule: 'retry-failed-call',
    title: 'a completed reply resets the attempts',
    given: 'Er',
    send: [g.rings(), g.wants(grep('1')), g.ended('1'), g.fails()],
    state: 'Er',
    does: ['ScheduleTimer 1000'],
  },
  {
    rule: 'draining',
    title: 'a second cancel does not wait for the reply',
    given: draining,
    send: [g.delta('so'), g.cancel, g.input('go on')],
    state: 'C[u]',
    talk: [u('hi'), a('so'), u(note(/interrupted by the user/), 'go on')],
  },
  {
    rule: 'cancelled-reply-runs-no-call',
    title: 'calls that come while draining are answered, not executed',
    given: draining,
    send: [g.completed({ text: 'I will', calls: [edit('1')] })],
    state: 'W(cancelled user)',
    does: [],
    path: `${WAY_OUT} Cancelled W`,
    talk: [u('hi'), a('I will', use('1')), u(bad('1', /cancelled by user/))],
  },
  ...[g.thought, g.halfCall].map((given) => ({
    rule: 'display-only' as const,
    title: 'pieces for display of an old request are not shown',
    given: 'Er' as const,
    send: [g.rings(), old(given)],
    state: 'C[u] 2',
    quiet: true as const,
  })),
]);

test('reasoning: reasoning is stored with its metadata and its model', () => {
  const walker = bring('C[u]');
  walker.send(g.completed({ reasoning: 'hm', calls: [grep('1')] }));
  const [, stored] = messagesOf(walker.state().session.conversation);
  assert.deepEqual(
    stored,
    g.completed({ reasoning: 'hm', calls: [grep('1')] })(walker.state()).message,
  );
  walker.send(g.ended('1'), g.completed({ reasoning: 'so', text: 'yo' }));
  const talk = [u('hi'), a(think('hm'), use('1')), u(good('1')), a(think('so'), 'yo')];
  assertTalk(walker.state().session.conversation, talk);
});
