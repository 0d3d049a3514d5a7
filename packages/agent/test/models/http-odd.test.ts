import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createFetch } from '../../src/platform/http.js';

/** What servers may do on the way to an answer, byte by byte. */

const listen = async (
  server: net.Server,
  context: TestContext,
  host = '127.0.0.1',
): Promise<number> => {
  server.listen(0, host);
  await once(server, 'listening');
  context.after(() => server.close());
  return (server.address() as AddressInfo).port; // it listens on a port
};

/** A server that writes these bytes to whoever asks, and closes. */
const writing = (context: TestContext, bytes: string): Promise<number> =>
  listen(
    net.createServer((socket) => {
      socket.on('error', () => undefined); // the client may go before all is written
      socket.once('data', () => socket.end(bytes));
    }),
    context,
  );

const ask = (port: number, host = '127.0.0.1') => createFetch({})(`http://${host}:${port}/`);

test('interim answers are no answer', async (context) => {
  const interim =
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
  const port = await writing(context, `${interim}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`);
  const answer = await ask(port);
  assert.deepEqual([answer.status, await answer.text()], [200, 'ok']);
});

test('a body in chunks, with an extension and a trailer, comes through whole', async (context) => {
  const body = '3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nx-sum: 1\r\n\r\n';
  const port = await writing(
    context,
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body}`,
  );
  assert.equal(await (await ask(port)).text(), 'abcde');
});

for (const [title, head] of [
  ['than its length', 'content-length: 100'],
  ['than its chunks', 'transfer-encoding: chunked'],
] as const) {
  test(`a body that is shorter ${title} is cut`, async (context) => {
    const port = await writing(context, `HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\nab`);
    await assert.rejects((await ask(port)).text(), { code: 'ECONNRESET' });
  });
}

test('headers beyond every measure are refused with a code', async (context) => {
  const port = await writing(context, `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`);
  await assert.rejects(ask(port), { code: 'HPE_HEADER_OVERFLOW' });
});

test('what is no HTTP at all is refused with a code', async (context) => {
  const port = await writing(context, 'SSH-2.0-OpenSSH_9.2\r\n');
  await assert.rejects(ask(port), { code: /^HPE_/ });
});

test('a server that hangs up without a word is refused with a code', async (context) => {
  const port = await writing(context, '');
  await assert.rejects(ask(port), { code: 'ECONNRESET' });
});

test('a name with several addresses is reached at the one that answers', async (context) => {
  const server = http.createServer((_, out) => out.end('here'));
  const port = await listen(server, context);
  context.after(() => server.closeAllConnections());
  // localhost is ::1 first on many machines, and nobody listens there.
  assert.equal(await (await ask(port, 'localhost')).text(), 'here');
});
