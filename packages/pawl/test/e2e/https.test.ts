import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expectCode, makePlace, runPawl } from './pawl.js';

/** The built program over TLS: what it loads late is there when it is needed. */

const pem = fileURLToPath(new URL('../../../../test/servers/localhost.pem', import.meta.url));

const event = (type: string, rest: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;

const REPLY = [
  event('message_start', {
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'x',
      content: [],
      stop_reason: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  }),
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Over TLS.' } }),
  event('content_block_stop', { index: 0 }),
  event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
  event('message_stop', {}),
].join('');

test('a provider behind a certificate of one’s own, which answers compressed', async (context) => {
  const certificate = readFileSync(pem);
  const server = https.createServer({ key: certificate, cert: certificate }, (incoming, out) => {
    incoming.resume();
    out.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
    out.end(gzipSync(REPLY));
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `https://localhost:${(server.address() as AddressInfo).port}`; // it listens on a port
  const more = {
    ANTHROPIC_API_KEY: 'key',
    ANTHROPIC_BASE_URL: url,
    PAWL_MAX_RETRIES: '1',
    PAWL_RETRY_MS: '5',
  };
  const trusting = await runPawl(makePlace(context, { ...more, NODE_EXTRA_CA_CERTS: pem }), [
    '-p',
    'go',
  ]);
  expectCode(trusting, 0);
  assert.equal(trusting.stdout, 'Over TLS.\n');
  const wary = await runPawl(makePlace(context, more), ['-p', 'go']);
  expectCode(wary, 69);
  assert.match(wary.stderr, /NODE_EXTRA_CA_CERTS/);
});
