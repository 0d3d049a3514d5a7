import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import net from 'node:net';
import { type TestContext, test } from 'node:test';
import { classify } from '../../src/models/errors.js';
import { createFetch, proxyFor } from '../../src/platform/http.js';

const provider = { name: 'Some', keyVariable: 'SOME_KEY', host: 'a.example' };

const listen = async (server: net.Server, context: TestContext): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => server.close());
  return (server.address() as AddressInfo).port; // it listens on a port
};

const OK = 'HTTP/1.1 200 OK\r\n\r\n';

/** What a proxy answers to CONNECT before it falls silent. */
const silences: readonly (readonly [string, string])[] = [
  ['a proxy that does not answer', ''],
  ['a server that does not answer behind a proxy', OK],
];

for (const [title, answer] of silences) {
  test(`an abort ends a request that waits for ${title}, and its connection`, async (context) => {
    const abortion = new AbortController();
    const closed: Promise<unknown>[] = [];
    const server = net.createServer((socket) => {
      closed.push(once(socket, 'close'));
      let heard = 0;
      socket.on('data', () => {
        heard++;
        if (heard === 1 && answer !== '') socket.write(answer);
        else abortion.abort();
      });
      socket.on('error', () => undefined);
    });
    const proxyPort = await listen(server, context);
    const fetch = createFetch({ HTTPS_PROXY: `http://127.0.0.1:${proxyPort}` });
    await assert.rejects(fetch('https://a.example/', { signal: abortion.signal }), {
      name: 'AbortError',
    });
    await Promise.all(closed);
    assert.equal(closed.length, 1);
  });
}

test('a request that was aborted before it was made asks no proxy', async (context) => {
  const seen: net.Socket[] = [];
  const proxyPort = await listen(
    net.createServer((socket) => void seen.push(socket)),
    context,
  );
  const fetch = createFetch({ HTTPS_PROXY: `http://127.0.0.1:${proxyPort}` });
  await assert.rejects(fetch('https://a.example/', { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
  assert.deepEqual(seen, []);
});

const proxies: readonly (readonly [
  string,
  string,
  Readonly<Record<string, string>>,
  string | null,
])[] = [
  ['no variable means no proxy', 'https://a.example/', {}, null],
  ['https has its own variable', 'https://a.example/', { HTTP_PROXY: 'http://p:1' }, null],
  [
    'lower case wins',
    'http://a.example/',
    { HTTP_PROXY: 'http://p:1', http_proxy: 'http://q:2' },
    'http://q:2/',
  ],
  ['one variable for all', 'https://a.example/', { ALL_PROXY: 'http://p:1' }, 'http://p:1/'],
  [
    'the own variable comes before that for all',
    'http://a.example/',
    { all_proxy: 'socks5://p:1', HTTP_PROXY: 'http://q:2' },
    'http://q:2/',
  ],
  ['a proxy may lack its scheme', 'https://a.example/', { HTTPS_PROXY: 'p:1' }, 'http://p:1/'],
  ['a star exempts all', 'https://a.example/', { HTTPS_PROXY: 'p:1', NO_PROXY: '*' }, null],
  [
    'a domain exempts what is below it',
    'https://a.example/',
    { HTTPS_PROXY: 'p:1', NO_PROXY: 'x.y, example' },
    null,
  ],
  [
    'a leading dot changes nothing',
    'https://a.example/',
    { HTTPS_PROXY: 'p:1', no_proxy: '.a.example' },
    null,
  ],
  [
    'a name that only ends alike is not exempt',
    'https://ba.example/',
    { HTTPS_PROXY: 'p:1', NO_PROXY: 'a.example' },
    'http://p:1/',
  ],
  [
    'a port exempts that port',
    'https://a.example/',
    { HTTPS_PROXY: 'p:1', NO_PROXY: 'a.example:443' },
    null,
  ],
  [
    'another port does not',
    'https://a.example/',
    { HTTPS_PROXY: 'p:1', NO_PROXY: 'a.example:8443' },
    'http://p:1/',
  ],
];

for (const host of ['localhost', 'a.localhost', '127.0.0.1', '[::1]'])
  test(`proxy: ${host} is asked without one`, () => {
    const environment = { HTTP_PROXY: 'http://p:1', HTTPS_PROXY: 'http://p:1' };
    assert.equal(proxyFor(new URL(`http://${host}:11434/`), environment), null);
    assert.equal(proxyFor(new URL(`https://${host}/`), environment), null);
  });

test('a proxy of another kind is refused at once, and the variable named', async () => {
  for (const [name, scheme] of [
    ['HTTPS_PROXY', 'socks5'],
    ['HTTPS_PROXY', 'ftp'],
    ['ALL_PROXY', 'socks5h'],
  ] as const) {
    const fetch = createFetch({ [name]: `${scheme}://me:secret@p:1080` });
    const error: unknown = await fetch('https://a.example/').catch((fault: unknown) => fault);
    const { message, retryable, kind } = classify(error, provider, 0);
    assert.equal(
      message,
      `${name} names a proxy of the kind ${scheme}, not an HTTP proxy. Write it as http://HOST:PORT, or unset it`,
    );
    assert.deepEqual([retryable, kind], [false, 'badRequest']);
  }
});

for (const [title, url, environment, expected] of proxies) {
  test(`proxy: ${title}`, () => {
    assert.equal(proxyFor(new URL(url), environment)?.href ?? null, expected);
  });
}

test('a proxy variable that is no URL is named, not ignored', async () => {
  await assert.rejects(
    createFetch({ HTTP_PROXY: 'http://:x:' })('http://a.example/'),
    /HTTP_PROXY is no URL/,
  );
});
