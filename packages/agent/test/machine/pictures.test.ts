import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as g from '../../../../test/kit/agent/given.js';
import { settingsOf } from '../../../../test/kit/agent/settings.js';
import { type Walker, walk } from '../../../../test/kit/agent/walker.js';
import { estimateTokens, messagesOf } from '../../src/machine/conversation.js';
import type { On } from '../../src/machine/event.js';
import { initialState } from '../../src/machine/machine.js';
import type { Image, Message } from '../../src/machine/message.js';

/** Pictures go where their text goes, and count for the size of the conversation. */

const picture = (letter: string): Image => ({ mediaType: 'image/png', sha256: letter.repeat(64) });
const [cat, dog] = [picture('c'), picture('d')];

const shows = (text: string, ...images: readonly Image[]): On<'UserInput'> => ({
  type: 'UserInput',
  at: g.NOW,
  text,
  mode: 'steer',
  ...(images.length === 0 ? {} : { images }),
});
const seen =
  (callId: string, images?: readonly Image[]): g.Given =>
  (state) => ({
    type: 'ToolCompleted',
    at: g.NOW,
    batchId: state.name === 'ExecutingTools' ? state.batchId : '',
    callId,
    outcome: { status: 'ok', text: 'shown', ...(images === undefined ? {} : { images }) },
  });

const begun = (): Walker => {
  const walker = walk(initialState(settingsOf({ hooks: 'never' })));
  walker.send(g.begin);
  return walker;
};
const partsOf = (walker: Walker): readonly Message['parts'][number][] =>
  messagesOf(walker.state().session.conversation).at(-1)?.parts ?? [];
const sizeOf = (walker: Walker): number => walker.state().session.contextTokens;

test('the user’s pictures are in the message of their text; a text without pictures has none', () => {
  const walker = begun();
  walker.send(shows('who is it?', cat, dog));
  assert.deepEqual(partsOf(walker), [
    { type: 'text', origin: 'user', text: 'who is it?', images: [cat, dog] },
  ]);
  const plain = begun();
  plain.send(shows('who is it?'));
  assert.deepEqual(partsOf(plain), [{ type: 'text', origin: 'user', text: 'who is it?' }]);
  assert.equal(sizeOf(walker) - sizeOf(plain), 2 * 1_600);
});

test('what is shown while the machine works waits with its text, keeps its picture when the queue is edited, and is told', () => {
  const walker = begun();
  walker.send(g.input('hi'), g.wants(g.grep('1')), shows('look', cat), shows('no picture'));
  const waiting = walker.state().session.queue;
  assert.deepEqual(
    waiting.map(({ images }) => images),
    [[cat], undefined],
  );
  assert.ok(!('images' in (waiting[1] ?? {})));
  const items = waiting.map(({ inputId, mode, text }) => ({ inputId, mode, text: `${text}!` }));
  walker.send({ type: 'EditQueue', at: g.NOW, items });
  walker.send(g.started('1'), seen('1'));
  assert.deepEqual(
    partsOf(walker).filter(({ type }) => type === 'text'),
    [
      { type: 'text', origin: 'user', text: 'look!', images: [cat] },
      { type: 'text', origin: 'user', text: 'no picture!' },
    ],
  );
});

test('a tool’s pictures are in its result; a result without pictures has none', () => {
  const sizes = [[dog], undefined].map((images) => {
    const walker = begun();
    walker.send(g.input('hi'), g.wants(g.grep('1')), g.started('1'), seen('1', images));
    const result = { type: 'result', callId: '1', tool: 'grep', failed: false, text: 'shown' };
    assert.deepEqual(partsOf(walker), [images === undefined ? result : { ...result, images }]);
    return sizeOf(walker);
  });
  assert.equal((sizes[0] ?? 0) - (sizes[1] ?? 0), 1_600);
});

const refuses: g.Given = (state) => ({
  type: 'LlmFailed',
  at: g.NOW,
  requestId: state.name === 'CallingLlm' ? state.requestId : '',
  error: {
    kind: 'badRequest',
    message: 'Could not process image',
    retryable: false,
    retryAfterMs: null,
    about: 'picture',
  },
  usage: null,
  jitter: 0,
});

/** What happened to pictures, and where the machine is. */
const refusedIn = (walker: Walker): readonly unknown[] => [
  walker.state().name,
  walker.state().session.refusedPictures ?? [],
];

test('a picture that the provider refuses is left out, once for all', () => {
  const walker = begun();
  walker.send(shows('who is it?', cat), refuses);
  assert.deepEqual(refusedIn(walker), ['CallingLlm', [cat.sha256]]);
  walker.send(refuses);
  assert.deepEqual(refusedIn(walker), ['WaitingForUserInput', [cat.sha256]], 'there is no other');
});

test('pictures of before are left out only if those that are new are not it', () => {
  const walker = begun();
  walker.send(shows('who is it?', cat), g.says('a cat'), shows('and this?', dog), refuses);
  assert.deepEqual(refusedIn(walker), ['CallingLlm', [dog.sha256]]);
  walker.send(refuses);
  assert.deepEqual(refusedIn(walker), ['CallingLlm', [dog.sha256, cat.sha256]]);
  walker.send(refuses);
  assert.equal(walker.state().name, 'WaitingForUserInput');
});

test('a call that failed shows nothing', () => {
  const walker = begun();
  walker.send(g.input('hi'), g.wants(g.grep('1')), g.started('1'));
  walker.send((state) => {
    const event = g.eventOf(seen('1', [dog]), state);
    return event.type === 'ToolCompleted'
      ? { ...event, outcome: { ...event.outcome, status: 'failed' } }
      : event;
  });
  assert.ok(!('images' in (partsOf(walker)[0] ?? {})));
});

test('the estimate of messages counts pictures beside letters', () => {
  const message = (images?: readonly Image[]): Message => ({
    role: 'user',
    parts: [
      { type: 'text', origin: 'user', text: 'four', ...(images === undefined ? {} : { images }) },
    ],
  });
  assert.equal(estimateTokens([message()]), 1);
  assert.equal(estimateTokens([message([cat]), message([cat, dog])]), 2 + 3 * 1_600);
});
