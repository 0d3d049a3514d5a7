import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Given } from '../../../../test/kit/agent/given.js';
import * as g from '../../../../test/kit/agent/given.js';
import { begun, forAll, roam } from '../../../../test/kit/agent/random.js';
import { faultsOf, walk } from '../../../../test/kit/agent/walker.js';
import { carrySession, stateFrom } from '../../src/machine/carried-session.js';
import { messagesOf } from '../../src/machine/conversation.js';
import type { CarriedSession, Event } from '../../src/machine/event.js';
import { step } from '../../src/machine/machine.js';
import type { Message } from '../../src/machine/message.js';
import type { State } from '../../src/machine/state.js';

/** A session that is read from its events alone, compared with what the machine made of the same events. */

/** A machine that finds no event in its place. */
const carriedFrom = (events: readonly Event[]): CarriedSession => {
  const carrier = carrySession('test/model');
  const needed: Event = {
    type: 'ToolCompleted',
    at: g.NOW,
    batchId: '',
    callId: '',
    outcome: { status: 'ok', text: '' },
  };
  carrier.see(needed, false);
  for (const event of events) carrier.see(event, true);
  const session = carrier.missed(events.length);
  assert.ok(session !== null);
  return session;
};

const asConversation = ({ messages, work }: CarriedSession): readonly Message[] => {
  if (work.kind !== 'calls') return messages;
  const results = work.calls.map(({ judged }) => ({
    type: 'result' as const,
    callId: judged.callId,
    tool: judged.tool,
    failed: false,
    text: 'result',
  }));
  return [...messages, { role: 'user', parts: results }];
};

const typedIn = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => ('text' in part ? (part.text.match(/text-\d+\./g) ?? []) : [])),
  );

const heldBy = ({ session }: State): readonly string[] => [
  ...typedIn(messagesOf(session.conversation)),
  ...session.queue.map(({ text }) => text),
];

test('every session that is read from its events is valid for a strict provider, and goes on', (t) => {
  forAll(t, 150, (walked) => {
    const walker = roam(walked);
    for (let length = 1; length <= walker.events().length; length += 7) {
      const carried = carriedFrom(walker.events().slice(0, length));
      assert.deepEqual(faultsOf(asConversation(carried)), []);
      const before = walker.steps()[length]?.state ?? begun({});
      const resumed: Event = {
        type: 'Resumed',
        at: g.NOW * 2,
        epoch: before.session.epoch + 1,
        upgrade: { from: 1, to: 2, session: carried },
      };
      const { state, diagnostics, actions } = step(before, resumed);
      assert.deepEqual(diagnostics, []);
      const sent = actions.some(({ type }) => type === 'SendLlmRequest');
      const isOpen = state.name === 'ExecutingTools';
      assert.deepEqual(isOpen ? [] : faultsOf(messagesOf(state.session.conversation)), []);
      assert.ok(!sent || state.session.conversation.open !== null);
      const wire: unknown = JSON.parse(JSON.stringify(resumed));
      assert.deepEqual(step(before, wire as Event).diagnostics, []);
    }
  });
});

test('a session that is read from its events has every text that the user typed', (t) => {
  forAll(t, 150, (walked) => {
    const walker = roam(walked);
    const { messages, queue } = carriedFrom(walker.events());
    const held = new Set([...typedIn(messages), ...queue.map(({ text }) => text)]);
    // What a summary replaced is gone, and so is what the user took back, or out of the queue.
    const removes = walker
      .events()
      .some(({ type }) => ['CompactionCompleted', 'EditQueue', 'RewindRequested'].includes(type));
    const last = walker.steps().at(-1)?.state;
    if (removes || last === undefined) return;
    for (const text of heldBy(last)) assert.ok(held.has(text), `${text} was lost`);
  });
});

test('the queue of a session that is read from its events is as the user left it', () => {
  const items = [{ inputId: 'input-3', text: 'third, edited', mode: 'followUp' as const }];
  const events: readonly Event[] = [
    g.input('first'),
    g.input('second'),
    g.followUp('third'),
    { type: 'EditQueue', at: g.NOW, items },
  ];
  const { messages, queue, work } = carriedFrom(events);
  assert.deepEqual([typedIn(messages).length, queue, work.kind], [0, items, 'request']);
  const closed = carriedFrom([...events, { type: 'ShutdownRequested', at: g.NOW }]);
  assert.deepEqual([closed.queue, closed.work.kind], [items, 'closed']);
});

test('ids that are used after an upgrade were never used before', () => {
  const events: readonly Event[] = [{ type: 'UserInput', at: 1, text: 'first', mode: 'steer' }];
  const state = stateFrom(begun({}), { ...carriedFrom(events), idsFrom: 40 });
  const { actions } = step(state, { type: 'Resumed', at: 2, epoch: 1 });
  assert.deepEqual(
    actions.flatMap((action) => (action.type === 'SendLlmRequest' ? [action.requestId] : [])),
    ['req-41'],
  );
});

test('a second Resumed of the same opening changes nothing, whatever it carries', () => {
  const upgrade = { from: 1, to: 2, session: carriedFrom([]) };
  const opened = step(begun({}), { type: 'Resumed', at: 2, epoch: 1, upgrade });
  const again = step(opened.state, { type: 'Resumed', at: 3, epoch: 1, upgrade });
  assert.equal(again.state, opened.state);
  assert.equal(again.diagnostics.length, 1);
});

const FIRST_TURN = { kept: 2, messages: [], contextTokens: 0 } as const;
const NOT_NEXT = {
  role: 'user',
  parts: [{ type: 'text', origin: 'user', text: 'out of turn' }],
} as const;
const greeted: readonly Given[] = [g.begin, g.input('one'), g.says('First.'), g.input('two')];
/** The events of a walk. */
const eventsOf = (...given: readonly Given[]): readonly Event[] => {
  const walker = walk(begun({}));
  walker.send(...given);
  return walker.events();
};

test('a rewind takes the conversation back; a reply to what was taken back is left out', () => {
  const taken = eventsOf(...greeted, g.cancel, { ...g.rewind(), conversation: FIRST_TURN });
  const late = eventsOf(...greeted, g.says('Second.')).at(-1);
  assert.ok(late !== undefined);
  const { messages, work } = carriedFrom([...taken, late]);
  assert.deepEqual([messages.length, work.kind], [2, 'nothing']);
  const again = carriedFrom([...taken, g.input('three'), late]);
  assert.equal(again.messages.length, 4);
});

test('a rewind that leads to no conversation, or comes while a call runs, changes nothing', () => {
  const before = eventsOf(...greeted, g.says('Second.'));
  for (const kept of [1_000, 1]) {
    const conversation = { ...FIRST_TURN, kept, messages: kept === 1 ? [NOT_NEXT] : [] };
    const { messages } = carriedFrom([...before, { ...g.rewind(), conversation }]);
    assert.equal(messages.length, 4, `${kept} kept`);
  }
  const running = eventsOf(g.begin, g.input('one'), g.wants(g.edit('1')), g.started('1'));
  assert.equal(carriedFrom([...running, g.rewind()]).work.kind, 'calls');
});

test('files that were being taken back are taken back by the later machine', () => {
  const request = { ...g.rewind('plan-1'), conversation: FIRST_TURN };
  const events = eventsOf(...greeted, g.says('Second.'), request, g.input('typed meanwhile'));
  const session = carriedFrom(events);
  const { work, queue, messages } = session;
  assert.deepEqual([work.kind, queue.length, messages.length], ['rewind', 1, 4]);
  const upgrade = { from: 1, to: 2, session };
  const opened = step(begun({}), { type: 'Resumed', at: g.NOW, epoch: 1, upgrade });
  assert.deepEqual(opened.actions, [
    { type: 'RestoreFiles', rewindId: 'rewind-1', plan: 'plan-1' },
  ]);
  const { state, diagnostics } = step(opened.state, g.rewound());
  assert.deepEqual([state.name, diagnostics], ['WaitingForUserInput', []]);
  assert.equal(messagesOf(state.session.conversation).length, 2);
  const done = carriedFrom([...events, g.rewound()]);
  assert.deepEqual([done.work.kind, done.messages.length], ['nothing', 2]);
  const closed = carriedFrom([...events, g.shutdown]);
  assert.deepEqual([closed.work.kind, closed.messages.length], ['closed', 4]);
});
