import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addReply,
  addTexts,
  emptyConversation,
  requestMessages,
} from '../../src/machine/conversation.js';
import type { AssistantMessage } from '../../src/machine/message.js';

// rules.md#reasoning: what the model is sent of a conversation that other models took part in.

const OWN = 'test/model';
const reply = (change: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: 'assistant',
  model: OWN,
  cut: false,
  parts: [
    { type: 'reasoning', text: 'hm', metadata: { signature: 'sealed' } },
    { type: 'text', text: 'yes' },
  ],
  ...change,
});
const asked = addTexts(emptyConversation, 'user', ['hello']);
/** A reply as it is sent. */
const sent = (stored: AssistantMessage) => requestMessages(addReply(asked, stored), 2, OWN)[1];
const bare = (stored: AssistantMessage): AssistantMessage => ({
  ...stored,
  parts: [{ type: 'text', text: 'yes' }],
});

test('a request is the first messages of the conversation, in order', () => {
  const talk = addTexts(addReply(asked, reply()), 'user', ['more']);
  const roles = (length: number) => requestMessages(talk, length, OWN).map(({ role }) => role);
  assert.deepEqual(roles(3), ['user', 'assistant', 'user']);
  assert.deepEqual(roles(1), ['user']);
});

test('a whole reply of the model goes back as it came, with its reasoning', () => {
  const own = reply();
  assert.equal(sent(own), own);
});

test('the reasoning of another model stays behind, what it said does not', () => {
  const foreign = reply({ model: 'other/model' });
  assert.deepEqual(sent(foreign), bare(foreign));
});

test('the reasoning of a reply that was cut stays behind, though it is of the same model', () => {
  const cut = reply({ cut: true });
  assert.deepEqual(sent(cut), bare(cut));
});

test('a reply of another model that has no reasoning is sent as it is', () => {
  const foreign = bare(reply({ model: 'other/model' }));
  assert.equal(sent(foreign), foreign);
});
