import { ok, strictEqual } from 'node:assert';
import { deepStrictEqual } from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { bring } from '../../../../test/kit/agent/walker.js';
import {
  addReply,
  addTexts,
  emptyConversation,
  messagesOf,
} from '../../src/machine/conversation.js';
import { modelReply, toolCall, userInput } from '../../src/machine/event.js';
import { initialState, settledConversation, step } from '../../src/machine/machine.js';
import { rewindConversation } from '../../src/machine/moves/rewind.js';
import { defaultSettings } from '../../src/machine/settings.js';

const asked = addTexts(emptyConversation, 'user', ['hello']);
const answered = addReply(asked, {
  role: 'assistant',
  model: 'p/m',
  cut: false,
  parts: [{ type: 'text', text: 'Hello.' }],
});

test('a rewind keeps the longest common beginning', () => {
  const present = addTexts(answered, 'user', ['more']);
  deepStrictEqual(rewindConversation(present, answered), { kept: 2, messages: [] });
  const copy = addTexts(emptyConversation, 'user', ['hello']);
  deepStrictEqual(rewindConversation(answered, copy), { kept: 1, messages: [] });
  deepStrictEqual(rewindConversation(asked, addTexts(emptyConversation, 'user', ['other'])), {
    kept: 0,
    messages: [{ role: 'user', parts: [{ type: 'text', origin: 'user', text: 'other' }] }],
  });
});

test('in a settled conversation each call of a running batch has a result', () => {
  const settings = { ...defaultSettings, model: 'p/m', workspace: '/w' };
  let state = step(initialState(settings), { type: 'Start', at: 1 }).state;
  state = step(state, userInput('hello', 2)).state;
  const call = toolCall({ callId: 'a', tool: 'bash' });
  state = step(state, modelReply({ requestId: 'req-1', at: 3, model: 'p/m', calls: [call] })).state;
  strictEqual(state.name, 'ExecutingTools');
  const messages = messagesOf(settledConversation(state));
  strictEqual(messages.length, 3);
  ok(messages[2]?.parts.some((part) => part.type === 'result' && part.callId === 'a'));
});

test('a rewind that leads to no whole conversation, or names nothing, changes nothing', () => {
  const walker = bring('W long');
  const before = walker.state();
  const kept = (count: number) => ({ kept: count, messages: [], contextTokens: 0 });
  const { conversation: _, ...nothing } = g.rewind();
  const twice = { ...kept(1), messages: messagesOf(before.session.conversation).slice(0, 1) };
  for (const request of [
    { ...g.rewind('plan-1'), conversation: kept(7) },
    { ...g.rewind('plan-1'), conversation: twice },
    nothing,
  ]) {
    const { state, actions, diagnostics } = walker.send(request);
    strictEqual(state, before);
    deepStrictEqual([actions, diagnostics[0]?.kind], [[], 'fault']);
  }
});

test('the state names the plan before a file changes, and a resumed session goes on with it', () => {
  const restore = { type: 'RestoreFiles', rewindId: 'rewind-1', plan: 'plan-1' };
  const walker = bring('W long');
  const first = walker.send({ ...g.rewind('plan-1') });
  ok(first.state.name === 'Rewinding' && first.state.plan === 'plan-1');
  deepStrictEqual(first.actions, [restore]);
  deepStrictEqual(walker.send(g.resumed).actions, [restore]);
  strictEqual(walker.send(g.rewound()).state.name, 'WaitingForUserInput');
});

test('what is typed meanwhile is queued; usage, settings and grants stay', () => {
  const walker = bring('W long');
  const { usage, settings, grants } = walker.state().session;
  walker.send(g.rewind('plan-1'), g.input('meanwhile'));
  const { session } = walker.send(g.rewound()).state;
  strictEqual(messagesOf(session.conversation).length, 0);
  deepStrictEqual(
    session.queue.map(({ text }) => text),
    ['meanwhile'],
  );
  deepStrictEqual([session.usage, session.settings, session.grants], [usage, settings, grants]);
  deepStrictEqual(session.notes, ['a.ts is as it was']);
});
