import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { Message } from '../../src/agent/message.js';
import { ask, collect, userSays } from './conversing.js';
import { wires } from './wires.js';

const BYTES = Buffer.from('a picture').toString('base64');
const image = { mediaType: 'image/png', sha256: 'f'.repeat(64) } as const;

const talkOf = (modelId: string, base64: { readonly base64?: string }): readonly Message[] => [
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
        images: [{ ...image, ...base64 }],
      },
      {
        type: 'text',
        origin: 'user',
        text: 'and this',
        images: [{ ...image, mediaType: 'image/jpeg', ...base64 }],
      },
    ],
  },
];

/** What a provider is sent; it answers that it is broken. */
const sentTo = async (
  wire: (typeof wires)[number],
  base64: { readonly base64?: string },
): Promise<string> => {
  let body = '';
  const server = http.createServer((request, response) => {
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.once('end', () => response.writeHead(500).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  const model = wire.model(`http://127.0.0.1:${port}`);
  await collect(model.stream(ask(...talkOf(model.id, base64)), new AbortController().signal));
  server.closeAllConnections();
  server.close();
  return body;
};

for (const wire of wires) {
  test(`${wire.name}: pictures stand behind the results, each with its kind and its bytes`, async () => {
    const body = await sentTo(wire, { base64: BYTES });
    const parts = body.split(BYTES);
    assert.equal(parts.length, 3, body);
    assert.match(parts[0] ?? '', /the result/);
    assert.match(body, /image\/png/);
    assert.match(body, /image\/jpeg/);
    assert.match(parts[1] ?? '', /and this/);
  });

  test(`${wire.name}: a picture without bytes is not sent`, async () => {
    const body = await sentTo(wire, {});
    assert.doesNotMatch(body, /image\/|ffff/);
    assert.match(body, /and this/);
  });
}
