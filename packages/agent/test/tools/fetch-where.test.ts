import assert from 'node:assert/strict';
import { once } from 'node:events';
import type http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { Lookup } from '../../src/tools/public-get.js';
import { makePlace } from './context.js';
import { answers, fetchPage, serve } from './fetching.js';

// Where a fetch goes, and where it does not; when it ends.

test('requests name neither the user nor the machine', async (t) => {
  let seen: http.IncomingHttpHeaders = {};
  const address = await serve(t, (request, response) => {
    seen = request.headers;
    response.end('ok');
  });
  await fetchPage(t, address);
  assert.deepEqual(Object.keys(seen).sort(), [
    'accept',
    'accept-encoding',
    'connection',
    'host',
    'user-agent',
  ]);
  assert.equal(seen['user-agent'], 'pawl');
});

test('a redirect on the same host is followed', async (t) => {
  const address = await serve(t, (request, response) => {
    if (request.url === '/new') response.end('there');
    else response.writeHead(302, { location: '/new' }).end();
  });
  const { status, text } = await fetchPage(t, `${address}/old`);
  assert.equal(status, 'ok');
  assert.match(text, /\/new: 200 OK, no type\]\nthere$/);
});

test('a redirect to another host is not followed: the model is told where it leads', async (t) => {
  let reached = false;
  const inside = await serve(t, (_request, response) => {
    reached = true;
    response.end('secret');
  });
  const address = await serve(t, (_request, response) =>
    response.writeHead(301, { location: `${inside}/secret` }).end(),
  );
  const { status, text } = await fetchPage(t, address);
  assert.equal(status, 'failed');
  assert.match(text, /leads on to http:\/\/127\.0\.0\.1:\d+\/secret\. Nothing was read there/);
  assert.equal(reached, false);
});

test('a redirect to what is no web address is not followed', async (t) => {
  const address = await serve(t, (_request, response) =>
    response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  );
  assert.match((await fetchPage(t, address)).text, /which must begin with https/);
});

test('redirects in a circle end', async (t) => {
  let hops = 0;
  const address = await serve(t, (_request, response) => {
    hops += 1;
    response.writeHead(302, { location: '/again' }).end();
  });
  assert.match((await fetchPage(t, address)).text, /more than 5 redirects/);
  assert.equal(hops, 6);
});

test('a public name that leads to an address of this machine is refused before anything is sent', async (t) => {
  let reached = false;
  const address = await serve(t, (_request, response) => {
    reached = true;
    response.end('secret');
  });
  const lookup: Lookup = (_name, options, found) =>
    options.all ? found(null, [{ address: '127.0.0.1', family: 4 }]) : found(null, '127.0.0.1', 4);
  const port = new URL(address).port;
  const { status, text } = await fetchPage(t, `http://page.example:${port}/`, { lookup });
  assert.equal(status, 'failed');
  assert.match(text, /page\.example leads to 127\.0\.0\.1, an address of a private network/);
  assert.equal(reached, false);
  const named = await fetchPage(t, `http://page.localhost:${port}/`, { lookup });
  assert.equal(named.status, 'ok', 'a private name was allowed by its own name');
});

test('a host that was not the one allowed is refused', async (t) => {
  const address = await serve(t, answers({}, 'text'));
  assert.match(
    (await fetchPage(t, address, { hosts: ['example.com'] })).text,
    /is not the host that was allowed/,
  );
});

test('a server that says nothing is given up when time is up', async (t) => {
  const stopping = new AbortController();
  const address = await serve(t, () => stopping.abort('timedOut'));
  assert.deepEqual(await fetchPage(t, address, { signal: stopping.signal }), {
    status: 'timedOut',
    text: 'the server did not answer in time',
  });
});

test('a cancel in the middle of a page ends the call', async (t) => {
  const stopping = new AbortController();
  const address = await serve(t, (_request, response) => {
    response.write('half');
    setImmediate(() => stopping.abort('cancelled'));
  });
  assert.equal((await fetchPage(t, address, { signal: stopping.signal })).status, 'cancelled');
});

test('nobody listens: the reason is named', async (t) => {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  server.close();
  await once(server, 'close');
  assert.match(
    (await fetchPage(t, `http://127.0.0.1:${port}`)).text,
    /could not be read: .*ECONNREFUSED/,
  );
});

test('a proxy of the environment is used', async (t) => {
  const proxy = await serve(t, (request, response) => response.end(`proxied ${request.url}`));
  const { text } = await fetchPage(t, 'http://page.example/a', {
    environment: { http_proxy: proxy },
  });
  assert.match(text, /\nproxied http:\/\/page\.example\/a$/);
});

for (const [url, why] of [
  ['page.example', 'is not a whole address'],
  ['ftp://page.example', 'must begin with https:// or http://'],
  ['https://me:secret@page.example', 'must not hold a name or a password'],
  [`https://page.example/${'x'.repeat(2_000)}`, 'must have at most 2000 characters'],
] as const) {
  test(`${url.slice(0, 40)} is refused: ${why}`, async (t) => {
    const place = await makePlace(t);
    const judged = await place.judge('fetch', { url });
    assert.ok(judged.kind === 'invalid');
    assert.match(`${judged.field} ${judged.why}`, new RegExp(`^url ${why}`));
  });
}

test('the host and the kind of call are what policy decides about, however the address is written', async (t) => {
  const place = await makePlace(t);
  const judged = await place.judge('fetch', { url: 'HTTP://0x7f.1:8080/a?b#c' });
  assert.ok(judged.kind === 'ok');
  assert.deepEqual(judged.facts, {
    argv: [],
    paths: [],
    hosts: ['127.0.0.1:8080'],
    shape: 'http://127.0.0.1:8080',
  });
});
