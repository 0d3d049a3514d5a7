import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, type McpServer } from '@modelcontextprotocol/server';
import { isSameSecret } from '@pawl/agent/platform/base/compare-secrets';
import { foreignHeader, loopbackHosts } from '@pawl/agent/platform/net/check-host-and-origin';
import { attempt } from '@pawl/agent/session/attempt';

/**
 * An MCP server over HTTP for programs of this machine.
 *
 * 1. It listens on 127.0.0.1 only. A request needs the token.
 * 2. Host and Origin must be ours, so that no web page reaches it under a foreign name or from a browser.
 * 3. A caller that goes away cancels its request.
 */
export type LoopbackServer = {
  /** `http://127.0.0.1:PORT/mcp` */
  readonly url: string;
  close(): Promise<void>;
};

export type LoopbackOptions = {
  /** 0: any free port. */
  readonly port: number;
  readonly token: string;
  /** Makes the server of one request. */
  readonly create: () => McpServer;
};

const PATH = '/mcp';
const BODY_BYTES_MAX = 4 * 1024 * 1024;
const CONNECTIONS_MAX = 64;

type Refusal = { readonly status: number; readonly why: string };

/** Why a request is not answered; null if it is. */
const refusalOf = ({ url, headers }: IncomingMessage, port: number, token: string): Refusal | null => {
  const foreign = foreignHeader(headers, loopbackHosts(port));
  if (foreign === 'host') return { status: 403, why: 'the host is not this one' };
  if (foreign === 'origin') return { status: 403, why: 'requests of web pages are not answered' };
  if (!isSameSecret(headers.authorization, `Bearer ${token}`))
    return { status: 401, why: 'the token is missing or wrong' };
  return url === PATH ? null : { status: 404, why: `there is only ${PATH}` };
};

/** The body; null if it is too large. */
const readBody = async (incoming: IncomingMessage): Promise<Buffer | null> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of incoming) {
    pieces.push(piece as Buffer); // a stream without an encoding
    bytes += (piece as Buffer).length; // the same
    if (bytes > BODY_BYTES_MAX) return null;
  }
  return Buffer.concat(pieces);
};

const refuse = (outgoing: ServerResponse, { status, why }: Refusal): void => {
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    connection: 'close',
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
  });
  outgoing.end(JSON.stringify({ error: why }));
};

const send = async (response: Response, outgoing: ServerResponse): Promise<void> => {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  for await (const piece of response.body ?? []) {
    if (outgoing.destroyed) return;
    if (!outgoing.write(piece))
      await new Promise<void>((resolve) => {
        outgoing.once('drain', resolve).once('close', resolve);
      });
  }
  outgoing.end();
};

export const openLoopbackServer = async ({
  port,
  token,
  create,
}: LoopbackOptions): Promise<LoopbackServer> => {
  const handler = createMcpHandler(create, { maxRequestBodySize: BODY_BYTES_MAX });
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const refusal = refusalOf(incoming, bound, token);
    if (refusal !== null) return refuse(outgoing, refusal);
    const body = await readBody(incoming);
    if (body === null) return refuse(outgoing, { status: 413, why: 'the request is too large' });
    const gone = new AbortController();
    outgoing.once('close', () => gone.abort());
    const { method = 'GET' } = incoming;
    const headers = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)] as const);
    const request = new Request(`http://127.0.0.1:${bound}${PATH}`, {
      method,
      headers: Object.fromEntries(headers),
      signal: gone.signal,
      ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
    });
    await send(await handler.fetch(request), outgoing);
  };
  const server = createServer((incoming, outgoing) => {
    attempt(() => answer(incoming, outgoing)).then(({ kind }) => {
      if (kind === 'done') return;
      // The caller is gone, or its request can't be read: only it loses something.
      if (outgoing.headersSent) outgoing.destroy();
      else refuse(outgoing, { status: 400, why: 'the request can not be read' });
    });
  });
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: bound } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${bound}${PATH}`,
    async close() {
      server.close();
      await handler.close();
      server.closeAllConnections();
    },
  };
};
