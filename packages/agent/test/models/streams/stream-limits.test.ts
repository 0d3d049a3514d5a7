import '../../../../../test/own-process.js';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { chatModel, delta, events, hello, serve, streamed, textOf } from '../answering.js';
import { play } from './replay-stream.js';

/** Streams of an odd size or coding. */

const MEGABYTE = 1 << 20;

const slicesOf = (bytes: Buffer, size: number): readonly Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );

test('a line of 10 MB arrives whole, in any chunks', async () => {
  const long = 'ä'.repeat(5 * MEGABYTE);
  const bytes = Buffer.from(events(delta({ content: long }), delta({}, 'stop'), '[DONE]'));
  for (const size of [1_449, 65_536, bytes.length]) {
    const { ending } = await play('chat', { chunks: slicesOf(bytes, size) });
    assert.ok(ending.type === 'completed');
    const [part] = ending.parts;
    assert.ok(part?.type === 'text' && part.text === long, `chunks of ${size}`);
  }
});

test('a comment of 10 MB and an event that never ends are no reply, and end the stream', async () => {
  const odd = [
    `:${'x'.repeat(10 * MEGABYTE)}\n\n`,
    `data: {"choices":[{"delta":{"content":"${'x'.repeat(10 * MEGABYTE)}`,
  ];
  for (const text of odd) {
    const { ending, streamed: shown } = await play('chat', {
      chunks: slicesOf(Buffer.from(text), 16_384),
    });
    assert.equal(ending.type, 'failed');
    assert.deepEqual(shown, []);
  }
});

test('a compressed body that is cut anywhere shows a beginning, and ends as broken', async (context) => {
  const words = Array.from({ length: 200 }, (_, index) => `word ${index} `);
  const body = events(...words.map((content) => delta({ content })), delta({}, 'stop'), '[DONE]');
  const zipped = gzipSync(body);
  const cuts = Array.from({ length: 24 }, (_, index) => Math.floor((zipped.length * index) / 24));
  const { url } = await serve(context, (out, number) =>
    streamed(zipped.subarray(0, cuts[number - 1]), { 'content-encoding': 'gzip' })(out, number),
  );
  const model = chatModel(url);
  let shown = 0;
  for (const cut of cuts) {
    const { pieces, ending } = await hello(model);
    assert.equal(ending.type, 'failed', `cut at ${cut} of ${zipped.length}`);
    const text = textOf(pieces);
    assert.ok(words.join('').startsWith(text), `cut at ${cut}`);
    shown = Math.max(shown, text.length);
  }
  assert.ok(shown > 0, 'no cut stream showed anything');
  const { ending } = await hello(model);
  assert.equal(ending.type, 'completed', 'the whole body is whole');
});
