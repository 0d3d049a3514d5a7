import assert from 'node:assert/strict';
import { test } from 'node:test';
import { emptyConversation } from '@pawl/agent/machine/conversation';
import type { Event } from '@pawl/agent/machine/event';
import type { In, SessionData, State } from '@pawl/agent/machine/state';
import {
  asked,
  batch,
  check,
  event,
  failed,
  llm,
  PROMPT,
  queued,
  type Row,
  reply,
  running,
  session,
  text,
  typed,
  user,
  waiting,
  withTalk,
} from '../../../../test/kit/agent/by-hand.js';
import * as g from '../../../../test/kit/agent/given.js';
import type { SettingsPatch } from '../../../../test/kit/agent/settings.js';
import { stateFaults } from '../../src/invariants.js';

/** The promises broken on purpose, as in invariants.test.ts: bounds, shutdown, typed text, silence, answered messages. */

// ---- 5: bounds ----

const TWO_RETRIES: SettingsPatch = { maxRetries: 2 };
const spent = (
  turn: Partial<SessionData['turn']>,
  limits: SettingsPatch['limits'] = {},
): SessionData => {
  const own = session({}, { limits });
  return { ...own, turn: { ...own.turn, ...turn } };
};
const compacting = (settings: SettingsPatch, mode: In<'Compacting'>['mode']): State => ({
  name: 'Compacting',
  session: session({}, settings),
  compactionId: 'compaction-1',
  length: 2,
  mode,
});

const bounds: readonly Row[] = [
  { title: 'the last attempt', after: llm(session({}, TWO_RETRIES), 3) },
  {
    title: 'one attempt too many',
    after: llm(session({}, TWO_RETRIES), 4),
    says: 'bounded-work: attempt 4 of at most 3',
  },
  {
    title: 'one attempt too many to wait for, which was one too many already',
    after: failed(session({}, TWO_RETRIES), 4),
    says: [
      'bounded-work: attempt 4 of at most 3',
      'bounded-work: retry 4 of at most 2 is promised',
    ],
  },
  {
    title: 'a retry that went on waiting when the bound was lowered',
    before: failed(session({}, { maxRetries: 5 }), 3),
    after: failed(session({}, TWO_RETRIES), 3),
  },
  {
    title: 'an empty reply, which is no retry',
    after: { ...failed(session({}, TWO_RETRIES), 3), error: { kind: 'empty', message: 'empty' } },
  },
  {
    title: 'an attempt that was promised before the bound was lowered',
    before: failed(session({}, { maxRetries: 5 }), 4),
    after: llm(session({}, TWO_RETRIES), 5),
  },
  {
    title: 'an attempt that was under way when the bound was lowered',
    before: llm(session({}, { maxRetries: 5 }), 4),
    after: llm(session({}, TWO_RETRIES), 4),
  },
  {
    title: 'one more than was promised',
    before: failed(session({}, { maxRetries: 5 }), 4),
    after: llm(session({}, TWO_RETRIES), 6),
    says: 'bounded-work: attempt 6 of at most 3',
  },
  {
    title: 'the attempt that waited for a compaction',
    before: compacting(TWO_RETRIES, { kind: 'overflow', purpose: 'user', attempt: 4 }),
    after: llm(session({}, TWO_RETRIES), 4),
  },
  {
    title: 'one attempt too many after a compaction between rounds',
    before: compacting(TWO_RETRIES, { kind: 'mid' }),
    after: llm(session({}, TWO_RETRIES), 4),
    says: 'bounded-work: attempt 4 of at most 3',
  },
  { title: 'a call below the limit of rounds', after: llm(spent({ rounds: 1 }, { rounds: 2 })) },
  {
    title: 'a call at the limit of rounds',
    after: llm(spent({ rounds: 2 }, { rounds: 2 })),
    says: 'bounded-work: a call beyond the limit of rounds',
  },
  { title: 'a call without a limit of rounds', after: llm(spent({ rounds: 200 }, { rounds: 0 })) },
  {
    title: 'the call that asks for the answer at the limit',
    after: llm(spent({ rounds: 2, finishing: 'rounds' }, { rounds: 2 })),
  },
  {
    title: 'a call that goes on at the limit',
    before: llm(spent({ rounds: 2 }, { rounds: 2 })),
    after: llm(spent({ rounds: 2 }, { rounds: 2 })),
  },
  {
    title: 'a call after too many cut replies',
    after: llm(spent({ truncations: 2 }, { truncation: 2 })),
    says: 'bounded-work: a call beyond the limit of cut replies',
  },
  { title: 'a call after one cut reply', after: llm(spent({ truncations: 1 }, { truncation: 2 })) },
  {
    title: 'a call without a limit of cut replies',
    after: llm(spent({ truncations: 9 }, { truncation: 0 })),
  },
  {
    title: 'as many calls as may run',
    after: batch([running('1'), running('2')], session({}, { maxParallel: 2 })),
  },
  {
    title: 'more calls than may run',
    after: batch([running('1'), running('2')], session({}, { maxParallel: 1 })),
    says: 'bounded-work: more calls run than may run at once',
  },
  {
    title: 'calls that ran when the bound was lowered',
    before: batch([running('1'), running('2')], session({}, { maxParallel: 2 })),
    after: batch([running('1'), running('2')], session({}, { maxParallel: 1 })),
  },
  {
    title: 'one more than ran when the bound was lowered',
    before: batch([running('1'), running('2')], session({}, { maxParallel: 2 })),
    after: batch([running('1'), running('2'), running('3')], session({}, { maxParallel: 1 })),
    says: 'bounded-work: more calls run than may run at once',
  },
  {
    title: 'a call that only waited when the bound was lowered',
    before: batch([running('1'), queued('2')], session({}, { maxParallel: 2 })),
    after: batch([running('1'), running('2')], session({}, { maxParallel: 1 })),
    says: 'bounded-work: more calls run than may run at once',
  },
  { title: 'a mutating call by itself', after: batch([running('1', true), queued('2')]) },
  {
    title: 'a mutating call beside another one',
    after: batch([running('1'), running('2', true)]),
    says: 'bounded-work: a mutating call has company',
  },
];
for (const row of bounds) check(row);

// ---- 6, 7, 9, 10 ----

const SHUTDOWN: Event = { type: 'ShutdownRequested', at: g.NOW };
const waitsInQueue = (...texts: readonly string[]): SessionData =>
  session({
    queue: texts.map((words, index) => ({
      inputId: `input-${index}`,
      text: words,
      mode: 'steer' as const,
    })),
  });

const unanswered = withTalk([], asked('one'));

const rest: readonly Row[] = [
  { title: 'a shutdown', event: SHUTDOWN, after: { name: 'ShuttingDown', session: session() } },
  {
    title: 'a shutdown that ends nothing',
    event: SHUTDOWN,
    after: waiting(),
    says: 'shutdown: shutdown did not end the session',
  },
  { title: 'an input that is queued', event: typed('one'), after: llm(waitsInQueue('one')) },
  { title: 'an input that is sent', event: typed('one'), after: llm(withTalk([], asked('one'))) },
  {
    title: 'an input that is sent and answered in one step',
    event: typed('one'),
    after: waiting(withTalk([asked('one'), reply()])),
  },
  { title: 'a blank input', event: typed(' '), after: waiting() },
  {
    title: 'an input that is nowhere',
    event: typed('one'),
    after: llm(),
    says: 'nothing-typed-is-lost: "one" is lost',
  },
  {
    title: 'an input that has become a note',
    event: typed('one'),
    after: llm(withTalk([], user(text('note', 'one')))),
    says: 'nothing-typed-is-lost: "one" is lost',
  },
  {
    title: 'a long input that is nowhere, by its beginning',
    event: typed('x'.repeat(50)),
    after: llm(),
    says: `nothing-typed-is-lost: "${'x'.repeat(40)}" is lost`,
  },
  {
    title: 'the same input twice, kept once',
    before: llm(waitsInQueue('one')),
    event: typed('one'),
    after: llm(waitsInQueue('one', 'two')),
    says: 'nothing-typed-is-lost: "one" is lost',
  },
  {
    title: 'the queue is sent',
    before: llm(waitsInQueue('one')),
    after: llm(withTalk([], asked('one'))),
  },
  {
    title: 'the queue is handed back',
    before: llm(waitsInQueue('one')),
    after: waiting(),
    actions: [PROMPT, { type: 'RestoreQueue', texts: ['one'] }],
  },
  {
    title: 'the queue is gone',
    before: llm(waitsInQueue('one')),
    after: waiting(),
    says: 'nothing-typed-is-lost: "one" is lost',
  },
  {
    title: 'the queue is edited by the user',
    before: llm(waitsInQueue('one')),
    event: { type: 'EditQueue', at: g.NOW, items: [] },
    after: llm(),
  },
  {
    title: 'an unanswered question is gone',
    before: llm(withTalk([], asked('one'))),
    after: waiting(),
    says: 'nothing-typed-is-lost: "one" is lost',
  },
  {
    title: 'an unanswered question is gone, and the queue is as it was',
    before: llm(unanswered),
    after: waiting({ ...unanswered, conversation: emptyConversation }),
    says: 'nothing-typed-is-lost: "one" is lost',
  },
  {
    title: 'an input that changes nothing',
    before: llm(unanswered),
    event: typed('two'),
    after: llm(unanswered),
    says: 'nothing-typed-is-lost: "two" is lost',
  },
  {
    title: 'a note for the model is gone',
    before: llm(withTalk([], user(text('note', 'one')))),
    after: waiting(),
  },
  {
    title: 'an answered message is edited',
    before: waiting(withTalk([asked('one'), reply()])),
    after: waiting(withTalk([asked('two'), reply()])),
    says: 'append-only: a message that was answered has been changed',
  },
  {
    title: 'an answered message is summed up',
    before: waiting(withTalk([asked('one'), reply()])),
    event: {
      type: 'CompactionCompleted',
      at: g.NOW,
      compactionId: 'compaction-1',
      summary: 'one',
      usage: g.usage(),
    },
    after: waiting(withTalk([], user(text('note', 'a summary')))),
  },
];
for (const row of rest) check(row);

const silent = waiting();
check({
  title: 'an event that changes nothing',
  before: silent,
  after: silent,
  actions: [],
  says: 'no-silent-event: CancelTurn in WaitingForUserInput changed nothing and said nothing',
});
check({ title: 'an event that is answered by an action alone', before: silent, after: silent });
check({
  title: 'an event for display alone',
  before: silent,
  event: { type: 'ReasoningDelta', at: g.NOW, requestId: 'req-1', text: 'hm' },
  after: silent,
  actions: [],
});

test('an event that is named in a diagnostic is not silent', () => {
  const diagnostics = [
    { kind: 'late', state: silent.name, event: 'CancelTurn', why: 'no turn' },
  ] as const;
  assert.deepEqual(
    stateFaults(silent, event, { state: silent, actions: [], path: [], diagnostics }),
    [],
  );
});

test('promises that were broken before are not complained about again', () => {
  const broken = waiting(session({ conversation: { ...emptyConversation, open: user() } }));
  assert.deepEqual(
    stateFaults(broken, event, {
      state: { ...broken },
      actions: [PROMPT],
      path: [],
      diagnostics: [],
    }),
    [],
  );
});
