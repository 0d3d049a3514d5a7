import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import {
  type HttpServer,
  readServers,
  type StdioServer,
} from '../../../packages/agent/src/extensions/mcp/server-config.js';
import { atEnd, type TestScope, temporaryFolder } from '../../temporary-folder.js';

/** Real MCP servers for tests, made with the official package: programs on stdio, and HTTP servers in this process. */

const MODULES = ['@modelcontextprotocol/server', '@modelcontextprotocol/server/stdio'].map((name) =>
  JSON.stringify(import.meta.resolve(name)),
);

/** A program that serves MCP. `body` registers tools at `server`; `schema` makes an input schema. */
export const serverScript = (scope: TestScope, body: string): string => {
  const file = path.join(temporaryFolder(scope, 'mcp-server'), 'server.mjs');
  const script = `import { McpServer, fromJsonSchema } from ${MODULES[0]};
import { serveStdio } from ${MODULES[1]};
const schema = (properties = {}) => fromJsonSchema({ type: 'object', properties });
serveStdio(() => {
  const server = new McpServer({ name: 'test', version: '1' }, { capabilities: { tools: { listChanged: true } } });
  ${body}
  return server;
});
`;
  writeFileSync(file, script);
  return file;
};

/** Settings of one server, as a user writes them. */
export const settingsOf = <T extends StdioServer | HttpServer>(name: string, table: object): T => {
  const { servers, faults } = readServers({ [name]: table }, []);
  const [server] = servers;
  if (server === undefined) throw new Error(faults[0]?.text);
  return server as T; // the table decides which it is
};

/** A server that a program of Node's runs. */
export const stdioServer = (name: string, script: string, more: object = {}): StdioServer =>
  settingsOf(name, { command: process.execPath, args: [script], ...more });

/** A program of a few lines, without any package. */
export const plainScript = (scope: TestScope, script: string): string => {
  const file = path.join(temporaryFolder(scope, 'mcp-plain'), 'server.mjs');
  writeFileSync(file, script);
  return file;
};

const readBody = async (incoming: IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer); // a stream without an encoding
  return Buffer.concat(pieces).toString('utf8');
};

export type HttpTestServer = { readonly url: string; readonly methods: readonly string[] };

/** An HTTP server on loopback in this process. `register` adds tools; it runs for each request. */
export const httpServer = async (
  scope: TestScope,
  register: (server: McpServer) => void,
  allows: (incoming: IncomingMessage) => boolean = () => true,
): Promise<HttpTestServer> => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'test', version: '1' });
    register(server);
    return server;
  });
  const methods: string[] = [];
  const http = createServer(async (incoming, outgoing) => {
    if (!allows(incoming)) return void outgoing.writeHead(401).end();
    const body = await readBody(incoming);
    methods.push(String(incoming.headers['mcp-method'] ?? 'none'));
    const headers = Object.entries(incoming.headers).map(([key, value]) => [key, String(value)]);
    const abort = new AbortController();
    outgoing.once('close', () => abort.abort());
    const { method = 'GET' } = incoming;
    const response = await handler.fetch(
      new Request(`http://${incoming.headers.host}${incoming.url}`, {
        method,
        headers: Object.fromEntries(headers),
        signal: abort.signal,
        ...(body === '' ? {} : { body }),
      }),
    );
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    for await (const piece of response.body ?? []) outgoing.write(piece);
    outgoing.end();
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  atEnd(scope, async () => {
    http.closeAllConnections();
    http.close();
    await handler.close();
  });
  const { port } = http.address() as AddressInfo; // it listens on a port
  return { url: `http://127.0.0.1:${port}/mcp`, methods };
};

export const anyInput = (properties: object = {}): ReturnType<typeof fromJsonSchema> =>
  fromJsonSchema({ type: 'object', properties: { ...properties } });
