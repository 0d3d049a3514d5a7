import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd, type TestScope } from '../../temporary-folder.js';

/** An MCP server over HTTP, written from the protocol: its answers may have any form. It can be ended and started again at its address. */

/** `legacy`: as JSON, `events`: as a stream of events; both of 2025-11-25. `modern`: 2026-07-28, as JSON. */
export type Wire = 'legacy' | 'events' | 'modern';
export const WIRES: readonly Wire[] = ['legacy', 'events', 'modern'];

type Params = { readonly name?: string; readonly arguments?: Readonly<Record<string, unknown>> };

export type Refusal = { readonly status: number; readonly body: (id: unknown) => string };

export type RawServer = {
  readonly url: string;
  /** Tools that were called, in order. */
  readonly calls: string[];
  /** Forgets all sessions. Requests of a forgotten one get this answer. */
  forget(refusal: Refusal): void;
  /** Ends all connections. Nothing listens at the address any more. */
  stop(): Promise<void>;
  start(): Promise<void>;
};

const readBody = async (incoming: IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer); // a stream without an encoding
  return Buffer.concat(pieces).toString('utf8');
};

const CAPABILITIES = { tools: { listChanged: true }, prompts: {}, resources: {} };

const opening: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: CAPABILITIES,
    serverInfo: { name: 'raw', version: '1' },
  },
  'server/discover': {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: CAPABILITIES,
  },
};

/** `answer`: the result of a method; it may wait. */
export const rawServer = async (
  scope: TestScope,
  wire: Wire,
  answer: (method: string, params: Params) => unknown,
): Promise<RawServer> => {
  const calls: string[] = [];
  const sessions = new Set<string>();
  let refusal: Refusal = { status: 404, body: () => '' };
  let count = 0;
  const reply = (outgoing: ServerResponse, id: unknown, result: unknown, more: object): void => {
    const text = JSON.stringify({ jsonrpc: '2.0', id, result });
    const isEvents = wire === 'events';
    outgoing.writeHead(200, {
      'content-type': isEvents ? 'text/event-stream' : 'application/json',
      ...more,
    });
    outgoing.end(isEvents ? `event: message\ndata: ${text}\n\n` : text);
  };
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await readBody(incoming);
    if (incoming.method !== 'POST') return void outgoing.writeHead(405).end();
    const { id, method, params = {} } = JSON.parse(body);
    const session = String(incoming.headers['mcp-session-id'] ?? '');
    if (method === 'initialize') {
      count += 1;
      sessions.add(`session-${count}`);
      return reply(outgoing, id, opening[method], { 'mcp-session-id': `session-${count}` });
    }
    if (wire !== 'modern' && !sessions.has(session))
      return void outgoing
        .writeHead(refusal.status, { 'content-type': 'application/json' })
        .end(refusal.body(id));
    if (id === undefined) return void outgoing.writeHead(202).end();
    if (method === 'tools/call') calls.push(params.name);
    reply(outgoing, id, opening[method] ?? (await answer(method, params)), {});
  };
  const create = (): Server =>
    createServer((incoming, outgoing) => void handle(incoming, outgoing));
  let http = create();
  let port = 0;
  const start = (): Promise<void> => {
    http = create();
    return new Promise((resolve) => http.listen(port, '127.0.0.1', resolve));
  };
  const stop = async (): Promise<void> => {
    const closed = new Promise((resolve) => http.close(resolve));
    http.closeAllConnections();
    await closed;
  };
  await start();
  ({ port } = http.address() as AddressInfo); // it listens on a port
  atEnd(scope, stop);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    calls,
    start,
    stop,
    forget(next) {
      sessions.clear();
      refusal = next;
    },
  };
};
