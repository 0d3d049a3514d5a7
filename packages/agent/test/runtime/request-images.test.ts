import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  callTools,
  ok,
  play,
  rawCall,
  say,
  settle,
  stage,
  testModel,
  tool,
  watchSession,
} from '../../../../test/kit/runtime/stage.js';
import type { Image, Message } from '../../src/machine/message.js';

const PICTURE = Buffer.from('a picture').toString('base64');

/** A tool that shows a picture which it keeps first, as `read` does. */
const look = tool('look', async (_input, { blobs }) => {
  const image: Image = { mediaType: 'image/png', sha256: await blobs.put(PICTURE) };
  return { ...ok('a.png'), images: [image] };
});

const takes = (images: 'yes' | 'no', ...answers: Parameters<typeof testModel>) => {
  const model = testModel(...answers);
  return {
    ...model,
    facts: { ...model.facts, images },
    stream: model.stream,
    requests: model.requests,
  };
};

const shownIn = (messages: readonly Message[] | undefined): readonly Image[] =>
  (messages ?? []).flatMap(({ parts }) =>
    parts.flatMap((part) => ('images' in part ? (part.images ?? []) : [])),
  );
const textOf = (messages: readonly Message[] | undefined): string => JSON.stringify(messages);

test('a picture that a tool shows goes to the model with its bytes, and its bytes are in no event and no state', async () => {
  const on = await play({
    model: takes('yes', callTools(rawCall('1', 'look')), say('seen')),
    tools: [look],
  });
  await on.say('look');
  const state = await on.rest();
  assert.deepEqual(
    shownIn(on.model.requests[1]?.messages).map(({ base64 }) => base64),
    [PICTURE],
  );
  assert.doesNotMatch(JSON.stringify(on.steps), new RegExp(PICTURE));
  assert.ok(state.session.contextTokens >= 110, 'the size is what the model counted');
});

test('a picture counts when the size of the conversation is estimated', async () => {
  const on = await play({
    model: takes('yes', callTools(rawCall('1', 'look')), say('seen')),
    tools: [look],
  });
  await on.say('look');
  const { state } = await on.until(({ event }) => event.type === 'ToolCompleted');
  assert.ok(state.session.contextTokens > 1_600);
  await on.rest();
});

test('a model that takes no pictures reads that one is not shown, and the next model is shown it', async () => {
  const on = await play({
    model: takes('no', callTools(rawCall('1', 'look')), say('blind')),
    tools: [look],
  });
  await on.say('look');
  await on.rest();
  const { messages } = on.model.requests[1] ?? {};
  assert.deepEqual(shownIn(messages), []);
  assert.match(textOf(messages), /a\.png\\n\[a picture is not shown: test\/one takes none\]/);
  const id = await on.runtime.fork(on.id, (await on.journals.peek(on.id)).seq);
  const later = stage({
    journals: on.journals,
    model: takes('yes', say('now I see')),
    tools: [look],
  });
  await later.runtime.open(id);
  const again = watchSession(later, id);
  await again.say('and now?');
  await again.rest();
  assert.deepEqual(
    shownIn(later.model.requests[0]?.messages).map(({ base64 }) => base64),
    [PICTURE],
  );
});

test('what the user shows goes with the text, also when it waited in the queue', async () => {
  const on = await play({
    model: takes('yes', callTools(rawCall('1', 'wait')), say('seen')),
    tools: [tool('wait', () => ok('ok'))],
  });
  const sha256 = await on.journals.blobs.put(PICTURE);
  const images = [{ mediaType: 'image/jpeg', sha256 }] as const;
  const first = on.runtime.send(on.id, { type: 'UserInput', text: 'see', mode: 'steer', images });
  await Promise.all([
    first,
    on.runtime.send(on.id, { type: 'UserInput', text: 'and this', mode: 'steer', images }),
  ]);
  await on.rest();
  assert.deepEqual(shownIn(on.model.requests[0]?.messages), [
    { mediaType: 'image/jpeg', sha256, base64: PICTURE },
  ]);
  assert.equal(shownIn(on.model.requests[1]?.messages).length, 2);
});

test('what was shown with an input stays with it when the queue is edited', async () => {
  let edited: Promise<unknown> = Promise.resolve();
  const wait = tool('wait', async () => {
    await edited;
    return ok('ok');
  });
  const on = await play({
    model: takes('yes', callTools(rawCall('1', 'wait')), say('seen')),
    tools: [wait],
  });
  const images = [
    { mediaType: 'image/png', sha256: await on.journals.blobs.put(PICTURE) },
  ] as const;
  edited = (async () => {
    await on.until(({ event }) => event.type === 'ToolStarted');
    await on.runtime.send(on.id, { type: 'UserInput', text: 'see', mode: 'steer', images });
    const items = [{ inputId: 'input-2', text: 'see this', mode: 'steer' }] as const;
    await on.runtime.send(on.id, { type: 'EditQueue', items });
  })();
  await on.say('go');
  await edited;
  await on.rest();
  const { messages } = on.model.requests[1] ?? {};
  assert.match(textOf(messages), /see this/);
  assert.equal(shownIn(messages).length, 1);
});

test('of many pictures the newest are shown, and one that the journal has lost is said to be', async () => {
  const on = await play({ model: takes('yes', say('seen')) });
  const put = async (index: number): Promise<Image> => ({
    mediaType: 'image/png',
    sha256: await on.journals.blobs.put(`picture ${index}`),
  });
  const images = await Promise.all(Array.from({ length: 25 }, (_, index) => put(index)));
  const lost: Image = { mediaType: 'image/png', sha256: 'f'.repeat(64) };
  await on.runtime.send(on.id, {
    type: 'UserInput',
    text: 'see',
    mode: 'steer',
    images: [...images, lost],
  });
  await on.rest();
  const { messages } = on.model.requests[0] ?? {};
  assert.deepEqual(
    shownIn(messages).map(({ base64 }) => base64),
    images.slice(5).map((_, index) => `picture ${index + 5}`),
  );
  assert.match(textOf(messages), /6 pictures are not shown: only the newest/);
});

test('a picture that was shown often counts each time', async () => {
  const on = await play({ model: takes('yes', say('seen')) });
  const image = { mediaType: 'image/png', sha256: await on.journals.blobs.put(PICTURE) } as const;
  const images = Array.from({ length: 25 }, () => image);
  await on.runtime.send(on.id, { type: 'UserInput', text: 'see', mode: 'steer', images });
  await on.rest();
  const { messages } = on.model.requests[0] ?? {};
  assert.equal(shownIn(messages).length, 20);
  assert.match(textOf(messages), /5 pictures are not shown/);
});

test('of large pictures as many of the newest are shown as fit into a request', async () => {
  const on = await play({ model: takes('yes', say('seen')) });
  const put = async (letter: string): Promise<Image> => ({
    mediaType: 'image/png',
    sha256: await on.journals.blobs.put(letter.repeat(5_000_000)),
  });
  const images = [await put('a'), await put('b'), await put('c')];
  await on.runtime.send(on.id, { type: 'UserInput', text: 'see', mode: 'steer', images });
  await on.rest();
  const { messages } = on.model.requests[0] ?? {};
  assert.deepEqual(
    shownIn(messages).map(({ base64 }) => base64?.[0]),
    ['b', 'c'],
  );
  const [text] = (messages?.[0]?.parts ?? []).map((part) =>
    part.type === 'text' ? part.text : '',
  );
  assert.match(text ?? '', /a picture is not shown: only the newest .* 14 MB/);
});

test('a model of which nobody knows whether it takes pictures is shown none, and told so', async () => {
  const model = testModel(say('blind'));
  const on = await play({ model });
  const images = [
    { mediaType: 'image/png', sha256: await on.journals.blobs.put(PICTURE) },
  ] as const;
  await on.runtime.send(on.id, { type: 'UserInput', text: 'see', mode: 'steer', images });
  await on.rest();
  const { messages } = on.model.requests[0] ?? {};
  assert.deepEqual(shownIn(messages), []);
  assert.match(textOf(messages), /a picture is not shown: test\/one is not known to take any/);
});

test('a summary is made of words alone', async () => {
  const on = await play({
    model: takes('yes', callTools(rawCall('1', 'look')), say('seen'), say('the summary')),
    tools: [look],
  });
  await on.say('look');
  await on.rest();
  await on.runtime.send(on.id, { type: 'CompactRequested' });
  await on.rest();
  await settle();
  const { messages } = on.model.requests[2] ?? {};
  assert.deepEqual(shownIn(messages), []);
  assert.match(textOf(messages), /only words are summarised/);
});
