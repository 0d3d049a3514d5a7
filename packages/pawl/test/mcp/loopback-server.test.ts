import assert from 'node:assert/strict';
import { request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { McpServer } from '@modelcontextprotocol/server';
import { createConnection } from '@pawl/agent/extensions/mcp/connection';
import { anyInput, settingsOf } from '../../../../test/kit/mcp/test-servers.js';
import { atEnd, temporaryFolder } from '../../../../test/temporary-folder.js';
import { until } from '../../../../test/until.js';
import { openLoopbackServer } from '../../src/editor/mcp-server.js';

// An MCP server over HTTP on loopback: both eras, and everything that is refused.

const TOKEN = 'a-token-of-the-test';

const open = async (t: TestContext) => {
  const seen = { calls: 0, cancelled: 0 };
  const server = await openLoopbackServer({
    port: 0,
    token: TOKEN,
    create() {
      const mcp = new McpServer({ name: 'test', version: '1' });
      mcp.registerTool('act', { inputSchema: anyInput() }, async () => {
        seen.calls += 1;
        return { content: [{ type: 'text', text: 'acted' }] };
      });
      mcp.registerTool('wait', { inputSchema: anyInput() }, (_input, { mcpReq: { signal } }) => {
        seen.calls += 1;
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            seen.cancelled += 1;
            resolve({ content: [] });
          });
        });
      });
      return mcp;
    },
  });
  atEnd(t, () => server.close());
  const connect = (protocol: string) => {
    const settings = settingsOf<ReturnType<typeof settingsOf>>('web', {
      url: server.url,
      protocol,
      headers: { Authorization: `Bearer ${TOKEN}` },
    });
    const place = {
      environment: {},
      workspace: '/',
      stateFolder: temporaryFolder(t, 'loopback-state'),
    };
    const connection = createConnection(settings, place);
    atEnd(t, () => connection.close());
    return connection;
  };
  return { server, seen, connect };
};

for (const protocol of ['legacy', '2026-07-28'])
  test(`our own client calls it with the protocol ${protocol}, and a cancelled call is cancelled there`, async (t) => {
    const { seen, connect } = await open(t);
    const connection = connect(protocol);
    const options = { signal: new AbortController().signal, onProgress: () => undefined };
    const { content } = await connection.call('act', {}, options);
    assert.deepEqual(content, [{ type: 'text', text: 'acted' }]);
    const cancel = new AbortController();
    const called = connection.call('wait', {}, { ...options, signal: cancel.signal });
    await until('the call has begun', () => seen.calls === 2);
    cancel.abort();
    await assert.rejects(called);
    await connection.close();
    if (protocol !== 'legacy') await until('the call is cancelled', () => seen.cancelled === 1);
  });

for (const protocol of ['legacy', '2026-07-28'])
  test(`a call whose server is ended says so at once, with the protocol ${protocol}`, async (t) => {
    const { server, seen, connect } = await open(t);
    const connection = connect(protocol);
    const options = { signal: new AbortController().signal, onProgress: () => undefined };
    const called = connection.call('wait', {}, options);
    await until('the call has begun', () => seen.calls === 1);
    await server.close();
    await assert.rejects(
      called,
      /^Error: the MCP server web is gone: (the connection ended before it had answered|socket hang up)\. Whether/,
    );
  });

const ACCEPT = 'application/json, text/event-stream';
type Sent = {
  readonly method?: string;
  readonly headers?: object;
  readonly path?: string;
  readonly body?: string | Buffer;
};

const post = (
  url: string,
  { method = 'POST', headers = {}, path = '/mcp', body = '{}' }: Sent,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const all = {
      'content-type': 'application/json',
      accept: ACCEPT,
      authorization: `Bearer ${TOKEN}`,
      ...headers,
    };
    const sent = request(new URL(path, url), { method, headers: all }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.once('error', reject);
    sent.end(body);
  });

test('requests without the token, under another name, of web pages and to other paths are refused', async (t) => {
  const { server, seen } = await open(t);
  const { port } = new URL(server.url);
  const call = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'act', arguments: {} },
  });
  const rows: readonly (readonly [sent: Sent, status: number])[] = [
    [{ headers: { authorization: '' } }, 401],
    [{ headers: { authorization: `Bearer ${TOKEN}x` } }, 401],
    [{ headers: { authorization: `Basic ${TOKEN}` } }, 401],
    [{ headers: { host: `evil.example:${port}` } }, 403],
    [{ headers: { host: '127.0.0.1' } }, 403],
    [{ headers: { origin: 'https://evil.example' } }, 403],
    [{ headers: { origin: 'null' } }, 403],
    [{ headers: { origin: `http://localhost:${Number(port) + 1}` } }, 403],
    [{ path: '/' }, 404],
    [{ path: '/mcp/../x' }, 404],
    [{ body: 'x'.repeat(5_000_000) }, 413],
    [{ body: 'no json' }, 400],
    [{ headers: { 'content-type': 'text/plain' } }, 415],
  ];
  for (const [sent, status] of rows)
    assert.equal(
      await post(server.url, { body: call, ...sent }),
      status,
      JSON.stringify(sent).slice(0, 80),
    );
  assert.equal(seen.calls, 0);
  assert.equal(
    await post(server.url, {
      body: call,
      headers: { origin: `http://127.0.0.1:${port}` },
    }),
    200,
  );
});

test('a request that can not be read is told from one whose answer failed', async (t) => {
  const failing = await openLoopbackServer({
    port: 0,
    token: TOKEN,
    create: () => {
      throw new Error('no server');
    },
  });
  atEnd(t, () => failing.close());
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
  const headers = { 'mcp-protocol-version': '2025-06-18', 'content-length': '2' };
  assert.equal(await post(failing.url, { method: 'GET', headers }), 400);
  assert.equal(await post(failing.url, { body: call }), 500);
});
