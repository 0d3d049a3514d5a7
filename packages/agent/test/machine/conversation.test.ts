import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addReply,
  addResults,
  addTexts,
  compactableLength,
  conversationLength,
  emptyConversation,
  estimateTokens,
  holdsResults,
  messagesOf,
  PRESERVED_REQUEST,
  replaceBySummary,
  requestMessages,
  takeBackInput,
} from '../../src/machine/conversation.js';
import type { AssistantMessage, ResultPart } from '../../src/machine/message.js';

// The conversation by itself: what its functions promise to moves that use them otherwise, too.

const says = (text: string): AssistantMessage => ({
  role: 'assistant',
  model: 'test/model',
  cut: false,
  parts: [{ type: 'text', text }],
});
const found: ResultPart = {
  type: 'result',
  callId: '1',
  tool: 'grep',
  failed: false,
  text: 'found',
};
const asked = addTexts(emptyConversation, 'user', ['one']);
const answered = addReply(asked, says('first'));
const called = addResults(answered, [found]);

const rolesOf = (conversation: typeof asked): string =>
  messagesOf(conversation)
    .map(({ role }) => role)
    .join(' ');

test('no texts add no message', () => {
  assert.equal(addTexts(emptyConversation, 'user', []), emptyConversation);
  assert.equal(addTexts(asked, 'user', []), asked);
});

test('texts join the message that waits', () => {
  const both = addTexts(asked, 'note', ['two', 'three']);
  assert.deepEqual(both.open?.parts, [
    { type: 'text', origin: 'user', text: 'one' },
    { type: 'text', origin: 'note', text: 'two' },
    { type: 'text', origin: 'note', text: 'three' },
  ]);
  assert.equal(conversationLength(both), 1);
});

test('a reply closes the message it answers, if one waits', () => {
  assert.equal(rolesOf(answered), 'user assistant');
  assert.equal(answered.open, null);
  assert.equal(rolesOf(addReply(answered, says('second'))), 'user assistant assistant');
});

test('results are known from texts, and a compaction leaves them with their calls', () => {
  assert.deepEqual(
    [emptyConversation, asked, answered, called].map((one) => [
      holdsResults(one),
      compactableLength(one),
    ]),
    [
      [false, 0],
      [false, 0],
      [false, 2],
      [true, 1],
    ],
  );
});

test('a summary stands before what is left of a conversation', () => {
  const kept = replaceBySummary(called, 1, 'so far');
  assert.equal(rolesOf(kept), 'user assistant user');
  assert.deepEqual(messagesOf(kept)[0]?.parts, [
    { type: 'text', origin: 'summary', text: 'so far' },
  ]);
  assert.equal(kept.open, called.open);
  const all = replaceBySummary(addTexts(answered, 'user', ['two']), 2, 'so far');
  assert.equal(all.closed.length, 0);
  assert.deepEqual(all.open?.parts, [
    { type: 'text', origin: 'summary', text: 'so far' },
    { type: 'text', origin: 'user', text: 'two' },
  ]);
  const rest = replaceBySummary(answered, 2, 'so far');
  assert.deepEqual(rest.open?.parts, [{ type: 'text', origin: 'summary', text: 'so far' }]);
});

test('only what the user typed is taken back', () => {
  assert.deepEqual(takeBackInput(answered), { inputs: [], conversation: answered });
  assert.deepEqual(takeBackInput(asked), {
    inputs: [{ type: 'text', origin: 'user', text: 'one' }],
    conversation: { closed: asked.closed, open: null },
  });
  const mixed = addTexts(addTexts(called, 'note', ['by the way']), 'user', ['two', 'three']);
  const { inputs, conversation } = takeBackInput(mixed);
  assert.deepEqual(
    inputs.map(({ text }) => text),
    ['two', 'three'],
  );
  assert.deepEqual(conversation.open?.parts, [
    found,
    { type: 'text', origin: 'note', text: 'by the way' },
  ]);
});

test('an estimate counts four characters as one token: of texts, of results, of names and arguments of calls', () => {
  const call: AssistantMessage = {
    ...says(''),
    parts: [{ type: 'call', callId: '1', tool: 'grep', input: { find: 'it' } }],
  };
  assert.equal(estimateTokens([]), 0);
  assert.equal(estimateTokens([{ role: 'user', parts: [found] }]), 2);
  assert.equal(estimateTokens([call]), Math.ceil(('grep'.length + '{"find":"it"}'.length) / 4));
  assert.equal(estimateTokens([says('12345678'), says('1234'), says('1')]), 4);
});

test('a request says before a summary what it is; the conversation itself does not have the words', () => {
  const frameOf = (summary: string): string => {
    const conversation = replaceBySummary(answered, 2, summary);
    assert.deepEqual(messagesOf(conversation)[0]?.parts, [
      { type: 'text', origin: 'summary', text: summary },
    ]);
    const [part] = requestMessages(conversation, 1, 'test/model')[0]?.parts ?? [];
    return part?.type === 'text' ? part.text : '';
  };
  assert.equal(
    frameOf('so far'),
    '[The conversation so far was replaced by your summary of it. Go on from it. Files that you read still count as read for edit; read one again before write replaces it.]\n\nso far',
  );
  const running = `so far\n\n[kept: ${PRESERVED_REQUEST}]\nwork`;
  assert.match(frameOf(running), /You are in the middle of the work: go on with 'Next'/);
  const plain = requestMessages(answered, 1, 'test/model');
  assert.deepEqual(plain, messagesOf(answered).slice(0, 1), 'without a summary nothing is added');
});
