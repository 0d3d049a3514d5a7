import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wires } from '../../../../test/kit/models/wires.js';
import { GIF, makePng } from '../../../../test/servers/sample-pictures.js';
import type { ImageType, Message } from '../../src/machine/message.js';
import { measureRequest } from '../../src/session/model-call.js';
import { ask, collect, userSays } from './conversing.js';

/** Pictures as they are sent to the strict servers. */

const SHOWN = makePng(1).toString('base64');
const SAID = makePng(2).toString('base64');

type Picture = { readonly base64?: string; readonly mediaType?: ImageType };

const imageOf = ({ mediaType = 'image/png', ...rest }: Picture) => ({
  mediaType,
  sha256: 'f'.repeat(64),
  ...rest,
});

/** A tool has shown one picture, and then the user another. */
const talkOf = (modelId: string, shown: Picture, said: Picture): readonly Message[] => [
  userSays('look'),
  {
    role: 'assistant',
    model: modelId,
    cut: false,
    parts: [{ type: 'call', callId: 'c1', tool: 'read', input: { path: 'a.png' } }],
  },
  {
    role: 'user',
    parts: [
      {
        type: 'result',
        callId: 'c1',
        tool: 'read',
        failed: false,
        text: 'the result',
        images: [imageOf(shown)],
      },
      { type: 'text', origin: 'user', text: 'and this', images: [imageOf(said)] },
    ],
  },
];

/** What a provider is sent, and what it finds wrong with it. */
const sentTo = async (wire: (typeof wires)[number], shown: Picture, said: Picture) => {
  const server = await wire.start([{ type: 'message', parts: [{ type: 'text', text: 'seen' }] }]);
  try {
    const model = wire.model(server.url);
    await collect(
      model.stream(ask(...talkOf(model.id, shown, said)), new AbortController().signal),
    );
    const [request] = server.requests;
    return { text: request?.text ?? '', fault: request?.fault };
  } finally {
    await server.close();
  }
};

for (const wire of wires) {
  test(`${wire.name}: pictures stand behind the results, each with its kind and its bytes, and are taken`, async () => {
    const { text, fault } = await sentTo(wire, { base64: SHOWN }, { base64: SAID });
    const places = ['the result', SHOWN, 'and this', SAID].map((part) => text.indexOf(part));
    assert.ok(!places.includes(-1), text);
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
      text,
    );
    assert.equal(fault, null);
  });

  test(`${wire.name}: a picture without bytes is not sent`, async () => {
    const { text, fault } = await sentTo(wire, {}, {});
    assert.doesNotMatch(text, /image\/|ffff/);
    assert.match(text, /and this/);
    assert.equal(fault, null);
  });

  test(`${wire.name}: a GIF is sent, or the model reads that it is not; either is taken`, async () => {
    const gif = { mediaType: 'image/gif', base64: GIF.toString('base64') } as const;
    const { text, fault } = await sentTo(wire, gif, { base64: SAID });
    assert.equal(fault, null);
    assert.ok(text.includes(SAID), text);
    const takesGif = wire.name === 'anthropic' || wire.name === 'openai';
    assert.equal(text.includes(gif.base64), takesGif);
    assert.equal(text.includes('[a picture is not shown: '), !takesGif);
  });
}

test('the size of a request is without the bytes of its pictures, and with all other fields of that name', () => {
  const measure = (shown: string, input: string) => {
    const messages = talkOf('m', { base64: shown }, {}).map((message) =>
      message.role === 'user'
        ? message
        : {
            ...message,
            parts: message.parts.map((part) => ({ ...part, input: { base64: input } })),
          },
    );
    return measureRequest(ask(...messages));
  };
  const { bytes, images } = measure(SHOWN, 'a');
  assert.equal(images, 1); // the other one has no bytes
  assert.deepEqual(measure(SHOWN + SHOWN, 'a'), { bytes, images });
  assert.deepEqual(measure(SHOWN, 'a'.repeat(1_001)), { bytes: bytes + 1_000, images });
});
