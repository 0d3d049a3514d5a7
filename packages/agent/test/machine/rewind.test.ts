import { ok, strictEqual } from 'node:assert';
import { deepStrictEqual } from 'node:assert/strict';
import { test } from 'node:test';
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
