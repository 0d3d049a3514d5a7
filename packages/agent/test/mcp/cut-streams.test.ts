import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import * as v from 'valibot';
import { settingsOf } from '../../../../test/kit/mcp/test-servers.js';
import { atEnd, temporaryFolder } from '../../../../test/temporary-folder.js';
import { createConnection } from '../../src/extensions/mcp/connection.js';
import type { HttpServer } from '../../src/extensions/mcp/server-config.js';

// Answers as streams of events that can be resumed, and servers that end them. The server is written from the protocol.

const EVENTS = { 'content-type': 'text/event-stream' };
const message = v.looseObject({ id: v.optional(v.number()), method: v.optional(v.string()) });

type Call = {
  readonly answer: ServerResponse;
  /** The answer of the call, as an event. */
  readonly result: string;
  /** Ends the server and all its connections. */
  die(): void;
};

type Behaviour = {
  /** The content type of the answer to the call. Default: events. */
  readonly type?: string;
  /** Answers the call, or a part of it. */
  readonly onCall: (call: Call) => void;
  /** Answers the attempt to resume it. */
  readonly onResume?: (call: Call, eventId: string) => void;
};

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'cut', version: '1' },
  },
  'tools/list': { tools: [{ name: 'act', inputSchema: { type: 'object' } }] },
};

const serve = async (t: TestContext, { onCall, onResume, type }: Behaviour) => {
  const resumed: string[] = [];
  let calledAs: number | undefined;
  const server = createServer((incoming, answer) => {
    const die = (): void => {
      server.close();
      server.closeAllConnections();
    };
    const call = (): Call => {
      const result = {
        jsonrpc: '2.0',
        id: calledAs,
        result: { content: [{ type: 'text', text: 'acted' }] },
      };
      return { answer, die, result: `id: 9\ndata: ${JSON.stringify(result)}\n\n` };
    };
    const eventId = incoming.headers['last-event-id'];
    if (incoming.method === 'GET') {
      if (typeof eventId !== 'string') return void answer.writeHead(405).end();
      resumed.push(eventId);
      onResume?.(call(), eventId);
      return;
    }
    let body = '';
    incoming.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    incoming.on('end', () => {
      if (incoming.method !== 'POST') return void answer.writeHead(200).end();
      const { id, method = '' } = v.parse(message, JSON.parse(body));
      if (id === undefined) return void answer.writeHead(202).end();
      const result = RESULTS[method];
      if (result !== undefined) {
        answer.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' });
        return void answer.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      }
      calledAs = id;
      answer.writeHead(200, type === undefined ? EVENTS : { 'content-type': type });
      onCall(call());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo; // it listens at a port
  const settings = settingsOf<HttpServer>('web', {
    url: `http://127.0.0.1:${port}/mcp`,
    protocol: 'legacy',
  });
  const connection = createConnection(settings, {
    environment: {},
    workspace: '/',
    stateFolder: temporaryFolder(t, 'cut-streams'),
  });
  atEnd(t, () => connection.close());
  await connection.listTools();
  const called = connection.call(
    'act',
    {},
    { signal: AbortSignal.timeout(60_000), onProgress: () => undefined },
  );
  return { called, resumed };
};

const PRIMED = 'id: 7\nretry: 60000\ndata: \n\n';
/** Without `retry`, the package waits a second before it resumes. */
const SOON = PRIMED.replace('60000', '1');
const GONE =
  /^Error: the MCP server web is gone: the connection ended before it had answered\. Whether the call/;

const endings: Readonly<Record<string, Behaviour>> = {
  'a server that dies': {
    onCall: ({ answer, die }) => void answer.write(SOON, () => setImmediate(die)),
  },
  'a server that has forgotten the stream': {
    onCall: ({ answer }) => void answer.end(SOON),
    onResume: ({ answer }) => void answer.writeHead(404).end('no such stream'),
  },
  'a server that resumes nothing': {
    onCall: ({ answer }) => void answer.end(SOON),
    onResume: ({ answer }) => void answer.writeHead(405).end(),
  },
  'a server that answers with a page': {
    onCall: ({ answer }) => void answer.end(SOON),
    onResume: ({ answer }) =>
      void answer.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello'),
  },
  'a server that fails twice': {
    onCall: ({ answer }) => void answer.end(SOON),
    onResume: ({ answer }) => void answer.writeHead(503).end(),
  },
  'a resumed stream that ends without an answer': {
    onCall: ({ answer }) => void answer.end(SOON),
    onResume: ({ answer }) => void answer.writeHead(200, EVENTS).end(': nothing\n\n'),
  },
  'a first event that is cut off behind its id': {
    onCall: ({ answer }) => void answer.end('event: message\nid: 1\ndata: {"jso'),
  },
  'an event with an id and no data': {
    onCall: ({ answer }) => void answer.end('id: 1\n\n'),
  },
  'a resumed stream whose first event is cut off': {
    onCall: ({ answer }) => void answer.end(SOON),
    onResume: ({ answer }) => void answer.writeHead(200, EVENTS).end('id: 8\ndata: {"jso'),
  },
  'an answer that is cut off in its body': {
    onCall: ({ answer, die }) => void answer.write('{"jsonrpc"', () => setImmediate(die)),
    type: 'application/json',
  },
};

for (const [name, behaviour] of Object.entries(endings))
  test(`a call that could be resumed ends at once: ${name}`, async (t) => {
    const { called } = await serve(t, behaviour);
    await assert.rejects(called, GONE); // at its own limit it would say something else
  });

test('an event without an end is not kept: the call fails, and its answer was too long', async (t) => {
  const { called } = await serve(t, {
    onCall: ({ answer }) => void answer.write(`data: ${'x'.repeat(17 << 20)}`),
  });
  await assert.rejects(called, /its answer is longer than 16 MB/);
});

test('a call is resumed as often as its server cuts it off, whatever the pieces of its stream', async (t) => {
  const { called, resumed } = await serve(t, {
    onCall({ answer }) {
      answer.write('id: 6\nretry: 1\ndata: \n\nid');
      // The last event is cut off: the package names the one before.
      setImmediate(() => answer.end(': 7\r\ndata: \n\nid: 8\ndata: {"half'));
    },
    onResume({ answer, result }, eventId) {
      answer.writeHead(200, EVENTS);
      answer.end(eventId === '7' ? PRIMED.replace('7', '8').replace('60000', '1') : result);
    },
  });
  assert.deepEqual((await called).content, [{ type: 'text', text: 'acted' }]);
  assert.deepEqual(resumed, ['7', '8']);
});

test('a server that names a long time to wait is asked earlier', async (t) => {
  const { called, resumed } = await serve(t, {
    onCall: ({ answer }) => void answer.end(PRIMED),
    onResume: ({ answer, result }) => void answer.writeHead(200, EVENTS).end(result),
  });
  assert.deepEqual((await called).content, [{ type: 'text', text: 'acted' }]);
  assert.deepEqual(resumed, ['7']);
});
