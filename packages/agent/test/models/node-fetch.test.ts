import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import net from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { temporaryFolder } from '../../../../test/temporary-folder.js';
import { createFetch } from '../../src/platform/http.js';

const pem = fileURLToPath(new URL('../../../../test/servers/localhost.pem', import.meta.url));
const source = fileURLToPath(new URL('../../src/platform/http.ts', import.meta.url));

const listen = async (server: http.Server | net.Server, context: TestContext): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.close();
    if (server instanceof http.Server) server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port; // it listens on a port
};

/** Answers with what it was asked. */
const echo = (incoming: http.IncomingMessage, out: http.ServerResponse): void => {
  const { method, url, headers } = incoming;
  let body = '';
  incoming.setEncoding('utf8');
  incoming.on('data', (piece) => {
    body += piece;
  });
  incoming.on('end', () => {
    out.setHeader('x-two', ['a', 'b']);
    out.writeHead(201, 'Made', { 'content-type': 'application/json' });
    out.end(JSON.stringify({ method, url, headers, body }));
  });
};

/**
 * A proxy that notes what it is asked for; `user` is what it wants to be told. All names are of this
 * computer for it: what is at a loopback address is not asked through a proxy.
 */
const proxy = (seen: string[], user?: string, server: net.Server = http.createServer()) => {
  const knows = ({ headers }: http.IncomingMessage): boolean =>
    user === undefined ||
    headers['proxy-authorization'] === `Basic ${Buffer.from(user).toString('base64')}`;
  server.on('request', (incoming: http.IncomingMessage, out: http.ServerResponse) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    if (!knows(incoming)) return void out.writeHead(407).end();
    incoming.pipe(
      http.request(
        (incoming.url ?? '').replace(/[a-z]+\.example/, '127.0.0.1'),
        { method: incoming.method, headers: incoming.headers },
        (answer) => {
          out.writeHead(answer.statusCode ?? 0, answer.headers);
          answer.pipe(out);
        },
      ),
    );
  });
  server.on('connect', (incoming: http.IncomingMessage, socket: net.Socket) => {
    seen.push(`CONNECT ${incoming.url}`);
    if (!knows(incoming))
      return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    const [, port] = (incoming.url ?? '').split(':');
    const through = net.connect(Number(port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      through.pipe(socket).pipe(through);
    });
    through.on('error', () => socket.destroy());
    socket.on('error', () => through.destroy());
  });
  return server;
};

test('a request arrives as it was made, and the answer comes back whole', async (context) => {
  const port = await listen(http.createServer(echo), context);
  const headers = { 'X-Key': 'k', absent: undefined };
  const answer = await createFetch({})(`http://127.0.0.1:${port}/a?b=c`, {
    method: 'POST',
    headers,
    body: 'é',
  });
  assert.equal(answer.ok, true);
  assert.equal(answer.status, 201);
  assert.equal(answer.statusText, 'Made');
  assert.equal(answer.headers.get('x-two'), 'a, b');
  assert.equal(Object.fromEntries(answer.headers)['content-type'], 'application/json');
  const seen = (await answer.json()) as { headers: Record<string, string>; [key: string]: unknown }; // the echo above
  assert.deepEqual([seen.method, seen.url, seen.body], ['POST', '/a?b=c', 'é']);
  assert.equal(seen.headers['x-key'], 'k');
  assert.equal(seen.headers['content-length'], '2');
  assert.equal('absent' in seen.headers, false);
});

test('a body of many megabytes waits for its reader and comes through whole', async (context) => {
  const piece = Buffer.alloc(1 << 20, 'x');
  const sent: (string | undefined)[] = [];
  const port = await listen(
    http.createServer(({ url }, out) => {
      for (let count = 0; count < 24; count++) out.write(piece);
      out.end('end', () => void sent.push(url));
    }),
    context,
  );
  const fetch = createFetch({});
  const answer = await fetch(`http://127.0.0.1:${port}/waits`);
  const read = await fetch(`http://127.0.0.1:${port}/read`);
  assert.equal((await read.text()).length, (24 << 20) + 3);
  assert.deepEqual(sent, ['/read'], 'nobody has read the first one yet');
  let length = 0;
  let last: Uint8Array | undefined;
  for await (const bytes of answer.body) {
    length += bytes.length;
    last = bytes;
  }
  assert.equal(length, (24 << 20) + 3);
  assert.equal(
    Buffer.from(last ?? [])
      .toString('utf8')
      .endsWith('end'),
    true,
  );
});

test('an answer that is no success is an answer', async (context) => {
  const port = await listen(
    http.createServer((_, out) => out.writeHead(429).end('slow')),
    context,
  );
  const answer = await createFetch({})(`http://127.0.0.1:${port}/`);
  assert.deepEqual([answer.ok, answer.status, await answer.text()], [false, 429, 'slow']);
});

test('a refused connection rejects with its code', async (context) => {
  const server = net.createServer();
  const port = await listen(server, context);
  server.close();
  await once(server, 'close');
  await assert.rejects(createFetch({})(`http://127.0.0.1:${port}/`), { code: 'ECONNREFUSED' });
});

test('a body that is cut rejects with its code', async (context) => {
  const port = await listen(
    http.createServer((_, out) => {
      out.write('half', () => out.socket?.destroy());
    }),
    context,
  );
  const answer = await createFetch({})(`http://127.0.0.1:${port}/`);
  await assert.rejects(answer.text(), { code: 'ECONNRESET' });
});

test('an abort ends a request that waits for its answer', async (context) => {
  const abortion = new AbortController();
  const port = await listen(
    http.createServer(() => abortion.abort()),
    context,
  );
  await assert.rejects(createFetch({})(`http://127.0.0.1:${port}/`, { signal: abortion.signal }), {
    name: 'AbortError',
  });
});

test('an abort ends a body that is being read, and its connection', async (context) => {
  const abortion = new AbortController();
  let closed: Promise<unknown> = Promise.resolve();
  const port = await listen(
    http.createServer((_, out) => {
      out.write('half');
      closed = once(out, 'close');
    }),
    context,
  );
  const answer = await createFetch({})(`http://127.0.0.1:${port}/`, { signal: abortion.signal });
  const reader = answer.body[Symbol.asyncIterator]();
  await reader.next();
  abortion.abort();
  await assert.rejects(reader.next());
  await closed;
});

test('what came right before the connection failed is read before the failure', async (context) => {
  const port = await listen(
    http.createServer((_, out) => {
      out.write('half', () => out.destroy());
    }),
    context,
  );
  const answer = await createFetch({})(`http://127.0.0.1:${port}/`);
  const reader = answer.body[Symbol.asyncIterator]();
  for (let count = 0; count < 50; count++) await turn(); // mostly the failure has come, too
  assert.equal(Buffer.from((await reader.next()).value ?? []).toString(), 'half');
  await assert.rejects(reader.next(), { code: 'ECONNRESET' });
});

test('a body that nobody wants any more is closed, even if the server never ends it', async (context) => {
  let closed: Promise<unknown> = Promise.resolve();
  const port = await listen(
    http.createServer((_, out) => {
      out.write('half');
      closed = once(out, 'close');
    }),
    context,
  );
  const answer = await createFetch({})(`http://127.0.0.1:${port}/`);
  answer.body.discard();
  await closed;
});

test('plain http goes through HTTP_PROXY in absolute form, with the user it was given', async (context) => {
  const seen: string[] = [];
  const port = await listen(http.createServer(echo), context);
  const proxyPort = await listen(proxy(seen, 'me:s e'), context);
  const fetch = createFetch({ HTTP_PROXY: `http://me:s%20e@127.0.0.1:${proxyPort}` });
  const answer = await fetch(`http://server.example:${port}/a#b`, { method: 'POST', body: 'x' });
  type Echo = { headers: http.IncomingHttpHeaders; body: string };
  const { headers, body } = (await answer.json()) as Echo; // the echo above
  assert.deepEqual([headers.host, body], [`server.example:${port}`, 'x']);
  assert.equal(headers.authorization, undefined, 'the password is for the proxy alone');
  assert.deepEqual(seen, [`POST http://server.example:${port}/a`]);
});

test('https through a proxy that says no rejects with what it said', async (context) => {
  const seen: string[] = [];
  const proxyPort = await listen(proxy(seen, 'me:secret'), context);
  const fetch = createFetch({ https_proxy: `127.0.0.1:${proxyPort}` });
  await assert.rejects(fetch('https://server.example:9/'), {
    code: 'PROXY_REFUSED',
    message: /answered 407/,
  });
  assert.deepEqual(seen, ['CONNECT server.example:9']);
});

const run = async (
  file: string,
  environment: Readonly<Record<string, string>>,
): Promise<string> => {
  const child = spawn(process.execPath, [file], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece) => {
    text += piece;
  });
  await once(child, 'close');
  return text;
};

test('https goes through HTTPS_PROXY by CONNECT, keeps its connection; http through a proxy of https', async (context) => {
  const seen: string[] = [];
  const certificate = readFileSync(pem);
  const port = await listen(
    https.createServer({ key: certificate, cert: certificate }, echo),
    context,
  );
  const proxyPort = await listen(proxy(seen), context);
  const plainPort = await listen(http.createServer(echo), context);
  const secure = https.createServer({ key: certificate, cert: certificate });
  const securePort = await listen(proxy(seen, undefined, secure), context);
  const folder = temporaryFolder(context, 'http');
  const library = path.join(folder, 'http.mjs');
  await build({
    entryPoints: [source],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: library,
  });
  const program = path.join(folder, 'main.mjs');
  await writeFile(
    program,
    `import { createFetch } from './http.mjs';
    const fetch = createFetch(process.env);
    const urls = ['https://server.example:${port}/one', 'https://server.example:${port}/two', 'http://other.example:${plainPort}/three'];
    for (const url of urls) console.log((await (await fetch(url)).json()).url);
    console.log(process.moduleLoadList.some((name) => name.includes('undici')));`,
  );
  const environment = {
    HTTPS_PROXY: `http://127.0.0.1:${proxyPort}`,
    HTTP_PROXY: `https://localhost:${securePort}`,
    NODE_EXTRA_CA_CERTS: pem,
  };
  assert.equal(await run(program, environment), '/one\n/two\n/three\nfalse\n');
  const plain = `GET http://other.example:${plainPort}/three`;
  assert.deepEqual(seen, [`CONNECT server.example:${port}`, plain]);
});
